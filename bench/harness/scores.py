"""How good a prediction of test rows is, by the definitions of `thiele score`: of regression RMSE, NLPD, CRPS and the
share inside 90% intervals; of classes the error and the mean of -log p (NLP).

A prediction is a dict of arrays: mean and sd of a Gaussian; or median, below and above: halves of two Gaussians, each
with half of the mass, below and above the median, which is what RMSE takes; or probability, rows x classes, taken as at
least LEAST.
"""

import math

import numpy as np

LEAST = 1e-12
NINETY = 1.6448536269514722  # of a standard normal, 90% lie within
LEVELS = (np.arange(400) + 0.5) / 400.0
_erf = np.vectorize(math.erf)


def density(z):
    return np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def normal_quantiles(levels):
    from statistics import NormalDist
    return np.array([NormalDist().inv_cdf(p) for p in levels])


def gaussian(y, mean, sd):
    z = (y - mean) / sd
    return {"rmse": rms(y - mean), "nlpd": float(np.mean(0.5 * z * z + np.log(sd)) + 0.5 * math.log(2.0 * math.pi)),
            "crps": float(np.mean(sd * (z * _erf(z / math.sqrt(2.0)) + 2.0 * density(z) - 1.0 / math.sqrt(math.pi)))),
            "coverage": float(np.mean(np.abs(z) <= NINETY))}


def halves(y, median, below, above):
    """CRPS is twice the mean pinball loss over all levels."""
    sd = np.where(y < median, below, above)
    z, loss = (y - median) / sd, 0.0
    for p, at in zip(LEVELS, normal_quantiles(LEVELS)):
        off = y - (median + at * (below if at < 0.0 else above))
        loss += np.mean(np.maximum(p * off, (p - 1.0) * off))
    return {"rmse": rms(y - median),
            "nlpd": float(np.mean(0.5 * z * z + np.log(sd)) + 0.5 * math.log(2.0 * math.pi)),
            "crps": float(2.0 * loss / len(LEVELS)), "coverage": float(np.mean(np.abs(z) <= NINETY))}


def classes(y, probability):
    y = y.astype(int)
    own = np.maximum(probability[np.arange(len(y)), y], LEAST)
    return {"error": float(np.mean(probability.argmax(axis=1) != y)), "nlp": float(-np.mean(np.log(own)))}


def rms(off):
    return float(np.sqrt(np.mean(off * off)))


def scores(y, law, shift=0.0, unit=1.0):
    """law is that of (y - shift)/unit."""
    y = np.asarray(y, dtype=float)
    if "probability" in law:
        return classes(y, law["probability"])
    if "median" in law:
        return halves(y, shift + unit * law["median"], unit * law["below"], unit * law["above"])
    return gaussian(y, shift + unit * law["mean"], unit * law["sd"])
