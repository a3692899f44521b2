#!/usr/bin/env python3
"""Regression with gross outliers: a fifth of the training targets is off, the test targets are clean.

  generated  Friedman's function of five inputs, noise of variance 1; 200 training and 1,000 test rows, five draws
  boston     455 training and 51 test rows, five splits

An outlier is a target moved up or down by 4 to 8 standard deviations of the clean targets. The models: Gaussian noise
(--method exact) and Student-t, Laplace and Matern-3/2 noise (--method augmented), all with a Matern-5/2 kernel with one
length-scale, all parameters learned. With one per input Gaussian noise fares worse, since outliers leave too little to
learn so many from. RMSE and NLPD are of the test rows, in the units of the data.

The check: each of the robust likelihoods beats Gaussian noise in both, in the mean over the splits. The last line is
PASS or FAIL, and so is the exit status.

    bench/.venv/bin/python bench/aaci_outliers.py
"""

import statistics
import sys

import numpy as np

from aaci_common import read_split, run_study, save
from medium_common import aligned, mean_and_error, number

SHARE, NEAREST, FARTHEST = 0.2, 4.0, 8.0
SCORES = ("rmse", "nlpd")
MODELS = {"gaussian": "exact", "student-t": "augmented", "laplace": "augmented", "matern32": "augmented"}


def friedman(split):
    """Friedman (1991), eq. 61."""
    random = np.random.default_rng([5, split])
    X = random.uniform(size=(1200, 5))
    f = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3] + 5.0 * X[:, 4]
    rows = np.column_stack([X, f + random.normal(size=len(f))])
    return rows[:200], rows[200:]


def spoil(train, split):
    """A copy with outliers."""
    random = np.random.default_rng([20, split])
    out, count = train.copy(), round(SHARE * len(train))
    chosen = random.choice(len(train), count, replace=False)
    out[chosen, -1] += train[:, -1].std() * random.choice([-1.0, 1.0], count) * random.uniform(NEAREST, FARTHEST, count)
    return out


def splits(bench):
    return [1] if bench.quick else [1, 2, 3, 4, 5]


def run(bench, name):
    for split in splits(bench):
        train, test = friedman(split) if name == "generated" else read_split(bench.data, "boston506", split)
        paths = [save(bench.scratch / f"{part}.npy", rows) for part, rows in
                 (("train", spoil(train, split)), ("test", test))]
        for likelihood, method in MODELS.items():
            bench.results.run(name, f"{split} {likelihood}", lambda: bench.thiele.fit_and_score(
                *paths, bench.scratch / "model.thiele", bench.arguments.deadline, "--target", -1, "--kernel",
                "matern52", "--likelihood", likelihood, "--method", method))


def scores_of(bench, name, likelihood, score):
    """Of the splits that were fitted."""
    lines = [bench.results.get(name, f"{split} {likelihood}") for split in splits(bench)]
    return [line["scores"][score] for line in lines if line]


def table(bench, names):
    rows = []
    for name in names:
        for likelihood in MODELS:
            lines = [line for split in splits(bench) if (line := bench.results.get(name, f"{split} {likelihood}"))]
            if lines:
                cells = [mean_and_error([line["scores"][score] for line in lines]) for score in SCORES]
                rows.append([name, likelihood, *cells, number(statistics.mean(line["seconds"] for line in lines), 1),
                             ", ".join(sorted({line["stop"] for line in lines}))])
    notes = [f"Mean over {len(splits(bench))} splits ± its standard error; {100 * SHARE:.0f}% of the training targets "
             f"moved by {NEAREST:g} to {FARTHEST:g} standard deviations, test targets clean."]
    return aligned(bench.title("Outliers"), ["data", "likelihood", "RMSE", "NLPD", "seconds", "stopped by"], rows,
                   notes)


def check(bench, names, checks):
    for name in names:
        for likelihood in list(MODELS)[1:]:
            for score in SCORES:
                own, gaussian = (scores_of(bench, name, of, score) for of in (likelihood, "gaussian"))
                if own and gaussian:
                    own, gaussian = statistics.mean(own), statistics.mean(gaussian)
                    checks.say(own < gaussian, f"{name}: {score.upper()} of {likelihood} is {own:.4f}, of Gaussian "
                               f"noise {gaussian:.4f}")


def say(line):
    scores = "  ".join(f"{score} {line['scores'][score]:.4f}" for score in SCORES)
    return f"{scores}  {line['iterations']} iterations, {line['stop']}, {line['seconds']:.1f} s"


def options(parser):
    parser.add_argument("--deadline", type=float, default=120.0, help="seconds for each fit (default: %(default)g)")


if __name__ == "__main__":
    sys.exit(run_study(__doc__, "aaci_outliers", {"generated": None, "boston": "boston506"}, run, table, check, say,
                       options))
