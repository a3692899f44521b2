"""The targets of speed and growth that were set for this program, each beside what the lines say: met or missed, and
for a miss the reason (bench/reasons.json, study "targets", case {"target": name})."""

from .ahead import ratio, side_by_side
from .lines import median
from .pages import exponent, growth_curves, table

STEPS = {(256, 100): 8.0, (1000, 200): 4.0, (1000, 1000): 2.5, (4096, 500): 3.0}  # times as fast as GPyTorch
PRODUCT, PRODUCT_FROM = 0.7, 500  # of dgemm, from so many inducing inputs on


def row(name, wanted, value, unit="", least=True):
    """least: the target is a lower limit."""
    met = value is not None and (value >= wanted if least else value <= wanted)
    said = "not measured" if value is None else f"{value:.3g}{unit}"
    return [name, f"at {'least' if least else 'most'} {wanted:g}{unit}", said, "met" if met else "missed"]


def of_steps(lines):
    out = []
    for case, sides in side_by_side(lines, "step"):
        wanted = STEPS.get((case["B"], case["M"]))
        if case["likelihood"] != "gaussian" or wanted is None:
            continue
        where = f"(B, M) = ({case['B']}, {case['M']}), threads {case['threads']}"
        out.append(row(f"a step beside GPyTorch, {where}", wanted, ratio(sides, "gpytorch"), "×"))
        if case["M"] >= PRODUCT_FROM:
            out.append(row(f"a step, part of dgemm, {where}", PRODUCT, sides["thiele"].get("fraction")))
    return out


def of_exact(lines):
    return [row(f"likelihood and gradient beside scikit-learn, N = {case['N']}", 5.0, ratio(sides, "sklearn"), "×")
            for case, sides in side_by_side(lines, "evaluation") if case["N"] == 2000]


def of_predictions(lines):
    out = []
    for line in (line for line in lines if line["who"] == "thiele"):
        case = line["case"]
        if line["part"] == "latency":
            out.append(row(case["what"] + ", M = 500", 1e6 * line["target"], 1e6 * median(line["seconds"]), " µs",
                           least=False))
        elif line["part"] == "throughput":
            out.append(row(f"many rows, part of dgemm, threads {case['threads']}", 0.6, line.get("fraction")))
    return out


def of_start(lines):
    return [row("start of `thiele predict` to the first row, M = 500", 15.0, 1e3 * median(line["seconds"]), " ms",
                least=False) for line in lines if line["who"] == "thiele"]


def of_growth(lines):
    curves = growth_curves(lines)
    out = [row("exponent of a step in M_alpha", 1.05, exponent([point[:2] for point in curves["M_alpha"]]),
               least=False)] if "M_alpha" in curves else []
    share = scaling([line for line in lines if line["case"].get("curve") == "threads" and line["case"]["B"] == 4096])
    return out + [row("threads: what a step gains over what dgemm gains, (4096, 500)", 0.95, share)]


def scaling(lines):
    """The best of the repetitions: a single thread is hardly ever held up, two are whenever one is."""
    if len(lines) < 2:
        return None
    one, many = lines[0], lines[-1]
    return min(one["seconds"]) / min(many["seconds"]) / (many["product"] / one["product"])


PARTS = {"step": of_steps, "exact": of_exact, "predict": of_predictions, "start": of_start, "growth": of_growth}


def targets_page(all_lines, reasons):
    """all_lines: those of each study by its name."""
    why = {entry["case"]["target"]: entry["reason"] for entry in reasons if entry.get("study") == "targets"}
    rows = []
    for study, part in PARTS.items():
        for name, wanted, value, met in part(all_lines.get(study, [])):
            reason = "" if met == "met" else next((text for start, text in why.items() if name.startswith(start)),
                                                  "not explained yet")
            rows.append([name, wanted, value, met, reason])
    return ("# Targets\n\nWhat was asked of this program, and what the tables of the last run say. A miss has its "
            "reason; `bench/profile` shows where the time goes.\n\n"
            + table(["what", "wanted", "measured", "", "why"], rows) + "\n")
