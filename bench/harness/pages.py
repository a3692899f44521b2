"""Pages of docs/results from lines of results: one for each task, with its table, picture and what machine made it."""

import math
import re

import numpy as np

from . import charts, default, default_rules, default_tables, exact, growth, nlpd, papers, predict, robust, start, step
from .ahead import OWN, figure, peers_of, ratio, side_by_side
from .lines import duration, median, text_of
from .machine import BUSY


def machine_line(machine, load=True):
    words = (f"Made on {machine['date']} by {machine['thiele']} ({machine['commit']}) on {machine['cpu']}, "
             f"{machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}; {machine['compiler']}; "
             f"{machine['blas']}.")
    if load:
        words += f" Load at the start: {machine['load']}."
    if machine["quick"]:
        words += " **A quick run: it shows that the harness works, its times mean nothing.**"
    elif machine["load"] > BUSY:
        words += " **The machine was busy: times are rough.**"
    return words


def versions(lines):
    return ", ".join(sorted({f"{line['who']} {line['version']}" for line in lines
                             if line.get("version") and not line["who"].startswith(OWN)}))


def prose(module):
    """The module's docstring without the number of its task: what is fair."""
    words = re.sub(r"^Tasks? [\d and,]+, ", "", module.__doc__.strip())
    return words[0].upper() + words[1:]


def is_number(text):
    return not text or text.lstrip("-")[:1].isdigit()


def table(head, rows):
    """Columns of numbers to the right."""
    right = [c > 0 and all(is_number(row[c]) for row in rows) for c in range(len(head))]
    marks = ["---:" if c else "---" for c in right]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, marks, *rows])


def page(title, module, machine, lines, *parts):
    text = [f"# {title}", machine_line(machine), f"Beside: {versions(lines)}." if versions(lines) else "",
            prose(module), *parts, "Made by `bench/report` from lines of `bench/run`; not written by hand."]
    return "\n\n".join(part for part in text if part) + "\n"


def picture(name, alt):
    return f"![{alt}]({name})"


# --- cells --------------------------------------------------------------------------------------------------------


def cell(sides, who):
    """Time and how many times thiele's, or why there is none."""
    line = sides.get(who)
    if line is None:
        return ""
    if "failed" in line:
        return line["failed"]
    if line["part"] == "nlpd" and figure(line) is None:
        return f"never ({line['nlpd']:.4f})" if line.get("nlpd") is not None else "never"
    text = duration(figure(line)) if "rows_per_second" not in line else f"{line['rows_per_second']:,.0f} rows/s"
    times = None if who.startswith(OWN) else ratio(sides, who)
    return text if not times or math.isinf(times) else f"{text} ({times:.1f}×)"


def comparison(cases, label=text_of, extra=()):
    """A row a case; extra: (head, function of the sides) of further columns."""
    own = [OWN] + sorted({who for _, sides in cases for who in sides if who.startswith(OWN + ",")})
    people = own + peers_of(cases)
    rows = [[label(case), *(cell(sides, who) for who in people), *(make(sides) for _, make in extra)]
            for case, sides in cases]
    return table(["case", *people, *(head for head, _ in extra)], rows)


def worst_agreement(sides):
    worst = [max(line["agreement"].values()) for line in sides.values() if line.get("agreement")]
    return f"{max(worst):.0e}" if worst else ""


def nodes(sides):
    return ", ".join(f"{who} {line['nodes']}" for who, line in sides.items() if line.get("nodes"))


def fraction(sides):
    line = sides.get(OWN, {})
    return f"{100 * line['fraction']:.0f}%" if line.get("fraction") else ""


def by_value(name, digits):
    def make(sides):
        return ", ".join(f"{who} {line[name]:.{digits}f}" for who, line in sides.items()
                         if line.get(name) is not None)
    return make


def step_label(case):
    return f"{case['likelihood']}, B {case['B']}, M {case['M']}, threads {case['threads']}"


# --- the tasks' pages ---------------------------------------------------------------------------------------------


def step_parts(lines, out, name):
    cases = side_by_side(lines, "step")
    if not cases:
        return []
    columns = [("differ by", worst_agreement), ("of dgemm", fraction)]
    if any(nodes(sides) for _, sides in cases):
        columns.append(("nodes", nodes))
    return ["Seconds of one step; in brackets how many times thiele's.", comparison(cases, step_label, columns),
            picture(charts.bars(cases, out / f"{name}.svg", "one step", step_label), "one step")]


def nlpd_parts(lines, out, name):
    own = [line for line in lines if line["part"] == "nlpd"]
    if not own:
        return []
    to_peers = [line | {"reached": line.get("reached_peers")} for line in own]
    return ["Seconds until the test NLPD was within 1% of the best of all; never: not in the time given, with the best "
            "NLPD that was reached.", comparison(side_by_side(own, "nlpd"), extra=[("best NLPD", by_value("nlpd", 4))]),
            "Seconds until it was within 1% of the best of the peers.", comparison(side_by_side(to_peers, "nlpd")),
            picture(charts.courses(own, out / f"{name}.svg"), "test NLPD by time")]


def step_page(machine, lines, out):
    return page("One gradient step", step, machine, lines, *step_parts(lines, out, "step"))


def nlpd_page(machine, lines, out):
    return page("Time to a good test score", nlpd, machine, lines, *nlpd_parts(lines, out, "nlpd"))


def robust_page(machine, lines, out):
    fits = side_by_side(lines, "fit")
    return page("Robust regression and counts", robust, machine, lines, "## One step",
                *step_parts(lines, out, "robust_step"), "## Time to a score", *nlpd_parts(lines, out, "robust_nlpd"),
                "## Whole fits", comparison(fits, extra=[("test NLPD", by_value("nlpd", 4))]))


def exact_page(machine, lines, out):
    cases, fits = side_by_side(lines, "evaluation"), side_by_side(lines, "fit")
    return page("Exact regression", exact, machine, lines, "## One evaluation",
                comparison(cases, extra=[("differ by", worst_agreement)]),
                picture(charts.curves_by_rows(cases, out / "exact.svg", "one evaluation"), "one evaluation by N"),
                "## Whole fits", comparison(fits, extra=[("log likelihood reached", by_value("value", 2))]),
                picture(charts.curves_by_rows(fits, out / "exact_fit.svg", "whole fit"), "whole fit by N"))


def predict_page(machine, lines, out):
    rows = side_by_side(lines, "latency")
    many = side_by_side(lines, "throughput")
    whole = side_by_side(lines, "command")
    memory = ("memory", lambda sides: ", ".join(f"{who} {line['bytes'] / 2**20:.0f} MB" for who, line in sides.items()
                                                if line.get("bytes")))
    shown = [case for case in rows + many if peers_of([case])]
    return page("Prediction", predict, machine, lines, "## One row", comparison(rows, extra=[("differ by",
                worst_agreement)]), "## Many rows", comparison(many, extra=[memory, ("of dgemm", fraction)]),
                "## The whole command", comparison(whole),
                picture(charts.bars(shown, out / "predict.svg", "prediction"), "prediction") if shown else "")


def exponent(points):
    """The slope of the upper half of a log-log curve by least squares; None for fewer than two points."""
    upper = points[-max(2, (len(points) + 1) // 2 + 1):]
    if len(upper) < 2 or any(value is None or value <= 0 for _, value in upper):
        return None
    return float(np.polyfit(*np.log(np.array(upper)).T, 1)[0])


def growth_curves(lines):
    """By name: [(n, seconds, bytes)]."""
    out = {}
    for line in lines:
        if "failed" in line:
            continue
        case = line["case"]
        name = case["curve"] + (f", B {case['B']}, M {case['M']}" if "B" in case else "")
        out.setdefault(name, []).append((case["n"], median(line["seconds"]), line.get("bytes")))
    return out


def shown(value):
    return "" if value is None else f"{value:.2f}"


def growth_page(machine, lines, out):
    curves, rows = growth_curves(lines), []
    for name, points in curves.items():
        time, memory, source = growth.PROMISED[name.split(", B ")[0]]
        first, last = points[0], points[-1]
        rows.append([name, f"{first[0]} to {last[0]}", f"{duration(first[1])} to {duration(last[1])}",
                     shown(exponent([p[:2] for p in points])), str(time),
                     shown(exponent([(p[0], p[2]) for p in points])), "" if memory is None else str(memory), source])
    failed = [f"{line['case']['curve']}: {line['failed']}" for line in lines if "failed" in line]
    return page("Growth of time and memory", growth, machine, lines, "Exponents are slopes of the upper half of each "
                "curve in logarithms; memory is that of the whole process.",
                table(["size", "from, to", "time", "exponent", "promised", "memory's", "promised", "where"], rows),
                *failed, picture(charts.growth(curves, out / "growth.svg"), "growth") if curves else "")


def start_page(machine, lines, out):
    cases = side_by_side(lines, "start")
    return page("From a cold start to the first prediction", start, machine, lines, comparison(cases),
                picture(charts.start_bars(cases[0][1], out / "start.svg"), "first prediction") if cases else "")


def default_page(machine, lines, out):
    lines = [line for line in lines if not line["case"]["side"].startswith(f"{OWN} ")]
    groups = default_rules.grouped(sorted(lines, key=lambda line: default_tables.NAMES.index(line["case"]["table"])))
    rules = [f"- {'PASS' if holds else 'FAIL'}: {text}" for text, holds in
             default_rules.verdicts(groups, default.expected())]
    beside = ("Beside the best of its rivals by table, the constant and lightgbm-early left out: means over the splits "
              "that both have, the median over splits of the distance in NLPD, and thiele's own intervals and seconds (of "
              "the clock or, where that is less, of the processor).")
    parts = [part for what in default_rules.FIGURES
             for part in (f"## {default_rules.TITLES[what]}", table(*default_rules.matrix(groups, what)))]
    means = f"Below: means over splits, as many as were measured: {default_rules.splits_text(groups)}."
    return page("The default beside its rivals", default, machine, default_rules.latest(groups), "## The rules",
                "\n".join([*rules, f"- {default_rules.crps_text(groups)}"]),
                picture(charts.beside(groups, out / "default.svg"), "the rivals' NLPD, RMSE and CRPS beside thiele's"),
                beside, table(*default_rules.against(groups)), means, *parts)


PAGES = {"step": step_page, "nlpd": nlpd_page, "exact": exact_page, "robust": robust_page, "predict": predict_page,
         "growth": growth_page, "start": start_page, "default": default_page}


# --- the papers' tables -------------------------------------------------------------------------------------------


def papers_page(results, quick):
    """Tables as the studies wrote them; figures are copied by the caller."""
    figures, text = [], ["# The papers' tables", "Collected from the studies that `bench/run list` names; each script "
                         "says in its head what is fair and what was chosen with scores in view. PASS and FAIL are its "
                         "own checks." + (" **Quick runs: scores mean nothing.**" if quick else "")]
    for name, study in papers.STUDIES.items():
        text.append(f"## {study.what} (`bench/run {name}`)")
        found = [path for path in (named(results / table_, quick) for table_ in study.tables) if path.exists()]
        for path in found:
            words = path.read_text(encoding="utf-8").rstrip()
            text.append(demoted(words) if path.suffix == ".md" else f"```\n{words}\n```")
        for path in (named(results / picture_, quick) for picture_ in study.figures):
            if path.exists():
                figures.append(path)
                text.append(picture(path.name, study.what))
        if not found:
            text.append("Not run yet.")
    return "\n\n".join(text) + "\n", figures


def demoted(words):
    """Headings of a page as parts of a section."""
    return re.sub(r"^#", "###", words, flags=re.MULTILINE)


def named(path, quick):
    return path.with_stem(path.stem + "_quick") if quick and path.suffix != ".md" else path
