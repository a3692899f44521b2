"""Tables for times to a score: protein (regression), protein with Student-t noise, MNIST odd against even, the rings of
abalones as counts, and generated classes. Tables for thiele are in the units of the data, problems for the peers
standardised by training statistics (pixels divided by 255, counts and labels as they are); Z are k-means centres, the
same for all."""

import numpy as np
from aaci_common import read_split, save
from aaci_speed import READERS, choose_Z

NU = 4.0
SETS = {"protein-gaussian": ("protein", "gaussian"), "mnist-logistic": ("mnist", "logistic"),
        "protein-student-t": ("protein", "student-t"), "abalone-poisson": ("abalone", "poisson"),
        "abalone-student-t": ("abalone", "student-t"), "generated-logistic": ("generated", "logistic")}
TEXTS = {"gaussian": "gaussian", "logistic": "bernoulli", "student-t": f"student-t(nu={NU:g})", "poisson": "poisson"}
INDUCING = 200


def generated(most):
    """Labels of a smooth function of eight inputs, by random features of a squared exponential kernel."""
    rng = np.random.default_rng(16)
    scales = np.array([1, 1, 1, 1.5, 2, 3, 5, 10])
    frequencies, phases = rng.normal(size=(8, 500)) / scales[:, None], rng.uniform(0, 2 * np.pi, 500)
    weights, parts = rng.normal(size=500), []
    for count in (most[0] or 50_000, most[1] or 10_000):
        X = rng.uniform(-2, 2, (count, 8))
        f = 5.0 * np.sqrt(2 / 500) * np.cos(X @ frequencies + phases) @ weights
        parts.append(np.column_stack([X, rng.uniform(size=count) < 1 / (1 + np.exp(-f))]))
    return parts


def read(bench, folder):
    most = (4000, 1000) if bench.quick else (None, None)
    if folder == "generated":
        return generated(most)
    return read_split(bench.data, folder, 1) if folder == "abalone" else READERS[folder](bench.data / folder, most)


def available(bench, name):
    return SETS[name][0] == "generated" or (bench.data / SETS[name][0]).is_dir()


class Set:
    def __init__(self, bench, name, most=None):
        """most: training rows, at most."""
        folder, self.likelihood = SETS[name]
        self.raw, self.classes, self.name = folder == "mnist", self.likelihood == "logistic", name
        train, test = read(bench, folder)
        train = train[:most]
        center, scale = train.mean(axis=0), train.std(axis=0)
        scale[scale == 0.0] = 1.0
        if self.raw:
            center, scale = np.zeros_like(center), np.ones_like(scale)
        if self.likelihood in ("logistic", "poisson"):
            center[-1], scale[-1] = 0.0, 1.0
        near, far = (train - center) / scale, (test - center) / scale
        Z = choose_Z(near[:, :-1], min(INDUCING, len(near) // 2))
        self.rows = len(train)
        self.tables = [save(bench.scratch / f"{part}.npy", rows) for part, rows in (("train", train), ("test", test))]
        self.Z = save(bench.scratch / "Z.npy", Z * scale[:-1] + center[:-1])
        self.problem = bench.scratch / "set.npz"
        np.savez(self.problem, X=near[:, :-1], y=near[:, -1], X_test=far[:, :-1], y_test=far[:, -1], Z=Z,
                 scale=scale[-1], ard=not self.raw, nu=NU)

    def default_options(self):
        return ["--target", -1, "--likelihood", TEXTS[self.likelihood]]

    def options(self):
        return ["--target", -1, "--replicates", "--likelihood", TEXTS[self.likelihood], "--kernel",
                "se" if self.raw else "se(ard)", *(["--raw"] if self.raw else [])]

    def sparse_options(self):
        return [*self.options(), "--inducing", len(np.load(self.Z)), "--inducing-from", self.Z, "--fix-inducing"]
