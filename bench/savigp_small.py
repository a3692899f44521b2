#!/usr/bin/env python3
"""The small experiments of Bonilla, Krauth and Dezfouli, "Generic Inference in Latent Gaussian Process Models",
section 9.3, by the command thiele alone: full Gaussian (FG), diagonal (MoG1) and mixture of two diagonal (MoG2)
posteriors with inducing inputs on nested random subsets of the rows, at sparsity factors M/N of 0.1, 0.2, 0.5 and 1.

Writes results.jsonl, table.md and mining.png, the intensity of the coal-mining disasters with its 95% band, and ends
with checks: FG at sparsity 1 is exact where the noise is Gaussian (before or after a warping), the error rate on
cancer, the decades of mining. The last line is PASS or FAIL, and so is the exit status.

Settings: squared-exponential kernels, a length-scale per input for boston and creep; zero mean; inducing inputs fixed.
Diagonal posteriors are whitened; with --plain they are those of the paper, fitted by its alternation, which is slow.
The likelihood of a warping has many maxima, and no highest one where rows share a target; so its steepness has a
prior, and variational fits of it start from what the exact warped GP (WGP) learned. --deadline bounds a fit, --resume
goes on where a run was stopped.
"""

import argparse
import csv
import gzip
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
POSTERIORS = {"FG": "full", "MoG1": "diag", "MoG2": "mixture:2"}
SPARSITIES = (0.1, 0.2, 0.5, 1.0)
EQUAL = 1e-3       # of NLPD and SSE, between FG at sparsity 1 and the exact model
SAME_MODEL = 1e-5  # the same at the same parameters, where only rounding and the end of the iteration differ
CANCER_ERROR = 0.04
BIN_DAYS, YEAR_DAYS, FIRST_YEAR, DECADES = 50.0, 365.25, 1851.2, 11
OFFSET = math.log(191 / 811)  # events over bins


@dataclass
class Problem:
    """One data set of table 1. References are exact models of the same rows, by the name the paper gives them."""
    likelihood: str
    kernel: str
    paper: str
    references: dict = field(default_factory=dict)
    scores: tuple = ("SSE", "NLPD")


GP, WGP = ("--likelihood", "gaussian", "--method", "exact"), ("--likelihood", "warped", "--method", "dense")
PROBLEMS = {
    "boston": Problem("gaussian", "se(ard)", "figure 1: SSE rises slightly with sparsity, all near the exact GP; NLPD "
                      "of FG at sparsity 1 is that of the exact GP", {"GP": GP}),
    "abalone": Problem("warped", "se", "figure 2: alike in all posteriors and sparsities, and like the exact WGP",
                       {"WGP": WGP, "GP": GP}),
    "creep": Problem("warped", "se(ard)", "figure 3: SSE and NLPD are better in denser models; FG at sparsity 1 is "
                     "identical to the exact WGP", {"WGP": WGP, "GP": GP}),
    "cancer": Problem("bernoulli", "se", "figure 4: error rates alike in all; NLP degrades with more inducing inputs, "
                      "for MoG1 and MoG2 above all", scores=("ER", "NLP")),
    "usps": Problem("softmax", "se", "figure 5: error rates slightly lower in denser FG models; NLP varies more in "
                    "denser models, for MoG1 and MoG2 above all", scores=("ER", "NLP")),
    "mining": Problem(f"poisson(offset={OFFSET!r})", "se", "figure 6: FG alike at all sparsities; MoG1 and MoG2 have "
                      "the same mean and too small a variance", scores=("NLPD",)),
}
EXACT = {"boston": "GP", "abalone": "WGP", "creep": "WGP"}
FIELDS = {"SSE": "smse", "NLPD": "nlpd", "ER": "error_rate", "NLP": "nlp"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = os.environ.get("THIELE_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(PROBLEMS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="one split, at most 60 iterations and 20 s a fit")
    parser.add_argument("--posterior", default="FG,MoG1,MoG2", help="comma-separated (default: %(default)s)")
    parser.add_argument("--sparsity", default=",".join(f"{s:g}" for s in SPARSITIES), help="default: %(default)s")
    parser.add_argument("--splits", type=int, default=5, help="at most (default: %(default)s)")
    parser.add_argument("--plain", action="store_true",
                        help="diagonal posteriors of u itself, as in the paper, and not of the whitened u")
    parser.add_argument("--iterations", type=int, help="of a fit, at most (default: 1000)")
    parser.add_argument("--deadline", type=float, help="seconds for a fit (default: none)")
    parser.add_argument("--fit", default="", metavar="OPTIONS", help="further options for thiele fit, in one text")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--resume", action="store_true", help="keep the fits that results.jsonl already has")
    parser.add_argument("--data", type=Path, default=Path(data), help="the folder of data sets (default: $THIELE_DATA)")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="where thiele is")
    parser.add_argument("--output", type=Path, default=ROOT / "bench" / "results")
    arguments = parser.parse_args()
    arguments.posterior = arguments.posterior.split(",")
    arguments.sparsity = [float(text) for text in arguments.sparsity.split(",")]
    arguments.sets = arguments.sets or list(PROBLEMS)
    for name in arguments.sets:
        if name not in PROBLEMS:
            parser.error(f"there is no set {name}: choose from {', '.join(PROBLEMS)}")
    for name in arguments.posterior:
        if name not in POSTERIORS:
            parser.error(f"there is no posterior {name}: choose from {', '.join(POSTERIORS)}")
    if arguments.quick:
        arguments.splits, arguments.deadline = 1, arguments.deadline or 20.0
    arguments.iterations = arguments.iterations or (60 if arguments.quick else 1000)
    return arguments


ARGS = parse_arguments()


# --- running the command ------------------------------------------------------------------------------------------


class CommandError(Exception):
    """What thiele said when it failed."""


def thiele(*arguments):
    done = subprocess.run([ARGS.build / "thiele", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise CommandError(f"thiele {' '.join(map(str, arguments))}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def read_csv(path):
    """Columns by name."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        rows = csv.reader(file)
        names = next(rows)
        return dict(zip(names, np.array([[float(cell) for cell in row] for row in rows]).T))


def tables(name, split):
    """Training and test table; mining is scored on its own rows."""
    folder = ARGS.data / name
    if name == "mining":
        return folder / "train.csv.gz", folder / "train.csv.gz"
    return folder / f"split_{split}" / "train.csv.gz", folder / f"split_{split}" / "test.csv.gz"


def splits_of(name):
    if name == "mining":
        return [1]
    return [split for split in range(1, ARGS.splits + 1) if (ARGS.data / name / f"split_{split}").is_dir()]


def limits():
    options = ["--iterations", ARGS.iterations]
    return options + (["--deadline", ARGS.deadline] if ARGS.deadline else []) + ARGS.fit.split()


def fit_and_score(name, split, model, options):
    """Fits, scores and returns what a line of results.jsonl has; the model file stays at the path given."""
    problem = PROBLEMS[name]
    train, test = tables(name, split)
    options = [*options, *warp_prior(name, split, options)]
    begin = time.perf_counter()
    fitted = json.loads(thiele("fit", train, "--target", "y", "-o", model, "--json", "--quiet", "--mean", "zero",
                               "--kernel", problem.kernel, "--threads", ARGS.threads, *options, *limits()))["model"]
    seconds = time.perf_counter() - begin
    scores = json.loads(thiele("score", model, test, "--json", "--quiet"))
    return {"scores": {score: scores[FIELDS[score]] for score in problem.scores}, "seconds": seconds,
            "bound": fitted.get("bound", fitted.get("log_marginal_likelihood")), "stop": fitted["stop"],
            "iterations": fitted["iterations"], "evaluations": fitted["evaluations"],
            "sparse": fitted.get("sparse"), "parameters": {p["name"]: p["value"] for p in fitted["parameters"]}}


def warp_prior(name, split, options):
    """Of a warping t(y) = y + sum a tanh(b (y + c)) that is learned. Many rows share one target in these sets, and a
    step at such a value (b without bound) has a density without bound; log-normal around 1/sd(y) rules it out."""
    if "warped" not in options or any("b1=" in str(option) for option in options):
        return []
    center = -math.log(np.std(read_csv(tables(name, split)[0])["y"]))
    return ["--prior", ", ".join(f"{b} lognormal({center:.6f}, 0.7)" for b in ("b1", "b2"))]


def variational(name, posterior, sparsity, rows):
    options = ["--likelihood", PROBLEMS[name].likelihood, "--method", "variational", "--inducing-from", "random",
               "--fix-inducing", "--inducing", round(sparsity * rows), "--posterior", POSTERIORS[posterior]]
    return options + (["--plain", "--optimizer", "alternate"] if ARGS.plain and posterior != "FG" else [])


def at(parameters, sign):
    """Options that hold (=) every parameter at what another model learned, or start (~) there."""
    return ["--set", ", ".join(f"{name}{sign}{value!r}" for name, value in parameters.items())]


# --- results ------------------------------------------------------------------------------------------------------


class Results:
    """Lines of JSON, written as they come so that an interrupted run can be resumed."""

    def __init__(self, path):
        self.lines = {}
        if ARGS.resume and path.exists():
            for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
                if line.get("plain", ARGS.plain) == ARGS.plain or line["model"] not in ("MoG1", "MoG2"):
                    self.keep(line)
        self.file = open(path, "a" if ARGS.resume else "w", encoding="utf-8")

    @staticmethod
    def key(line):
        return line["set"], line["split"], line["model"], line["sparsity"]

    def keep(self, line):
        self.lines[self.key(line)] = line

    def get(self, name, split, model, sparsity=None):
        """The line, or None when it is absent or the fit failed."""
        line = self.lines.get((name, split, model, sparsity))
        return None if line is None or "failed" in line else line

    def run(self, name, split, model, sparsity, options, after=None):
        """Fits unless it is there; after(file) may add fields from the model file."""
        key = {"set": name, "split": split, "model": model, "sparsity": sparsity}
        if self.get(name, split, model, sparsity) is None:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "model.thiele"
                try:
                    line = key | {"plain": "--plain" in options} | fit_and_score(name, split, file, options)
                    line |= after(file) if after else {}
                except CommandError as error:
                    line = key | {"failed": str(error)}
            self.keep(line)
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()
            print_line(line)
        return self.get(name, split, model, sparsity)


def label(model, sparsity):
    return model if sparsity is None else f"{model} {sparsity:g}"


def print_line(line):
    start = f"{line['set']:<8} {line['split']} {label(line['model'], line['sparsity']):<14}"
    if "failed" in line:
        print(f"{start} {line['failed']}", flush=True)
        return
    scores = "  ".join(f"{score} {value:.5f}" for score, value in line["scores"].items())
    print(f"{start} {scores}  bound {line['bound']:.3f}  {line['iterations']} iterations, {line['stop']}, "
          f"{line['seconds']:.1f} s", flush=True)


def mean_and_error(values):
    """Mean over the splits and its standard error, as text."""
    mean = statistics.mean(values)
    if len(values) == 1:
        return f"{mean:.4f}"
    return f"{mean:.4f} ± {statistics.stdev(values) / math.sqrt(len(values)):.4f}"


def models_of(name):
    """(model, sparsity) of each row of the set's table."""
    rows = [(posterior, sparsity) for posterior in ARGS.posterior for sparsity in ARGS.sparsity]
    return rows + [(reference, None) for reference in PROBLEMS[name].references]


def table_of(results, name):
    problem = PROBLEMS[name]
    out = [f"## {name}: {problem.likelihood.split('(')[0]}, {problem.kernel}", "", f"The paper, {problem.paper}.", "",
           "| posterior | M/N | M | " + " | ".join(problem.scores) + " | bound | seconds | converged |",
           "|---|---:|---:|" + "---:|" * (len(problem.scores) + 3)]
    for model, sparsity in models_of(name):
        lines = [line for split in splits_of(name) if (line := results.get(name, split, model, sparsity))]
        if not lines:
            continue
        inducing = lines[0]["sparse"]["inducing"] if lines[0]["sparse"] else ""
        scores = [mean_and_error([line["scores"][score] for line in lines]) for score in problem.scores]
        converged = sum(line["stop"] == "converged" for line in lines)
        rest = [statistics.mean(line[entry] for line in lines) for entry in ("bound", "seconds")]
        out.append(f"| {model} | {'' if sparsity is None else f'{sparsity:g}'} | {inducing} | {' | '.join(scores)} | "
                   f"{rest[0]:.1f} | {rest[1]:.1f} | {converged} of {len(lines)} |")
    return "\n".join(out)


NOTE = """Mean over the splits ± its standard error. MoG1 and MoG2 are {kind}. Inducing inputs are nested random
subsets of the distinct training rows and stay where they are. SSE is the mean squared error over the variance of the
test targets, NLPD is in the units of the data. Warpings have two terms and a prior on their steepness, and their
variational fits start from what the exact WGP learned. The bound of MoG2 has the pairwise bound on the entropy in place of
eq. 14 and compares with the others. Fits that did not converge were stopped by a limit on iterations or time. The paper shows its
results as box plots and has no numbers in its text; what it says of them stands above each table.
"""


def write_table(results):
    kind = "plain, as in the paper" if ARGS.plain else "whitened (the paper's are plain)"
    text = ["# The small experiments of section 9.3", "", NOTE.format(kind=kind)]
    text += ["\n".join([table_of(results, name), ""]) for name in ARGS.sets]
    (ARGS.output / "table.md").write_text("\n".join(text), encoding="utf-8")
    print("\n" + "\n".join(text))


# --- mining -------------------------------------------------------------------------------------------------------


def poisson_interval(count):
    """The exact 95% interval of a Poisson mean from one count (Garwood, 1936)."""
    def below(k, mean):
        return math.fsum(math.exp(i * math.log(mean) - mean - math.lgamma(i + 1)) for i in range(k + 1))

    def solve(k, probability):
        low, high = 1e-9, 10.0 * (k + 10)
        for _ in range(100):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if below(k, middle) > probability else (low, middle)
        return low
    return (solve(count - 1, 0.975) if count > 0 else 0.0), solve(count, 0.025)


def decade_of(day):
    """Decades from the first event; the year beyond the last whole one counts to it."""
    return np.minimum((day / (10 * YEAR_DAYS)).astype(int), DECADES - 1)


def decade_band(model, table, decade):
    """95% of the events of each decade that the posterior predicts: draws of f at all bins, then of the counts."""
    with tempfile.TemporaryDirectory() as folder:
        joint = Path(folder) / "joint.csv"
        thiele("predict", model, table, "--latent", "--joint", joint, "-o", Path(folder) / "rows.csv", "--quiet")
        columns = list(read_csv(joint).values())
    random = np.random.default_rng(0)
    values, vectors = np.linalg.eigh(np.column_stack(columns[1:]))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    f = columns[0][:, None] + root @ random.standard_normal((len(values), 4000))
    counts = random.poisson(np.exp(f + OFFSET))
    totals = np.array([counts[decade == d].sum(axis=0) for d in range(DECADES)])
    return np.quantile(totals, [0.025, 0.975], axis=1)


def mining_rows(posterior, sparsity):
    """What is added to a mining line: events a decade, expected, seen and predicted; the rows go to a file."""
    def after(model):
        table, _ = tables("mining", 1)
        rows = ARGS.output / f"mining_{posterior}_{sparsity:g}.csv"
        latent = ARGS.output / f"mining_{posterior}_{sparsity:g}_latent.csv"
        thiele("predict", model, table, "-o", rows, "--quiet")
        thiele("predict", model, table, "-o", latent, "--latent", "--quantiles", "0.025,0.975", "--quiet")
        data, mean = read_csv(table), read_csv(rows)["mean"]
        decade = decade_of(data["x1"])
        out = {"expected": np.bincount(decade, mean).tolist(), "seen": np.bincount(decade, data["y"]).tolist()}
        if posterior == "FG":
            low, high = decade_band(model, table, decade)
            out["band"] = list(zip(low.tolist(), high.tolist()))
        return {"decades": out}
    return after


def draw_mining():
    """Events a year, and under them the intensity with its 95% band for each posterior and sparsity."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    data = read_csv(tables("mining", 1)[0])
    year = FIRST_YEAR + data["x1"] / YEAR_DAYS
    edges = np.arange(1851, 1964)
    counts, _ = np.histogram(np.repeat(year, data["y"].astype(int)), edges)
    figure, axes = pyplot.subplots(len(ARGS.posterior), len(ARGS.sparsity), sharex=True, sharey=True, squeeze=False,
                                   figsize=(3.4 * len(ARGS.sparsity), 2.5 * len(ARGS.posterior) + 0.4))
    to_years = YEAR_DAYS / BIN_DAYS
    for row, posterior in enumerate(ARGS.posterior):
        for column, sparsity in enumerate(ARGS.sparsity):
            axis = axes[row][column]
            axis.bar(edges[:-1], counts, width=1.0, align="edge", color="0.82", label="events in the year")
            axis.set_title(f"{posterior}, M/N = {sparsity:g}", fontsize=10)
            stem = ARGS.output / f"mining_{posterior}_{sparsity:g}"
            if Path(f"{stem}.csv").exists():
                mean, latent = read_csv(Path(f"{stem}.csv"))["mean"], read_csv(Path(f"{stem}_latent.csv"))
                low, high = (np.exp(latent[q] + OFFSET) * to_years for q in ("q0.025", "q0.975"))
                axis.fill_between(year, low, high, color="tab:blue", alpha=0.35, lw=0, label="95% of the intensity")
                axis.plot(year, mean * to_years, color="tab:blue", label="its mean")
    for axis in axes[-1]:
        axis.set_xlabel("year")
    for axis in axes[:, 0]:
        axis.set_ylabel("events a year")
    axes[0][0].legend(fontsize=7, loc="upper right")
    figure.tight_layout()
    figure.savefig(ARGS.output / "mining.png", dpi=110)


# --- the checks ---------------------------------------------------------------------------------------------------


class Checks:
    """Lines of pass and fail; one that a quick run can't decide (few iterations, one split) is said and not counted."""

    def __init__(self):
        self.good = True

    def say(self, good, text, decides=True):
        print(f"{'pass' if good else 'FAIL' if decides else 'note'}  {text}")
        self.good &= bool(good) or not decides


def check_equal(checks, results, name, model, tolerance, text):
    """Scores of the model against those of the exact one, split by split; the means decide."""
    pairs = [(line["scores"], exact["scores"]) for split in splits_of(name)
             if (line := results.get(name, split, model, 1.0)) and (exact := results.get(name, split, EXACT[name]))]
    if not pairs:
        return
    gaps = {score: [own[score] - exact[score] for own, exact in pairs] for score in PROBLEMS[name].scores}
    said = ", ".join(f"{score} differs by {statistics.mean(gap):+.1e} in the mean, {max(map(abs, gap)):.1e} at worst"
                     for score, gap in gaps.items())
    checks.say(all(abs(statistics.mean(gap)) <= tolerance for gap in gaps.values()),
               f"{name}: FG at sparsity 1 against the exact {EXACT[name]}, {text}: {said} ({tolerance:g} allowed, "
               f"{len(pairs)} splits)", decides=not (ARGS.quick and model == "FG"))


def check_cancer(checks, results):
    for model, sparsity in models_of("cancer"):
        errors = [line["scores"]["ER"] for split in splits_of("cancer")
                  if (line := results.get("cancer", split, model, sparsity))]
        if errors:
            checks.say(statistics.mean(errors) < CANCER_ERROR, f"cancer: error rate of {label(model, sparsity)} is "
                       f"{statistics.mean(errors):.4f} (below {CANCER_ERROR:g} wanted, {len(errors)} splits)",
                       decides=not ARGS.quick)


def check_decades(checks, results):
    for model, sparsity in models_of("mining"):
        line = results.get("mining", 1, model, sparsity)
        if line is None:
            continue
        decades = line["decades"]
        bands = [poisson_interval(int(seen)) for seen in decades["seen"]]
        inside = sum(low <= mean <= high for (low, high), mean in zip(bands, decades["expected"]))
        checks.say(inside == DECADES, f"mining: {label(model, sparsity)}: {inside} of {DECADES} decade averages of the "
                   "intensity inside the 95% Poisson band around the decade's count")
        if "band" in decades:
            inside = sum(low <= seen <= high for (low, high), seen in zip(decades["band"], decades["seen"]))
            checks.say(inside == DECADES, f"mining: {label(model, sparsity)}: {inside} of {DECADES} decade counts "
                       "inside the 95% band that the posterior predicts")


def check_all(results):
    checks = Checks()
    for line in results.lines.values():
        if "failed" in line:
            checks.say(False, line["failed"])
    for name in ARGS.sets:
        if name in EXACT:
            check_equal(checks, results, name, "FG held", SAME_MODEL, "at the parameters of the exact one")
            start = "each with the parameters it learned" if EXACT[name] == "GP" else "having learned on from there"
            check_equal(checks, results, name, "FG", EQUAL, start)
        elif name == "cancer":
            check_cancer(checks, results)
        elif name == "mining":
            check_decades(checks, results)
    return checks.good


def run_split(results, name, split):
    rows = len(next(iter(read_csv(tables(name, split)[0]).values())))
    exact = {reference: results.run(name, split, reference, None, options)
             for reference, options in PROBLEMS[name].references.items()}
    peer = exact.get(EXACT.get(name))
    start = at(peer["parameters"], "~") if peer and EXACT[name] == "WGP" else []
    for posterior in ARGS.posterior:
        for sparsity in ARGS.sparsity:
            after = mining_rows(posterior, sparsity) if name == "mining" else None
            results.run(name, split, posterior, sparsity, variational(name, posterior, sparsity, rows) + start, after)
    if peer and "FG" in ARGS.posterior and 1.0 in ARGS.sparsity:
        results.run(name, split, "FG held", 1.0, variational(name, "FG", 1.0, rows) + at(peer["parameters"], "="))


def main():
    if not (ARGS.build / "thiele").exists():
        sys.exit(f"there is no {ARGS.build / 'thiele'}: build it first")
    ARGS.output.mkdir(parents=True, exist_ok=True)
    results = Results(ARGS.output / "results.jsonl")
    for name in ARGS.sets:
        for split in splits_of(name):
            run_split(results, name, split)
    write_table(results)
    if "mining" in ARGS.sets:
        draw_mining()
    good = check_all(results)
    print("\nPASS" if good else "\nFAIL")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
