"""Small tables with fixed seeds, and models that several tests look at."""

import numpy as np
import pytest

import thiele


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="scikit-learn's checks of read-only memory and other types too")


@pytest.fixture(scope="session")
def rows():
    """Two inputs in [-3, 3] and a smooth function of them with noise."""
    random = np.random.default_rng(1)
    x = random.uniform(-3.0, 3.0, (80, 2))
    return x, np.sin(x[:, 0]) + 0.3 * x[:, 1] + 0.1 * random.standard_normal(80)


@pytest.fixture(scope="session")
def frame(rows):
    """The same beside a text, a category of numbers, a date and a label."""
    pandas = pytest.importorskip("pandas")
    x, y = rows
    random = np.random.default_rng(2)
    frame = pandas.DataFrame(x, columns=["a", "b"])
    frame["site"] = random.choice(["north", "south", "east"], len(y))
    frame["kind"] = pandas.Categorical(random.integers(0, 2, len(y)))
    frame["y"] = y + (frame["site"] == "north")
    frame["label"] = np.where(y > 0.0, "high", "low")
    return frame


@pytest.fixture(scope="session")
def model(frame):
    return thiele.fit(frame.drop(columns="label"), "y", method="exact", kernel="se(ard)")
