"""Pictures: what is in them, on light and dark, and that matplotlib is imported for them alone."""

import subprocess
import sys

import numpy as np
import pytest

import thiele

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(params=["default", "dark_background"])
def style(request):
    with plt.style.context(request.param):
        yield request.param
    plt.close("all")


@pytest.fixture(scope="module")
def classes(frame):
    table = frame[["a", "b", "label"]]
    return thiele.fit(table, "label", kernel="se", iterations=5), table


def contrast(ax):
    """The smallest difference in brightness between a line and what it is drawn on."""
    to_rgb = matplotlib.colors.to_rgb
    colours = [ax.get_facecolor(), *(line.get_color() for line in ax.lines)]
    brightness = [np.dot(to_rgb(colour), (0.299, 0.587, 0.114)) for colour in colours]
    return min(abs(b - brightness[0]) for b in brightness[1:])


def test_slices(model, frame, style, tmp_path):
    ax = thiele.plot.slice(model, "a", frame)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "y") and "site = " in ax.get_title(loc="left")
    mean = next(line for line in ax.lines if line.get_label() == "mean")
    x, y = mean.get_data()
    assert x[0] == frame["a"].min() and x[-1] == frame["a"].max() and np.ptp(y) > 1.0
    assert contrast(ax) > 0.25
    dots = next(line for line in ax.lines if line.get_label() == "rows nearby")
    assert 1 < len(dots.get_xdata()) < len(frame)
    levels = model.plot("site", frame, at={"a": 1.0})
    assert [text.get_text() for text in levels.get_xticklabels()] == ["east", "north", "south"]
    assert "a = 1" in levels.get_title(loc="left")
    ax.figure.savefig(tmp_path / "slice.svg")


def test_slice_is_what_the_model_predicts(model, frame):
    ax = thiele.plot.slice(model, "a", span=(-1.0, 1.0), at={"b": 0.5, "site": "south", "kind": "1"})
    x, y = next(line for line in ax.lines if line.get_label() == "mean").get_data()
    rows = {"a": x[::50], "b": [0.5] * 4, "site": ["south"] * 4, "kind": ["1"] * 4}
    assert np.allclose(model.predict(rows).mean, y[::50], rtol=1e-12)
    assert len(ax.lines) == 1  # without a table there are no rows


def test_dates_are_dates():
    days = np.datetime64("2024-01-01") + np.arange(60)
    table = {"day": days, "y": np.sin(np.arange(60) / 9.0) + 0.01 * np.arange(60)}
    with pytest.warns(thiele.ThieleWarning, match="holds dates"):
        model = thiele.fit(table, "y", method="exact", kernel="se")
    ax = thiele.plot.slice(model, table=table)
    first, last = matplotlib.dates.num2date(ax.get_xlim())
    assert (first.year, first.month, last.month) in ((2023, 12, 3), (2024, 1, 3), (2023, 12, 2), (2024, 1, 2))


def test_classes(classes, style):
    model, table = classes
    ax = thiele.plot.slice(model, "a", table)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["high", "low"]
    confusion = thiele.plot.predicted(model, table)
    assert sum(int(text.get_text()) for text in confusion.texts) == len(table)
    assert "how often" in thiele.plot.calibration(model, table).get_ylabel()


def test_against_what_was_observed(model, frame, style):
    ax = thiele.plot.predicted(model, frame)
    assert "inside their 90% intervals" in ax.get_title(loc="left")
    inside = thiele.plot.calibration(model, frame).lines[-1].get_ydata()
    assert len(inside) == 19 and np.all(np.diff(inside) >= 0.0) and inside[-1] > 0.8


def test_what_was_learned(frame, style):
    log = thiele.TrainingLog()
    model = thiele.fit(frame.drop(columns="label"), "y", method="exact", kernel="se(ard)", progress=log)
    assert len(log) > 2 and log.reports[-1].phase
    assert thiele.plot.training(log).get_xlabel() == "seconds"
    bars = thiele.plot.relevance(model).patches
    assert sum(bar.get_width() for bar in bars) == pytest.approx(100.0)
    assert len(log.to_frame()) == len(log)


def test_refusals(model, frame):
    for call, part in (
        (lambda: thiele.plot.slice(model, "absent"), "no input 'absent': it has a, b"),
        (lambda: thiele.plot.slice(model, "a", at={"absent": 1.0}), "at: the model has no input 'absent'"),
        (lambda: thiele.plot.slice(model, "a", target="z"), "no target 'z'"),
        (lambda: thiele.plot.training(thiele.TrainingLog()), "nothing was logged"),
    ):
        with pytest.raises(thiele.ArgumentError, match=part):
            call()


def test_matplotlib_is_imported_late():
    code = "import sys, thiele; thiele.plot; print('matplotlib' in sys.modules, 'pandas' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False False\n"
