"""What the studies of augmented conjugate inference share: data, likelihoods, the command line, the course of a run.

Galy-Fajou, Wenzel and Opper, "Automated Augmented Conjugate Inference for Non-conjugate Gaussian Process Models", 2020.
"""

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from medium_common import ROOT, Checks, Results, Thiele, read_csv

# Parameters as in the experiments that the authors published; the targets of regression are standardised.
LIKELIHOODS = {"student-t": "student-t(nu=3, scale=1)", "laplace": "laplace(beta=1)", "matern32": "matern32(rho=1)",
               "logistic": "bernoulli"}
FOLDERS = {"student-t": "boston506", "laplace": "boston506", "matern32": "boston506", "logistic": "heart303"}
RHAT = 1.05  # chains agree below it


# --- data ---------------------------------------------------------------------------------------------------------


def read_rows(path):
    """Numbers of a table, the target last."""
    return np.column_stack(list(read_csv(path).values()))


def read_split(data, folder, split):
    """Training and test rows."""
    return [read_rows(data / folder / f"split_{split}" / f"{part}.csv.gz") for part in ("train", "test")]


def standardise(train, *others, classes=False):
    """All by the statistics of the first; labels stay as they are."""
    center, scale = train.mean(axis=0), train.std(axis=0)
    if classes:
        center[-1], scale[-1] = 0.0, 1.0
    return [(rows - center) / scale for rows in (train, *others)]


def save(path, rows):
    np.save(path, rows)
    return path


# --- results ------------------------------------------------------------------------------------------------------


@dataclass
class Bench:
    """What an experiment is given."""
    arguments: object
    thiele: Thiele
    results: Results
    scratch: Path

    def __post_init__(self):
        own = self.arguments
        self.data, self.out, self.build, self.quick, self.threads = own.data, own.out, own.build, own.quick, own.threads

    def title(self, text):
        return text + (" (quick: a small part)" if self.quick else "")

    def figure(self, name):
        return self.out / f"{name}{'_quick' if self.quick else ''}.png"


def note(checks, text):
    """Said among the checks, and decides nothing."""
    checks.say(False, text, decides=False)


def pyplot():
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot as plot
    return plot


# --- the course of a run ------------------------------------------------------------------------------------------


def parse_arguments(doc, stem, folders, options):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = os.environ.get("THIELE_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(folders)} (default: all)")
    options(parser)
    parser.add_argument("--fit", default="", metavar="OPTIONS", help="further options for thiele fit, in one text")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a small part, in seconds")
    parser.add_argument("--resume", action="store_true", help="keep the rows that the file of results already has")
    parser.add_argument("--json", type=Path, metavar="FILE", help=f"lines of results (default: {stem}.jsonl in --out)")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results", help="folder of tables and figures")
    parser.add_argument("--data", type=Path, default=Path(data), help="the folder of data sets (default: $THIELE_DATA)")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="where the programs are")
    arguments = parser.parse_args()
    arguments.names = arguments.names or list(folders)
    for name in arguments.names:
        if name not in folders:
            parser.error(f"there is no {name}: choose from {', '.join(folders)}")
    arguments.json = arguments.json or arguments.out / f"{stem}.jsonl"
    arguments.build = arguments.build.resolve()
    return arguments


def present(arguments, folders, programs):
    """The experiments that have their data; without the programs it ends here."""
    for program in programs:
        if not (arguments.build / program).exists():
            sys.exit(f"there is no {arguments.build / program}: build it first")
    out = []
    for name in arguments.names:
        folder = folders[name]
        if folder is None or (arguments.data / folder).is_dir():
            out.append(name)
        else:
            print(f"{name} is skipped: there is no {arguments.data / folder}")
    return out


def run_study(doc, stem, folders, run, table, check, say, options=lambda parser: None, programs=("thiele",)):
    """folders: where the data of each experiment is (None: it needs none). run(bench, name) makes its lines, of which
    table(bench, names) makes a text and figures; then check(bench, names, checks). Returns the exit status."""
    arguments = parse_arguments(doc, stem, folders, options)
    names = present(arguments, folders, programs)
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = Results(arguments.json, names, arguments.quick, arguments.resume, say)
    thiele = Thiele(arguments.build / "thiele", arguments.threads, arguments.fit.split())
    checks = Checks()
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            run(Bench(arguments, thiele, results, Path(scratch)), name)
    bench = Bench(arguments, thiele, results, None)
    if names:
        text = table(bench, names)
        (arguments.out / f"{stem}{'_quick' if arguments.quick else ''}.txt").write_text(text, encoding="utf-8")
        print("\n" + text)
        check(bench, names, checks)
    for line in results.failed():
        checks.say(False, f"{line['experiment']}, {line['row']}: {line['failed']}")
    print("\n" + ("SKIPPED" if not names else "PASS" if checks.good else "FAIL"))
    return 0 if checks.good else 1
