#!/usr/bin/env python3
"""Samplers of the posterior of a latent Gaussian process: table 2 of Galy-Fajou, Wenzel and Opper (2020) and its grid
for HMC (appendix A.7), and the coal-mining disasters of Bonilla, Krauth and Dezfouli (figure 6). By name:

  logistic   Heart, 303 rows of 13 inputs
  student-t, laplace, matern32
             Boston, 506 rows of 13 inputs
  mining     811 bins, Poisson counts: HMC and elliptical slices (ESS) against the variational answer

The first four run bench-chains: five chains of 10,000 draws after 5,000 steps of burn-in by random-walk Metropolis
(MH), HMC for each of the paper's steps 0.01, 0.05, 0.1 and 1, 2, 5, 10 leaps, HMC that finds its own, ESS and Gibbs.
Inputs and targets are standardised by the statistics of all rows; squared-exponential kernel of variance 1, whose
length-scale is the median distance between rows; nu = 3 and scale 1 (Student-t), beta = 1 (Laplace), rho = 1 (Matern).
The lag-1 autocorrelation is the mean over all f_i and the chains, R-hat the largest; a sample's time is that of one
draw of one chain on its thread. Of HMC's grid the lowest lag-1 among the settings that agree on R-hat counts.

For mining the dense variational fit learns kernel parameters, which then are fixed for all: variational with a full
Gaussian and M/N = 1 and 0.1, HMC (four chains of 2,500 draws) and ESS (the same, each the hundredth step, as in the
paper). Times are those of whole commands at the fixed parameters; mining_samplers.png shows intensities with 95% bands.

The checks: Gibbs has a lag-1 of at most the paper's plus 0.05, at most a third of the paper's time a sample, an R-hat of
at most 1.05, and at least as many effective draws a second as HMC that finds its own step; the samplers of mining agree with the variational answer. The last line is PASS or FAIL, and so
is the exit status.

    cmake --build build --target thiele bench-chains
    bench/.venv/bin/python bench/aaci_samplers.py
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from aaci_common import FOLDERS, LIKELIHOODS, RHAT, note, pyplot, read_split, run_study, standardise
from medium_common import CommandError, aligned, number, read_csv, small

STEPS, LEAPS = (0.01, 0.05, 0.1), (1, 2, 5, 10)
LAG_ALLOWED, TIME_SHARE = 0.05, 1.0 / 3.0
# Seconds a sample, lag 1, Gelman: table 2.
PAPER = {"logistic": {"MH": (0.001, 0.996, 1.38), "HMC": (0.041, 0.53, 1.00), "Gibbs": (0.01, 0.11, 1.00)},
         "student-t": {"MH": (0.003, 1.0, 1.51), "HMC": (0.573, 0.857, 1.00), "Gibbs": (0.028, 0.04, 1.00)},
         "laplace": {"MH": (0.002, 0.995, 1.44), "HMC": (0.082, 0.931, 1.01), "Gibbs": (0.028, 0.26, 1.00)},
         "matern32": {"MH": (0.005, 0.997, 1.59), "HMC": (0.15, 0.995, 1.10), "Gibbs": (0.029, 0.05, 1.00)}}
# Lag 1 over STEPS (rows) and LEAPS: tables 3 to 5; there is none for Matern.
PAPER_GRID = {"laplace": ((0.999, 0.993, 0.978, 0.963), (0.999, 0.998, 0.931, 0.948), (0.997, 0.996, 0.998, 0.994)),
              "student-t": ((0.999, 0.999, 0.997, 0.993), (0.997, 0.993, 0.962, 0.857), (0.993, 0.976, 0.864, None)),
              "logistic": ((0.999, 0.999, 0.998, 0.994), (0.998, 0.994, 0.968, 0.871), (0.994, 0.979, 0.875, 0.532))}
MEAN_ALLOWED, SPREAD_ALLOWED = 0.2, 0.15  # of mining: in posterior standard deviations, and of their ratio


# --- table 2 ------------------------------------------------------------------------------------------------------


def write_table(bench, name):
    """All rows of both parts, which are the whole set in another order; labels as signs."""
    rows = np.concatenate(read_split(bench.data, FOLDERS[name], 1))
    (rows,) = standardise(rows, classes=name == "logistic")
    if name == "logistic":
        rows[:, -1] = 2.0 * rows[:, -1] - 1.0
    path = bench.scratch / f"{name}.csv"
    np.savetxt(path, rows, delimiter=",", fmt="%.17g", header=",".join(f"x{i}" for i in range(rows.shape[1])),
               comments="")
    return path


def run_chains(bench, table, name, sampler, **settings):
    draws = 200 if bench.quick else 10000
    words = [bench.build / "bench-chains", table, LIKELIHOODS[name], sampler, f"threads={bench.threads}",
             f"chains={3 if bench.quick else 5}", f"draws={draws}", f"burn-in={draws // 2}",
             *(f"{key}={value}" for key, value in settings.items())]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode != 0:
        raise CommandError(f"bench-chains: status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def grid_row(step, leaps):
    return f"HMC {step} x {leaps}"


def run_table_2(bench, name):
    table = write_table(bench, name)

    def chains(row, sampler, **settings):
        bench.results.run(name, row, lambda: run_chains(bench, table, name, sampler, **settings))
    for row, sampler in (("Gibbs", "gibbs"), ("ESS", "ess"), ("MH", "mh"), ("HMC adapted", "hmc")):
        chains(row, sampler)
    for step in STEPS:
        for leaps in LEAPS:
            chains(grid_row(step, leaps), "hmc", step=step, leaps=leaps)


def rhat_of(line):
    """R-hat of a chain that never moved is none."""
    return float("inf") if line["rhat"] is None else line["rhat"]


def best_of_grid(bench, name):
    """Lowest lag-1 among those whose chains agree, or else the lowest R-hat."""
    lines = [line for step in STEPS for leaps in LEAPS if (line := bench.results.get(name, grid_row(step, leaps)))]
    agreeing = [line for line in lines if rhat_of(line) <= RHAT]
    if agreeing:
        return min(agreeing, key=lambda line: line["lag1"])
    return min(lines, key=rhat_of, default=None)


def sampler_lines(bench, name):
    """(sampler as in the paper, what it is, line)"""
    best = best_of_grid(bench, name)
    found = [("MH", "MH", bench.results.get(name, "MH")), ("HMC", f"{best['row']}" if best else "", best),
             ("HMC adapted", "HMC adapted", bench.results.get(name, "HMC adapted")),
             ("ESS", "ESS", bench.results.get(name, "ESS")), ("Gibbs", "Gibbs", bench.results.get(name, "Gibbs"))]
    return [(sampler, said, line) for sampler, said, line in found if line]


def draws_a_second(line):
    """Effective draws of one chain, the median over the f_i."""
    return line["ess_median"] / (line["chains"] * line["draws"] * line["seconds_per_sample"])


def table_2(bench, names):
    rows = []
    for name in names:
        for sampler, said, line in sampler_lines(bench, name):
            paper = PAPER[name].get(sampler)
            a_second = draws_a_second(line)
            rows.append([name, said, number(1e3 * line["seconds_per_sample"], 3), number(line["lag1"], 3),
                         number(line["rhat"], 3), number(a_second, 0), number(line["acceptance"], 2),
                         str(line["divergences"]), *([f"{1e3 * paper[0]:g}", f"{paper[1]:g}", f"{paper[2]:.2f}"]
                                                     if paper else ["", "", ""])])
    head = ["likelihood", "sampler", "ms", "lag 1", "R-hat", "eff/s", "accepted", "diverged", "paper ms", "paper lag 1",
            "paper Gelman"]
    notes = ["ms: a sample of one chain. eff/s: effective draws a second of one chain, the median over the f_i. R-hat: "
             "the largest; the paper's is a mean.", "HMC: the best of the grid, and with step and leaps of its own."]
    return aligned(bench.title("Table 2: samplers"), head, rows, notes)


def table_grid(bench, names):
    rows = []
    for name in names:
        for s, step in enumerate(STEPS):
            cells = []
            for c, leaps in enumerate(LEAPS):
                line = bench.results.get(name, grid_row(step, leaps))
                paper = PAPER_GRID.get(name, ((None,) * 4,) * 3)[s][c]
                cells += [number(1e3 * line["seconds_per_sample"], 2), number(line["lag1"], 3),
                          number(line["rhat"], 2) or "inf"] if line else ["", "", ""]
                cells.append(number(paper, 3))
            rows.append([name, f"{step:g}", *cells])
    head = ["likelihood", "step"] + [word for leaps in LEAPS for word in (f"{leaps}: ms", "lag 1", "R-hat", "paper")]
    return aligned(bench.title("Tables 3 to 5: HMC by step and leaps"), head, rows, ["paper: its lag 1."])


def check_table_2(bench, name, checks):
    line = bench.results.get(name, "Gibbs")
    if line is None:
        return
    seconds, lag, _ = PAPER[name]["Gibbs"]
    checks.say(line["lag1"] <= lag + LAG_ALLOWED, f"{name}: lag 1 of Gibbs is {line['lag1']:.3f}, the paper's {lag:g} "
               f"(at most {LAG_ALLOWED:g} more)", decides=not bench.quick)
    own = line["seconds_per_sample"]
    checks.say(own <= TIME_SHARE * seconds, f"{name}: a sample of Gibbs takes {1e3 * own:.2f} ms, the paper's "
               f"{1e3 * seconds:g} (at most a third)", decides=not bench.quick)
    checks.say(rhat_of(line) <= RHAT, f"{name}: the largest R-hat of Gibbs is {rhat_of(line):.3f} (at most {RHAT:g})",
               decides=not bench.quick)
    other = bench.results.get(name, "HMC adapted")
    if other is not None:
        ratio = draws_a_second(line) / draws_a_second(other)
        checks.say(ratio >= 1.0, f"{name}: Gibbs has {ratio:.2f} times the effective draws a second of HMC (at least 1)",
                   decides=not bench.quick)


# --- mining -------------------------------------------------------------------------------------------------------


def mining_models(bench):
    """Name and options of each, the variational one at every row first."""
    draws, burn_in, thin = (50, 100, 5) if bench.quick else (2500, 5000, 100)
    sampling = ["--chains", 4, "--draws", draws, "--burn-in", burn_in]
    return {"variational": ["--method", "dense"],
            "variational M=81": ["--method", "variational", "--inducing", 81, "--inducing-from", "random",
                                 "--fix-inducing"],
            "HMC": ["--method", "hmc", *sampling],
            "ESS": ["--method", "ess", *sampling, "--thin", thin]}


def mining_fit(bench, model, options):
    """(what the fit says, seconds of the command)"""
    table = bench.data / "mining" / "train.csv.gz"
    begin = time.perf_counter()
    fitted = json.loads(bench.thiele("fit", table, "--target", "y", "-o", model, "--json", "--quiet", "--mean", "zero",
                                     "--kernel", "se", "--likelihood", small.PROBLEMS["mining"].likelihood, "--threads",
                                     bench.threads, *options))["model"]
    return fitted, time.perf_counter() - begin


def mining_line(bench, name, options):
    model = bench.scratch / "model.thiele"
    fitted, seconds = mining_fit(bench, model, options)
    rows = bench.out / f"mining_{name.replace(' ', '_').replace('=', '')}{'_quick' if bench.quick else ''}.csv"
    bench.thiele("predict", model, bench.data / "mining" / "train.csv.gz", "--latent", "--quantiles", "0.025,0.975",
                 "--quiet", "-o", rows)
    return {"seconds": seconds, "bound": fitted["bound"], "sampling": fitted.get("sampling"), "latent": str(rows),
            "parameters": {p["name"]: p["value"] for p in fitted["parameters"]}}


def run_mining(bench, name):
    def learn():
        fitted, seconds = mining_fit(bench, bench.scratch / "first.thiele", ["--method", "dense"])
        return {"seconds": seconds, "parameters": {p["name"]: p["value"] for p in fitted["parameters"]}}
    learned = bench.results.run(name, "learning", learn)
    if learned is None:
        return
    fixed = ", ".join(f"{key}={value!r}" for key, value in learned["parameters"].items() if key != "offset")
    for model, options in mining_models(bench).items():
        bench.results.run(name, model, lambda: mining_line(bench, model, [*options, "--set", fixed]))


def mining_gap(bench, model):
    """Largest difference of the mean of f from the variational one, in standard deviations of the latter; smallest and
    largest ratio of the two standard deviations."""
    other, own = (bench.results.get("mining", name) for name in ("variational", model))
    if other is None or own is None:
        return None
    other, own = read_csv(Path(other["latent"])), read_csv(Path(own["latent"]))
    ratio = own["sd"] / other["sd"]
    return float(np.max(np.abs(own["mean"] - other["mean"]) / other["sd"])), float(ratio.min()), float(ratio.max())


def table_mining(bench):
    rows = []
    for model in mining_models(bench):
        line = bench.results.get("mining", model)
        if line is None:
            continue
        sampling, gap = line["sampling"] or {}, mining_gap(bench, model)
        rows.append([model, number(line["seconds"], 2), number(sampling.get("rhat"), 3),
                     number(sampling.get("lag1"), 3), number(sampling.get("ess_least"), 0),
                     *([number(gap[0], 3), f"{gap[1]:.3f} to {gap[2]:.3f}"] if gap else ["", ""])])
    learned = bench.results.get("mining", "learning")
    notes = [f"Parameters fixed at {', '.join(f'{k} = {v:.4g}' for k, v in learned['parameters'].items())}, learned by "
             f"the variational fit in {learned['seconds']:.1f} s." if learned else "",
             "Difference: of the posterior mean of f from the variational one, the largest of 811, in its standard "
             "deviations. Ratio: of the standard deviations.",
             "Both by the draws that a model keeps, some 250: the error of their mean is 0.06 standard deviations, that "
             "of theirs 4%.",
             "The paper: variational two orders of magnitude faster than HMC and one faster than ESS; means and bands "
             "alike."]
    head = ["mining", "seconds", "R-hat", "lag 1", "eff least", "difference", "ratio"]
    return aligned(bench.title("Figure 6 of SAVIGP: the coal-mining disasters"), head, rows, notes)


def draw_mining(bench):
    """Events a year above; below intensities with their bands, the samplers' as in the paper: dots and dashes."""
    plot = pyplot()
    data = read_csv(bench.data / "mining" / "train.csv.gz")
    year = small.FIRST_YEAR + data["x1"] / small.YEAR_DAYS
    edges = np.arange(1851, 1964)
    counts, _ = np.histogram(np.repeat(year, data["y"].astype(int)), edges)
    figure, axes = plot.subplots(2, 1, sharex=True, figsize=(9, 7), height_ratios=(1, 2))
    axes[0].bar(edges[:-1], counts, width=1.0, align="edge", color="0.6")
    axes[0].set_ylabel("events in the year")
    styles = {"variational": ("tab:blue", "-"), "HMC": ("tab:orange", ":"), "ESS": ("tab:green", "--")}
    for model, (color, style) in styles.items():
        line = bench.results.get("mining", model)
        if line is None:
            continue
        latent = read_csv(Path(line["latent"]))
        mean, low, high = (np.exp(latent[q] + small.OFFSET) * small.YEAR_DAYS / small.BIN_DAYS
                           for q in ("mean", "q0.025", "q0.975"))
        axes[1].plot(year, mean, color=color, ls=style, label=f"{model}, {line['seconds']:.1f} s")
        if style == "-":
            axes[1].fill_between(year, low, high, color=color, alpha=0.25, lw=0)
        else:
            axes[1].plot(year, low, color=color, ls=style, lw=1)
            axes[1].plot(year, high, color=color, ls=style, lw=1)
    axes[1].set(xlabel="year", ylabel="events a year: exp of the mean of f, and 95%")
    axes[1].legend()
    figure.tight_layout()
    figure.savefig(bench.figure("mining_samplers"), dpi=110)


def check_mining(bench, checks):
    for model in ("HMC", "ESS"):
        line, gap = bench.results.get("mining", model), mining_gap(bench, model)
        if line is None or gap is None:
            continue
        rhat = rhat_of(line["sampling"])
        checks.say(rhat <= RHAT, f"mining: the largest R-hat of {model} is {rhat:.3f} (at most {RHAT:g})",
                   decides=not bench.quick)
        checks.say(gap[0] <= MEAN_ALLOWED and max(gap[2] - 1.0, 1.0 - gap[1]) <= SPREAD_ALLOWED,
                   f"mining: {model} and the variational answer differ by {gap[0]:.3f} standard deviations in the mean "
                   f"(at most {MEAN_ALLOWED:g}), their bands by {gap[1]:.3f} to {gap[2]:.3f} (1 +- {SPREAD_ALLOWED:g})",
                   decides=not bench.quick)
        own = bench.results.get("mining", "variational")
        note(checks, f"mining: {model} takes {line['seconds'] / own['seconds']:.0f} times as long as the variational "
             "fit at the same parameters")


# --- the command --------------------------------------------------------------------------------------------------


def run(bench, name):
    (run_mining if name == "mining" else run_table_2)(bench, name)


def table(bench, names):
    likelihoods = [name for name in names if name != "mining"]
    parts = [table_2(bench, likelihoods), table_grid(bench, likelihoods)] if likelihoods else []
    if "mining" in names:
        draw_mining(bench)
        parts.append(table_mining(bench))
    return "\n".join(parts)


def check(bench, names, checks):
    for name in names:
        if name == "mining":
            check_mining(bench, checks)
        else:
            check_table_2(bench, name, checks)


def say(line):
    if "lag1" not in line:
        return f"{line['seconds']:.1f} s"
    return (f"{1e3 * line['seconds_per_sample']:.3f} ms  lag 1 {line['lag1']:.3f}  R-hat {rhat_of(line):.3f}  "
            f"{line['seconds']:.1f} s")


if __name__ == "__main__":
    sys.exit(run_study(__doc__, "aaci_samplers", {"logistic": "heart303", **FOLDERS, "mining": "mining"}, run, table,
                       check, say, programs=("thiele", "bench-chains")))
