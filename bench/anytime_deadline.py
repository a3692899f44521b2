#!/usr/bin/env python3
"""Whether deadlines hold, and whether snapshots are whole.

  deadlines  100 fits (`thiele fit --anytime --inducing 512 --deadline D`) of 200,000 rows of a table on disk (NPY,
             which is mapped) with D at random from 0.3 s to 5 s, PIC, FITC and DTC by turns. The process ends within
             10% of D plus 50 ms, earlier or later; earlier still only when it has seen all rows and there is nothing
             left to do, and how often is said. Its model predicts, and where D is at least 2 s its RMSE is below that
             of the constant predictor.
  kills      20 fits with --snapshot 0.1, killed (SIGKILL) at random moments. The newest snapshot, if there was one,
             loads and predicts. A temporary file of the moment may be left beside it; it has another name, and how
             often is said.

Rows are of the field of anytime_figures.py. The time of a process is that from its start until its end as seen from
outside. Other work on the machine makes it late: the script says what the load was, and the figures are those of an
idle one only. The last line is PASS or FAIL, and so is the exit status.

    bench/.venv/bin/python bench/anytime_deadline.py
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time

import numpy as np

from aaci_common import note, run_study, save
from anytime_figures import FORMS, field
from medium_common import CommandError, aligned

ROWS, TEST, INDUCING = 200_000, 2_000, 512
LEAST, MOST, BEATS_FROM = 0.3, 5.0, 2.0
SHARE, ALLOWED = 0.1, 0.05
KILL_DEADLINE = 6.0


# --- running ------------------------------------------------------------------------------------------------------


def tables(bench):
    """Training and test rows, and the RMSE of the constant predictor."""
    rows = field(ROWS + TEST)
    center = rows[:ROWS, -1].mean()
    return (save(bench.scratch / "train.npy", rows[:ROWS]), save(bench.scratch / "test.npy", rows[ROWS:]),
            float(np.sqrt(np.mean((rows[ROWS:, -1] - center) ** 2))))


def command(bench, train, model, method, deadline, *more):
    words = (bench.thiele.path, "fit", train, "--target", -1, "-o", model, "--method", method, "--kernel", "se(ard)",
             "--anytime", "--inducing", INDUCING, "--deadline", f"{deadline:.3f}", "--threads", bench.threads, *more)
    return [str(word) for word in words]


def rmse_of(bench, model, test):
    return json.loads(bench.thiele("score", model, test, "--json", "--quiet", "--threads", bench.threads))["rmse"]


def meet(bench, train, test, constant, number):
    """One fit with a deadline."""
    random = np.random.default_rng([1, number])
    deadline, method = random.uniform(LEAST, MOST), FORMS[number % len(FORMS)]
    model = bench.scratch / "model.thiele"
    begin = time.perf_counter()
    done = subprocess.run(command(bench, train, model, method, deadline, "--json"), capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        raise CommandError(f"{method} with {deadline:.3f} s: status {done.returncode}: {done.stderr.strip()}")
    fitted = json.loads(done.stdout)["model"]
    line = {"method": method, "deadline": deadline, "seconds": seconds, "load": os.getloadavg()[0],
            "constant": constant, "rmse": rmse_of(bench, model, test), "stop": fitted["stop"],
            "blocks": fitted.get("blocks")}
    model.unlink()
    return line


def kill(bench, train, test, constant, number):
    """One fit that is killed."""
    random = np.random.default_rng([2, number])
    moment, method = random.uniform(LEAST, MOST), FORMS[number % len(FORMS)]
    folder = bench.scratch / f"kill{number}"
    folder.mkdir()
    model = folder / "model.thiele"
    process = subprocess.Popen(command(bench, train, model, method, KILL_DEADLINE, "--snapshot", 0.1, "--quiet"),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    process.wait()
    there = model.exists()
    line = {"method": method, "moment": moment, "snapshot": there, "status": process.returncode, "constant": constant,
            "left": [path.name for path in folder.iterdir() if path != model]}
    if there:
        line["age"] = time.time() - model.stat().st_mtime
        line["rmse"] = rmse_of(bench, model, test)
    return line


def count(bench, name):
    return {"deadlines": (100, 9), "kills": (20, 3)}[name][bench.quick]


def run(bench, name):
    train, test, constant = tables(bench)
    make = {"deadlines": meet, "kills": kill}[name]
    for number in range(1, count(bench, name) + 1):
        bench.results.run(name, str(number), lambda: make(bench, train, test, constant, number))


# --- what came out ------------------------------------------------------------------------------------------------


def lines_of(bench, name):
    return [line for number in range(1, count(bench, name) + 1) if (line := bench.results.get(name, str(number)))]


def late(line):
    """Seconds after the deadline; negative: before."""
    return line["seconds"] - line["deadline"]


def is_done(line):
    """It ended well before its deadline because all rows were seen."""
    return line["stop"] != "deadline" and late(line) < -(SHARE * line["deadline"] + ALLOWED)


def holds(line):
    return abs(late(line)) <= SHARE * line["deadline"] + ALLOWED or is_done(line)


def beats(line):
    return line["rmse"] < line["constant"]


def quantiles(values):
    return [f"{1e3 * value:+.0f}" for value in np.quantile(values, (0.0, 0.05, 0.5, 0.95, 1.0))]


def table(bench, names):
    makers = {"deadlines": deadline_table, "kills": kill_table}
    return "\n".join(makers[name](bench) for name in names)


def deadline_table(bench):
    lines, rows = lines_of(bench, "deadlines"), []
    for form in FORMS:
        rows += deadline_rows(form.upper(), [line for line in lines if line["method"] == form])
    rows += deadline_rows("all", lines)
    title = bench.title(f"Deadlines, {ROWS} rows, {INDUCING} inducing inputs, {bench.threads} threads")
    head = ["method", "deadlines", "fits", "least", "5%", "median", "95%", "most", "hold", "beat", "RMSE", "constant"]
    notes = ["Milliseconds after the deadline (negative: before it). Hold: within 10% + 50 ms; beat: the constant "
             "predictor. RMSE: the median."]
    return aligned(title, head, rows, notes)


def kill_table(bench):
    rows = []
    for line in lines_of(bench, "kills"):
        found = [f"{1e3 * line['age']:.0f}", f"{line['rmse']:.1f}"] if line["snapshot"] else ["none", ""]
        rows.append([line["method"].upper(), f"{line['moment']:.2f}", *found, f"{line['constant']:.1f}",
                     ", ".join(line["left"])])
    head = ["method", "after s", "snapshot, ms old", "RMSE", "constant", "left behind"]
    return aligned(bench.title("Killed fits"), head, rows)


def deadline_rows(label, lines):
    """By the length of the deadline."""
    rows = []
    for low, high in ((LEAST, 1.0), (1.0, BEATS_FROM), (BEATS_FROM, MOST)):
        some = [line for line in lines if low <= line["deadline"] < high]
        if some:
            rows.append([label, f"{low:g} to {high:g} s", str(len(some)), *quantiles([late(line) for line in some]),
                         str(sum(map(holds, some))), str(sum(map(beats, some))),
                         f"{statistics.median(line['rmse'] for line in some):.1f}", f"{some[0]['constant']:.1f}"])
    return rows


def check(bench, names, checks):
    for name in names:
        lines = lines_of(bench, name)
        if lines:
            {"deadlines": check_deadlines, "kills": check_kills}[name](bench, lines, checks)


def check_deadlines(bench, lines, checks):
    good, later = sum(map(holds, lines)), [line for line in lines if line["deadline"] >= BEATS_FROM]
    checks.say(good == len(lines), f"{good} of {len(lines)} fits ended within 10% + 50 ms of their deadline, or had "
               f"seen all rows before it ({sum(map(is_done, lines))})", decides=not bench.quick)
    checks.say(all(np.isfinite(line["rmse"]) for line in lines), f"{len(lines)} models predict")
    checks.say(all(map(beats, later)), f"{sum(map(beats, later))} of {len(later)} models with {BEATS_FROM:g} s or more "
               "beat the constant predictor", decides=not bench.quick)
    note(checks, f"the load of the machine was {statistics.mean(line['load'] for line in lines):.1f} in the mean")


def check_kills(bench, lines, checks):
    there = [line for line in lines if line["snapshot"]]
    killed = sum(line["status"] == -signal.SIGKILL for line in lines)
    checks.say(killed > 0, f"{killed} of {len(lines)} fits were killed while they ran, the others had ended")
    checks.say(len(there) > 0 and all(np.isfinite(line["rmse"]) for line in there),
               f"{len(there)} of them had left a snapshot, all of which load and predict")
    note(checks, f"{sum(len(line['left']) > 0 for line in lines)} of them left a temporary file behind")


def say(line):
    if "moment" in line:
        found = f"snapshot of RMSE {line['rmse']:.1f}" if line["snapshot"] else "no snapshot"
        return f"{line['method']:<4} killed after {line['moment']:.2f} s, {found}"
    verdict = "done" if is_done(line) else "holds" if holds(line) else "MISSED"
    return (f"{line['method']:<4} {line['deadline']:.3f} s {1e3 * late(line):+6.0f} ms {verdict:<6} "
            f"RMSE {line['rmse']:.1f} of {line['constant']:.1f}")


if __name__ == "__main__":
    sys.exit(run_study(__doc__, "anytime_deadline", {"deadlines": None, "kills": None}, run, table, check, say))
