#!/usr/bin/env python3
"""GPy for bench/harness (protocol: serving.py).

Exact: GPRegression with Matern52(ARD); one evaluation is what its optimiser asks for (the objective and its gradient at
a vector of parameters); the fit is optimize() by its default L-BFGS-B. Sparse prediction: SparseGPRegression (Titsias'
bound) with Matern52(ARD) at fixed parameters and Z, which has the same posterior as the others. Likelihoods that are
not Gaussian: its Laplace approximation on all rows. Double precision.
"""

import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
warnings.filterwarnings("ignore")
import GPy  # noqa: E402
import numpy as np  # noqa: E402
from serving import in_chunks, load, mean_nlpd, opens_exact, serve, start, timed  # noqa: E402


class Exact:
    def __init__(self, problem):
        self.problem = problem
        kernel = GPy.kern.Matern52(problem["X"].shape[1], problem["variance"], problem["lengthscale"], ARD=True)
        self.model = GPy.models.GPRegression(problem["X"], problem["y"][:, None], kernel, noise_var=problem["noise"])

    def evaluate(self):
        """A parameter must change for GPy to compute anything: by the last bits."""
        at = self.model.optimizer_array.copy()
        return self.model._objective_grads(at * (1.0 + 1e-15))

    def answer(self):
        model, numbers = self.model, []
        for part in (model.kern.lengthscale, model.kern.variance, model.likelihood.variance):
            numbers.append(np.ravel(part.gradient * part.values))
        mean, variance = model.predict_noiseless(self.problem["X_test"])
        return float(model.log_likelihood()), {"gradient": np.concatenate(numbers), "mean": mean.ravel(),
                                               "variance": variance.ravel()}

    def fit(self):
        begin = time.perf_counter()
        self.model.optimize()
        return {"seconds": time.perf_counter() - begin, "value": float(self.model.log_likelihood())}


def sparse(numbers):
    kernel = GPy.kern.Matern52(numbers["X"].shape[1], numbers["variance"], numbers["lengthscale"], ARD=True)
    model = GPy.models.SparseGPRegression(numbers["X"], numbers["y"][:, None], kernel, Z=numbers["Z"])
    model.likelihood.variance = numbers["noise"]
    return model


state = {}


def predictor(problem, answer):
    numbers = load(problem)
    state["own"], state["dims"] = sparse(numbers), numbers["X"].shape[1]
    mean, variance = state["own"].predict_noiseless(numbers["X_test"])
    np.savez(answer, mean=mean.ravel(), variance=variance.ravel())
    return {}


def latency(row, n, what):
    model, x = state["own"], np.array([row])
    if what == "mean":  # what predict_noiseless computes for the mean
        weight = model.posterior.woodbury_vector
        return {"seconds": timed(lambda: model.kern.K(x, model.Z) @ weight, n)}
    return {"seconds": timed(lambda: model.predict_noiseless(x), n)}


def throughput(rows, chunk, budget):
    X = np.random.default_rng(1).normal(size=(rows, state["dims"]))
    seconds, done = in_chunks(state["own"].predict_noiseless, X, chunk, budget)
    return {"seconds": seconds, "rows": done}


def laplace(problem, likelihood):
    """Seconds of a whole fit and its test NLPD."""
    numbers = load(problem)
    y = numbers["y"][:, None]
    kernel = GPy.kern.Matern52(numbers["X"].shape[1], ARD=True)
    own = (GPy.likelihoods.StudentT(deg_free=numbers["nu"], sigma2=0.5) if likelihood == "student-t"
           else GPy.likelihoods.Poisson())
    if likelihood == "poisson":  # its Laplace approximation takes no mean function
        kernel = kernel + GPy.kern.Bias(numbers["X"].shape[1], variance=4.0)
    begin = time.perf_counter()
    method = GPy.inference.latent_function_inference.Laplace()
    model = GPy.core.GP(numbers["X"], y, kernel, own, inference_method=method)
    if likelihood == "student-t":
        model.likelihood.deg_free.fix()
    model.optimize(max_iters=100)
    seconds = time.perf_counter() - begin
    mu, variance = model.predict_noiseless(numbers["X_test"])
    phi = [numbers["nu"], float(np.sqrt(model.likelihood.sigma2[0]))] if likelihood == "student-t" else []
    nlpd = mean_nlpd(likelihood, numbers["y_test"], mu.ravel(), variance.ravel(), phi)
    return {"seconds": seconds, "nlpd": nlpd + float(np.log(numbers["scale"]))}


def saved(path):
    """Parameters and posterior in a file: GPy's own advice is to save arrays, not pickles."""
    model = sparse(load(path))
    return model.predict_noiseless


def save(problem, model):
    numbers = load(problem)
    with open(model, "wb") as file:
        np.savez(file, **{name: numbers[name] for name in ("X", "y", "Z", "variance", "lengthscale", "noise")})
    return {}


if __name__ == "__main__":
    start(saved)
    serve({"hello": lambda threads: {"version": GPy.__version__, "on": f"numpy {np.__version__}"},
           "exact": opens_exact(state, Exact),
           "evaluations": lambda n: {"seconds": timed(state["own"].evaluate, n)}, "fit": lambda: state["own"].fit(),
           "predictor": predictor, "latency": latency, "throughput": throughput, "laplace": laplace, "save": save})
