#!/usr/bin/env python3
"""How long until the test NLPD is there: figure 3 of Galy-Fajou, Wenzel and Opper (2020). By name:

  protein-student-t, protein-laplace, protein-matern32   41,157 training and 4,573 test rows of 9 inputs
  airline-student-t, airline-laplace                     arrival delay, 700,000 flights and 20,000 of 8 inputs
  late-logistic                                          the same flights: more than 15 minutes late?
  mnist-logistic                                         odd against even digits, 60,000 and 10,000 of 784 pixels

Three ways to fit the same sparse model, M = 200 inducing inputs, the same k-means centres for all, which stay where
they are: `thiele fit --method augmented`; `thiele fit --method variational --expectation quadrature`, which is natural
gradients; GPyTorch's Adam (aaci_adam.py), rates 0.001, 0.01 and 0.1. Each with minibatches of 100 and of 1024; all
parameters of kernel and likelihood are learned. `best` is the lowest test NLPD that Adam reaches with any rate and
batch in --budget seconds each, and the time of a method the first at which its NLPD is within 1% of that, with any
batch (and rate). augmented is to be there 30 times as fast as Adam. How long each takes to the best NLPD itself is said
too: the last percent is most of Adam's time.

What is fair:
- One run, the same machine, rows, test rows, Z, kernel (RBF, a length-scale per input but for pixels), likelihood and
  number of threads; double precision. Inputs and targets are standardised by training statistics, pixels divided by 255
  and left out where they are constant. NLPDs are in the units of the data (1% of them depends on those).
- thiele's seconds are those of the whole command: starting, reading the table, first guesses, saving. Its time is the
  shortest of the rising --deadlines that suffices, so it is known from above only.
- GPyTorch's clock stands still while data is read and test rows are scored. It begins at length-scales equal to the
  median distance of rows, as a user who knows would do.
- Choosing Z is on nobody's clock.

Writes aaci_speed.txt and aaci_speed.png. The last line is PASS or FAIL, and so is the exit status.

    bench/setup-peers; cmake --build build --target thiele
    bench/.venv/bin/python bench/aaci_speed.py --resume

takes most of an afternoon, nearly all of it in Adam: 40 minutes for each name. More threads than idle cores make torch
crawl. --quick takes some of the rows and two minutes.
"""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aaci_common import note, pyplot, run_study, save
from medium_common import ROOT, CommandError, aligned, number
from savigp_medium import read_idx

INDUCING, MARGIN, TIME_TARGET = 200, 0.01, 30.0
LATE = 15.0
TIMES = (4, 5)  # columns of the flights that hold hhmm
AIRLINE_TEST = 20_000
TASKS = {"protein-student-t": ("protein", "student-t"), "protein-laplace": ("protein", "laplace"),
         "protein-matern32": ("protein", "matern32"), "airline-student-t": ("airline", "student-t"),
         "airline-laplace": ("airline", "laplace"), "late-logistic": ("airline", "logistic"),
         "mnist-logistic": ("mnist", "logistic")}
OWN = {"augmented": ["--method", "augmented"],
       "quadrature": ["--method", "variational", "--expectation", "quadrature"]}


# --- data ---------------------------------------------------------------------------------------------------------


def read_parts(folder, most):
    """Training and test rows, the target last; `most` of each."""
    out = []
    for part, count in zip(("train", "test"), most):
        with gzip.open(folder / f"{part}.csv.gz", "rt", encoding="utf-8") as file:
            out.append(np.loadtxt(file, delimiter=",", skiprows=1, max_rows=count))
    return out


def airline(folder, most):
    """Times of day as hours. Rows are in random order, so the first ones are as good as any."""
    parts = read_parts(folder, (most[0], min(most[1] or AIRLINE_TEST, AIRLINE_TEST)))
    for rows in parts:
        for column in TIMES:
            rows[:, column] = rows[:, column] // 100 + rows[:, column] % 100 / 60.0
    return parts


def mnist(folder, most):
    """Odd digits are 1."""
    parts = []
    for part, count in zip(("train", "t10k"), most):
        X = read_idx(folder / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784)[:count]
        y = read_idx(folder / f"{part}-labels-idx1-ubyte.gz", 8)[:count] % 2
        parts.append(np.column_stack([X / np.float32(255), y.astype(np.float32)]))
    varies = np.append(np.ptp(parts[0][:, :-1], axis=0) > 0, True)
    return [np.ascontiguousarray(rows[:, varies]) for rows in parts]


READERS = {"protein": read_parts, "airline": airline, "mnist": mnist}


def choose_Z(X, count=INDUCING):
    from sklearn.cluster import MiniBatchKMeans
    return MiniBatchKMeans(count, batch_size=4096, n_init=1, random_state=0).fit(X).cluster_centers_


@dataclass
class Plan:
    deadlines: list
    batches: list
    rates: list
    budget: float


def plan(bench):
    own = bench.arguments
    return Plan([0.5, 1.0], [100], [0.01], 1.0) if bench.quick else Plan(own.deadlines, own.batches, own.rates,
                                                                         own.budget)


class Task:
    """Tables for thiele in the units of the data, a problem for the peer in its own."""

    def __init__(self, bench, name):
        folder, self.likelihood = TASKS[name]
        self.classes, self.raw = self.likelihood == "logistic", folder == "mnist"
        train, test = READERS[folder](bench.data / folder, (4000, 1000) if bench.quick else (None, None))
        if self.classes and folder == "airline":
            for rows in (train, test):
                rows[:, -1] = rows[:, -1] > LATE
        center, scale = train.mean(axis=0), train.std(axis=0)
        if self.raw:
            center, scale = np.zeros_like(center), np.ones_like(scale)
        if self.classes:
            center[-1], scale[-1] = 0.0, 1.0
        near, far = (train - center) / scale, (test - center) / scale
        Z = choose_Z(near[:, :-1])
        self.tables = [save(bench.scratch / f"{part}.npy", rows) for part, rows in (("train", train), ("test", test))]
        self.Z = save(bench.scratch / "Z.npy", Z * scale[:-1] + center[:-1])
        self.problem = bench.scratch / "problem.npz"
        np.savez(self.problem, X=near[:, :-1], y=near[:, -1], X_test=far[:, :-1], y_test=far[:, -1], Z=Z,
                 scale=scale[-1], ard=not self.raw)

    def options(self):
        likelihood = "bernoulli" if self.classes else self.likelihood
        return ["--target", -1, "--replicates", "--likelihood", likelihood, "--kernel", "se" if self.raw else "se(ard)",
                "--inducing", INDUCING, "--inducing-from", self.Z, "--fix-inducing", "--epochs", 100000,
                *(["--raw"] if self.raw else [])]


# --- running ------------------------------------------------------------------------------------------------------


def fit_own(bench, task, method, batch):
    """Points of rising deadlines, until a fit ends by itself."""
    points = []
    for deadline in plan(bench).deadlines:
        line = bench.thiele.fit_and_score(*task.tables, bench.scratch / "model.thiele", deadline, *task.options(),
                                          "--batch", batch, *OWN[method])
        scores = line["scores"]
        points.append([line["seconds"], *(scores[key] for key in (("nlp", "error_rate") if task.classes else
                                                                 ("nlpd", "rmse")))])
        if line["stop"] != "deadline":
            break
    return {"points": points, "stop": line["stop"], "passes": line["passes"], "steps": line["iterations"]}


def fit_adam(bench, task, batch, rate):
    words = [bench.arguments.peers, ROOT / "bench" / "aaci_adam.py", task.problem, task.likelihood, "--batch", batch,
             "--rate", rate, "--budget", plan(bench).budget, "--threads", bench.threads]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode != 0:
        raise CommandError(f"aaci_adam.py: status {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def own_row(method, batch):
    return f"{method} {batch}"


def adam_row(batch, rate):
    return f"Adam {batch}, {rate:g}"


def all_rows(bench):
    """(method, row, makes it from a task) of each line of a task."""
    out = [(method, own_row(method, batch), lambda task, m=method, b=batch: fit_own(bench, task, m, b))
           for method in OWN for batch in plan(bench).batches]
    if bench.arguments.peers.exists():
        out += [("Adam", adam_row(batch, rate), lambda task, b=batch, r=rate: fit_adam(bench, task, b, r))
                for batch in plan(bench).batches for rate in plan(bench).rates]
    return out


def run(bench, name):
    missing = [row for row in all_rows(bench) if row[0] in bench.arguments.methods and
               bench.results.get(name, row[1]) is None]
    if not missing:
        return
    if os.getloadavg()[0] > 0.5:
        print(f"the machine is busy (load {os.getloadavg()[0]:.1f}): times are rough, and void for several threads")
    task = Task(bench, name)
    for _, row, make in missing:
        bench.results.run(name, row, lambda: make(task))


# --- what came of it ----------------------------------------------------------------------------------------------


def points_of(bench, name, method):
    """All points of a method, whatever the batch and rate."""
    lines = [bench.results.get(name, row) for kind, row, _ in all_rows(bench) if kind == method]
    return [point for line in lines if line for point in line["points"]]


def bar_of(bench, name):
    """Adam's best NLPD, and 1% above it; None without Adam."""
    nlpds = [point[1] for point in points_of(bench, name, "Adam")]
    return (min(nlpds), min(nlpds) + MARGIN * abs(min(nlpds))) if nlpds else None


def first_within(points, bar):
    return min((point[0] for point in points if point[1] <= bar), default=None)


def table(bench, names):
    rows = []
    for name in names:
        bar = bar_of(bench, name)
        for _, row, _ in all_rows(bench):
            line = bench.results.get(name, row)
            if line is None:
                continue
            best = min(line["points"], key=lambda point: point[1])
            own = first_within(line["points"], best[1] + MARGIN * abs(best[1]))
            rows.append([name, row, number(best[1], 4), number(best[2], 4), number(line["points"][-1][0], 1),
                         str(line["steps"]), number(own, 2),
                         number(first_within(line["points"], bar[1]), 2) if bar else ""])
    draw(bench, names)
    head = ["data, likelihood", "method, batch, rate", "best NLPD", "RMSE or error", "seconds", "steps", "to 1% of own",
            "to 1% of Adam's"]
    notes = ["Seconds until the test NLPD was within 1% of the lowest of the same line, and of the lowest of any Adam; "
             "empty: never."]
    return aligned(bench.title("Figure 3: time and test NLPD"), head, rows, notes)


def draw(bench, names):
    """NLPD by time, a panel for each task: lines of a method for each batch (and rate)."""
    plot = pyplot()
    colors = {"augmented": "tab:blue", "quadrature": "tab:green", "Adam": "tab:orange"}
    columns = min(4, len(names))
    figure, axes = plot.subplots(-(-len(names) // columns), columns, squeeze=False,
                                 figsize=(4 * columns, 3.2 * -(-len(names) // columns)))
    for axis in axes.flat[len(names):]:
        axis.set_visible(False)
    for axis, name in zip(axes.flat, names):
        for method, row, _ in all_rows(bench):
            line = bench.results.get(name, row)
            if line:
                points = np.array(line["points"])
                small_batch = row.split()[1].rstrip(",") == str(plan(bench).batches[0])
                axis.plot(points[:, 0], points[:, 1], color=colors[method], ls="--" if small_batch else "-",
                          marker="" if method == "Adam" else ".", lw=1)
        finals = [bench.results.get(name, row)["points"] for _, row, _ in all_rows(bench)
                  if bench.results.get(name, row)]
        if finals:
            low, high = min(p[1] for points in finals for p in points), max(points[0][1] for points in finals)
            axis.set_ylim(low - 0.05 * (high - low), high)
        axis.set_xscale("log")
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("seconds")
    axes[0][0].set_ylabel("test NLPD")
    for method, color in colors.items():
        axes[0][0].plot([], [], color=color, label=method)
    axes[0][0].plot([], [], color="0.4", ls="--", label=f"batch {plan(bench).batches[0]}")
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(bench.figure("aaci_speed"), dpi=110)


def check(bench, names, checks):
    if not bench.arguments.peers.exists():
        checks.say(False, f"there is no {bench.arguments.peers}: bench/setup-peers makes it", decides=not bench.quick)
        return
    for name in names:
        bar, own = bar_of(bench, name), points_of(bench, name, "augmented")
        if bar is None or not own:
            continue
        theirs = first_within(points_of(bench, name, "Adam"), bar[1])
        ours, other = (first_within(points_of(bench, name, method), bar[1]) for method in OWN)
        reached = f"after {ours:.2f} s, {theirs / ours:.1f} times as fast" if ours else "never"
        checks.say(ours is not None and theirs >= TIME_TARGET * ours, f"{name}: Adam's best NLPD is {bar[0]:.4f}; "
                   f"within 1% Adam after {theirs:.1f} s, augmented {reached} ({TIME_TARGET:g} wanted); its best is "
                   f"{min(point[1] for point in own):.4f}", decides=not bench.quick)
        if ours and other:
            note(checks, f"{name}: natural gradients by quadrature are there after {other:.2f} s, "
                 f"{other / ours:.1f} times the time of augmented")
        theirs, ours = (first_within(points_of(bench, name, method), bar[0]) for method in ("Adam", "augmented"))
        if ours:
            note(checks, f"{name}: Adam is at its best NLPD after {theirs:.1f} s, augmented at as good a one after "
                 f"{ours:.2f} s, {theirs / ours:.1f} times as fast")


def say(line):
    shown = line["points"] if len(line["points"]) <= 6 else line["points"][::-(-len(line["points"]) // 5)]
    return "".join(f"  {seconds:.1f} s: {nlpd:.4f}" for seconds, nlpd, _ in shown)


def options(parser):
    def numbers(kind):
        return lambda text: [kind(word) for word in text.split(",")]
    parser.add_argument("--deadlines", type=numbers(float), default="0.15,0.3,0.6,1,1.5,2,3,4,8,16",
                        help="of thiele, in seconds, with commas (default: %(default)s)")
    parser.add_argument("--methods", type=numbers(str), default=",".join([*OWN, "Adam"]),
                        help="those to run, of which the others' lines stay with --resume (default: %(default)s)")
    parser.add_argument("--batches", type=numbers(int), default="100,1024", help="rows a step (default: %(default)s)")
    parser.add_argument("--rates", type=numbers(float), default="0.001,0.01,0.1", help="of Adam (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds of each Adam (default: %(default)g)")
    parser.add_argument("--peers", type=Path, default=ROOT / "bench" / ".venv-peers" / "bin" / "python",
                        help="the Python that has GPyTorch (default: bench/.venv-peers)")


if __name__ == "__main__":
    sys.exit(run_study(__doc__, "aaci_speed", {name: folder for name, (folder, _) in TASKS.items()}, run, table, check,
                       say, options))
