#!/usr/bin/env python3
"""Coverage after --calibrate: the share of fresh rows inside 90% intervals, for every method on real tables with 1,000
test rows or more, beside that of left-out or held-out rows before it. Gate: between 87 and 93% each.

    bench/run calibration [--quick]

Fits get some seconds each: what matters is that intervals hold also where a model is none of the best. A table of
text goes to OUT/calibration.txt, one line a fit to OUT/calibration.jsonl. Needs nothing beyond Python itself.
"""

import argparse
import csv
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOW, HIGH = 0.87, 0.93
SEED = 14


def read(path):
    with gzip.open(path, "rt", newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def write(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


# --- tables -------------------------------------------------------------------------------------------------------


def given(folder):
    """Tables with a test set of their own."""
    def rows(data):
        (header, train), (_, test) = (read(data / folder / f"{part}.csv.gz") for part in ("train", "test"))
        random.Random(SEED).shuffle(train)
        random.Random(SEED).shuffle(test)
        return header, train, test
    return rows


def cut(test, *paths):
    """Tables whose rows are cut here, after a shuffle."""
    def rows(data):
        header = read(data / paths[0])[0]
        rows = [row for path in paths for row in read(data / path)[1]]
        random.Random(SEED).shuffle(rows)
        return header, rows[test:], rows[:test]
    return rows


def sarcos(data):
    """The first torque, with a larger test set than the one that is there."""
    header, rows = read(data / "sarcos4449/train.csv.gz")
    rows += read(data / "sarcos4449/test.csv.gz")[1]
    keep = [i for i, name in enumerate(header) if name.startswith("x") or name == "y1"]
    rows = [[row[i] for i in keep] for row in rows]
    random.Random(SEED).shuffle(rows)
    return [*(header[i] for i in keep[:-1]), "y"], rows[2000:], rows[:2000]


TABLES = {
    "abalone": cut(2000, "abalone/split_1/train.csv.gz", "abalone/split_1/test.csv.gz"),
    "protein": given("protein"),
    "tamielectric": cut(3000, "uci/tamielectric.csv.gz"),
    "pumadyn32nm": cut(3000, "uci/pumadyn32nm.csv.gz"),
    "parkinsons": cut(1800, "uci/parkinsons.csv.gz"),
    "sarcos": sarcos,
}

# --- methods ------------------------------------------------------------------------------------------------------


@dataclass
class Method:
    options: tuple
    train: int = 4000  # rows, at most
    test: int = 3000
    deadline: float = 5.0  # seconds; 0: none

    def words(self):
        return [*self.options, *(["--deadline", str(self.deadline)] if self.deadline > 0 else [])]


def robust(likelihood, *options):
    return ("--likelihood", likelihood, *options)


SAMPLED = {"train": 800, "deadline": 0.0}
CHAINS = ("--chains", "2", "--iterations", "30", "--draws")
DENSE = {"train": 800, "deadline": 10.0}
METHODS = {
    "exact": Method(("--method", "exact"), train=1500),
    "collapsed": Method(("--method", "collapsed", "--inducing", "150")),
    "variational": Method(("--method", "variational", "--inducing", "150")),
    "variational, batches": Method(("--method", "variational", "--inducing", "150", "--batch", "500")),
    "mixture:2": Method(("--method", "variational", "--inducing", "50", "--posterior", "mixture:2")),
    "variational, student-t": Method(robust("student-t", "--method", "variational", "--inducing", "100")),
    "variational, heteroscedastic": Method(robust("heteroscedastic", "--method", "variational", "--inducing", "100")),
    "augmented, student-t": Method(robust("student-t", "--method", "augmented", "--inducing", "150")),
    "augmented, laplace": Method(robust("laplace", "--method", "augmented", "--inducing", "150")),
    "dense, laplace": Method(robust("laplace", "--method", "dense"), **DENSE),
    "gibbs, student-t": Method(robust("student-t", "--method", "gibbs", *CHAINS, "50"), **SAMPLED),
    "ess": Method(("--method", "ess", *CHAINS, "3000"), **SAMPLED),
    "hmc": Method(("--method", "hmc", *CHAINS, "50"), **SAMPLED),
    "mh": Method(("--method", "mh", *CHAINS, "5000"), **SAMPLED),
    **{name: Method(("--method", name, "--inducing", "150")) for name in ("sor", "dtc", "fitc", "fic", "pitc", "pic")},
    "0.3 fitc + 0.7 dtc": Method(("--method", "0.3 fitc + 0.7 dtc", "--inducing", "150")),
    "pic, anytime": Method(("--method", "pic", "--inducing", "150", "--anytime")),
    "decoupled": Method(("--method", "decoupled", "--inducing", "100")),
    "incremental": Method(("--method", "incremental", "--inducing", "150")),
}

# --- runs ---------------------------------------------------------------------------------------------------------


def run(program, *words):
    done = subprocess.run([str(program), *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def fit_and_score(program, scratch, method, train, test):
    """What the model says of itself, and its scores on the test rows."""
    model = scratch / "model.thiele"
    about = run(program, "fit", train, "--target", "y", "--replicates", "--quiet", "--threads", 1, *method.words(),
                "--calibrate", "--json", "-o", model)
    return json.loads(about)["model"], json.loads(run(program, "score", model, test, "--threads", 1, "--json"))


def measure(program, scratch, name, table, rows):
    method = METHODS[name]
    header, train, test = rows
    files = [write(scratch / f"{part}.csv", header, some)
             for part, some in (("train", train[:method.train]), ("test", test[:method.test]))]
    begin = time.perf_counter()
    line = {"table": table, "method": name, "train": len(train[:method.train]), "test": len(test[:method.test])}
    try:
        about, scores = fit_and_score(program, scratch, method, *files)
        before = about["loo"] if "loo" in about else about["holdout"][0]
        line |= {"by": scores["calibrated_by"], "before90": before["coverage90"], "before_nlpd": before["nlpd"]}
        line |= {name: scores[name] for name in ("coverage50", "coverage90", "coverage95", "nlpd", "smse")}
    except RuntimeError as error:
        line["error"] = str(error)
    return line | {"seconds": time.perf_counter() - begin}


def good(line):
    return "error" not in line and LOW <= line["coverage90"] <= HIGH


def percent(share):
    """Where quantiles take a search there is no coverage before calibration."""
    return "-" if share is None else f"{100 * share:.1f}"


def show(line):
    if "error" in line:
        return f"{line['table']:<13}{line['method']:<30}{line['error']}"
    return (f"{line['table']:<13}{line['method']:<30}{line['train']:>6}{line['by']:>6}{line['test']:>6}"
            f"{percent(line['before90']):>9}{100 * line['coverage90']:>8.1f}{100 * line['coverage50']:>7.1f}"
            f"{100 * line['coverage95']:>7.1f}{line['before_nlpd']:>10.3f}{line['nlpd']:>9.3f}"
            f"{line['seconds']:>7.1f}{'' if good(line) else '  outside'}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="where the programs are")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results", help="folder of the results")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("THIELE_DATA", ROOT.parent / "shared/data")))
    parser.add_argument("--tables", help="names with commas (default: all)")
    parser.add_argument("--methods", help="names with semicolons (default: all)")
    parser.add_argument("--quick", action="store_true", help="two tables and three methods")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    tables = arguments.tables.split(",") if arguments.tables else list(TABLES)
    methods = arguments.methods.split(";") if arguments.methods else list(METHODS)
    if arguments.quick:
        tables, methods = tables[:2], ["collapsed", "pic", "augmented, laplace"]
    arguments.out.mkdir(parents=True, exist_ok=True)
    suffix = "_quick" if arguments.quick else ""
    head = (f"{'table':<13}{'method':<30}{'train':>6}{'by':>6}{'test':>6}{'before':>9}{'90%':>8}{'50%':>7}{'95%':>7}"
            f"{'before':>10}{'NLPD':>9}{'s':>7}")
    lines = []
    with (tempfile.TemporaryDirectory() as scratch,
          open(arguments.out / f"calibration{suffix}.jsonl", "w", encoding="utf-8") as log,
          open(arguments.out / f"calibration{suffix}.txt", "w", encoding="utf-8") as text):
        for file in (sys.stdout, text):
            print(head, file=file, flush=True)
        for table in tables:
            rows = TABLES[table](arguments.data)
            for name in methods:
                line = measure(arguments.build / "thiele", Path(scratch), name, table, rows)
                lines.append(line)
                print(json.dumps(line), file=log, flush=True)
                for file in (sys.stdout, text):
                    print(show(line), file=file, flush=True)
        held = sum(map(good, lines))
        for file in (sys.stdout, text):
            print(f"{held} of {len(lines)} between {100 * LOW:g} and {100 * HIGH:g}%", file=file)
    return 0 if held == len(lines) else 1


if __name__ == "__main__":
    sys.exit(main())
