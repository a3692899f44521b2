"""docs/results/README.md, the newcomer's page: in one screen how fast, how accurate, compared with what."""

import math

from .ahead import OWN, behind, figure, peers_of, ratio, side_by_side
from .lines import duration
from .pages import machine_line, table

# (study, part, what the row says)
ROWS = (("step", "step", "one gradient step, sparse regression and classification"),
        ("robust", "step", "one gradient step, Student-t noise and counts"),
        ("nlpd", "nlpd", "time to a test NLPD within 1% of the best"),
        ("robust", "nlpd", "the same, Student-t noise and counts"),
        ("exact", "evaluation", "exact regression, likelihood and gradient"),
        ("exact", "fit", "exact regression, whole fit"),
        ("robust", "fit", "robust whole fits beside Laplace's method"),
        ("predict", "latency", "one row predicted, M = 500"),
        ("predict", "throughput", "many rows predicted, M = 500"),
        ("start", "start", "cold start to the first prediction"))


def times_text(value):
    """0: only the peer came there; infinite: only thiele did."""
    if value == 0.0 or math.isinf(value):
        return "never" if value else "there alone"
    return f"{value:.2g}×" if value < 9.95 else f"{value:.0f}×"


def span(values):
    return " to ".join(dict.fromkeys(map(times_text, (min(values), max(values)))))


def summary(lines, part):
    """(thiele's times, how many times as long each peer takes), or None."""
    cases = side_by_side(lines, part)
    own = [figure(sides.get(OWN)) for _, sides in cases if figure(sides.get(OWN)) is not None]
    peers = []
    for who in peers_of(cases):
        found = [times for times in (ratio(sides, who) for _, sides in cases) if times is not None]
        if found:
            peers.append(f"{who} {span(found)}")
    if not own and not peers:
        return None
    times = f"{duration(min(own))} to {duration(max(own))}" if len(own) > 1 else duration(own[0]) if own else ""
    if part == "throughput" and own:
        times = " to ".join(dict.fromkeys(f"{1.0 / value:,.0f}" for value in (max(own), min(own)))) + " rows/s"
    return times, ", ".join(peers)


def accuracy(results):
    """The worst agreement of what was timed, and how many comparisons there were; and those that were refused."""
    compared, refused = [], []
    for _, lines in results.values():
        for line in lines:
            if line.get("agreement"):
                (refused if "failed" in line else compared).append(max(line["agreement"].values()))
    return compared, refused


def accuracy_text(results):
    compared, refused = accuracy(results)
    if not compared:
        return "Nothing was compared yet."
    said = "; none was refused" if not refused else f"; {len(refused)} differed by more and were not timed"
    return ("Before any time is taken, bound or likelihood, gradients, means and variances at fixed hyperparameters "
            f"must be the same in both libraries to 1e-6 of the largest of their kind. In {len(compared)} comparisons "
            f"the largest difference was {max(compared):.0e}{said}. [The papers' tables](papers.md) say how the scores "
            "compare with published ones.")


def people(results):
    found = {}
    for _, lines in results.values():
        for line in lines:
            if line.get("version") and not line["who"].startswith(OWN):
                found[line["who"]] = line["version"]
    return ", ".join(f"{who} {version}" for who, version in sorted(found.items()))


def speed_rows(results):
    rows = []
    for study, part, words in ROWS:
        if study not in results:
            continue
        found = summary(results[study][1], part)
        if found:
            rows.append([f"[{words}]({study}.md)", *found])
    return rows


def all_behind(results):
    return [pair for _, lines in results.values() for pair in behind(lines)]


def newcomer_page(results):
    """results: by study (machine, lines)."""
    found = all_behind(results)
    machines = list(dict.fromkeys(machine_line(machine, load=False) for machine, _ in results.values()))
    said = ("Nowhere in these tables." if not found else f"In {len(found)} cases; [each with its reason](ahead.md).")
    beside = ["[The default fit beside its rivals](default.md) on twenty-two tables."] if "default" in results else []
    said += " [The targets](targets.md) that were set, met and missed."
    text = ["# How fast, how accurate, compared with what",
            "## How fast", "Thiele's time, and how many times as long the others take for the same thing on the same "
            "machine with the same number of threads, double precision, from the least favourable case to the most. "
            "Whole fits end where each optimiser ends: what they reached is on their pages.",
            table(["", "thiele", "the others take"], speed_rows(results)),
            "[Growth of time and memory](growth.md) by every size, beside what the papers promise.",
            "## How accurate", accuracy_text(results), *beside,
            "## Compared with what", f"{people(results)}. All pinned (`bench/requirements-*.txt`), each driven by a "
            "short script in `bench/peers` as its documentation has it.",
            "## Where another is ahead", said,
            "## On what machine", *machines,
            "`bench/run all && bench/report` makes these pages again; `bench/README.md` says how."]
    return "\n\n".join(text) + "\n"
