"""
Pictures of models, with matplotlib: a slice with its band, predictions against what was observed, calibration, the
relevance of inputs, the log of a fit. Each draws into ``ax``, or into a new figure, and returns what it drew into. They
are made for light and dark backgrounds: colours follow that of the axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

import numpy as np
from numpy.typing import NDArray

from ._progress import TrainingLog
from ._slices import LEVELS, Slice, Slicer, Value, choose_target, one_target
from .errors import ArgumentError
from .table import Table, TableLike

if TYPE_CHECKING:
    from .model import Model

__all__ = ["calibration", "predicted", "relevance", "slice", "training"]

Array = NDArray[np.float64]

# Those of the command's pictures: on light, on dark.
_COLOURS = (
    ("#0072b2", "#56b4e9"), ("#d55e00", "#ff8f4d"), ("#00825f", "#3ccf9f"),
    ("#b0478a", "#e59cc8"), ("#8a6500", "#e8c24a"), ("#56606b", "#b3bec9"),
)  # fmt: skip
_DOTS = 2000


class _Paper:
    """Axes, and the colours that can be seen on them."""

    def __init__(self, ax: Any, size: tuple[float, float] = (6.4, 4.0)) -> None:
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(figsize=size, layout="constrained")[1]
        from matplotlib.colors import to_rgb

        red, green, blue = to_rgb(ax.get_facecolor())
        self.ax = ax
        self.dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        self.ink = "#e3e6e9" if self.dark else "#2b2f33"
        self.quiet = "#8a9299" if self.dark else "#737b83"
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)

    def colour(self, i: int) -> str:
        return _COLOURS[i % len(_COLOURS)][self.dark]

    def name(self, x: str, y: str) -> None:
        self.ax.set_xlabel(x)
        self.ax.set_ylabel(y)

    def explain(self) -> None:
        """Below, where nothing is drawn."""
        self.ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4, fontsize="small")


# --- slices ----------------------------------------------------------------------------------------------------------


def slice(
    model: Model,
    over: Optional[str] = None,
    table: Optional[TableLike] = None,
    *,
    target: Optional[str] = None,
    at: Optional[Mapping[str, Value]] = None,
    span: Optional[tuple[float, float]] = None,
    ax: Any = None,
) -> Any:
    """
    What is predicted while one input moves: the mean with the intervals that hold 50% and 90% of new observations, or
    the probabilities of classes. Over an input of categories there is a mark with whiskers for each.

    over: the input that moves; by default the one that matters most. table, usually that of training: the others stay
    at its medians and most frequent levels, and rows whose own prediction is near the slice's are dots. Without it they
    stay at the means of training and their first levels. at: where some of them stay instead. span: from, to.
    """
    target = choose_target(model, target)
    slicer = Slicer(model, table, at)
    over = _matters_most(model) if over is None else over
    if over not in slicer.inputs:
        raise ArgumentError(f"over: the model has no input '{over}': it has {', '.join(slicer.inputs)}")
    drawn = slicer.slice(over, target, span)
    paper = _Paper(ax)
    if drawn.made.probability is not None:
        _draw_classes(paper, drawn)
        paper.name(over, f"probability of {target}")
        paper.ax.set_ylim(-0.03, 1.03)
        paper.explain()
    else:
        _draw_band(paper, drawn)
        paper.name(over, target)
        paper.explain()
    if drawn.at:
        paper.ax.set_title(", ".join(f"{n} = {_short(v)}" for n, v in drawn.at.items()), fontsize="small", loc="left")
    return paper.ax


def _matters_most(model: Model) -> str:
    about = model.describe()
    ranked = (about.get("relevance") or {}).get("inputs") or about["columns"]["inputs"]
    return str(ranked[0]["name"])


def _short(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _axis(drawn: Slice, x: list[Any]) -> Any:
    """Places as matplotlib takes them: dates as dates, levels by their numbers."""
    if isinstance(drawn.places[0], str):
        where = {place: i for i, place in enumerate(drawn.places)}
        return np.array([where.get(v, np.nan) for v in x], dtype=float)
    if drawn.since is None or ":" in drawn.since[:3]:
        return np.asarray(x, dtype=float)
    return np.datetime64(drawn.since) + (np.asarray(x) * 86400e3).astype("timedelta64[ms]")


def _is_levels(drawn: Slice) -> bool:
    return isinstance(drawn.places[0], str)


def _name_levels(paper: _Paper, drawn: Slice) -> None:
    paper.ax.set_xticks(range(len(drawn.places)), drawn.places)
    paper.ax.set_xlim(-0.6, len(drawn.places) - 0.4)


def _draw_band(paper: _Paper, drawn: Slice) -> None:
    ax, made, colour = paper.ax, drawn.made, paper.colour(0)
    x, y = _axis(drawn, drawn.near[0]), np.asarray(drawn.near[1], dtype=float)
    shown = np.linspace(0, len(y) - 1, min(len(y), _DOTS)).astype(int) if len(y) else np.empty(0, int)
    if _is_levels(drawn):
        x = x + np.random.default_rng(0).uniform(-0.12, 0.12, len(x)) + 0.25
    if len(shown):
        ax.plot(x[shown], y[shown], ".", color=paper.quiet, markersize=4, alpha=0.7, label="rows nearby", zorder=1)
    places, mean, bounds = _axis(drawn, drawn.places), made.mean, made.quantiles
    assert mean is not None
    if bounds is None:  # a likelihood without quantiles
        assert made.sd is not None
        bounds = mean[:, None] + made.sd[:, None] * np.array([-1.645, -0.674, 0.674, 1.645])
    if _is_levels(drawn):
        ax.vlines(places, bounds[:, 0], bounds[:, 3], color=colour, linewidth=1.5, label="90%")
        ax.vlines(places, bounds[:, 1], bounds[:, 2], color=colour, linewidth=5, alpha=0.6, label="50%")
        ax.plot(places, mean, "o", color=colour, markeredgecolor=paper.ink, label="mean")
        _name_levels(paper, drawn)
        return
    ax.fill_between(places, bounds[:, 0], bounds[:, 3], color=colour, alpha=0.18, linewidth=0, label="90%")
    ax.fill_between(places, bounds[:, 1], bounds[:, 2], color=colour, alpha=0.28, linewidth=0, label="50%")
    ax.plot(places, mean, color=colour, linewidth=2, label="mean")
    ax.margins(x=0.01)
    if isinstance(places[0], np.datetime64):
        import matplotlib.dates as dates

        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(ax.xaxis.get_major_locator()))


def _draw_classes(paper: _Paper, drawn: Slice) -> None:
    ax, made, places = paper.ax, drawn.made, _axis(drawn, drawn.places)
    assert made.probability is not None and made.classes is not None
    for i, label in enumerate(made.classes):
        style = "o" if _is_levels(drawn) else "-"
        ax.plot(places, made.probability[:, i], style, color=paper.colour(i), linewidth=2, label=str(label))
        rows = _axis(drawn, [x for x, y in zip(*drawn.near) if y == str(label)])
        if len(rows) and not _is_levels(drawn):  # on the rim, those of the last label above
            height = 1.03 if i == len(made.classes) - 1 else -0.03 + 0.012 * i
            ax.plot(rows, np.full(len(rows), height), "|", color=paper.colour(i), markersize=7, clip_on=False)
    if _is_levels(drawn):
        _name_levels(paper, drawn)


# --- against what was observed ---------------------------------------------------------------------------------------


def predicted(model: Model, table: TableLike, *, target: Optional[str] = None, ax: Any = None) -> Any:
    """
    Predicted against observed: the mean of each row with the interval that should hold 90% of observations; of classes
    how often each is predicted where each was observed. Of large tables an even sample of 2,000 rows is drawn.
    """
    target, table = choose_target(model, target), Table.of(table)
    made = one_target(model.predict(table, quantiles=() if model.classes else LEVELS[::3]), target)
    paper = _Paper(ax, (4.6, 4.4))
    kept = np.linspace(0, len(made) - 1, min(len(made), _DOTS)).astype(int)
    texts = table.cells(target, [int(made.rows[i]) for i in kept])
    if made.probability is not None and made.classes is not None:
        return _draw_confusion(paper, np.array(texts), np.asarray(made.label)[kept], [str(c) for c in made.classes])
    assert made.mean is not None
    y = np.array([float(text) if text.strip() else np.nan for text in texts])
    mean = made.mean[kept]
    if made.quantiles is not None:
        low, high = made.quantiles[kept].T
        inside = np.mean((made.quantiles[kept][:, 0] <= y) & (y <= made.quantiles[kept][:, 1]))
        paper.ax.vlines(y, low, high, color=paper.colour(0), linewidth=0.7, alpha=0.25, zorder=1)
        paper.ax.set_title(f"{100 * inside:.0f}% inside their 90% intervals", fontsize="small", loc="left")
    paper.ax.plot(y, mean, ".", color=paper.colour(0), markersize=4)
    ends = [np.nanmin(np.r_[y, mean]), np.nanmax(np.r_[y, mean])]
    paper.ax.plot(ends, ends, "--", color=paper.quiet, linewidth=1, zorder=3)
    paper.name(f"{target}, observed", f"{target}, predicted")
    return paper.ax


def _draw_confusion(paper: _Paper, observed: NDArray[Any], labels: NDArray[Any], classes: list[str]) -> Any:
    counts = np.array([[np.sum((observed == a) & (labels == b)) for b in classes] for a in classes])
    share = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    colour = paper.colour(0)
    from matplotlib.colors import LinearSegmentedColormap

    scale = LinearSegmentedColormap.from_list("", [paper.ax.get_facecolor(), colour])
    paper.ax.imshow(share, cmap=scale, vmin=0, vmax=1)
    for i in range(len(classes)):
        for j in range(len(classes)):
            ink = ("#15181b" if paper.dark else "#ffffff") if share[i, j] > 0.6 else paper.ink
            paper.ax.text(j, i, str(counts[i, j]), ha="center", va="center", color=ink)
    paper.ax.set_xticks(range(len(classes)), classes)
    paper.ax.set_yticks(range(len(classes)), classes)
    paper.name("predicted", "observed")
    return paper.ax


def calibration(model: Model, table: TableLike, *, target: Optional[str] = None, ax: Any = None) -> Any:
    """
    Whether what is said to be so sure is: the share of rows inside their central intervals, for intervals of 5% to
    95%; of classes how often an event of each probability happened. The band holds 95% of what chance alone would do.
    """
    target, table = choose_target(model, target), Table.of(table)
    paper = _Paper(ax, (4.6, 4.4))
    central = np.linspace(0.05, 0.95, 19)
    levels = () if model.classes else np.r_[(1.0 - central[::-1]) / 2.0, (1.0 + central) / 2.0].tolist()
    made = one_target(model.predict(table, quantiles=levels), target)
    texts = table.cells(target, made.rows.tolist())
    if made.probability is not None and made.classes is not None:
        _draw_reliability(paper, made.probability, np.array(texts), [str(c) for c in made.classes])
        return paper.ax
    if made.quantiles is None:
        raise ArgumentError("calibration needs quantiles, which this likelihood does not have")
    y = np.array([float(text) if text.strip() else np.nan for text in texts])
    there = np.isfinite(y)
    low, high = made.quantiles[there, 18::-1], made.quantiles[there, 19:]
    inside = np.mean((low <= y[there, None]) & (y[there, None] <= high), axis=0)
    error = 1.96 * np.sqrt(central * (1.0 - central) / max(1, there.sum()))
    paper.ax.plot([0, 1], [0, 1], "--", color=paper.quiet, linewidth=1)
    paper.ax.fill_between(central, central - error, central + error, color=paper.quiet, alpha=0.2, linewidth=0)
    paper.ax.plot(central, inside, "o-", color=paper.colour(0), markersize=4)
    paper.ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    paper.name("central interval", f"share of {there.sum()} rows inside")
    return paper.ax


def _draw_reliability(paper: _Paper, probability: Array, observed: NDArray[Any], classes: list[str]) -> None:
    """Of two classes the second says all; of more each counts, as an event that happens or does not."""
    chosen = range(1, 2) if len(classes) == 2 else range(len(classes))
    p = np.concatenate([probability[:, i] for i in chosen])
    happened = np.concatenate([observed == classes[i] for i in chosen])
    bins = np.minimum((10.0 * p).astype(int), 9)
    paper.ax.plot([0, 1], [0, 1], "--", color=paper.quiet, linewidth=1)
    for b in np.unique(bins):
        rows = bins == b
        mean, share, n = p[rows].mean(), happened[rows].mean(), rows.sum()
        error = 1.96 * np.sqrt(max(mean * (1.0 - mean), 1e-12) / n)
        paper.ax.vlines(mean, max(0.0, mean - error), min(1.0, mean + error), color=paper.quiet, linewidth=6, alpha=0.3)
        paper.ax.plot(mean, share, "o", color=paper.colour(0), markersize=3.0 + 6.0 * np.sqrt(n / len(p)))
    paper.ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    event = f"'{classes[1]}'" if len(classes) == 2 else "each class"
    paper.name(f"probability of {event}", "how often it was so")


# --- what was learned ------------------------------------------------------------------------------------------------


def relevance(model: Model, *, ax: Any = None) -> Any:
    """How far predictions move with each input, as shares (docs/columns.md, «Which inputs matter»)."""
    found = (model.describe().get("relevance") or {}).get("inputs")
    if not found:
        raise ArgumentError("this model says nothing about its inputs: predictions would take too long")
    paper = _Paper(ax, (5.6, 0.9 + 0.32 * len(found)))
    names, share = [each["name"] for each in found][::-1], np.array([each["share"] for each in found])[::-1]
    bars = paper.ax.barh(names, 100.0 * share, color=paper.colour(0), height=0.6)
    paper.ax.bar_label(bars, [f" {100 * s:.2g}%" for s in share], color=paper.ink)
    paper.ax.set_xlim(0, 112 * share.max())
    paper.ax.tick_params(axis="y", length=0)
    paper.name("how far predictions move with it (share, %)", "")
    return paper.ax


def training(log: TrainingLog, *, ax: Any = None) -> Any:
    """
    The objective over the seconds of a fit's last phase, as a ``thiele.TrainingLog`` was told it; dotted lines say when
    each phase began. Those before have other objectives, of fewer rows or other kernels.
    """
    if not isinstance(log, TrainingLog) or not log.reports:
        raise ArgumentError("nothing was logged: give a thiele.TrainingLog that was the progress of a fit")
    paper = _Paper(ax)
    last = [r for r in log.reports if r.value == r.value]
    if not last:
        raise ArgumentError("the fit that was logged ended before it had an objective")
    part = [r for r in last if r.phase == last[-1].phase]
    # Several starts or candidates of one phase each count from the beginning.
    ends = [a.done > b.done for a, b in zip(part, part[1:])] + [False]
    value = [r.value for r in part]
    gaps = [i + 1 for i, end in enumerate(ends) if end]
    seconds = np.insert([r.seconds for r in part], gaps, np.nan)
    paper.ax.plot(seconds, np.insert(value, gaps, np.nan), ".-", color=paper.colour(0), markersize=4)
    held = [(r.seconds, r.held_out) for r in part if r.held_out == r.held_out]
    if held:
        other = paper.ax.twinx()
        other.plot(*zip(*held), color=paper.colour(1), linewidth=1)
        other.set_ylabel("RMSE of rows held out", color=paper.colour(1))
        other.spines["top"].set_visible(False)
    for phase in dict.fromkeys(r.phase for r in last):
        start = min(r.seconds for r in last if r.phase == phase)
        place = {"xy": (start, 0.02), "xycoords": ("data", "axes fraction")}
        paper.ax.axvline(start, color=paper.quiet, linewidth=0.8, linestyle=":")
        paper.ax.annotate(f" {phase}", **place, color=paper.quiet, fontsize="small")
    paper.name("seconds", "objective (nats)")
    return paper.ax
