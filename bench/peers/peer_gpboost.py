#!/usr/bin/env python3
"""GPBoost for bench/harness (protocol: serving.py).

GPModel(gp_coords, cov_function="matern_ard", cov_fct_shape=2.5) without a Vecchia or other approximation. Its range is
the length-scale of a kernel in sqrt(5) d / range. The gradient of the likelihood is not offered, so that one evaluation
is neg_log_likelihood alone: less work than the others do. The fit is fit() from the same first values with its own
optimiser and stopping. Likelihoods that are not Gaussian: its Laplace approximation on all rows. Double precision.

A whole table is fitted with Vecchia's approximation and a constant, from its own first values: a length-scale per input
up to WIDE of them, one for all beyond; classes by its iterative solvers, more than two each against the rest.
"""

import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
warnings.filterwarnings("ignore")
import gpboost  # noqa: E402
import numpy as np  # noqa: E402
from serving import load, mean_nlpd, measured, opens_exact, serve, timed  # noqa: E402

LAPLACE = {"student-t": "t", "poisson": "poisson", "logistic": "bernoulli_logit"}
WIDE = 128


def make(problem, likelihood="gaussian", **more):
    return gpboost.GPModel(gp_coords=problem["X"], cov_function="matern_ard", cov_fct_shape=2.5, likelihood=likelihood,
                           gp_approx="none", **more)


class Exact:
    def __init__(self, problem):
        self.problem = problem
        self.first = np.array([problem["noise"], problem["variance"], *problem["lengthscale"]])
        self.model = make(problem)

    def evaluate(self):
        return self.model.neg_log_likelihood(cov_pars=self.first, y=self.problem["y"])

    def answer(self):
        law = self.model.predict(gp_coords_pred=self.problem["X_test"], cov_pars=self.first, y=self.problem["y"],
                                 predict_var=True, predict_response=False)
        return -float(self.evaluate()), {"mean": law["mu"], "variance": law["var"]}

    def fit(self):
        model = make(self.problem)
        begin = time.perf_counter()
        model.fit(y=self.problem["y"], params={"init_cov_pars": self.first})
        return {"seconds": time.perf_counter() - begin,
                "value": -float(model.get_current_neg_log_likelihood())}


state = {}


def laplace(problem, likelihood):
    """Seconds of a whole fit and its test NLPD."""
    numbers = load(problem)
    extra = {"likelihood_additional_param": numbers["nu"]} if likelihood == "student-t" else {}
    begin = time.perf_counter()
    model = make(numbers, LAPLACE[likelihood], **extra)
    fixed = {} if likelihood == "student-t" else {"X": np.ones((len(numbers["y"]), 1))}
    model.fit(y=numbers["y"], **fixed)
    seconds = time.perf_counter() - begin
    fixed = {} if likelihood == "student-t" else {"X_pred": np.ones((len(numbers["y_test"]), 1))}
    law = model.predict(gp_coords_pred=numbers["X_test"], predict_var=True, predict_response=False, **fixed)
    phi = []
    if likelihood == "student-t":
        own = np.ravel(model.get_aux_pars())
        phi = [numbers["nu"] if len(own) < 2 else float(own[1]), float(own[0])]
    nlpd = mean_nlpd(likelihood, numbers["y_test"], np.ravel(law["mu"]), np.ravel(law["var"]), phi)
    return {"seconds": seconds, "nlpd": nlpd + float(np.log(numbers["scale"]))}


def vecchia(X, y, neighbours, classes):
    wide = X.shape[1] > WIDE
    more = {"likelihood": "bernoulli_logit", "matrix_inversion_method": "iterative"} if classes else {}
    model = gpboost.GPModel(gp_coords=X, cov_function="matern" if wide else "matern_ard", cov_fct_shape=2.5,
                            gp_approx="vecchia", num_neighbors=neighbours, seed=0, **more)
    model.fit(y=y, X=np.ones((len(y), 1)))
    return model


def predicted(model, X):
    return model.predict(gp_coords_pred=X, X_pred=np.ones((len(X), 1)), predict_var=True, predict_response=True)


def table(problem, answer, who, neighbours):
    numbers = load(problem)
    X, y, fresh, classes = numbers["X"], numbers["y"], numbers["X_test"], numbers["classes"]
    targets = [y] if not classes else [y == label for label in range(1 if classes == 2 else 0, classes)]
    models, clock = measured(lambda: [vecchia(X, target.astype(float), neighbours, classes) for target in targets])
    laws = [predicted(model, fresh) for model in models]
    if not classes:
        law = {"mean": np.ravel(laws[0]["mu"]), "sd": np.sqrt(np.ravel(laws[0]["var"]))}
    else:
        p = np.column_stack([np.ravel(law["mu"]) for law in laws])
        p = np.column_stack([1.0 - p, p]) if classes == 2 else p / p.sum(axis=1, keepdims=True)
        law = {"probability": p}
    np.savez(answer, **{f"{who}/{key}": value for key, value in law.items()})
    return clock


if __name__ == "__main__":
    serve({"hello": lambda threads: {"version": gpboost.__version__, "on": "its own C++ code and Eigen"},
           "exact": opens_exact(state, Exact), "evaluations": lambda n: {"seconds": timed(state["own"].evaluate, n)},
           "fit": lambda: state["own"].fit(), "laplace": laplace, "table": table})
