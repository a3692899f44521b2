"""The twenty-two tables of `default`, five splits each, made once under bench/cache/default: CSV files for the command
(inputs x1 to xD, target y), NPY files of the same rows for the others.

  twelve of UCI            90% training rows; the splits that come with them
  boston, creep, abalone   300, 800 and 1,000 training rows; the splits that come with them
  protein, sarcos-y1, -y4, mnist (odd digits against even), covtype15k (seven classes)
                           split 1 is the one that comes with them; 2 to 5 deal the same rows anew, as many to each side
  arm-y4                   40,000 training and 4,000 test rows of bench-arm's 200,000: 21 inputs, the torque of joint 4
  airline                  50,000 training and 10,000 test rows; each split has rows of its own

With `validate` the training rows of a split are dealt in their turn, 80% and 20%, and its test rows are never read.
"""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .ladder_tables import ARM_INPUTS, ARM_JOINT, ARM_ROWS, CACHE, mnist
from .sides import command

FOLDER = CACHE / "default"
SPLITS = (1, 2, 3, 4, 5)
UCI = ("airfoil", "autompg", "energy", "gas", "parkinsons", "pumadyn32nm", "skillcraft", "sml", "stock", "tamielectric",
       "wine", "yacht")
AIRLINE, AIRLINE_TEST, ARM, ARM_TEST = 50_000, 10_000, 40_000, 4_000
HELD_OUT = 0.2


@dataclass
class Table:
    name: str
    split: int
    classes: int  # 0: regression
    raw: bool  # inputs are pixels, which are not standardised
    train: np.ndarray  # target last
    test: np.ndarray
    paths: tuple  # CSV: training rows, test rows

    def options(self):
        """Of `thiele fit`, beside the target: numbers that are labels of more than two classes must be said to be."""
        return ["--likelihood", "softmax"] if self.classes > 2 else []

    def problem(self, path):
        """For the peers: inputs and targets of regression standardised by the training rows. (centre, scale) of y."""
        X, y = self.train[:, :-1].astype(float), self.train[:, -1].astype(float)
        center, scale = (0.0, 255.0) if self.raw else (X.mean(axis=0), X.std(axis=0))
        scale = np.where(np.equal(scale, 0.0), 1.0, scale)
        shift, unit = (0.0, 1.0) if self.classes else (y.mean(), y.std())
        np.savez(path, X=((X - center) / scale).astype(np.float32), y=(y - shift) / unit, classes=self.classes,
                 X_test=((self.test[:, :-1] - center) / scale).astype(np.float32))
        return shift, unit


# --- rows -----------------------------------------------------------------------------------------------------------


def read(path, first=0, count=None):
    return np.loadtxt(path, delimiter=",", skiprows=1 + first, max_rows=count, ndmin=2)


def uci(bench, name, split):
    rows = read(bench.data / "uci" / f"{name}.csv.gz")
    test = read(bench.data / "uci" / f"{name}.splits.csv.gz")[:, split - 1] > 0
    return rows[~test], rows[test]


def folders(bench, name, split):
    return [read(bench.data / name / f"split_{split}" / f"{part}.csv.gz") for part in ("train", "test")]


def dealt(train, test, split):
    """The first split as it is, the others at random with the same numbers of rows."""
    if split == 1:
        return train, test
    rows = np.concatenate([train, test])[np.random.default_rng(split).permutation(len(train) + len(test))]
    return rows[:len(train)], rows[len(train):]


def single(bench, name, split):
    return dealt(*(read(bench.data / name / f"{part}.csv.gz") for part in ("train", "test")), split)


def sarcos(bench, name, split):
    joint = int(name[-1]) - 8  # of y1 to y7, which come last
    parts = single(bench, "sarcos4449", split)
    return [np.column_stack([rows[:, :21], rows[:, joint]]) for rows in parts]


def digits(bench, _, split):
    return dealt(*(rows.astype(np.uint8) for rows in mnist(bench)), split)


def airline(bench, name, split):
    return [read(bench.data / name / f"{part}.csv.gz", (split - 1) * count, count)
            for part, count in (("train", AIRLINE), ("test", AIRLINE_TEST))]


def arm(bench, _, split):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.npy"
        command(bench.build / "bench-arm", path, f"rows={ARM_ROWS}")
        rows = np.load(path)
    rows = np.column_stack([rows[:, :ARM_INPUTS], rows[:, ARM_INPUTS + ARM_JOINT - 1]])
    rows = rows[np.random.default_rng(split).permutation(len(rows))]
    return rows[:ARM], rows[ARM:ARM + ARM_TEST]


# By name: the function of (bench, name, split) that reads it, and the folder of its data.
READERS = {**{name: (uci, "uci") for name in UCI}, **{name: (folders, name) for name in ("boston", "creep", "abalone")},
           "protein": (single, "protein"), "sarcos-y1": (sarcos, "sarcos4449"), "sarcos-y4": (sarcos, "sarcos4449"),
           "arm-y4": (arm, "."), "airline": (airline, "airline"), "mnist": (digits, "mnist"),
           "covtype15k": (single, "covtype15k")}
CLASSES = {"mnist": 2, "covtype15k": 7}
# Training rows and inputs, about.
SIZES = {"yacht": (277, 6), "boston": (300, 13), "autompg": (353, 7), "stock": (482, 11), "energy": (691, 8),
         "creep": (800, 30), "abalone": (1000, 10), "airfoil": (1353, 5), "wine": (1439, 11), "gas": (2309, 128),
         "skillcraft": (3004, 19), "sml": (3723, 26), "sarcos-y1": (4000, 21), "sarcos-y4": (4000, 21),
         "parkinsons": (5288, 20), "pumadyn32nm": (7373, 32), "covtype15k": (12096, 54), "arm-y4": (40000, 21),
         "protein": (41157, 9), "tamielectric": (41203, 3), "airline": (50000, 8), "mnist": (60000, 784)}
NAMES = tuple(SIZES)


def available(bench, name):
    return (bench.data / READERS[name][1]).is_dir()


# --- files ----------------------------------------------------------------------------------------------------------


def replaced(path, write):
    """Whole or not at all."""
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=path.suffix, delete=False) as file:
        write(file)
    os.replace(file.name, path)


def write_csv(file, rows):
    names = [f"x{d + 1}" for d in range(rows.shape[1] - 1)] + ["y"]
    file.write((",".join(names) + "\n").encode())
    for row in rows:
        file.write((",".join(map(str, row.tolist())) + "\n").encode())


def make(bench, name, split, validate):
    train, test = READERS[name][0](bench, name, split)
    if not validate:
        return train, test
    order = np.random.default_rng(split).permutation(len(train))
    held = round(HELD_OUT * len(train))
    return train[order[held:]], train[order[:held]]


def load(bench, name, split, validate=False):
    FOLDER.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{split}{'-validate' if validate else ''}"
    paths = [FOLDER / f"{stem}-{part}.csv" for part in ("train", "test")]
    arrays = [path.with_suffix(".npy") for path in paths]
    if not all(path.exists() for path in (*paths, *arrays)):
        for csv, array, rows in zip(paths, arrays, make(bench, name, split, validate)):
            replaced(csv, lambda file, rows=rows: write_csv(file, rows))
            replaced(array, lambda file, rows=rows: np.save(file, rows))
    train, test = (np.load(path) for path in arrays)
    return Table(name, split, CLASSES.get(name, 0), name == "mnist", train, test, tuple(paths))
