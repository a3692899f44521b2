"""Fits of Dask collections: the same predictions to the bit with any number of workers and any pieces."""

import numpy as np
import pytest

import thiele

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
from thiele.dask import GPRegressor  # noqa: E402

ROWS = 4000


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(3)
    x = random.uniform(-3, 3, (ROWS, 2))
    return x, np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] + 0.1 * random.normal(size=ROWS)


def regressor(sample=500):
    return GPRegressor(thiele.GPRegressor(method="collapsed", inducing=25, iterations=5, n_jobs=1), sample=sample)


@pytest.fixture(scope="module")
def want(data):
    x, y = data
    with dask.config.set(scheduler="synchronous"):
        return regressor().fit(da.from_array(x, chunks=(ROWS, 2)), da.from_array(y, chunks=ROWS))


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_workers(data, want, workers):
    x, y = data
    pieces = da.from_array(x, chunks=(350, 1)), da.from_array(y, chunks=777)
    with dask.config.set(scheduler="processes" if workers == 2 else "threads", num_workers=workers):
        made = regressor().fit(*pieces)
        mean, spread = dask.compute(*made.predict(pieces[0], return_std=True))
    assert made.rows_ == ROWS
    assert made.model_.to_bytes() == want.model_.to_bytes()
    with dask.config.set(scheduler="synchronous"):
        expected = dask.compute(*want.predict(pieces[0], return_std=True))
    np.testing.assert_array_equal(mean, expected[0])
    np.testing.assert_array_equal(spread, expected[1])


def test_learns_from_all_rows(data, want):
    """As a fit at the same parameters whose rows are all of them."""
    x, y = data
    assert np.abs(want.predict(x) - (np.sin(2 * x[:, 0]) + 0.5 * x[:, 1])).mean() < 0.05
    few = thiele.GPRegressor(method="collapsed", inducing=25, iterations=5, n_jobs=1).fit(x[::8], y[::8])
    assert want.predict(x, return_std=True)[1].mean() < few.predict(x, return_std=True)[1].mean()


def test_frames(data, want):
    pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    x, y = data
    frame = pd.DataFrame({"x1": x[:, 0], "x2": x[:, 1], "y": y})
    pieces = dd.from_pandas(frame, npartitions=7)
    made = regressor().fit(pieces[["x1", "x2"]], pieces["y"])
    np.testing.assert_allclose(made.predict(pieces[["x1", "x2"]]).compute(), want.predict(x), rtol=1e-6, atol=1e-8)


def test_refusals(data):
    x, y = data
    with pytest.raises(thiele.ArgumentError, match="X is not a Dask collection"):
        regressor().fit(x, y)
    with pytest.raises(thiele.ArgumentError, match="says nothing"):
        regressor(sample=1).fit(da.from_array(x), da.from_array(y))
    bad = y.copy()
    bad[1234] = np.nan
    pieces = da.from_array(x, chunks=(1000, 2)), da.from_array(bad, chunks=1000)
    with dask.config.set(scheduler="synchronous"), pytest.raises(thiele.DataError, match="row 235"):
        regressor().fit(*pieces)
    exact = GPRegressor(thiele.GPRegressor(method="exact", iterations=2), sample=100)
    with dask.config.set(scheduler="synchronous"), pytest.raises(thiele.UnsupportedError, match="no sums"):
        exact.fit(da.from_array(x, chunks=(1000, 2)), da.from_array(y, chunks=1000))
