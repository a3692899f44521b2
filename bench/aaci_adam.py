#!/usr/bin/env python3
"""Sparse variational inference by GPyTorch's Adam on one problem, for bench/aaci_speed.py: one line of JSON with points
(seconds of training, test NLPD, test RMSE or error rate).

PROBLEM is an NPZ file with X, y, X_test, y_test (standardised, or pixels and labels 0 and 1), Z, scale (of the target)
and ard. The model is GPyTorch's as its documentation has it: ApproximateGP with a whitened VariationalStrategy over the
given Z, which stay where they are, CholeskyVariationalDistribution, ConstantMean, ScaleKernel(RBFKernel) that begins at
the median distance of rows; StudentTLikelihood and LaplaceLikelihood are its own, the logistic and the Matern-3/2
likelihood are written here on the same Gauss-Hermite quadrature. VariationalELBO, minibatches in a new order each
epoch, Adam over all parameters, double precision. The clock stands still while the test rows are scored; their NLPD is
integrated on a fine grid and not by the twenty nodes of training.
"""

import argparse
import json
import math
import time
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
import gpytorch  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from gpytorch.likelihoods.likelihood import _OneDimensionalLikelihood  # noqa: E402

EVAL_BATCH, WIDEST, NODES = 2048, 8.0, 401


# --- likelihoods --------------------------------------------------------------------------------------------------


class Logistic(_OneDimensionalLikelihood):
    def forward(self, f, *args, **kwargs):
        return torch.distributions.Bernoulli(logits=f)


class MaternLaw(torch.distributions.Distribution):
    """sqrt3/(4 rho) (1 + u) exp(-u), u = sqrt3 |y - f|/rho"""
    arg_constraints = {}

    def __init__(self, f, rho):
        super().__init__(f.shape, validate_args=False)
        self.f, self.rho = f, rho

    def log_prob(self, y):
        u = math.sqrt(3.0) * (y - self.f).abs() / self.rho
        return (0.25 * math.sqrt(3.0) / self.rho).log() + torch.log1p(u) - u


class Matern32(_OneDimensionalLikelihood):
    def __init__(self):
        super().__init__()
        self.raw_rho = torch.nn.Parameter(torch.zeros(1))
        self.register_constraint("raw_rho", gpytorch.constraints.Positive())

    def forward(self, f, *args, **kwargs):
        return MaternLaw(f, self.raw_rho_constraint.transform(self.raw_rho))


LIKELIHOODS = {"student-t": gpytorch.likelihoods.StudentTLikelihood, "laplace": gpytorch.likelihoods.LaplaceLikelihood,
               "matern32": Matern32, "logistic": Logistic}


# --- the model ----------------------------------------------------------------------------------------------------


class Problem:
    def __init__(self, path):
        with np.load(path) as file:
            self.X, self.y, self.X_test, self.y_test, self.Z = (
                torch.from_numpy(np.ascontiguousarray(file[name], dtype=np.float64))
                for name in ("X", "y", "X_test", "y_test", "Z"))
            self.scale, self.ard = float(file["scale"]), bool(file["ard"])


def median_distance(X):
    sample = X[torch.randperm(len(X), generator=torch.Generator().manual_seed(0))[:500]]
    return torch.pdist(sample).median().item()


class SVGP(gpytorch.models.ApproximateGP):
    def __init__(self, problem):
        q = gpytorch.variational.CholeskyVariationalDistribution(len(problem.Z))
        super().__init__(gpytorch.variational.VariationalStrategy(self, problem.Z, q, learn_inducing_locations=False))
        self.mean_module = gpytorch.means.ConstantMean()
        kernel = gpytorch.kernels.RBFKernel(ard_num_dims=problem.X.size(1) if problem.ard else None)
        kernel.lengthscale = median_distance(problem.X)
        self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


# --- scoring ------------------------------------------------------------------------------------------------------


def log_predictive(likelihood, law, y):
    """log of the integral of p(y | f) over f, by the trapezoidal rule."""
    grid = torch.linspace(-WIDEST, WIDEST, NODES)[:, None]
    weight = -0.5 * grid**2 - 0.5 * math.log(2.0 * math.pi) + math.log(2.0 * WIDEST / (NODES - 1))
    return torch.logsumexp(likelihood.forward(law.mean + grid * law.variance.sqrt()).log_prob(y) + weight, 0)


def score(problem, model, likelihood, classes):
    """(NLPD in the units of the data, RMSE in them or error rate)"""
    model.eval()
    likelihood.eval()
    density, wrong = 0.0, 0.0
    with torch.no_grad():
        for X, y in zip(problem.X_test.split(EVAL_BATCH), problem.y_test.split(EVAL_BATCH)):
            law = model(X)
            density += log_predictive(likelihood, law, y).sum().item()
            wrong += (((law.mean > 0) != (y > 0.5)).sum() if classes else ((law.mean - y) ** 2).sum()).item()
    model.train()
    likelihood.train()
    rows = len(problem.y_test)
    return (math.log(problem.scale) - density / rows,
            wrong / rows if classes else problem.scale * math.sqrt(wrong / rows))


def train(problem, name, batch, rate, budget):
    """Points, about one for each tenth that is added to the time, and the number of steps."""
    torch.manual_seed(0)
    model, likelihood = SVGP(problem), LIKELIHOODS[name]()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(problem.y))
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=rate)
    model.train()
    likelihood.train()
    points, clock, due, steps = [], 0.0, 0.5, 0
    while clock < budget:
        for rows in torch.randperm(len(problem.y)).split(batch):
            begin = time.perf_counter()
            optimizer.zero_grad()
            loss = -bound(model(problem.X[rows]), problem.y[rows])
            loss.backward()
            optimizer.step()
            clock += time.perf_counter() - begin
            steps += 1
            if clock >= due or clock >= budget:
                points.append([clock, *score(problem, model, likelihood, name == "logistic")])
                due = max(1.1 * clock, clock + 0.5)
            if clock >= budget:
                break
    return points, steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", type=Path, metavar="PROBLEM")
    parser.add_argument("likelihood", choices=LIKELIHOODS)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--budget", type=float, default=300.0, help="seconds of training (default: %(default)g)")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(arguments.threads)
    points, steps = train(Problem(arguments.problem), arguments.likelihood, arguments.batch, arguments.rate,
                          arguments.budget)
    print(json.dumps({"points": points, "steps": steps}))


if __name__ == "__main__":
    main()
