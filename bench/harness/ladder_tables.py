"""Tables of the ladder, made once under bench/cache: training rows and at most 4,000 fresh ones, NPY, target last.

  protein   41,157 rows, 9 inputs
  mnist     odd against even digits, 60,000 rows, 784 inputs as they are (0 to 255); some never change
  arm       36,000 rows of bench-arm, 21 inputs, the torque of joint 4: nearly no noise
  wide      13,500 generated rows of 26 inputs, of which 20 do not matter; noise of 4% of the target's deviation
"""

import gzip
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .sides import BENCH, command

CACHE = BENCH / "cache"
TEST = 4000
ARM_ROWS, ARM_TRAIN, ARM_INPUTS, ARM_JOINT = 200_000, 36_000, 21, 4
WIDE_ROWS, WIDE_INPUTS, WIDE_NOISE, WIDE_SEED = 13_500, 26, 0.04, 2026


@dataclass
class Table:
    name: str
    classes: bool
    train: Path
    test: Path
    constant: float  # NLPD of the test rows by the training mean and variance; NLP by the training frequencies

    def options(self):
        """Of `thiele fit`: what these rows need to be taken as they are."""
        return ["--target", -1, "--replicates", *(["--likelihood", "bernoulli", "--drop-constant"] if self.classes
                                                  else [])]


def protein(bench):
    parts = []
    for part in ("train", "test"):
        with gzip.open(bench.data / "protein" / f"{part}.csv.gz", "rt", encoding="utf-8") as file:
            parts.append(np.loadtxt(file, delimiter=",", skiprows=1))
    return parts


def idx(path, head, width):
    with gzip.open(path, "rb") as file:
        return np.frombuffer(file.read(), np.uint8, offset=head).reshape(-1, width)


def mnist(bench):
    folder = bench.data / "mnist"
    return [np.column_stack([idx(folder / f"{part}-images-idx3-ubyte.gz", 16, 784),
                             idx(folder / f"{part}-labels-idx1-ubyte.gz", 8, 1) % 2]).astype(np.float32)
            for part in ("train", "t10k")]


def arm(bench):
    """Dealt at random, as in decoupled_tables.py."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.npy"
        command(bench.build / "bench-arm", path, f"rows={ARM_ROWS}")
        rows = np.load(path)
    rows = np.column_stack([rows[:, :ARM_INPUTS], rows[:, ARM_INPUTS + ARM_JOINT - 1]])
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    return rows[:ARM_TRAIN], rows[-TEST:]


def wide(_):
    """Six inputs matter, through waves, a product, a ridge and a step that is smooth; scales differ by column."""
    random = np.random.default_rng(WIDE_SEED)
    X = random.normal(size=(WIDE_ROWS + TEST, WIDE_INPUTS))
    a, b, c, d, e, f = X[:, random.permutation(WIDE_INPUTS)[:6]].T
    y = np.sin(2.0 * a) + 0.7 * b * c + np.tanh(3.0 * d) + 0.5 * np.cos(a + 1.5 * e) + 0.3 * (f - 0.5 * d) ** 2
    y += WIDE_NOISE * y[:WIDE_ROWS].std() * random.normal(size=len(y))
    X *= 10.0 ** random.uniform(-2.0, 2.0, size=WIDE_INPUTS)
    rows = np.column_stack([X, 5.0 + 20.0 * y])
    return rows[:WIDE_ROWS], rows[WIDE_ROWS:]


MAKERS = {"protein": protein, "mnist": mnist, "arm": arm, "wide": wide}
CLASSES = ("mnist",)


def available(bench, name):
    return name in ("arm", "wide") or (bench.data / name).is_dir()


def save(path, rows):
    """Whole or not at all."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=CACHE, suffix=".npy", delete=False) as file:
        np.save(file, rows)
    os.replace(file.name, path)


def constant_of(train, test, classes):
    y, fresh = train[:, -1].astype(float), test[:, -1].astype(float)
    if classes:
        share = y.mean()
        return float(-np.mean(np.where(fresh > 0, np.log(share), np.log1p(-share))))
    return float(0.5 * np.log(2.0 * np.pi * y.var()) + 0.5 * np.mean((fresh - y.mean()) ** 2) / y.var())


def load(bench, name):
    paths = [CACHE / f"ladder-{name}-{part}.npy" for part in ("train", "test")]
    if not all(path.exists() for path in paths):
        train, test = MAKERS[name](bench)
        chosen = np.random.default_rng(0).permutation(len(test))[:TEST]
        for path, rows in zip(paths, (train, test[chosen])):
            save(path, np.ascontiguousarray(rows))
    classes = name in CLASSES
    train, test = (np.load(path, mmap_mode="r") for path in paths)
    return Table(name, classes, *paths, constant_of(train, test, classes))
