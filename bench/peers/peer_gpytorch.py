#!/usr/bin/env python3
"""GPyTorch for bench/harness (protocol: serving.py), as its documentation has it.

Sparse: ApproximateGP, VariationalStrategy (whitened), CholeskyVariationalDistribution, ScaleKernel(RBFKernel(ard)),
VariationalELBO, torch.optim.Adam over all parameters, zero_grad / loss / backward / step; StudentTLikelihood is its own
with nu fixed, the logistic likelihood is written on its quadrature (its own is the probit), the Poisson likelihood with
the closed expectation. Exact: ExactGP with Cholesky factors in place of its iterative defaults, which answer to about
1e-3 only; fits by SciPy's L-BFGS-B, as BoTorch fits them. Predictions in eval mode without gradients: what is computed
once for a model is then kept, and warm-up excludes it. Double precision; jitter 0 where the matrices are good without.
"""

import math
import sys
import time
import warnings
from pathlib import Path

sys.path[0:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]
warnings.filterwarnings("ignore")
import gpytorch  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from gpytorch.likelihoods.likelihood import _OneDimensionalLikelihood  # noqa: E402
from gpytorch_table import Logistic, table  # noqa: E402
from serving import in_chunks, load, pack, serve, start, timed  # noqa: E402

RATE = 1e-3
torch.set_default_dtype(torch.float64)


# --- likelihoods --------------------------------------------------------------------------------------------------


class Poisson(_OneDimensionalLikelihood):
    def forward(self, f, *args, **kwargs):
        return torch.distributions.Poisson(f.exp())

    def expected_log_prob(self, y, law, *args, **kwargs):
        return y * law.mean - (law.mean + 0.5 * law.variance).exp() - torch.lgamma(y + 1.0)


def student_t(problem):
    likelihood = gpytorch.likelihoods.StudentTLikelihood()
    likelihood.deg_free = problem["nu"]
    likelihood.raw_deg_free.requires_grad_(False)
    likelihood.noise = problem["phi"][0] ** 2
    return likelihood


def gaussian(problem):
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    likelihood.noise = problem["phi"][0]
    return likelihood


# By name: the likelihood, and (raw parameter, number that thiele learns) of what it learns.
LIKELIHOODS = {"gaussian": (gaussian, lambda own: [(own.noise_covar.raw_noise, own.noise)]),
               "logistic": (lambda problem: Logistic(), lambda own: []),
               "student-t": (student_t, lambda own: [(own.raw_noise, own.noise.sqrt())]),
               "poisson": (lambda problem: Poisson(), lambda own: [])}


# --- sparse variational -------------------------------------------------------------------------------------------


KERNELS = {"se": gpytorch.kernels.RBFKernel, "matern52": lambda **dims: gpytorch.kernels.MaternKernel(2.5, **dims)}


class SVGP(gpytorch.models.ApproximateGP):
    def __init__(self, Z, kernel="se"):
        q = gpytorch.variational.CholeskyVariationalDistribution(Z.size(0))
        super().__init__(gpytorch.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=True,
                                                                  jitter_val=0.0))
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(KERNELS[kernel](ard_num_dims=Z.size(1)))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def make_svgp(problem):
    """The model at the problem's Z, q and hyperparameters."""
    model = SVGP(torch.from_numpy(problem["Z"].copy()), problem.get("kernel", "se"))
    strategy = model.variational_strategy
    q = strategy._variational_distribution
    with torch.no_grad():
        q.variational_mean.copy_(torch.from_numpy(problem["m"]))
        q.chol_variational_covar.copy_(torch.from_numpy(problem["factor"]))
    strategy.variational_params_initialized.fill_(1)
    model.covar_module.outputscale = problem["variance"]
    model.covar_module.base_kernel.lengthscale = torch.from_numpy(problem["lengthscale"])
    return model


class Sparse:
    """Value, gradients and steps on one minibatch of B rows that stand for N."""

    def __init__(self, problem, nodes=20):
        B = problem["B"]
        self.N = len(problem["y"])
        self.X, self.y = (torch.from_numpy(problem[name][:B].copy()) for name in ("X", "y"))
        make, self.learned = LIKELIHOODS[problem["likelihood"]]
        self.model, self.likelihood = make_svgp(problem), make(problem)
        if hasattr(self.likelihood, "quadrature"):
            self.likelihood.quadrature = gpytorch.utils.quadrature.GaussHermiteQuadrature1D(nodes)
        self.q = self.model.variational_strategy._variational_distribution
        self.bound = gpytorch.mlls.VariationalELBO(self.likelihood, self.model, num_data=self.N)
        free = [p for p in (*self.model.parameters(), *self.likelihood.parameters()) if p.requires_grad]
        self.optimizer = torch.optim.Adam(free, lr=RATE)
        self.model.train()
        self.likelihood.train()

    def step(self):
        self.optimizer.zero_grad()
        loss = -self.bound(self.model(self.X), self.y)
        loss.backward()
        self.optimizer.step()

    def steps(self, n):
        return timed(self.step, n)

    def logs(self):
        """(raw parameter, the number) of each kind, in thiele's order."""
        kernel = self.model.covar_module
        return [(kernel.base_kernel.raw_lengthscale, kernel.base_kernel.lengthscale),
                (kernel.raw_outputscale, kernel.outputscale), *self.learned(self.likelihood)]

    def answer(self):
        """Bound, gradient by parts, marginals: VariationalELBO is a row's share, so it is multiplied by N."""
        self.optimizer.zero_grad()
        law = self.model(self.X)
        value = self.N * self.bound(law, self.y)
        value.backward()
        factor = self.q.chol_variational_covar
        slope = factor.grad.tril().numpy()
        hypers = []
        for raw, number in self.logs():
            (chain,) = torch.autograd.grad(number.log().sum(), raw)
            hypers.append((raw.grad / chain).numpy().ravel())
        return value.item(), {
            "m": self.q.variational_mean.grad.numpy(),
            "S": pack(slope, np.diag(slope) * np.diag(factor.detach().numpy())),
            "hyperparameters": np.concatenate(hypers),
            "Z": self.model.variational_strategy.inducing_points.grad.numpy().ravel(),
            "mean": law.mean.detach().numpy(), "variance": law.variance.detach().numpy()}


# --- exact --------------------------------------------------------------------------------------------------------


class ExactModel(gpytorch.models.ExactGP):
    def __init__(self, X, y, likelihood):
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(2.5, ard_num_dims=X.size(1)))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Exact:
    def __init__(self, problem):
        self.problem = problem
        self.X, self.y = (torch.from_numpy(problem[name]) for name in ("X", "y"))
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()
        self.likelihood.noise = problem["noise"]
        self.model = ExactModel(self.X, self.y, self.likelihood)
        self.model.covar_module.outputscale = problem["variance"]
        self.model.covar_module.base_kernel.lengthscale = torch.from_numpy(problem["lengthscale"])
        self.bound = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, self.model)
        self.free = [p for p in self.model.parameters() if p.requires_grad]

    def evaluate(self):
        """Value; the gradient is left with the parameters."""
        for parameter in self.free:
            parameter.grad = None
        value = len(self.y) * self.bound(self.model(self.X), self.y)
        value.backward()
        return value.item()

    def answer(self):
        self.model.train()
        value = self.evaluate()
        kernel, gradient = self.model.covar_module, []
        for raw, number in ((kernel.base_kernel.raw_lengthscale, kernel.base_kernel.lengthscale),
                            (kernel.raw_outputscale, kernel.outputscale),
                            (self.likelihood.noise_covar.raw_noise, self.likelihood.noise)):
            (chain,) = torch.autograd.grad(number.log().sum(), raw)
            gradient.append((raw.grad / chain).numpy().ravel())
        self.model.eval()
        with torch.no_grad():
            law = self.model(torch.from_numpy(self.problem["X_test"]))
            parts = {"gradient": np.concatenate(gradient), "mean": law.mean.numpy(), "variance": law.variance.numpy()}
        self.model.train()
        return value, parts

    def fit(self):
        from scipy.optimize import minimize
        shapes = [p.shape for p in self.free]
        sizes = np.cumsum([p.numel() for p in self.free])[:-1]

        def objective(x):
            with torch.no_grad():
                for parameter, part, shape in zip(self.free, np.split(x, sizes), shapes):
                    parameter.copy_(torch.from_numpy(part.copy()).reshape(shape))
            value = self.evaluate()
            return -value, -np.concatenate([p.grad.numpy().ravel() for p in self.free])

        first = np.concatenate([p.detach().numpy().ravel() for p in self.free])
        begin = time.perf_counter()
        found = minimize(objective, first, jac=True, method="L-BFGS-B")
        return {"seconds": time.perf_counter() - begin, "value": -found.fun, "evaluations": int(found.nfev)}


# --- prediction ---------------------------------------------------------------------------------------------------


class Predictor:
    def __init__(self, model):
        self.model = model.eval()

    def both(self, X):
        with torch.no_grad():
            law = self.model(torch.from_numpy(X))
            return law.mean.numpy(), law.variance.numpy()

    def mean(self, X):
        with torch.no_grad():
            return self.model(torch.from_numpy(X)).mean.numpy()


def saved(path):
    """A state_dict is how torch saves models."""
    state_dict = torch.load(path)
    model = SVGP(torch.zeros_like(state_dict["variational_strategy.inducing_points"]), "matern52")
    model.load_state_dict(state_dict)
    return Predictor(model).both


# --- what is asked ------------------------------------------------------------------------------------------------

state = {}


def hello(threads):
    torch.set_num_threads(threads)
    return {"version": gpytorch.__version__, "on": f"torch {torch.__version__}"}


def answered(value, parts, answer):
    np.savez(answer, **parts)
    return {"value": value}


def svgp(problem, answer, nodes=20):
    state["own"] = Sparse(load(problem), nodes)
    return answered(*state["own"].answer(), answer)


def exact(problem, answer):
    fast = gpytorch.settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False)
    fast.__enter__()
    gpytorch.settings.max_cholesky_size(100000).__enter__()
    state["own"] = Exact(load(problem))
    return answered(*state["own"].answer(), answer)


def train(problem, likelihood, batch, rate, budget):
    """bench/aaci_adam.py, with the likelihoods that it lacks."""
    import aaci_adam
    aaci_adam.LIKELIHOODS |= {"gaussian": gpytorch.likelihoods.GaussianLikelihood, "poisson": Poisson,
                              "student-t": lambda: student_t({"nu": load(problem)["nu"], "phi": [0.7]})}
    points, steps = aaci_adam.train(aaci_adam.Problem(problem), likelihood, batch, rate, budget)
    return {"points": [point[:2] for point in points if math.isfinite(point[1])], "steps": steps}


def predictor(problem, answer):
    numbers = load(problem)
    state["own"] = own = Predictor(make_svgp(numbers))
    mean, variance = own.both(numbers["X_test"])
    np.savez(answer, mean=mean, variance=variance)
    return {}


def latency(row, n, what):
    x, predict = np.array([row]), getattr(state["own"], what)
    predict(x)
    return {"seconds": timed(lambda: predict(x), n)}


def throughput(rows, chunk, budget):
    X = np.random.default_rng(1).normal(size=(rows, state["own"].model.variational_strategy.inducing_points.size(1)))
    seconds, done = in_chunks(state["own"].both, X, chunk, budget)
    return {"seconds": seconds, "rows": done}


def save(problem, model):
    torch.save(make_svgp(load(problem)).state_dict(), model)
    return {}


if __name__ == "__main__":
    start(saved)
    serve({"hello": hello, "svgp": svgp, "steps": lambda n: {"seconds": state["own"].steps(n)}, "train": train,
           "exact": exact, "evaluations": lambda n: {"seconds": timed(state["own"].evaluate, n)},
           "fit": lambda: state["own"].fit(), "predictor": predictor, "latency": latency, "throughput": throughput,
           "save": save, "table": table})
