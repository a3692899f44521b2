#!/usr/bin/env python3
"""Sparse regression by blocks, exact and anytime: figures 1 to 5 of Hoang, Hoang and Low, "A Unifying Framework of
Anytime Sparse Gaussian Process Regression Models with Stochastic Variational Inference for Big Data", 2015.

  airline  2,055,733 flights of January to April 2008, departure and arrival in hours, delay in minutes; 100 inducing
           inputs, 2,000 blocks
  field    2,000,000 rows of a generated pressure field over Europe and ten years, with the inputs of the paper's EMSLP
           (latitude, longitude, year, month, day, count of days), in Pa; 512 inducing inputs, 1,000 blocks

PIC, FITC and DTC with a squared exponential, a length-scale per input. There are five repeats, each with its own random
5% of the rows as test rows, no row in two of them, and its own inducing inputs, partition and order of blocks.
Hyperparameters are learned once for each model, from rows that no repeat tests on. Everything runs on one thread, and
seconds are those of the processor. Learning, the partition and predictions are not in them; see bench/anytime.c.

A step takes one block. "sum" is the default of thiele, where q is that of the blocks so far; "snga" has the steps of
the paper, rho_t = 1/(1 + t), which make the blocks so far stand for all. Predictive efficiency is the RMSE of the exact
model over that of the anytime one, time efficiency likewise. The speed-up is the time efficiency at the first of the
steps that were looked at from which on the predictive efficiency is at least 0.95. After the first repeat those on
`field` end after 200 steps.

The checks, of "sum": RMSE and MNLP after 60 steps are within 1% of the exact ones; the speed-up is 20 or more; on
airline PIC has an RMSE of at most 33.35 and an MNLP of at most 5.667, FITC and DTC an RMSE of at most 37.0. The last
line is PASS or FAIL, and so is the exit status. With --quick (100,000 rows, 100 blocks, 50 inducing inputs, one repeat)
nothing but failures decides.

    cmake --build build --target thiele bench-anytime
    bench/.venv/bin/python bench/anytime_figures.py airline
"""

import gzip
import json
import statistics
import subprocess
import sys

import numpy as np

from aaci_common import pyplot, run_study, save
from medium_common import CommandError, aligned, mean_and_error, number

FORMS = ("pic", "fitc", "dtc")
VARIANTS = ("sum", "snga")
SHARE, REPEATS = 0.05, 5
STEPS, WITHIN, SPEED_UP, EFFICIENCY = 60, 0.01, 20.0, 0.95
SIZES = {"airline": {"inducing": 100, "blocks": 2000, "later": 0},
         "field": {"inducing": 512, "blocks": 1000, "later": 200}}
QUICK = {"inducing": 50, "blocks": 100, "later": 0}
QUICK_ROWS, QUICK_LEARNING = 100_000, ("deadline=30",)
TARGETS = {"pic": {"rmse": 33.35, "mnlp": 5.667}, "fitc": {"rmse": 37.0}, "dtc": {"rmse": 37.0}}
UNITS = {"airline": "minutes", "field": "Pa"}


# --- rows ---------------------------------------------------------------------------------------------------------


def flights(bench):
    """All of them, hhmm as hours."""
    parts = []
    for name in ("train", "train_extra", "test"):
        with gzip.open(bench.data / "airline" / f"{name}.csv.gz", "rt", encoding="utf-8") as file:
            parts.append(np.loadtxt(file, delimiter=",", skiprows=1, max_rows=QUICK_ROWS if bench.quick else None))
        if bench.quick:
            break
    rows = np.concatenate(parts)
    for column in (4, 5):
        rows[:, column] = rows[:, column] // 100 + rows[:, column] % 100 / 60.0
    return rows


def waves(random, count, lengths, size):
    """A function of three inputs that is close to a Gaussian process with a squared exponential: random waves."""
    frequency = random.normal(size=(3, count)) / np.asarray(lengths)[:, None]
    phase = random.uniform(0.0, 2.0 * np.pi, count)
    weight = size * np.sqrt(2.0 / count) * random.normal(size=count)
    return lambda place: np.cos(place @ frequency + phase) @ weight


def field(rows):
    """Pressure at random places and days: a season whose size and time depend on the place, weather on three scales
    (degrees, degrees, days) and noise."""
    random = np.random.default_rng(2015)
    first, days = np.datetime64("1994-01-01"), 3652
    scales = [waves(random, 300, lengths, size) for lengths, size in
              (((15.0, 20.0, 400.0), 400.0), ((6.0, 8.0, 90.0), 350.0), ((2.5, 3.5, 30.0), 250.0))]
    swing, shift = (waves(random, 100, (12.0, 18.0, 1e9), size) for size in (250.0, 0.7))
    place = np.column_stack([random.uniform(35.0, 72.0, rows), random.uniform(-25.0, 45.0, rows),
                             random.integers(0, days, rows)])
    pressure = np.empty(rows)
    for begin in range(0, rows, 50_000):
        part = place[begin:begin + 50_000]
        season = (300.0 + swing(part)) * np.cos(2.0 * np.pi * part[:, 2] / 365.25 + shift(part))
        pressure[begin:begin + 50_000] = 101_300.0 + season + sum(scale(part) for scale in scales)
    date = first + place[:, 2].astype("timedelta64[D]")
    year, month = date.astype("datetime64[Y]"), date.astype("datetime64[M]")
    return np.column_stack([place[:, :2], year.astype(int) + 1970, (month - year).astype(int) + 1,
                            (date - month).astype(int) + 1, place[:, 2], pressure + random.normal(0.0, 400.0, rows)])


class Rows:
    """Tables of a data set, made when they are first asked for."""

    def __init__(self, bench, name):
        self.bench, self.name, self.rows, self.order = bench, name, None, None

    def part(self, repeat):
        """Which rows a repeat tests on, of an order of all."""
        size = round(SHARE * len(self.rows))
        return slice((repeat - 1) * size, repeat * size)

    def load(self):
        if self.rows is None:
            self.rows = flights(self.bench) if self.name == "airline" else field(
                QUICK_ROWS if self.bench.quick else 2_000_000)
            self.order = np.random.default_rng(5).permutation(len(self.rows))

    def learning(self):
        """Rows that no repeat tests on."""
        self.load()
        path = self.bench.scratch / "learn.npy"
        if not path.exists():
            save(path, self.rows[self.order[self.part(REPEATS).stop:]])
        return path

    def repeat(self, repeat):
        """Training and test rows."""
        self.load()
        paths = [self.bench.scratch / f"{part}{repeat}.npy" for part in ("train", "test")]
        if not paths[0].exists():
            for old in self.bench.scratch.glob("t*.npy"):
                old.unlink()
            part = self.part(repeat)
            save(paths[0], self.rows[np.concatenate([self.order[:part.start], self.order[part.stop:]])])
            save(paths[1], self.rows[self.order[part]])
        return paths


# --- running ------------------------------------------------------------------------------------------------------


def sizes(bench, name):
    return QUICK if bench.quick else SIZES[name]


def repeats(bench):
    return range(1, 2 if bench.quick else bench.arguments.repeats + 1)


def ask(bench, *words):
    """Lines of bench-anytime."""
    command = [str(word) for word in (bench.build / "bench-anytime", *words, "threads=1")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise CommandError(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def learn(bench, rows, form, size):
    words = QUICK_LEARNING if bench.quick else ()
    return ask(bench, "learn", rows.learning(), form, f"inducing={size['inducing']}", f"blocks={size['blocks']}",
               *words)[0]


def follow(bench, rows, form, size, learned, repeat):
    """What a repeat has shown."""
    file = bench.scratch / "hypers.json"
    file.write_text(json.dumps(learned) + "\n", encoding="utf-8")
    lines = ask(bench, "run", *rows.repeat(repeat), form, f"hypers={file}", f"inducing={size['inducing']}",
                f"blocks={size['blocks']}", f"seed={repeat}", f"most={0 if repeat == 1 else size['later']}")
    out = {what: next(line for line in lines if line["what"] == what) for what in ("setup", "constant", "exact")}
    for variant in VARIANTS:
        out[variant] = [line for line in lines if line["what"] == "anytime" and line["variant"] == variant]
    return out


def run(bench, name):
    size, rows, learned = sizes(bench, name), Rows(bench, name), {}
    for form in FORMS:
        learned[form] = bench.results.run(name, f"{form} learn", lambda: learn(bench, rows, form, size))
    for repeat in repeats(bench):
        for form in FORMS:
            if learned[form]:
                bench.results.run(name, f"{form} {repeat}",
                                  lambda: follow(bench, rows, form, size, learned[form], repeat))


# --- what came out ------------------------------------------------------------------------------------------------


def lines_of(bench, name, form):
    return [line for repeat in repeats(bench) if (line := bench.results.get(name, f"{form} {repeat}"))]


def at_steps(lines, variant, steps, key):
    """Of the repeats that were looked at after so many steps."""
    return [point[key] for line in lines for point in line[variant] if point["iterations"] == steps]


def difference(lines, variant, key):
    """Of the anytime model after STEPS steps and the exact one, as a share of the latter."""
    return statistics.mean(value / line["exact"][key] - 1.0 for line, value in
                           zip(lines, at_steps(lines, variant, STEPS, key)))


def turning_point(line, variant):
    """The first step from which on the RMSE is good enough."""
    found = None
    for point in reversed(line[variant]):
        if line["exact"]["rmse"] / point["rmse"] < EFFICIENCY:
            break
        found = point
    return found


def speed_ups(lines, variant):
    points = [(line, turning_point(line, variant)) for line in lines]
    return [line["exact"]["seconds"] / point["seconds"] for line, point in points if point]


def table(bench, names):
    rows = []
    for name in names:
        for form in FORMS:
            lines, learned = lines_of(bench, name, form), bench.results.get(name, f"{form} learn")
            if lines and learned:
                rows += [row_of(name, form, variant, lines, learned) for variant in VARIANTS]
        draw(bench, name)
    head = ["data", "model", "steps", "RMSE", "MNLP", f"RMSE at {STEPS}", f"MNLP at {STEPS}", "RMSE %", "MNLP %",
            "speed-up", "after", "constant", "s a step", "s exact", "s learn", "s partition"]
    notes = [f"RMSE and MNLP: of the exact model, and after {STEPS} steps with their differences in percent; mean over "
             "the repeats ± its standard error.",
             f"Speed-up: seconds of the exact model over those of the steps (after) to a predictive efficiency of "
             f"{EFFICIENCY:g}; the constant predictor's is beside it.",
             "Seconds of one thread; those of learning and the partition are in none of the others."]
    return aligned(bench.title("Sparse regression by blocks, exact and anytime"), head, rows, notes)


def row_of(name, form, variant, lines, learned):
    mean = statistics.mean
    exact = {key: mean_and_error([line["exact"][key] for line in lines]) for key in ("rmse", "mnlp")}
    after = {key: mean_and_error(at_steps(lines, variant, STEPS, key)) for key in ("rmse", "mnlp")}
    ups, points = speed_ups(lines, variant), [turning_point(line, variant) for line in lines]
    steps = [point["iterations"] for point in points if point]
    return [name, form.upper(), variant, exact["rmse"], exact["mnlp"], after["rmse"], after["mnlp"],
            *(f"{100.0 * difference(lines, variant, key):+.2f}" for key in ("rmse", "mnlp")),
            number(mean(ups) if ups else None, 1), number(mean(steps) if steps else None, 0),
            f"{mean(line['exact']['rmse'] / line['constant']['rmse'] for line in lines):.3f}",
            f"{mean((line[variant][-1]['seconds']) / line[variant][-1]['iterations'] for line in lines):.4f}",
            number(mean(line["exact"]["seconds"] for line in lines), 1), number(learned["learn_seconds"], 0),
            number(mean(line["setup"]["partition_seconds"] for line in lines), 1)]


# --- figures ------------------------------------------------------------------------------------------------------

COLORS = {"pic": "tab:blue", "fitc": "tab:orange", "dtc": "tab:green"}
STYLES = {"sum": "-", "snga": "--"}


def mean_curve(lines, variant, keys):
    """Means over the repeats at each step that all of them were looked at."""
    common = set.intersection(*({point["iterations"] for point in line[variant]} for line in lines))
    return [[statistics.mean(key(line, point) for line in lines for point in line[variant] if
                             point["iterations"] == steps) for steps in sorted(common)] for key in keys]


def frame(axis, lines, key):
    """From the best to the constant predictor, or where "sum" was worse: first steps of "snga" may be far above."""
    seen = [point[key] for line in lines for point in line["sum"]] + [line["exact"][key] for line in lines]
    low, high = min(seen), max([*seen, *(line["constant"][key] for line in lines)])
    axis.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))


def draw(bench, name):
    """RMSE and MNLP against steps and seconds, seconds against steps, and one efficiency against the other."""
    panels = (("steps", "rmse"), ("steps", "mnlp"), ("steps", "seconds"), ("seconds", "rmse"), ("seconds", "mnlp"),
              ("time", "prediction"))
    keys = {"steps": lambda line, point: point["iterations"], "seconds": lambda line, point: point["seconds"],
            "rmse": lambda line, point: point["rmse"], "mnlp": lambda line, point: point["mnlp"],
            "time": lambda line, point: line["exact"]["seconds"] / point["seconds"],
            "prediction": lambda line, point: line["exact"]["rmse"] / point["rmse"]}
    labels = {"steps": "steps", "seconds": "seconds", "rmse": f"RMSE of the test rows, {UNITS[name]}",
              "mnlp": "MNLP of the test rows", "time": "time efficiency", "prediction": "predictive efficiency"}
    found = {form: lines for form in FORMS if (lines := lines_of(bench, name, form))}
    plot = pyplot()
    figure, axes = plot.subplots(2, 3, figsize=(13, 7.5))
    for axis, (x, y) in zip(axes.flat, panels):
        for form, lines in found.items():
            for variant in VARIANTS:
                axis.plot(*mean_curve(lines, variant, (keys[x], keys[y])), STYLES[variant], color=COLORS[form],
                          marker="o", ms=3, lw=1.3, label=f"{form.upper()}, {variant}")
            if y in ("rmse", "mnlp", "seconds"):
                axis.axhline(statistics.mean(line["exact"][y] for line in lines), color=COLORS[form], ls=":",
                             label=f"{form.upper()}, exact")
        axis.set(xlabel=labels[x], ylabel=labels[y], xscale="log")
        if y == "seconds":
            axis.set(yscale="log")
        elif y in ("rmse", "mnlp") and found:
            frame(axis, [line for lines in found.values() for line in lines], y)
    axes[1, 2].axhline(EFFICIENCY, color="0.6", lw=0.8)
    axes[1, 2].axvline(SPEED_UP, color="0.6", lw=0.8)
    if found:
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="upper center", ncols=len(found), frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.9))
    figure.savefig(bench.figure(f"anytime_{name}"), dpi=110)
    plot.close(figure)


# --- checks -------------------------------------------------------------------------------------------------------


def check(bench, names, checks):
    for name in names:
        for form in FORMS:
            lines = lines_of(bench, name, form)
            if lines:
                check_anytime(bench, name, form, lines, checks)
            if lines and name == "airline":
                check_exact(bench, form, lines, checks)


def check_anytime(bench, name, form, lines, checks):
    for variant in VARIANTS:
        decides = variant == VARIANTS[0] and not bench.quick
        for key in ("rmse", "mnlp"):
            gap = difference(lines, variant, key)
            checks.say(abs(gap) <= WITHIN, f"{name}: {key.upper()} of {form.upper()} ({variant}) after {STEPS} steps "
                       f"is off by {100.0 * gap:+.2f}%; at most {100.0 * WITHIN:g}%", decides=decides)
        ups = speed_ups(lines, variant)
        good = len(ups) == len(lines) and statistics.mean(ups) >= SPEED_UP
        checks.say(good, f"{name}: speed-up of {form.upper()} ({variant}) at a predictive efficiency of {EFFICIENCY:g} "
                   f"is {statistics.mean(ups) if ups else 0.0:.1f}; at least {SPEED_UP:g}", decides=decides)


def check_exact(bench, form, lines, checks):
    for key, most in TARGETS[form].items():
        value = statistics.mean(line["exact"][key] for line in lines)
        checks.say(value <= most, f"airline: {key.upper()} of {form.upper()} is {value:.3f}; at most {most:g}",
                   decides=not bench.quick)


def say(line):
    if "values" in line:
        return f"{line['iterations']:.0f} iterations, {line['learn_seconds']:.1f} s"
    last = [f"{variant} {at_steps([line], variant, STEPS, 'rmse')[0]:.4f}" for variant in VARIANTS]
    return (f"exact {line['exact']['rmse']:.4f} in {line['exact']['seconds']:.1f} s  after {STEPS} steps "
            f"{'  '.join(last)}  constant {line['constant']['rmse']:.4f}")


def options(parser):
    parser.add_argument("--repeats", type=int, default=REPEATS, choices=range(1, REPEATS + 1))


if __name__ == "__main__":
    sys.exit(run_study(__doc__, "anytime_figures", {"airline": "airline", "field": None}, run, table, check, say,
                       options, ("bench-anytime",)))
