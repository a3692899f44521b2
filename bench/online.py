#!/usr/bin/env python3
"""Models that go on learning, parameters included, beside one fit of all their rows. By name:

  updates  1,000 rows and then 3,000 by one update against one fit of the 4,000: generated rows (a Gaussian process on
           [-3, 3]^2 with length-scales 0.34 and 0.59 and noise of standard deviation 0.1), of --seeds draws, and rows
           of protein and of a joint of sarcos4449 where these are there, dealt anew for each seed
  drift    a stream whose function changes in the middle: length-scales by 2 and noise by 3, either way; 20,000 rows
           later the model's own are compared with those of the rows
  rate     --rows rows of bench-stream_rows through `thiele fit - --stream` at its own settings, the first fit
           included: rows per second of processor (what an idle core takes), the program's memory

The checks: updates end within 2% of the RMSE and 0.02 of the NLPD of one fit, in the mean over the seeds of each table
and method; length-scales and noise are within 20%; at least 50,000 rows per second with parameters learned, and memory
in the third quarter of the time no more than 10% above that in the second. The last line is PASS or FAIL.

    cmake --build build --target thiele bench-stream_rows
    bench/.venv/bin/python bench/online.py updates --methods decoupled --seeds 2 --threads 1
"""

import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

from aaci_common import read_rows, run_study, save
from medium_common import CommandError, aligned, number

METHODS = {"collapsed": ["--method", "collapsed", "--inducing", 100],
           "variational": ["--method", "variational", "--inducing", 100],
           "decoupled": ["--method", "decoupled", "--inducing", 100, "--mean-inducing", 1000],
           "pitc": ["--method", "pitc", "--inducing", 100], "pic": ["--method", "pic", "--inducing", 100]}
FIRST, ROWS, TEST = 1000, 4000, 2000
SCALES, NOISE = np.array([0.34, 0.59]), 0.1
TABLES = ("generated", "protein", "sarcos4449")
ERROR, NLPD, PARAMETER, RATE, MEMORY = 0.02, 0.02, 0.2, 50_000.0, 0.1
FEATURES = 2000  # of a draw of a process that is asked for at very many rows
# Length-scales and noise (standard deviations) before and after, rows before the change.
CHANGES = {"shorter": (((1.0, 1.7), 0.1), ((0.5, 0.85), 0.3)), "longer": (((0.6, 1.02), 0.3), ((1.2, 2.04), 0.1))}
BEFORE, AFTER = 25_000, 20_000


# --- rows ---------------------------------------------------------------------------------------------------------


def generated(seed):
    """A draw by the Cholesky factor of all rows' covariance."""
    random, count = np.random.default_rng(seed), ROWS + TEST
    X = random.uniform(-3.0, 3.0, (count, 2))
    u = X / SCALES
    squares = np.sum(u ** 2, axis=1)
    K = np.exp(-0.5 * np.maximum(squares[:, None] + squares - 2.0 * u @ u.T, 0.0)) + 1e-8 * np.eye(count)
    f = np.linalg.cholesky(K) @ random.normal(size=count)
    return np.column_stack([X, f + NOISE * random.normal(size=count)])


def dealt(bench, name, seed):
    """The first target of a table, rows in an order of their own for each seed."""
    rows = np.concatenate([read_rows(bench.data / name / f"{part}.csv.gz") for part in ("train", "test")])
    rows = rows[:, :22] if name == "sarcos4449" else rows
    return rows[np.random.default_rng(seed).permutation(len(rows))[:ROWS + 4 * TEST]]


def drawn(random, scales, noise, count):
    """Rows of a function with these length-scales, by random Fourier features."""
    W = random.normal(size=(FEATURES, 2)) / np.array(scales)
    phase, weight = random.uniform(0.0, 2.0 * np.pi, FEATURES), random.normal(size=FEATURES)
    X = random.uniform(-3.0, 3.0, (count, 2))
    f = np.concatenate([np.cos(part @ W.T + phase) @ weight for part in np.array_split(X, 1 + count // 1000)])
    return np.column_stack([X, np.sqrt(2.0 / FEATURES) * f + noise * random.normal(size=count)])


# --- updates ------------------------------------------------------------------------------------------------------


def score(bench, model, test):
    scores = json.loads(bench.thiele("score", model, test, "--json", "--quiet", "--threads", bench.threads))
    return {"rmse": scores["rmse"], "nlpd": scores["nlpd"], "in90": scores["coverage90"]}


def timed(bench, *words):
    begin = time.perf_counter()
    bench.thiele(*words, "--quiet", "--threads", bench.threads)
    return time.perf_counter() - begin


def go_on(bench, rows, options):
    """Scores of a fit of all rows, and of one of the first, as it is, frozen and learned on."""
    train, first, more, test = (save(bench.scratch / f"{name}.npy", part) for name, part in (
        ("train", rows[:ROWS]), ("first", rows[:FIRST]), ("more", rows[FIRST:ROWS]), ("test", rows[ROWS:])))
    model, fitted = bench.scratch / "model.thiele", ["--target", -1, "--kernel", "se(ard)", "--replicates", *options]
    out = {"seconds": timed(bench, "fit", train, "-o", model, *fitted), "one": score(bench, model, test)}
    timed(bench, "fit", first, "-o", model, *fitted)
    out["first"] = score(bench, model, test)
    other = bench.scratch / "other.thiele"
    for name, how in (("frozen", ["--freeze"]), ("learned", [])):
        out[f"{name}_seconds"] = timed(bench, "update", model, more, "-o", other, *how)
        out[name] = score(bench, other, test)
    return out


def run_updates(bench):
    for table in bench.arguments.tables:
        if table != "generated" and not (bench.data / table).is_dir():
            print(f"{table} is skipped: there is no {bench.data / table}")
            continue
        for seed in range(1, 1 + (1 if bench.quick else bench.arguments.seeds)):
            rows = generated(seed) if table == "generated" else dealt(bench, table, seed)
            for method in bench.arguments.methods:
                bench.results.run("updates", f"{table} {method} {seed}",
                                  lambda: go_on(bench, rows, METHODS[method]))


# --- drift --------------------------------------------------------------------------------------------------------


def follow(bench, change):
    """What a model by 200 inducing inputs says of the rows' parameters behind a change."""
    random, path = np.random.default_rng(11), bench.scratch / "stream.csv"
    parts = [drawn(random, *process, count) for process, count in zip(CHANGES[change], (BEFORE, AFTER))]
    np.savetxt(path, np.concatenate(parts), delimiter=",", header="a,b,y", comments="", fmt="%.6f")
    model = bench.scratch / "stream.thiele"
    with open(path, encoding="utf-8") as rows:
        words = [bench.thiele.path, "fit", "-", "--stream", "--target", "y", "--kernel", "se(ard)", "-o", str(model),
                 "--quiet", "--threads", str(bench.threads)]
        begin = time.perf_counter()
        done = subprocess.run(words, stdin=rows, capture_output=True, text=True)
    if done.returncode != 0:
        raise CommandError(f"{' '.join(map(str, words))}: status {done.returncode}: {done.stderr.strip()}")
    facts = json.loads(bench.thiele("info", model, "--json"))
    learned = {entry["name"]: entry["value"] for entry in facts["parameters"]}
    return {"seconds": time.perf_counter() - begin, "learned": learned, "noise": float(np.sqrt(facts["noise"])),
            "now": CHANGES[change][1]}


def off(line):
    """Shares by which length-scales and noise differ from those of the rows."""
    scales = [value for name, value in line["learned"].items() if "lengthscale" in name]
    (now, noise) = line["now"]
    return [a / b - 1.0 for a, b in zip([*scales, line["noise"]], [*now, noise])]


# --- rate ---------------------------------------------------------------------------------------------------------


def resident(process):
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
        return next((int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS")), None)


def processor(process):
    """Seconds so far."""
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stream(bench, rows):
    model = bench.scratch / "stream.thiele"
    words = [bench.thiele.path, "fit", "-", "--stream", "--target", "y", "-o", model, "--quiet", "--snapshot", 5,
             "--json", "--threads", bench.threads]
    source = subprocess.Popen([bench.build / "bench-stream_rows", str(rows), "5"], stdout=subprocess.PIPE)
    learner = subprocess.Popen([str(word) for word in words], stdin=source.stdout, stdout=subprocess.PIPE, text=True)
    source.stdout.close()
    memory, seconds = [], 0.0
    while learner.poll() is None:
        memory.append(resident(learner))
        seconds = max(seconds, processor(learner))
        time.sleep(0.25)
    memory = [number for number in memory if number is not None]
    if learner.returncode != 0 or source.wait() != 0:
        raise CommandError(f"the stream ended with status {learner.returncode}")
    said = json.loads(learner.stdout.read())
    facts = json.loads(bench.thiele("info", model, "--json"))
    quarter = len(memory) // 4  # without the first fit and the search at the end
    return {"seconds": said["seconds"], "processor": seconds, "rate": said["rows"] / seconds, "rows": said["rows"],
            "rmse": facts["stream"]["prequential"][0]["rmse"], "inducing": facts["sparse"]["inducing"],
            "memory": [max(memory[quarter:2 * quarter]), max(memory[2 * quarter:3 * quarter])],
            "load": os.getloadavg()[0]}


# --- the course of a run ------------------------------------------------------------------------------------------


def run(bench, name):
    if name == "updates":
        run_updates(bench)
    elif name == "drift":
        for change in CHANGES:
            bench.results.run(name, change, lambda: follow(bench, change))
    else:
        rows = 200_000 if bench.quick else bench.arguments.rows
        bench.results.run(name, f"{rows} rows", lambda: stream(bench, rows))


def of(bench, name):
    """row: line, of those that did not fail."""
    return {line["row"]: line for line in bench.results.lines.values()
            if line["experiment"] == name and line["quick"] == bench.quick and "failed" not in line}


def behind(lines):
    """By table and method, the means over the seeds: error and NLPD of updates from those of one fit."""
    groups = {}
    for row, line in lines.items():
        groups.setdefault(row.rsplit(" ", 1)[0], []).append(line)
    return {group: (statistics.mean(line["learned"]["rmse"] / line["one"]["rmse"] - 1.0 for line in each),
                    statistics.mean(line["learned"]["nlpd"] - line["one"]["nlpd"] for line in each))
            for group, each in groups.items()}


def updates_table(bench):
    rows = []
    for row, line in of(bench, "updates").items():
        kinds = [line[kind] for kind in ("first", "frozen", "learned", "one")]
        rows.append([row, *(number(kind["rmse"], 4) for kind in kinds), *(number(kind["nlpd"], 3) for kind in kinds),
                     number(line["learned"]["in90"], 3), number(line["learned_seconds"], 1),
                     number(line["seconds"], 1)])
    head = ["rows, method, seed", "RMSE first", "frozen", "learned", "one fit", "NLPD first", "frozen", "learned",
            "one fit", "in 90%", "seconds", "of one fit"]
    means = [f"{group}: RMSE {error:+.1%}, NLPD {nlpd:+.3f} from one fit, in the mean" for group, (error, nlpd) in
             behind(of(bench, "updates")).items()]
    return aligned(bench.title(f"{FIRST} rows and {ROWS - FIRST} by an update"), head, rows, means)


def drift_table(bench):
    rows = [[change, *(f"{value:+.1%}" for value in off(line)), number(line["seconds"], 1)]
            for change, line in of(bench, "drift").items()]
    return aligned(bench.title(f"{AFTER} rows behind a change"), ["change", "length-scale", "length-scale", "noise",
                                                                   "seconds"], rows)


def rate_table(bench):
    rows = [[row, number(line["seconds"], 1), number(line["processor"], 1), number(line["rate"], 0),
             number(line["rmse"], 4),
             *(number(value, 1) for value in line["memory"]), str(line["inducing"]), number(line["load"], 1)]
            for row, line in of(bench, "rate").items()]
    return aligned(bench.title("a stream with parameters learned"),
                   ["stream", "seconds", "of processor", "rows/s", "RMSE", "MB, second quarter", "third", "inducing",
                    "load"], rows)


TEXTS = {"updates": updates_table, "drift": drift_table, "rate": rate_table}


def table(bench, names):
    return "\n".join(TEXTS[name](bench) for name in names)


def check(bench, names, checks):
    decides = not bench.quick
    for group, (error, nlpd) in behind(of(bench, "updates")).items() if "updates" in names else ():
        checks.say(error <= ERROR and nlpd <= NLPD, f"{group}: RMSE {error:+.1%}, NLPD {nlpd:+.3f} from one fit",
                   decides=decides)
    for change, line in of(bench, "drift").items() if "drift" in names else ():
        checks.say(max(map(abs, off(line))) <= PARAMETER,
                   f"{change}: parameters are {', '.join(f'{value:+.0%}' for value in off(line))} off", decides=decides)
    for row, line in of(bench, "rate").items() if "rate" in names else ():
        before, after = line["memory"]
        checks.say(line["rate"] >= RATE, f"{row}: {line['rate']:.0f} rows per second", decides=decides)
        checks.say(after <= (1.0 + MEMORY) * before, f"{row}: {before:.1f} MB, then {after:.1f} MB", decides=decides)


def say(line):
    if "one" in line:
        return "  ".join(f"{kind} {line[kind]['rmse']:.4f} {line[kind]['nlpd']:.3f}"
                         for kind in ("first", "frozen", "learned", "one"))
    return json.dumps({key: value for key, value in line.items() if key not in ("experiment", "row", "quick")})


def options(parser):
    def words(text):
        return text.split(",")
    parser.add_argument("--methods", type=words, default=",".join(METHODS), help="(default: %(default)s)")
    parser.add_argument("--tables", type=words, default=",".join(TABLES), help="(default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the stream (default: %(default)s)")


if __name__ == "__main__":
    sys.exit(run_study(__doc__, "online", {"updates": None, "drift": None, "rate": None}, run, table, check, say,
                       options, ("thiele", "bench-stream_rows")))
