"""Sums of parts make the model of one pass, to the bit, in any order and from other processes."""

import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import thiele


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(5)
    x = random.uniform(-3, 3, (3000, 2))
    return {"x1": x[:, 0], "x2": x[:, 1], "y": np.sin(2 * x[:, 0]) + x[:, 1] + 0.1 * random.normal(size=3000)}


@pytest.fixture(scope="module")
def model(data):
    few = {name: column[:400] for name, column in data.items()}
    return thiele.fit(few, target="y", method="collapsed", inducing=20, iterations=5)


def part(data, rows):
    return {name: column[rows] for name, column in data.items()}


def test_any_cut(data, model):
    whole = model.sums(data)
    want = thiele.combine(model, [whole])
    stripes = [model.sums(part(data, slice(k, None, 7)), threads=1) for k in range(7)]
    assert thiele.add_sums(model, reversed(stripes)) == whole
    assert thiele.combine(model, stripes).to_bytes() == want.to_bytes()
    again = thiele.combine(model, [thiele.add_sums(model, stripes[:3]), *stripes[3:]])
    assert again.to_bytes() == want.to_bytes()
    mean = want.predict(part(data, slice(0, 50))).mean
    assert np.abs(mean - data["y"][:50]).max() < 0.6


def sum_stripe(task):
    model, table = task
    return pickle.loads(model).sums(table, threads=1)


def test_other_processes(data, model):
    tasks = [(pickle.dumps(model), part(data, slice(k, None, 3))) for k in range(3)]
    with ProcessPoolExecutor(2) as pool:
        made = list(pool.map(sum_stripe, tasks))
    assert thiele.add_sums(model, made) == model.sums(data)


def test_refusals(data, model):
    with pytest.raises(thiele.ArgumentError, match="no rows"):
        thiele.combine(model, [])
    with pytest.raises(thiele.FormatError, match="not sums"):
        thiele.combine(model, [b"hello"])
    for parts in (model.sums(data), ["hello"]):
        with pytest.raises(TypeError, match="parts come in a list"):
            thiele.combine(model, parts)
    assert thiele.add_sums(model, [bytearray(model.sums(data))]) == model.sums(data)
    other = thiele.fit(part(data, slice(0, 300)), target="y", method="collapsed", inducing=20, iterations=2)
    with pytest.raises(thiele.DataError, match="another model"):
        thiele.combine(other, [model.sums(data)])
    exact = thiele.fit(part(data, slice(0, 100)), target="y", method="exact", iterations=2)
    with pytest.raises(thiele.UnsupportedError, match="no sums"):
        exact.sums(data)
    bad = part(data, slice(0, 10))
    bad["y"] = bad["y"].copy()
    bad["y"][3] = np.nan
    with pytest.raises(thiele.DataError, match="row 4"):
        model.sums(bad)
