"""How good a prediction of test rows is, by the definitions of `thiele score`: of regression RMSE, NLPD, CRPS and the
shares inside 50% and 90% intervals; of classes the error, the mean of -log p (NLP) and the Brier score.

A prediction is a dict of arrays: mean and sd of a Gaussian; or median, below and above: halves of two Gaussians, each
with half of the mass, below and above the median, which is what RMSE takes; or probability, rows x classes, taken as at
least LEAST.
"""

import math

import numpy as np

LEAST = 1e-12
HALF, NINETY = 0.67448975019608171, 1.6448536269514722  # of a standard normal, 50% and 90% lie within
ROOT_PI = math.sqrt(math.pi)
_erf = np.vectorize(math.erf)


def density(z):
    return np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def normal_crps(z):
    """Of a standard normal."""
    return z * _erf(z / math.sqrt(2.0)) + 2.0 * density(z) - 1.0 / ROOT_PI


def normal(off, sd):
    """All but CRPS of a law that is normal with this deviation on the side of y, and how many deviations y is off."""
    z = off / sd
    return z, {"rmse": rms(off), "nlpd": float(np.mean(0.5 * z * z + np.log(sd)) + 0.5 * math.log(2.0 * math.pi)),
               "coverage50": float(np.mean(np.abs(z) <= HALF)), "coverage": float(np.mean(np.abs(z) <= NINETY))}


def gaussian(y, mean, sd):
    z, found = normal(y - mean, sd)
    return found | {"crps": float(np.mean(sd * normal_crps(z)))}


def halves(y, median, below, above):
    """A side of deviation s adds s k to the CRPS at the median, 2 k being that of a standard normal at its own."""
    sd = np.where(y < median, below, above)
    z, found = normal(y - median, sd)
    k = 0.5 * (math.sqrt(2.0) - 1.0) / ROOT_PI
    return found | {"crps": float(np.mean(sd * normal_crps(z) + k * (below + above - 2.0 * sd)))}


def classes(y, probability):
    y = y.astype(int)
    own = np.maximum(probability[np.arange(len(y)), y], LEAST)
    off = probability - np.eye(probability.shape[1])[y]
    return {"error": float(np.mean(probability.argmax(axis=1) != y)), "nlp": float(-np.mean(np.log(own))),
            "brier": float(np.mean(np.sum(off * off, axis=1)))}


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
