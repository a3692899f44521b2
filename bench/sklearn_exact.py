#!/usr/bin/env python3
"""Exact regression against scikit-learn's GaussianProcessRegressor, both measured in one run.

A. Accuracy. On each regression set with at most 2000 training rows, a Matern-5/2 ARD kernel plus noise is fitted by
   both; the test NLPD (in the units of the data) of thiele, averaged over five splits, may be worse by 0.02 at most.
B. Speed. One evaluation of the log marginal likelihood and its gradient at N = 2000, D = 8 is to be at least 5 times
   as fast, on the same number of threads.

The last line is PASS or FAIL, and so is the exit status. bench/README.md says how to run it.
"""

import argparse
import csv
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NLPD_MARGIN = 0.02
SPEED_TARGET = 5.0
SPLIT_SETS = ("boston", "boston506", "creep", "abalone")
SEISMIC_TARGETS = ("y1", "y2", "y3", "y4")
FOLDS = 5


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = os.environ.get("THIELE_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(data), help="the folder of data sets (default: $THIELE_DATA)")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="where thiele and bench-exact are")
    parser.add_argument("--part", choices=("accuracy", "speed", "both"), default="both")
    parser.add_argument("--sets", help="comma-separated sets for part A (default: all)")
    parser.add_argument("--start", choices=("ones", "sqrt"), default="ones",
                        help="scikit-learn's first length-scales: 1, its default, or the root of the number of inputs")
    parser.add_argument("--restarts", type=int, default=0, help="n_restarts_optimizer of scikit-learn")
    parser.add_argument("--fit", default="", metavar="OPTIONS", help="further options for thiele fit, in one text")
    parser.add_argument("--threads", type=int, default=2, help="of both")
    parser.add_argument("--repetitions", type=int, default=5, help="of part B")
    parser.add_argument("--quick", action="store_true", help="one split of the small sets; N = 1000 in part B")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write each result as a line of JSON")
    return parser.parse_args()


ARGS = parse_arguments()
# BLAS libraries read these when they are loaded, so they are set before numpy is.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"):
    os.environ[variable] = str(ARGS.threads)

import numpy as np  # noqa: E402
from sklearn.gaussian_process import GaussianProcessRegressor  # noqa: E402
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402


class Record:
    """Lines of JSON, written as they come so that an interrupted run leaves what it had."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8") if path else None

    def add(self, **fields):
        if self.file:
            self.file.write(json.dumps(fields) + "\n")
            self.file.flush()


# --- data ---------------------------------------------------------------------------------------------------------


def read_csv(path):
    """Column names and a matrix, one row of data a row."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = csv.reader(file)
        names = next(rows)
        return names, np.array([[float(cell) for cell in row] for row in rows])


def write_csv(path, names, values):
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
        file.write(",".join(names) + "\n")
        for row in values:
            file.write(",".join(repr(float(cell)) for cell in row) + "\n")


class Task:
    """One training set and one test set, as files for the command and as matrices for scikit-learn."""

    def __init__(self, name, split, train_path, test_path):
        self.name, self.split = name, split
        self.train_path, self.test_path = train_path, test_path
        names, train = read_csv(train_path)
        _, test = read_csv(test_path)
        inputs = train[:, :-1]
        varies = np.ptp(inputs, axis=0) > 0
        self.constant = [name for name, keep in zip(names[:-1], varies) if not keep]
        self.X, self.y = inputs[:, varies], train[:, -1]
        self.X_test, self.y_test = test[:, :-1][:, varies], test[:, -1]


def split_tasks(name):
    for split in range(1, 2 if ARGS.quick else FOLDS + 1):
        folder = ARGS.data / name / f"split_{split}"
        yield Task(name, split, folder / "train.csv.gz", folder / "test.csv.gz")


def seismic_tasks(target, scratch):
    """The authors train and test at the same points; here five folds, the rows dealt by a permutation."""
    names, values = read_csv(ARGS.data / "seismic" / "train.csv.gz")
    values = values[:, [names.index("x1"), names.index(target)]]
    folds = np.array_split(np.random.RandomState(0).permutation(len(values)), FOLDS)
    for split in range(1, 2 if ARGS.quick else FOLDS + 1):
        test = np.isin(np.arange(len(values)), folds[split - 1])
        paths = [scratch / f"seismic_{target}_{split}_{part}.csv.gz" for part in ("train", "test")]
        write_csv(paths[0], ["x1", "y"], values[~test])
        write_csv(paths[1], ["x1", "y"], values[test])
        yield Task(f"seismic.{target}", split, *paths)


def all_sets(scratch):
    """Name and a function that makes its tasks, for each set that was asked for."""
    sets = {name: lambda name=name: split_tasks(name) for name in SPLIT_SETS}
    sets |= {f"seismic.{target}": lambda target=target: seismic_tasks(target, scratch) for target in SEISMIC_TARGETS}
    wanted = ARGS.sets.split(",") if ARGS.sets else ["boston", "seismic.y1"] if ARGS.quick else list(sets)
    unknown = [name for name in wanted if name not in sets]
    if unknown:
        sys.exit(f"there is no set {unknown[0]}: choose from {', '.join(sets)}")
    return [(name, sets[name]) for name in wanted]


# --- part A: accuracy ---------------------------------------------------------------------------------------------


def make_kernel(dims, start):
    first = 1.0 if start == "ones" else np.sqrt(dims)
    bounds = (1e-5, 1e5)
    return ConstantKernel(1.0, bounds) * Matern(np.full(dims, first), bounds, nu=2.5) + WhiteKernel(1.0, (1e-10, 1e5))


def score(y, mean, sd):
    z = (y - mean) / sd
    return {"nlpd": float(np.mean(0.5 * np.log(2 * np.pi) + np.log(sd) + 0.5 * z * z)),
            "rmse": float(np.sqrt(np.mean((y - mean) ** 2)))}


def run_sklearn(task):
    center, scale = task.X.mean(axis=0), task.X.std(axis=0)
    y_center, y_scale = task.y.mean(), task.y.std()
    model = GaussianProcessRegressor(make_kernel(task.X.shape[1], ARGS.start), n_restarts_optimizer=ARGS.restarts,
                                     random_state=0)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # length-scales at their bounds are expected of irrelevant inputs
        model.fit((task.X - center) / scale, (task.y - y_center) / y_scale)
        seconds = time.perf_counter() - begin
        mean, sd = model.predict((task.X_test - center) / scale, return_std=True)
    return score(task.y_test, mean * y_scale + y_center, sd * y_scale) | {"seconds": seconds}


def command(*arguments):
    """Runs a program of the build folder; its standard output. Failing, it ends the benchmark with its sentence."""
    program = ARGS.build / arguments[0]
    try:
        done = subprocess.run([program, *map(str, arguments[1:])], capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"{program}: {error.strerror}; build it first")
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def run_thiele(task, scratch):
    model = scratch / "model.thiele"
    ignore = ["--ignore", ",".join(task.constant)] if task.constant else []
    begin = time.perf_counter()
    command("thiele", "fit", task.train_path, "--target", "y", "-o", model, "--threads", ARGS.threads, *ignore,
            *ARGS.fit.split())
    seconds = time.perf_counter() - begin
    scores = json.loads(command("thiele", "score", model, task.test_path, "--json"))
    return {"nlpd": scores["nlpd"], "rmse": scores["rmse"], "seconds": seconds}


ROW = "{:<12} {:>5} {:>11} {:>11} {:>9} {:>11} {:>11} {:>9} {:>9}"


def print_row(name, split, peer, own):
    print(ROW.format(name, split, f"{peer['nlpd']:.4f}", f"{own['nlpd']:.4f}", f"{own['nlpd'] - peer['nlpd']:+.4f}",
                     f"{peer['rmse']:.5g}", f"{own['rmse']:.5g}", f"{peer['seconds']:.2f}", f"{own['seconds']:.2f}"),
          flush=True)


def compare_accuracy(record):
    """True when thiele is as accurate on every set."""
    verdicts = []
    print("A. test NLPD and RMSE in the units of the data; seconds to fit (the whole command for thiele)\n")
    print(ROW.format("set", "split", "NLPD sklearn", "thiele", "differ by", "RMSE sklearn", "thiele", "s sklearn",
                     "thiele"))
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for name, tasks in all_sets(scratch):
            differences = []
            for task in tasks():
                peer, own = run_sklearn(task), run_thiele(task, scratch)
                print_row(name, task.split, peer, own)
                record.add(part="accuracy", set=name, split=task.split, sklearn=peer, thiele=own)
                differences.append(own["nlpd"] - peer["nlpd"])
            verdicts.append((name, statistics.mean(differences), max(differences)))
    print(f"\n{'set':<12} {'mean difference':>16} {'worst split':>12}")
    for name, mean, worst in verdicts:
        print(f"{name:<12} {mean:>+16.4f} {worst:>+12.4f}  {'PASS' if mean <= NLPD_MARGIN else 'FAIL'}")
    return all(mean <= NLPD_MARGIN for _, mean, _ in verdicts)


# --- part B: speed ------------------------------------------------------------------------------------------------


def make_data(n, dims):
    """The numbers of bench/exact.c, by the same formula."""
    i = np.arange(1, n + 1)
    X = 2.0 * np.sin(i[:, None] * (np.arange(dims) + 1.37) * 0.7310)
    y = 0.1 * np.sin(12.9898 * i) + np.sin(X * np.arange(1, dims + 1) * 0.5).sum(axis=1) / dims
    return X, y


def sklearn_evaluation(n, dims):
    """A function that evaluates value and gradient once and returns (seconds, value, gradient in thiele's order)."""
    kernel = ConstantKernel(1.0) * Matern(np.full(dims, 1.5), nu=2.5) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(*make_data(n, dims))
    theta = model.kernel_.theta  # log variance, log length-scales, log noise

    def evaluate():
        begin = time.perf_counter()
        value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)
        return time.perf_counter() - begin, value, np.concatenate([gradient[1:-1], gradient[:1], gradient[-1:]])

    return evaluate


def compare_speed(record):
    """True when the same value and gradient come SPEED_TARGET times as fast. Repetitions of the two alternate."""
    n, dims = 1000 if ARGS.quick else 2000, 8
    evaluate = sklearn_evaluation(n, dims)
    peer, own = [], []
    with threadpool_limits(ARGS.threads):
        for _ in range(ARGS.repetitions):
            seconds, value, gradient = evaluate()
            result = json.loads(command("bench-exact", n, dims, ARGS.threads))
            peer.append(seconds)
            own.append(result["seconds"])
    ratio = statistics.median(p / o for p, o in zip(peer, own))
    same = bool(np.allclose([value, *gradient], [result["value"], *result["gradient"]], rtol=1e-8, atol=1e-6))
    good = same and ratio >= SPEED_TARGET
    print(f"\nB. value and gradient at N = {n}, D = {dims}, Matern-5/2 ARD, {ARGS.threads} threads, median of "
          f"{ARGS.repetitions}")
    print(f"sklearn {statistics.median(peer):.3f} s, thiele {statistics.median(own):.3f} s: {ratio:.1f} times as fast "
          f"(at least {SPEED_TARGET:g} wanted); {'the same' if same else 'DIFFERENT'} numbers  "
          f"{'PASS' if good else 'FAIL'}")
    record.add(part="speed", n=n, dims=dims, threads=ARGS.threads, sklearn=peer, thiele=own, ratio=ratio, same=same)
    return good


def main():
    record = Record(ARGS.json)
    good = True
    if ARGS.part in ("accuracy", "both"):
        good &= compare_accuracy(record)
    if ARGS.part in ("speed", "both"):
        good &= compare_speed(record)
    print("\nPASS" if good else "\nFAIL")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
