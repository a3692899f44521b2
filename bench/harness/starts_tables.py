"""Generated tables of `starts`: number i is drawn from seed i alone. Inputs, a function of a Gaussian process with a
random kernel, targets by a random likelihood, in arbitrary units; sizes from 50 to 2,000 rows, or as many as twenty
dense fits can bear. A quarter of them is fitted sparsely, with inducing inputs that are given and stay."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

COUNT = 100
SMALLEST, LARGEST, LARGEST_DENSE, INDUCING, SPARSE = 50, 2000, 800, 40, 0.25
SOURCES = ("se", "matern12", "matern32", "matern52", "rq", "sum")
KERNELS = ((None, 0.5), ("se(ard)", 0.2), ("matern32(ard)", 0.1), ("rq(ard)", 0.1), ("se", 0.1))


def sigmoid(f):
    return 1.0 / (1.0 + np.exp(-f))


def located(noise):
    """Of a noise of deviation 1: targets around f, in units of their own."""
    def draw(random, f, level):
        return random.normal(0.0, 10.0) + 10.0 ** random.uniform(-1.0, 2.0) * (f + level * noise(random, f.shape))
    return draw


# By name: its share of the tables, and what draws targets from (random, f, noise level).
LIKELIHOODS = {
    "gaussian": (0.36, located(lambda random, shape: random.normal(size=shape))),
    "student-t": (0.12, located(lambda random, shape: random.standard_t(3.0, size=shape) / np.sqrt(3.0))),
    "laplace": (0.08, located(lambda random, shape: random.laplace(size=shape) / np.sqrt(2.0))),
    "poisson": (0.12, lambda random, f, level: random.poisson(np.exp(np.clip(f + random.normal(), -5.0, 5.0)))),
    "negative-binomial": (0.05, lambda random, f, level: random.negative_binomial(
        3, 3.0 / (3.0 + np.exp(np.clip(f + 1.0, -5.0, 5.0))))),
    "bernoulli": (0.12, lambda random, f, level: (random.uniform(size=f.shape) < sigmoid(2.0 * f)).astype(int)),
    "bernoulli-probit": (0.04, lambda random, f, level: (f + 0.5 * random.normal(size=f.shape) > 0.0).astype(int)),
    "gamma": (0.06, lambda random, f, level: np.exp(f) * random.gamma(2.0, 0.5, size=f.shape) + 1e-6),
    "beta": (0.05, lambda random, f, level: np.clip(random.beta(6.0 * sigmoid(f), 6.0 * sigmoid(-f)), 1e-4, 1 - 1e-4)),
}


@dataclass
class Table:
    number: int
    likelihood: str
    kernel: str  # None: that of the program
    rows: np.ndarray
    level: float  # of the noise, over the deviation of the function
    sparse: bool
    path: Path
    basis: Path

    def options(self):
        """Of `thiele fit`, as a user would give them."""
        chosen = ["--target", "y", "--replicates", "--likelihood", self.likelihood]
        chosen += ["--kernel", self.kernel] if self.kernel else []
        return chosen + (["--inducing-from", self.basis, "--fix-inducing"] if self.sparse else [])


def pick(random, shares):
    """One of (value, share)."""
    values, weights = zip(*shares)
    return values[random.choice(len(values), p=np.array(weights) / sum(weights))]


def covariance(kind, R):
    return {"se": lambda: np.exp(-0.5 * R ** 2), "matern12": lambda: np.exp(-R),
            "matern32": lambda: (1.0 + np.sqrt(3.0) * R) * np.exp(-np.sqrt(3.0) * R),
            "matern52": lambda: (1.0 + np.sqrt(5.0) * R + 5.0 / 3.0 * R ** 2) * np.exp(-np.sqrt(5.0) * R),
            "rq": lambda: 1.0 / (1.0 + 0.5 * R ** 2),
            "sum": lambda: 0.5 * np.exp(-0.5 * R ** 2) + 0.5 * np.exp(-0.5 * (0.2 * R) ** 2)}[kind]()


def function(random, X):
    """A draw at the rows: length-scales differ by input, from a tenth of the range to many times it."""
    scales = 10.0 ** random.uniform(-0.5, 0.7, size=X.shape[1]) * np.sqrt(X.shape[1])
    U = X / scales
    squares = (U ** 2).sum(axis=1)
    R = np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2.0 * U @ U.T, 0.0))
    K = covariance(SOURCES[random.integers(len(SOURCES))], R) + 1e-8 * np.eye(len(X))
    return np.linalg.cholesky(K) @ random.normal(size=len(X))


def usable(y):
    """Classes and counts that vary."""
    values, counts = np.unique(y, return_counts=True)
    return len(values) > 1 and (len(values) > 2 or counts.min() >= 5)


def make(number, folder):
    random = np.random.default_rng([14, number])
    likelihood = pick(random, [(name, share) for name, (share, _) in LIKELIHOODS.items()])
    kernel, sparse = pick(random, KERNELS), bool(random.uniform() < SPARSE)
    largest = LARGEST if sparse or likelihood == "gaussian" else LARGEST_DENSE
    n = int(round(np.exp(random.uniform(np.log(SMALLEST), np.log(largest)))))
    D = int(random.integers(1, 9))
    level = 10.0 ** random.uniform(-2.5, 0.0)
    y = np.zeros(n)
    while not usable(y):
        X = random.uniform(-2.0, 2.0, size=(n, D)) if random.uniform() < 0.5 else random.normal(size=(n, D))
        y = LIKELIHOODS[likelihood][1](random, function(random, X), level)
    X = X * 10.0 ** random.uniform(-2.0, 2.0, size=D) + random.normal(0.0, 5.0, size=D)
    Z = X[random.permutation(n)[:INDUCING]]
    table = Table(number, likelihood, kernel, np.column_stack([X, y]), level, sparse, folder / f"{number:03d}.csv",
                  folder / f"{number:03d}-Z.npy")
    write(table, Z)
    return table


def write(table, Z):
    table.path.parent.mkdir(parents=True, exist_ok=True)
    names = [f"x{d + 1}" for d in range(Z.shape[1])]
    np.savetxt(table.path, table.rows, delimiter=",", header=",".join([*names, "y"]), comments="", fmt="%.12g")
    np.save(table.basis, Z)
