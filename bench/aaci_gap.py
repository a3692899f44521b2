#!/usr/bin/env python3
"""What augmentation costs in variational inference: figures 2 and 5 of Galy-Fajou, Wenzel and Opper (2020).

The bound and the NLPD of held-out rows, with auxiliary variables (--method dense --expectation augmented) and without
(quadrature; closed expectations for Laplace), over length-scales from 1e-2 to 1e2. By the name of the likelihood:
matern32, student-t and laplace on Boston (455 and 51 rows), logistic on Heart (242 and 61), over five splits each.

Squared-exponential kernel of variance 0.1, as in the paper; nothing is learned: nu = 3 and scale 1 (Student-t), beta =
1 (Laplace), rho = 1 (Matern). Inputs and targets are standardised by training statistics; NLPDs are in those units.

Writes aaci_gap.txt and aaci_gap.png. The checks, on every split and length-scale: the augmented bound is not above the
other one (by more than 1e-6 of it, since iterations end), and the two NLPDs are within 0.02 nats. The last line is PASS
or FAIL, and so is the exit status.

    bench/.venv/bin/python bench/aaci_gap.py
"""

import sys

import numpy as np

from aaci_common import FOLDERS, LIKELIHOODS, pyplot, read_split, run_study, save, standardise
from medium_common import aligned, number

VARIANCE = 0.1
NLPD_ALLOWED, ABOVE_ALLOWED = 0.02, 1e-6
METHODS = ("augmented", "original")
DEADLINE = 600


def lengthscales(bench):
    return np.logspace(-2.0, 2.0, 5 if bench.quick else 25).tolist()


def splits(bench):
    return [1] if bench.quick else [1, 2, 3, 4, 5]


def row_name(split, lengthscale, method):
    return f"{split} {lengthscale:.4g} {method}"


def options_of(name, method):
    if method == "augmented":
        return ["--method", "dense", "--expectation", "augmented"]
    return ["--method", "dense", "--expectation", "closed" if name == "laplace" else "quadrature"]


def run(bench, name):
    for split in splits(bench):
        parts = standardise(*read_split(bench.data, FOLDERS[name], split), classes=name == "logistic")
        paths = [save(bench.scratch / f"{part}.npy", rows) for part, rows in zip(("train", "test"), parts)]
        for lengthscale in lengthscales(bench):
            for method in METHODS:
                options = ["--target", -1, "--raw", "--mean", "zero", "--kernel", "se", "--likelihood",
                           LIKELIHOODS[name], "--set", f"lengthscale={lengthscale!r}, variance={VARIANCE}",
                           *options_of(name, method)]
                bench.results.run(name, row_name(split, lengthscale, method), lambda: bench.thiele.fit_and_score(
                    *paths, bench.scratch / "model.thiele", DEADLINE, *options))


def nlpd_of(line):
    return line["scores"].get("nlpd", line["scores"].get("nlp"))


def pairs(bench, name, lengthscale):
    """(augmented, original) of the splits that have both."""
    found = [[bench.results.get(name, row_name(split, lengthscale, method)) for method in METHODS]
             for split in splits(bench)]
    return [pair for pair in found if all(pair)]


def curves(bench, name):
    """length-scale, mean bounds (2), mean NLPDs (2), for each length-scale that was fitted"""
    out = []
    for lengthscale in lengthscales(bench):
        both = pairs(bench, name, lengthscale)
        if both:
            out.append([lengthscale, *np.mean([[line["bound"] for line in pair] for pair in both], axis=0),
                        *np.mean([[nlpd_of(line) for line in pair] for pair in both], axis=0)])
    return np.array(out)


def table(bench, names):
    rows = []
    for name in names:
        for lengthscale, augmented, original, own, other in curves(bench, name):
            rows.append([name, f"{lengthscale:.4g}", number(augmented, 3), number(original, 3),
                         number(original - augmented, 3), number(own, 4), number(other, 4), f"{own - other:+.4f}"])
    draw(bench, names)
    head = ["likelihood", "length-scale", "augmented bound", "original", "gap", "augmented NLPD", "original",
            "difference"]
    notes = [f"Means over {len(splits(bench))} splits. Kernel variance {VARIANCE:g}; "
             + ", ".join(LIKELIHOODS[name] for name in names) + "; of standardised targets."]
    return aligned(bench.title("Figures 2 and 5: the augmentation gap"), head, rows, notes)


def draw(bench, names):
    """Negative bounds above and NLPDs below, a column for each likelihood."""
    plot = pyplot()
    figure, axes = plot.subplots(2, len(names), sharex=True, squeeze=False, figsize=(3.6 * len(names) + 0.6, 6))
    for column, name in enumerate(names):
        found = curves(bench, name)
        if not len(found):
            continue
        for row, (first, sign) in enumerate(((1, -1.0), (3, 1.0))):
            for offset, (label, style) in enumerate((("augmented", "-"), ("original", "--"))):
                axes[row][column].plot(found[:, 0], sign * found[:, first + offset], style, label=label)
            axes[row][column].set_xscale("log")
        axes[0][column].set_title(f"{LIKELIHOODS[name]}, {'Heart' if name == 'logistic' else 'Boston'}", fontsize=9)
        axes[1][column].set_xlabel("length-scale")
    axes[0][0].set_ylabel("minus the bound")
    axes[1][0].set_ylabel("NLPD of held-out rows")
    axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(bench.figure("aaci_gap"), dpi=110)


def check(bench, names, checks):
    for name in names:
        all_pairs = [(lengthscale, pair) for lengthscale in lengthscales(bench)
                     for pair in pairs(bench, name, lengthscale)]
        if not all_pairs:
            continue
        above = [(a["bound"] - b["bound"]) / abs(b["bound"]) for _, (a, b) in all_pairs]
        checks.say(max(above) <= ABOVE_ALLOWED, f"{name}: the augmented bound is below the original one in "
                   f"{sum(gap <= ABOVE_ALLOWED for gap in above)} of {len(above)} fits")
        worst, gap = max(((lengthscale, nlpd_of(a) - nlpd_of(b)) for lengthscale, (a, b) in all_pairs),
                         key=lambda found: abs(found[1]))
        checks.say(abs(gap) <= NLPD_ALLOWED, f"{name}: held-out NLPDs of a split differ by {gap:+.4f} at most, at "
                   f"length-scale {worst:.3g} ({NLPD_ALLOWED:g} allowed)")


def say(line):
    return f"bound {line['bound']:.4f}  nlpd {nlpd_of(line):.5f}  {line['seconds']:.2f} s"


if __name__ == "__main__":
    sys.exit(run_study(__doc__, "aaci_gap", {"matern32": "boston506", "logistic": "heart303", **FOLDERS}, run, table,
                       check, say))
