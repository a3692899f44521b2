"""Pictures by matplotlib: the same lines give the same SVG file, to the byte."""

import math

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plot  # noqa: E402
from matplotlib.ticker import NullFormatter  # noqa: E402

from . import default_rules  # noqa: E402
from .ahead import OWN, figure, peers_of, ratio  # noqa: E402
from .lines import median, text_of  # noqa: E402

matplotlib.rcParams.update({"svg.hashsalt": "thiele", "svg.fonttype": "none", "font.size": 9, "axes.grid": True,
                            "grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False})
COLORS = {"thiele": "#1b6ca8", "thiele, same model": "#7fb3d9", "gpytorch": "#e07b39", "gpflow": "#7a9e3f",
          "sklearn": "#8c6bb1", "gpboost": "#b5483a", "gpy": "#7f7f7f", "lightgbm": "#4c8c4a"}
MARKS = "osD^v"  # of the predictions of one peer


def save(figure_, path):
    figure_.tight_layout()
    figure_.savefig(path, metadata={"Date": None, "Creator": None})
    plot.close(figure_)
    return path.name


def brief(number):
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def sizes_below(axis, sizes):
    """The sizes themselves as marks of a logarithmic axis."""
    axis.set_xscale("log")
    axis.set_xticks(sizes, [f"{n:g}" for n in sizes], fontsize=7)
    axis.xaxis.set_minor_formatter(NullFormatter())


def bars(cases, path, title, label=text_of):
    """How many times as long as thiele each peer takes, a group of bars a case."""
    peers = peers_of(cases)
    figure_, axis = plot.subplots(figsize=(8, 0.8 + 0.22 * len(cases) * max(1, len(peers))))
    names = []
    for at, (case, sides) in enumerate(cases):
        names.append(label(case))
        for k, who in enumerate(peers):
            times = ratio(sides, who)
            if times is not None and 0.0 < times < math.inf:
                place = at + (k - 0.5 * (len(peers) - 1)) * 0.8 / len(peers)
                axis.barh(place, times, 0.8 / len(peers), color=COLORS[who], label=who)
                axis.text(times, place, f" {brief(times)}", va="center", fontsize=7)
    axis.axvline(1.0, color=COLORS[OWN], lw=1.5, label=OWN)
    axis.set_xscale("log")
    axis.set_yticks(range(len(names)), names, fontsize=7)
    axis.invert_yaxis()
    axis.set_xlabel(f"{title}: times as long as thiele")
    legend(axis)
    return save(figure_, path)


def legend(axis):
    handles, labels = axis.get_legend_handles_labels()
    kept = dict(zip(labels, handles))
    axis.legend(kept.values(), kept.keys(), fontsize=7, loc="best")


def curves_by_rows(cases, path, title):
    """Seconds against N, log-log."""
    figure_, axis = plot.subplots(figsize=(5, 3.5))
    for who in [OWN, *peers_of(cases)]:
        points = [(case["N"], figure(sides.get(who))) for case, sides in cases if figure(sides.get(who)) is not None]
        if points:
            axis.plot(*zip(*points), "o-", ms=3, color=COLORS[who], label=who)
    sizes_below(axis, [case["N"] for case, _ in cases])
    axis.set_yscale("log")
    axis.set_xlabel("N")
    axis.set_ylabel(f"seconds, {title}")
    legend(axis)
    return save(figure_, path)


def courses(lines, path):
    """Test NLPD by seconds, a panel for each set."""
    sets = list(dict.fromkeys(line["case"]["set"] for line in lines))
    figure_, axes = plot.subplots(1, len(sets), squeeze=False, figsize=(4.2 * len(sets), 3.3))
    for axis, name in zip(axes.flat, sets):
        own = [line for line in lines if line["case"]["set"] == name and line.get("points")]
        for line in own:
            seconds, nlpd = zip(*line["points"])
            style = "-" if line["case"].get("rate", 0.01) == 0.01 else "--"
            mark = "." if line["who"].startswith(OWN) else ""
            axis.plot(seconds, nlpd, style, marker=mark, lw=1, color=COLORS[line["who"]], label=line["who"])
        if own:
            axis.axhline(own[0]["bar"], color="0.5", lw=0.8, label="within 1% of the best")
            low = min(nlpd for line in own for _, nlpd in line["points"])
            axis.set_ylim(low - 0.05 * abs(low), low + 0.5 * abs(low))
        axis.set_xscale("log")
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("seconds")
    axes[0][0].set_ylabel("test NLPD")
    legend(axes[0][0])
    return save(figure_, path)


def growth(curves, path):
    """curves: by name [(n, seconds, bytes)]. Time (and memory, to the right) by n, log-log."""
    names = list(curves)
    columns = min(4, max(1, len(names)))
    rows = -(-len(names) // columns)
    figure_, axes = plot.subplots(rows, columns, squeeze=False, figsize=(3.0 * columns, 2.5 * rows))
    for axis in axes.flat[len(names):]:
        axis.set_visible(False)
    for axis, name in zip(axes.flat, names):
        points = curves[name]
        axis.plot([p[0] for p in points], [1e3 * p[1] for p in points], "o-", ms=3, color=COLORS[OWN])
        if all(p[2] for p in points):
            other = axis.twinx()
            other.plot([p[0] for p in points], [p[2] / 2**20 for p in points], "s--", ms=3, color="0.5")
            other.set_yscale("log")
            other.grid(False)
        sizes_below(axis, [p[0] for p in points])
        axis.set_yscale("log")
        axis.set_title(name, fontsize=8)
    axes[0][0].set_ylabel("ms (grey: MB)")
    return save(figure_, path)


def start_bars(sides, path):
    figure_, axis = plot.subplots(figsize=(6, 2.2))
    names = [who for who, line in sides.items() if "failed" not in line]
    for at, who in enumerate(names):
        seconds = 1e3 * median(sides[who]["seconds"])
        axis.barh(at, seconds, color=COLORS[who])
        axis.text(seconds, at, f" {brief(seconds)} ms", va="center", fontsize=7)
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlabel("ms until the first prediction")
    return save(figure_, path)


def beside(groups, path):
    """A dot for each rival and table: its NLPD less thiele's, its RMSE and CRPS over thiele's; to the right of the line
    thiele is ahead. What is farther than the axis goes stands at its end."""
    rivals = list(dict.fromkeys(name for sides in groups.values() for name in default_rules.rivals(sides, True)))
    share = (1.0, 1.0 - 1.0 / default_rules.SHARE)
    panels = (("NLPD", "NLPD less thiele's", lambda own, other: other - own, (-0.3, 1.0), (0.0, default_rules.NEAR)),
              ("RMSE", "RMSE over thiele's", lambda own, other: other / max(own, 1e-300), (0.7, 2.0), share),
              ("CRPS", "CRPS over thiele's", lambda own, other: other / max(own, 1e-300), (0.7, 2.0), share))
    figure_, axes = plot.subplots(1, 3, sharey=True, figsize=(10, 1.4 + 0.24 * len(groups)))
    for axis, (what, title, compare, (low, high), (even, near)) in zip(axes, panels):
        axis.axvspan(even - near, even, color=COLORS[OWN], alpha=0.15, lw=0)
        axis.axvline(even, color=COLORS[OWN], lw=1.5)
        for k, name in enumerate(rivals):
            found = [(at, default_rules.pair(sides, OWN, name, what)) for at, sides in enumerate(groups.values())]
            dots = [(min(max(compare(*both), low), high), at) for at, both in found if both and both[0] > -1e200]
            peer = name.split("-")[0]
            if dots:
                axis.plot(*zip(*dots), MARKS[k % len(MARKS)], ms=4, alpha=0.8, color=COLORS[peer], label=name)
        axis.set_xlim(low - 0.02 * (high - low), high + 0.02 * (high - low))
        axis.set_xlabel(title)
    axes[0].set_yticks(range(len(groups)), list(groups), fontsize=7)
    axes[0].invert_yaxis()
    legend(axes[-1])
    return save(figure_, path)
