"""What the peers' scripts share: the protocol, one JSON request a line on standard input and one JSON answer a line on
standard output; numbers travel in NPZ files. A request names what is asked ("ask") and its arguments; a failure is
answered by {"error": sentence} and the next request is awaited. Clocks are read inside the peer, around its own work.

Whatever a library prints goes to standard error, so that it cannot get between the answers.
"""

import json
import math
import os
import sys
import time

import numpy as np

WIDEST, NODES = 8.0, 401


def serve(handlers):
    """handlers: by what is asked, a function of the request's other fields that returns the answer."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = handlers[request.pop("ask")](**request)
        except Exception as error:  # whatever a library raises is its answer
            answer = {"error": f"{type(error).__name__}: {error}"[:400]}
        print(json.dumps(answer), file=out, flush=True)


def load(path):
    """The arrays of a problem, double precision; texts and single numbers as such."""
    with np.load(path) as file:
        return {name: file[name].item() if file[name].ndim == 0 else np.ascontiguousarray(file[name], dtype=np.float64)
                for name in file.files}


def opens_exact(state, kind):
    """A handler that makes an exact model of the problem, keeps it in the state and answers with its numbers."""
    def exact(problem, answer):
        state["own"] = kind(load(problem))
        value, parts = state["own"].answer()
        np.savez(answer, **parts)
        return {"value": value}
    return exact


def timed(work, n):
    """Seconds of n calls."""
    begin = time.perf_counter()
    for _ in range(n):
        work()
    return time.perf_counter() - begin


def measured(work):
    """(what it returns, seconds on the clock and of the processors)"""
    begin, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu}


def in_chunks(predict, X, chunk, budget):
    """Predicts rows of X by chunks until all are done or the budget is spent: (seconds, rows)."""
    predict(X[:chunk])  # warm-up
    begin, done = time.perf_counter(), 0
    while done < len(X) and time.perf_counter() - begin < budget:
        predict(X[done:done + chunk])
        done = min(done + chunk, len(X))
    return time.perf_counter() - begin, done


def pack(matrix, diagonal):
    """The lower triangle by columns, with this diagonal: how thiele orders the numbers of a factor."""
    matrix = np.array(matrix)
    np.fill_diagonal(matrix, diagonal)
    return matrix.T[np.triu_indices(len(matrix))]


def start(load_model):
    """For the time of a cold start: NAME.py --start MODEL ROW loads a saved model, predicts one row and ends."""
    if len(sys.argv) == 4 and sys.argv[1] == "--start":
        mean, variance = load_model(sys.argv[2])(np.load(sys.argv[3]))
        print(f"{float(np.ravel(mean)[0]):.17g} {float(np.ravel(variance)[0]):.17g}")
        sys.exit(0)


# --- scores -------------------------------------------------------------------------------------------------------


def log_density(likelihood, y, f, phi):
    """log p(y | f) of the harness's likelihoods; phi is what they learn."""
    if likelihood == "gaussian":
        return -0.5 * np.log(2.0 * np.pi * phi[0]) - 0.5 * (y - f) ** 2 / phi[0]
    if likelihood == "logistic":
        return -np.logaddexp(0.0, np.where(y > 0.5, -f, f))
    if likelihood == "poisson":
        return y * f - np.exp(f) - np.vectorize(math.lgamma)(y + 1.0)
    nu, scale = phi
    constant = math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu) - 0.5 * math.log(nu * math.pi) - math.log(scale)
    return constant - 0.5 * (nu + 1.0) * np.log1p((y - f) ** 2 / (nu * scale**2))


def mean_nlpd(likelihood, y, mean, variance, phi):
    """- log of the integral of p(y | f) N(f; mean, variance), by the trapezoidal rule; the average."""
    grid = np.linspace(-WIDEST, WIDEST, NODES)[:, None]
    weight = -0.5 * grid**2 - 0.5 * math.log(2.0 * math.pi) + math.log(2.0 * WIDEST / (NODES - 1))
    values = log_density(likelihood, y, mean + grid * np.sqrt(variance), phi) + weight
    top = values.max(axis=0)
    return float(-np.mean(top + np.log(np.exp(values - top).sum(axis=0))))
