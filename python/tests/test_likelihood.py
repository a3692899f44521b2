"""Your own likelihood in Python: the same as the built-in one, in files and pickles, with errors that come through."""

import ctypes
import math
import pickle

import numpy as np
import pytest

import thiele
from thiele import Likelihood


def student_t(y, f, scale):
    """With four degrees of freedom."""
    constant = math.lgamma(2.5) - math.lgamma(2.0) - 0.5 * math.log(4.0 * math.pi)
    return constant - math.log(scale) - 2.5 * np.log1p(((y - f) / scale) ** 2 / 4.0)


def student_t_moments(f, scale):
    return f, 2.0 * scale**2


ROWS = 25
OWN = Likelihood(student_t, {"scale": 0.3})


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(7)
    x = random.uniform(-3.0, 3.0, ROWS)
    return {"x": x, "y": np.sin(x) + 0.1 * random.standard_t(4, ROWS)}


@pytest.fixture(scope="module")
def model(table):
    return thiele.fit(table, "y", likelihood=OWN, kernel="se", raw=True, expectation="quadrature:20")


def bound(model):
    return model.describe()["bound"] / ROWS


def test_agrees_with_the_built_in_one(model, table):
    built_in = thiele.fit(
        table, "y", likelihood="student-t(nu=4, scale~0.3)", kernel="se", raw=True, expectation="quadrature:20"
    )
    assert bound(model) == pytest.approx(bound(built_in), abs=1e-3)
    latent = [m.predict(table, latent=True).mean for m in (model, built_in)]
    np.testing.assert_allclose(*latent, atol=0.02)
    assert model.parameters["scale"] == pytest.approx(built_in.parameters["scale"], rel=0.05)


def test_files_and_pickles(model, table, tmp_path):
    table = {name: column[:2] for name, column in table.items()}
    expected = model.predict(table).mean
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(table).mean, expected)
    model.save(tmp_path / "m.thiele")
    alone = thiele.Model.load(tmp_path / "m.thiele")
    assert alone.needs_likelihood == "student_t"
    with pytest.raises(thiele.ThieleError):
        alone.predict(table)
    again = thiele.Model.load(tmp_path / "m.thiele", OWN)
    assert again.needs_likelihood is None
    np.testing.assert_array_equal(again.predict(table).mean, expected)


def test_moments(model, table, tmp_path):
    """What the user says of mean and variance is what integrals over y give, without asking logp."""
    few = {"x": table["x"][:3]}
    expected = model.predict(few)
    model.save(tmp_path / "m.thiele")
    own = pickle.loads(pickle.dumps(Likelihood(student_t, {"scale": 0.3}, moments=student_t_moments)))
    made = thiele.Model.load(tmp_path / "m.thiele", own).predict(few)
    np.testing.assert_allclose(made.mean, expected.mean, atol=1e-6)
    np.testing.assert_allclose(made.variance, expected.variance, rtol=1e-4)

    def unasked(y, f, scale):
        raise AssertionError("the density was asked for")

    own = Likelihood(unasked, {"scale": 0.3}, name="student_t", moments=student_t_moments)
    again = thiele.Model.load(tmp_path / "m.thiele", own).predict(few)
    np.testing.assert_array_equal(again.mean, made.mean)
    np.testing.assert_array_equal(again.variance, made.variance)


def test_moments_of_several_outputs(tmp_path):
    """Two outputs of one function; the second is it times -2."""

    def pair(y, f):
        ahead = np.stack([f, -2.0 * f], axis=1)
        squares = np.where(np.isnan(y), 0.0, (y - ahead) ** 2 / 0.02)
        return -squares.sum(axis=1) - 0.5 * np.log(0.02 * np.pi) * (~np.isnan(y)).sum(axis=1)

    x = np.linspace(-2.0, 2.0, 20)
    table = {"x": x, "a": np.sin(x), "b": -2.0 * np.sin(x)}
    own = Likelihood(pair, outputs=2, moments=lambda f: ((f, -2.0 * f), (0.01, 0.01)))
    model = thiele.fit(table, ["a", "b"], likelihood=own, kernel="se(lengthscale=1)", iterations=2, raw=True)
    made = model.predict(table)
    np.testing.assert_allclose(made.mean[:, 1], -2.0 * made.mean[:, 0], rtol=1e-9)
    np.testing.assert_allclose(made.variance[:, 1] - 0.01, 4.0 * (made.variance[:, 0] - 0.01), rtol=1e-6, atol=1e-9)


def test_errors_come_through(model, table, tmp_path):
    def broken(y, f):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        thiele.fit(table, "y", likelihood=Likelihood(broken), kernel="se")
    model.save(tmp_path / "m.thiele")
    own = Likelihood(student_t, {"scale": 0.3}, moments=lambda f, scale: f)
    with pytest.raises(TypeError):
        thiele.Model.load(tmp_path / "m.thiele", own).predict(table)
    with pytest.raises(thiele.ArgumentError, match="moments is neither"):
        Likelihood(student_t, {"scale": 1.0}, moments="mean")
    with pytest.raises(thiele.ArgumentError, match="support"):
        Likelihood(student_t, {"scale": 1.0}, support="complex")
    with pytest.raises(thiele.ArgumentError, match="'shift' is no parameter"):
        Likelihood(student_t, {"scale": 1.0}, unbounded=["shift"])
    with pytest.raises(thiele.ArgumentError, match="neither"):
        Likelihood("student_t")


def test_compiled_functions(table):
    numbers = ctypes.POINTER(ctypes.c_double)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, numbers, numbers, numbers, numbers, ctypes.c_void_p)

    @kind
    def gaussian(n, y, f, phi, out, user):
        for i in range(n):
            out[i] = -0.5 * (math.log(2.0 * math.pi * phi[0]) + (y[i] - f[i]) ** 2 / phi[0])

    own = Likelihood(gaussian, {"noise": 0.01}, name="own-gaussian")
    model = thiele.fit(table, "y", likelihood=own, kernel="se(lengthscale=1, variance=1)", raw=True, iterations=2)
    assert np.corrcoef(model.predict(table, latent=True).mean, table["y"])[0, 1] > 0.9


def test_in_an_estimator(table):
    pytest.importorskip("sklearn")
    from sklearn.base import clone

    estimator = clone(thiele.GPRegressor(likelihood=OWN, kernel="se", iterations=1))
    assert estimator.likelihood is OWN
    x = table["x"][:, None]
    latent = estimator.fit(x, table["y"]).predict(x, latent=True)
    assert np.corrcoef(latent, table["y"])[0, 1] > 0.9
