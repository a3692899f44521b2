#!/usr/bin/env python3
"""scikit-learn's GaussianProcessRegressor for bench/harness (protocol: serving.py).

ConstantKernel * Matern(nu=2.5, a length-scale per input) + WhiteKernel, alpha = 0, no restarts; one evaluation is
log_marginal_likelihood with its gradient, which is what its own L-BFGS-B asks for; the fit is fit() from the same first
values with bounds wide enough not to matter. Double precision. A whole table is the same, from length-scales of one
for every standardised input.
"""

import pickle
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
warnings.filterwarnings("ignore")
import numpy as np  # noqa: E402
import sklearn  # noqa: E402
from serving import load, measured, opens_exact, serve, start, timed  # noqa: E402
from sklearn.gaussian_process import GaussianProcessRegressor  # noqa: E402
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel  # noqa: E402

BOUNDS = (1e-5, 1e5)


class Exact:
    def __init__(self, problem):
        self.problem = problem
        kernel = (ConstantKernel(problem["variance"], BOUNDS) * Matern(problem["lengthscale"], BOUNDS, nu=2.5)
                  + WhiteKernel(problem["noise"], BOUNDS))
        self.first = kernel
        self.model = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(problem["X"], problem["y"])

    def evaluate(self):
        theta = self.model.kernel_.theta  # log variance, log length-scales, log noise
        return self.model.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)

    def answer(self):
        value, gradient = self.evaluate()
        mean, sd = self.model.predict(self.problem["X_test"], return_std=True)
        return value, {"gradient": np.concatenate([gradient[1:-1], gradient[:1], gradient[-1:]]), "mean": mean,
                       "variance": sd**2 - self.problem["noise"]}

    def fit(self):
        model = GaussianProcessRegressor(self.first, alpha=0.0, n_restarts_optimizer=0)
        begin = time.perf_counter()
        model.fit(self.problem["X"], self.problem["y"])
        return {"seconds": time.perf_counter() - begin, "value": model.log_marginal_likelihood_value_}


state = {}


def save(problem, model):
    """An exact model of the first 500 rows: it has no sparse one."""
    numbers = load(problem)
    numbers |= {"X": numbers["X"][:500], "y": numbers["y"][:500]}
    with open(model, "wb") as file:
        pickle.dump(Exact(numbers).model, file)
    return {}


def table(problem, answer, who):
    numbers = load(problem)
    kernel = (ConstantKernel(1.0, BOUNDS) * Matern(np.ones(numbers["X"].shape[1]), BOUNDS, nu=2.5)
              + WhiteKernel(0.1, BOUNDS))
    model, clock = measured(lambda: GaussianProcessRegressor(kernel, alpha=0.0).fit(numbers["X"], numbers["y"]))
    mean, sd = model.predict(numbers["X_test"], return_std=True)
    np.savez(answer, **{f"{who}/mean": mean, f"{who}/sd": sd})
    return clock


def saved(path):
    with open(path, "rb") as file:
        model = pickle.load(file)
    return lambda X: model.predict(X, return_std=True)


if __name__ == "__main__":
    start(saved)
    serve({"hello": lambda threads: {"version": sklearn.__version__, "on": f"numpy {np.__version__}"},
           "exact": opens_exact(state, Exact),
           "evaluations": lambda n: {"seconds": timed(state["own"].evaluate, n)}, "fit": lambda: state["own"].fit(),
           "save": save, "table": table})
