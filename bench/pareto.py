#!/usr/bin/env python3
"""Writes the log weights of tests/unit/pareto.h and what ArviZ (PyPI) makes of them: bench/pareto.py > tests/unit/pareto.h

Draws of laws with light, heavy and very heavy tails, ties, and fewer draws than make a tail; k by arviz.psislw.
"""
import arviz
import numpy as np


def cases():
    random = np.random.default_rng(23)
    yield "normal", random.normal(size=200)
    yield "student", 1.5 * np.abs(random.standard_t(3, size=150))
    yield "cauchy", np.log(np.abs(random.standard_cauchy(size=200)))
    yield "pareto", 1.2 * random.exponential(size=300)
    yield "uniform", random.uniform(size=100)
    yield "rounded", np.round(random.normal(size=150), 1)
    yield "few", random.normal(size=30)


def number(value):
    return f"{value:.17g}"


def main():
    print("/* Log weights and what ArviZ makes of them: written by bench/pareto.py. */")
    print("/* clang-format off */")
    entries = []
    for name, weights in cases():
        smooth, k = arviz.psislw(weights.copy(), normalize=False)
        smooth = np.sort(np.asarray(smooth)) - weights.max()
        print(f"static const double weights_{name}[] = {{{', '.join(map(number, weights))}}};")
        entries.append(f'{{"{name}", {len(weights)}, weights_{name}, {number(float(k))}, {number(smooth[-1])}, '
                       f"{number(smooth.sum())}}},")
    print("static const struct pareto_case {")
    print("    const char *name;\n    int n;\n    const double *weight;\n    double k, largest, sum; /* of the smoothed ones, less the largest raw one */")
    print("} pareto_cases[] = {")
    print("\n".join("    " + entry for entry in entries))
    print("};\n/* clang-format on */")


if __name__ == "__main__":
    main()
