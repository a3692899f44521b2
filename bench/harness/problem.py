"""One minibatch of a sparse variational problem for all sides: 2 B rows, of which the first B are the minibatch; q away
from the prior; Z among the rows. The regression problem is that of bench/gpytorch_step.py, to the bit."""

import numpy as np

D = 8
NU = 4.0  # of Student-t: fixed, since GPflow does not learn it
# By name: thiele's text, and what is learned of the likelihood.
LIKELIHOODS = {"gaussian": ("gaussian", [0.2]), "logistic": ("bernoulli", []),
               "student-t": (f"student-t(nu={NU:g})", [0.8]), "poisson": ("poisson", [])}


def pack(matrix, diagonal):
    """The lower triangle by columns, with this diagonal: how thiele orders the numbers of a factor."""
    matrix = matrix.copy()
    np.fill_diagonal(matrix, diagonal)
    return matrix.T[np.triu_indices(len(matrix))]


class Problem:
    def __init__(self, B, M, likelihood="gaussian"):
        random = np.random.default_rng(B + M)
        self.B, self.N, self.M, self.likelihood = B, 2 * B, M, likelihood
        self.X = random.normal(size=(self.N, D))
        self.y = np.sin(self.X @ random.normal(size=D)) + 0.3 * random.normal(size=self.N)
        self.Z = random.normal(size=(M, D))
        self.lengthscale = np.linspace(1.0, 1.6, D)
        self.variance = 1.3
        self.m = 0.5 * random.normal(size=M)
        self.factor = np.tril(0.3 / np.sqrt(M) * random.normal(size=(M, M)), -1)
        self.factor += np.diag(random.uniform(0.4, 0.9, M))
        self.text, self.phi = LIKELIHOODS[likelihood]
        self.adapt_targets(random)

    def adapt_targets(self, random):
        """Labels 0 and 1, counts, a twentieth of gross outliers."""
        if self.likelihood == "logistic":
            self.y = (self.y > 0.0).astype(float)
        elif self.likelihood == "poisson":
            self.y = random.poisson(np.exp(np.clip(self.y, -3.0, 3.0))).astype(float)
        elif self.likelihood == "student-t":
            self.y[::20] += 5.0

    def write(self, path):
        """For thiele, whose labels are -1 and 1."""
        y = 2.0 * self.y - 1.0 if self.likelihood == "logistic" else self.y
        hypers = [*self.lengthscale, self.variance, *self.phi]
        parts = (self.X, y, hypers, self.Z, self.m, pack(self.factor, np.log(np.diag(self.factor))))
        np.concatenate([np.ravel(part) for part in parts]).tofile(path)

    def save(self, path):
        np.savez(path, X=self.X, y=self.y, Z=self.Z, lengthscale=self.lengthscale, variance=self.variance, m=self.m,
                 factor=self.factor, phi=np.array(self.phi), nu=NU, B=self.B, likelihood=self.likelihood)

    def read(self, path):
        """Thiele's answer: value and parts, as the peers give them."""
        numbers, M = np.fromfile(path), self.M
        sizes = [M, M * (M + 1) // 2, D + 1 + len(self.phi), D * M, self.B]
        m, S, hypers, Z, mean, variance = np.split(numbers[1:], np.cumsum(sizes))
        return {"bound": numbers[0], "m": m, "S": S, "hyperparameters": hypers, "Z": Z, "mean": mean,
                "variance": variance}
