"""Stochastic variational regression for Gaussian noise, written out (Hensman, Fusi and Lawrence 2013): the hard-coded
peer of section 9.5. One file of NumPy in double precision that knows the likelihood; nothing here is thiele's.

A squared-exponential kernel with a length-scale per input and M inducing inputs Z. With L = chol(Kzz), V = L^-1 Kzx and
u = L w, q(w) = N(m, S) has the marginals mu = V'm and v = k_xx - |V|^2 + V'SV (columns of V), and for B of N rows

    bound = N/B sum [ log N(y; mu, s2) - v / (2 s2) ] - KL(q(w) || N(0, I)).

A natural-gradient step of length rho is in closed form: S^-1 and S^-1 m move a share rho of the way to
I + c VV' / s2 and c Vy / s2, c = N/B. Hyperparameters and Z follow the gradient at that q by Adam. A step costs
O(B M^2 + M^3).
"""

import numpy as np

JITTER = 1e-6  # of Kzz, relative to the variance
BLOCK = 4096   # rows at a time where nothing is learned
# Lengths of steps are those of thiele, as the paper gave both methods the same: Adam for logarithms of parameters and
# for Z in standard deviations, and rho = (8 + t)^-DECAY.
RATE, DECAY = 0.02, 0.51


def kmeans(X, M, random, rows=20000, rounds=10):
    """Centers of M clusters of some rows, by Lloyd's rounds from random rows."""
    X = X[random.choice(len(X), min(rows, len(X)), replace=False)]
    Z = X[random.choice(len(X), M, replace=False)].copy()
    for _ in range(rounds):
        nearest = np.argmin((Z * Z).sum(axis=1) - 2.0 * X @ Z.T, axis=1)
        count = np.bincount(nearest, minlength=M)
        for d in range(X.shape[1]):
            total = np.bincount(nearest, X[:, d], minlength=M)
            Z[:, d] = np.where(count > 0, total / np.maximum(count, 1), Z[:, d])
    return Z


class Adam:
    """Kingma and Ba 2015, uphill."""

    def __init__(self, size, rate):
        self.mean, self.square, self.rate, self.t = np.zeros(size), np.zeros(size), rate, 0

    def step(self, gradient):
        self.t += 1
        self.mean += 0.1 * (gradient - self.mean)
        self.square += 0.001 * (gradient * gradient - self.square)
        mean, square = self.mean / (1.0 - 0.9 ** self.t), self.square / (1.0 - 0.999 ** self.t)
        return self.rate * mean / (np.sqrt(square) + 1e-8)


class Svi:
    """Inputs and target are expected standardised. theta: log length-scales (D), log variance, log noise, Z (M x D)."""

    def __init__(self, X, y, M, batch, seed=0):
        self.X, self.y, self.batch = X, y, min(batch, len(y))
        self.random = np.random.default_rng(seed)
        D = X.shape[1]
        Z = kmeans(X, M, self.random)
        self.theta = np.concatenate([np.full(D, 0.5 * np.log(D)), [0.0, 0.0], Z.ravel()])
        self.precision, self.linear = np.eye(M), np.zeros(M)  # S^-1 and S^-1 m
        self.adam, self.t = Adam(len(self.theta), RATE), 0
        self.refresh()

    # --- what follows from theta and q --------------------------------------------------------------------------

    def refresh(self):
        """Kzz with its factor, after theta has moved."""
        D = self.X.shape[1]
        self.scale, self.variance, self.noise = np.exp(self.theta[:D]), np.exp(self.theta[D]), np.exp(self.theta[D + 1])
        self.Z = self.theta[D + 2:].reshape(-1, D)
        self.Kzz = self.kernel(self.Z)
        self.inverse = np.linalg.inv(np.linalg.cholesky(self.Kzz + JITTER * self.variance * np.eye(len(self.Z))))

    def kernel(self, X):
        """k(Z, X)"""
        Z, X = self.Z / self.scale, X / self.scale
        r2 = (Z * Z).sum(axis=1)[:, None] + (X * X).sum(axis=1) - 2.0 * Z @ X.T
        return self.variance * np.exp(-0.5 * np.maximum(r2, 0.0))

    def moments(self):
        S = np.linalg.inv(self.precision)
        return S @ self.linear, 0.5 * (S + S.T)

    def divergence(self, m, S):
        return 0.5 * (np.trace(S) + m @ m - len(m) + np.linalg.slogdet(self.precision)[1])

    def marginals(self, V, m, S):
        return V.T @ m, self.variance - (V * V).sum(axis=0) + (V * (S @ V)).sum(axis=0)

    def predict(self, X):
        """Mean and variance of new targets."""
        m, S = self.moments()
        parts = [self.marginals(self.inverse @ self.kernel(X[i:i + BLOCK]), m, S) for i in range(0, len(X), BLOCK)]
        mean, variance = (np.concatenate(part) for part in zip(*parts))
        return mean, variance + self.noise

    def bound(self):
        """Over all rows: a pass of its own."""
        mean, variance = self.predict(self.X)
        error = (self.y - mean) ** 2 + variance - self.noise
        expected = -0.5 * np.log(2.0 * np.pi * self.noise) - error / (2.0 * self.noise)
        return expected.sum() - self.divergence(*self.moments())

    # --- learning -----------------------------------------------------------------------------------------------

    def epoch(self, late=lambda: False):
        """One pass over the rows in a random order; False when late() ended it."""
        order = self.random.permutation(len(self.y))
        for first in range(0, len(order) - self.batch + 1, self.batch):
            self.step(order[first:first + self.batch])
            if late():
                return False
        return True

    def step(self, rows):
        X, y, weight = self.X[rows], self.y[rows], len(self.y) / len(rows)
        K = self.kernel(X)
        V = self.inverse @ K
        rho = (8.0 + self.t) ** -DECAY
        self.precision += rho * (np.eye(len(V)) + (weight / self.noise) * (V @ V.T) - self.precision)
        self.linear += rho * ((weight / self.noise) * (V @ y) - self.linear)
        self.t += 1
        self.theta += self.adam.step(self.gradient(X, y, weight, K, V) / len(self.y))
        self.refresh()

    def gradient(self, X, y, weight, K, V):
        """Of the bound of these rows at the present q, in theta. The divergence does not depend on theta in w."""
        m, S = self.moments()
        mean, variance = self.marginals(V, m, S)
        g = weight * (y - mean) / self.noise                     # d bound / d mu
        h = np.full(len(y), -0.5 * weight / self.noise)          # d bound / d v
        V_bar = np.outer(m, g) + 2.0 * (S @ V - V) * h
        K_bar = self.inverse.T @ V_bar
        Kzz_bar = self.cholesky_adjoint(-np.tril(K_bar @ V.T))
        to_scale, to_variance, to_Z = self.kernel_adjoint(X, K, K_bar)
        own = self.kernel_adjoint(self.Z, self.Kzz, Kzz_bar)
        jitter = JITTER * self.variance * np.trace(Kzz_bar)
        to_noise = (weight * ((y - mean) ** 2 + variance) / (2.0 * self.noise)).sum() - 0.5 * weight * len(y)
        return np.concatenate([to_scale + own[0], [to_variance + own[1] + jitter + self.variance * h.sum(), to_noise],
                               (to_Z + 2.0 * own[2]).ravel()])

    def cholesky_adjoint(self, L_bar):
        """From L to the symmetric Kzz = LL' (Murray 2016)."""
        middle = np.tril(np.linalg.inv(self.inverse).T @ L_bar)
        middle[np.diag_indices_from(middle)] *= 0.5
        out = self.inverse.T @ middle @ self.inverse
        return 0.5 * (out + out.T)

    def kernel_adjoint(self, X, K, K_bar):
        """d <K_bar, k(Z, X)> in log length-scales, log variance and Z (as the first argument alone)."""
        W = K_bar * K
        by_z, by_x = W.sum(axis=1), W.sum(axis=0)
        WX = W @ X
        to_Z = (WX - by_z[:, None] * self.Z) / self.scale ** 2
        square = by_z @ self.Z ** 2 + by_x @ X ** 2 - 2.0 * (self.Z * WX).sum(axis=0)
        return square / self.scale ** 2, W.sum(), to_Z
