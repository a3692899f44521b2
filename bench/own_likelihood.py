#!/usr/bin/env python3
"""
A Student-t likelihood of the user's own, as a function of NumPy and as one compiled by numba, beside the built-in one, at the
same expectations (quadrature): seconds of processor time for a fit, for log densities of its rows and for means of
observations, the bound per row, and how many points the function was called with. Usage, with the package on the path:
    bench/own_likelihood.py [--rows 500] [--repeats 3] [--method dense]
"""

import argparse
import math
import time

import numpy as np

import thiele

calls = [0, 0]
FEW = 20  # rows whose means are predicted


def student_t(y, f, nu, scale):
    calls[0] += 1
    calls[1] += len(y)
    r = (y - f) / scale
    constant = math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu) - 0.5 * math.log(nu * math.pi) - math.log(scale)
    return constant - 0.5 * (nu + 1.0) * np.log1p(r * r / nu)


def moments(f, nu, scale):
    return f, scale**2 * nu / (nu - 2.0) if nu > 2.0 else np.inf


def compiled():
    """The same by numba, where it is there."""
    try:
        import numba
        from numba import types
    except ImportError:
        return None
    doubles = types.CPointer(types.float64)
    signature = types.void(types.int64, doubles, doubles, doubles, doubles, types.voidptr)

    @numba.cfunc(signature, error_model="numpy")
    def many(n, y, f, phi, out, user):
        nu, scale = phi[0], phi[1]
        constant = math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu)
        constant -= 0.5 * math.log(nu * math.pi) + math.log(scale)
        for i in range(n):
            r = (y[i] - f[i]) / scale
            out[i] = constant - 0.5 * (nu + 1.0) * math.log1p(r * r / nu)

    return many


def run(table, likelihood, method):
    calls[:] = [0, 0]
    began = time.process_time()
    model = thiele.fit(
        table, "y", likelihood=likelihood, kernel="se", mean="zero", raw=True, method=method, expectation="quadrature",
        threads=1,
    )  # fmt: skip
    fitted = time.process_time()
    model.log_densities(table, threads=1)
    scored, seen = time.process_time(), tuple(calls)
    model.predict({"x": table["x"][:FEW]}, threads=1)
    means = (time.process_time() - scored) / FEW
    return fitted - began, scored - fitted, means, model.describe()["bound"] / len(table["y"]), seen


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--method", default="dense")
    given = parser.parse_args()
    random = np.random.default_rng(0)
    x = random.uniform(-3.0, 3.0, given.rows)
    table = {"x": x, "y": np.sin(2.0 * x) + 0.2 * random.standard_t(4, given.rows)}
    first = {"nu": 4.0, "scale": 0.3}
    kinds = {"built in": "student-t(nu~4, scale~0.3)", "NumPy": thiele.Likelihood(student_t, first)}
    kinds["NumPy, moments given"] = thiele.Likelihood(student_t, first, moments=moments)
    numba = compiled()
    if numba is not None:
        kinds["numba"] = thiele.Likelihood(numba, first, name="student")
    print("| likelihood | fit, s | times | log densities, s | means, ms a row | bound per row | points a call |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    least = None
    for name, likelihood in kinds.items():
        runs = [run(table, likelihood, given.method) for _ in range(given.repeats)]
        fit, score, means = (min(r[k] for r in runs) for k in range(3))
        least = least or fit
        called, points = runs[0][4]
        mean = f"{points / called:.0f}" if called else ""
        print(f"| {name} | {fit:.3f} | {fit / least:.2f} | {score:.4f} | {1e3 * means:.2f} | {runs[0][3]:.6f} | {mean} |")


if __name__ == "__main__":
    main()
