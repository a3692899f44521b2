"""The airline experiment (section 9.5, figures 15 and 16): arrival delays in minutes from eight columns, learned from
earlier and tested on later flights.

The three files of the folder are a random division of all flights of January to April 2008, so they are put together
again and ordered by month, day and departure. The cut is at the last midnight with at least 100,000 flights behind it:
those days, all of them whole, are the test rows, and the 700,000 flights before it the training rows. So no day is in
both, and no test day lacks its evening, when delays are longest. Departure and arrival are turned into hours, as in the
paper's own code; unlike there, flights that came early are kept.

thiele is fitted anew for each epoch that is scored, with --epochs 1, 2, ...: its order of rows depends on the seed
alone, so that each fit is the beginning of the longer ones, ended there (as long as it is far from its deadline). Its
end belongs to the method: q goes to its optimum over all rows, two passes more, which the column of passes counts. Its
beginning, first guesses and a climb on some thousand rows, is counted in the seconds only. medium_svi.py has neither
and is one run, scored as it goes. Both have the same M, kernel, lengths of steps and batches, and learn Z. Batches are
large: a few delays of a day make the bound of small ones mostly noise, in which thiele sees no progress any more and
stops.
"""

import gzip
import statistics
import time

import numpy as np

from medium_common import aligned, mean_and_error, number
from medium_svi import Svi

TRAIN, TEST = 700_000, 100_000
SUBSETS, REPEATS = (1000, 2000), 5
DAY, MONTH, TIMES, DELAY = 6, 7, (4, 5), 8  # columns


# --- rows ---------------------------------------------------------------------------------------------------------


def read_flights(folder):
    """All flights in the order of time, hhmm as hours."""
    parts = []
    for name in ("train", "train_extra", "test"):
        with gzip.open(folder / f"{name}.csv.gz", "rt", encoding="utf-8") as file:
            parts.append(np.loadtxt(file, delimiter=",", skiprows=1))
    rows = np.concatenate(parts)
    rows = rows[np.lexsort((rows[:, TIMES[0]], rows[:, DAY], rows[:, MONTH]))]
    for column in TIMES:
        rows[:, column] = rows[:, column] // 100 + rows[:, column] % 100 / 60.0
    return rows


def split(rows):
    """Training and test rows on the two sides of a midnight."""
    firsts = np.flatnonzero(np.diff(rows[:, DAY])) + 1
    cut = firsts[len(rows) - firsts >= TEST][-1]
    if cut < TRAIN:
        raise SystemExit(f"airline: only {cut} flights before the test days, {TRAIN} are needed")
    return rows[cut - TRAIN:cut], rows[cut:]


def load(bench):
    train, test = split(read_flights(bench.data / "airline"))
    print(f"airline: {len(train)} flights from {date(train[0])} to {date(train[-1])} for training, {len(test)} from "
          f"{date(test[0])} to {date(test[-1])} for testing")
    if not bench.quick:
        return train, test
    random = np.random.default_rng(0)
    return [rows[random.choice(len(rows), count, replace=False)] for rows, count in ((train, 8000), (test, 2000))]


def date(row):
    return f"2008-{row[MONTH]:02.0f}-{row[DAY]:02.0f}"


def save(path, rows):
    np.save(path, rows)
    return path


# --- models -------------------------------------------------------------------------------------------------------


def gaussian_scores(y, mean, variance):
    error2 = (y - mean) ** 2
    return {"rmse": float(np.sqrt(error2.mean())),
            "nlpd": float((0.5 * np.log(2.0 * np.pi * variance) + 0.5 * error2 / variance).mean())}


def linear(train, test):
    """Least squares with the variance of its residuals; a prior on nine weights is nothing beside 700,000 rows."""
    begin = time.perf_counter()
    center, scale = train.mean(axis=0), train.std(axis=0)

    def design(rows):
        return np.column_stack([(rows[:, :DELAY] - center[:DELAY]) / np.where(scale[:DELAY] > 0, scale[:DELAY], 1.0),
                                np.ones(len(rows))])
    weights, *_ = np.linalg.lstsq(design(train), train[:, DELAY], rcond=None)
    variance = np.mean((train[:, DELAY] - design(train) @ weights) ** 2)
    scores = gaussian_scores(test[:, DELAY], design(test) @ weights, variance)
    return {"scores": scores, "seconds": time.perf_counter() - begin}


class SviCurve:
    """One run of hard-coded SVI that is scored now and then; on one thread, because those of NumPy wait for each other
    in loops and crawl where others want the cores."""

    def __init__(self, train, test, M, batch, deadline):
        self.center, self.scale = train.mean(axis=0), train.std(axis=0)
        self.test, self.M, self.batch, self.deadline = test, M, batch, deadline
        self.rows = (train - self.center) / self.scale
        self.model, self.epochs, self.seconds, self.late = None, 0, 0.0, False

    def learn(self, epochs):
        begin = time.perf_counter()
        if self.model is None:
            self.model = Svi(self.rows[:, :DELAY], self.rows[:, DELAY], self.M, self.batch)
        while self.epochs < epochs and not self.late:
            self.late = not self.model.epoch(lambda: self.seconds + time.perf_counter() - begin > self.deadline)
            self.epochs += 1
        self.seconds += time.perf_counter() - begin

    def at(self, epochs):
        """The line after so many epochs, or where the deadline was."""
        from threadpoolctl import threadpool_limits
        with threadpool_limits(1):
            self.learn(epochs)
            mean, variance = self.model.predict((self.test[:, :DELAY] - self.center[:DELAY]) / self.scale[:DELAY])
            bound = self.model.bound() - len(self.rows) * np.log(self.scale[DELAY])
        scores = gaussian_scores(self.test[:, DELAY], self.center[DELAY] + self.scale[DELAY] * mean,
                                 self.scale[DELAY] ** 2 * variance)
        return {"scores": scores, "bound": float(bound), "seconds": self.seconds, "iterations": self.model.t,
                "M": self.M, "passes": self.model.t * self.model.batch / len(self.rows),
                "stop": "deadline" if self.late else "iterations"}


# --- running ------------------------------------------------------------------------------------------------------


def size(bench):
    return 20 if bench.quick else (bench.inducing or [200])[0]


def epoch_row(method, M, epochs):
    return f"{method} M={M} epoch {epochs}"


def run_thiele(bench, train, test):
    """Fits for 1, 2, ... epochs until one ends before its last epoch; further ones would be the same."""
    for epochs in bench.epochs:
        line = bench.fit("airline", epoch_row("natural", size(bench), epochs), train, test, "--target", -1, "--kernel",
                         "se(ard)", "--replicates", "--method", "variational", "--optimizer", "natural", "--inducing",
                         size(bench), "--batch", 256 if bench.quick else 4096, "--epochs", epochs)
        if line is None or line["stop"] != "iterations":
            break


def run_svi(bench, train, test):
    curve = SviCurve(train, test, size(bench), 256 if bench.quick else 4096, bench.deadline)
    for epochs in bench.epochs:
        line = bench.results.run("airline", epoch_row("SVI", size(bench), epochs), lambda: curve.at(epochs))
        if line["stop"] == "deadline":
            break


def subsets(bench):
    return ((100, 200), 2) if bench.quick else (SUBSETS, REPEATS)


def run_subsets(bench, train, test):
    counts, repeats = subsets(bench)
    for count in counts:
        for repeat in range(repeats):
            rows = np.random.default_rng([count, repeat]).choice(len(train), count, replace=False)
            table = save(bench.scratch / "subset.npy", train[rows])
            bench.fit("airline", f"GP{count} {repeat + 1}", table, test, "--target", -1, "--kernel", "se(ard)",
                      "--replicates", "--method", "exact")


def run(bench):
    train, test = load(bench)
    paths = [save(bench.scratch / f"{name}.npy", rows) for name, rows in (("train", train), ("test", test))]
    bench.results.run("airline", "linear", lambda: linear(train, test))
    run_thiele(bench, *paths)
    run_svi(bench, train, test)
    run_subsets(bench, train, paths[1])


# --- table, figures, checks ---------------------------------------------------------------------------------------


def curve(bench, method):
    """Lines of the epochs that there are."""
    return [(e, line) for e in bench.epochs
            if (line := bench.results.get("airline", epoch_row(method, size(bench), e)))]


def baselines(bench):
    """name: lines of its repetitions"""
    counts, repeats = subsets(bench)
    found = {"linear": [bench.results.get("airline", "linear")]}
    found |= {f"GP{n}": [bench.results.get("airline", f"GP{n} {r + 1}") for r in range(repeats)] for n in counts}
    return {name: kept for name, lines in found.items() if (kept := [line for line in lines if line])}


def table(bench):
    rows = []
    for method, name in (("natural", "thiele, natural"), ("SVI", "hard-coded SVI")):
        for epochs, line in curve(bench, method):
            scores = line["scores"]
            rows.append([name, str(line["M"]), str(epochs), number(line["passes"], 1), number(scores["rmse"], 3),
                         number(scores["nlpd"], 4), number(line["bound"], 0), number(line["seconds"], 0), line["stop"]])
    for name, lines in baselines(bench).items():
        scores = [mean_and_error([line["scores"][score] for line in lines]) for score in ("rmse", "nlpd")]
        rows.append([name, "", "", "", *scores, "", number(statistics.mean(line["seconds"] for line in lines), 0), ""])
    draw(bench)
    notes = ["RMSE in minutes. GPs are exact, on random rows: mean over the draws ± its standard error.",
             "thiele was fitted anew for every row, and seconds are those of the whole fit. A fit that ended by itself "
             "(converged)", "or at the deadline is the last of its kind."]
    head = ["model", "M", "epoch", "passes", "RMSE", "NLPD", "bound", "seconds", "stopped by"]
    return aligned(bench.title("Airline delays, later flights from earlier ones"), head, rows, notes)


def draw(bench):
    """Figures 15 and 16 of the paper."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = {"rmse": "RMSE of the test rows, minutes", "nlpd": "NLPD of the test rows"}
    suffix = "_quick" if bench.quick else ""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4))
    for axis, score in zip(axes, names):
        for method, label, color in (("natural", "thiele", "tab:blue"), ("SVI", "hard-coded SVI", "tab:orange")):
            points = [(e, line["scores"][score]) for e, line in curve(bench, method)]
            if points:
                axis.plot(*zip(*points), marker="o", color=color, label=label)
        for (name, lines), style in zip(baselines(bench).items(), (":", "--", "-.")):
            axis.axhline(statistics.mean(line["scores"][score] for line in lines), color="0.4", ls=style, label=name)
        axis.set(xlabel="epochs", ylabel=names[score], xticks=bench.epochs)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="upper center", ncols=5, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.93))
    figure.savefig(bench.out / f"airline_epochs{suffix}.png", dpi=110)

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4))
    points = curve(bench, "natural")
    for axis, score in zip(axes, names):
        axis.plot([e for e, _ in points], [line["scores"][score] for _, line in points], marker="o", color="tab:blue")
        axis.set(xlabel="epochs", xticks=bench.epochs)
        axis.set_ylabel(names[score], color="tab:blue")
        other = axis.twinx()
        other.plot([e for e, _ in points], [-line["bound"] for _, line in points], marker="s", ls="--", color="tab:red")
        other.set_ylabel("minus the bound of the training rows", color="tab:red")
        for one in (axis, other):
            one.ticklabel_format(axis="y", useOffset=False, style="plain")
    figure.tight_layout()
    figure.savefig(bench.out / f"airline_bound{suffix}.png", dpi=110)


def check(bench, checks):
    """What the paper found, without a number to pass: better than the simple models after less than five epochs."""
    early = [(epochs, line["scores"]) for epochs, line in curve(bench, "natural") if epochs < 5]
    if not early:
        return
    epochs, own = early[-1]
    for name, lines in baselines(bench).items():
        for score in ("rmse", "nlpd"):
            other = statistics.mean(line["scores"][score] for line in lines)
            checks.say(own[score] < other, f"airline: {score} after epoch {epochs} is {own[score]:.4f}, that of {name} "
                       f"{other:.4f}", decides=False)
