"""What the ladder must show, as rules on its lines, and the table that says which hold. By table, method and load:

  constant  no fit has an NLPD (classes: NLP) above that of the constant predictor
  coverage  90% intervals of fresh rows hold 80 to 98% of them, in every fit; regression
  rises     the median NLPD over the seeds never rises by more than 0.02 from one deadline to the next
  time      a fit takes 85% of its deadline, or says «converged» and one of at least twice the length agrees to 0.01
  error     the median error after the longest deadline is within 0.1 points of the least of the ladder; classes

A fit that failed fails `constant`: there is nothing to predict with.
"""

import statistics
from collections import defaultdict

RISE, SHARE, AGREE, LOW, HIGH, POINTS = 0.02, 0.85, 0.01, 0.80, 0.98, 0.001
RULES = ("constant", "coverage", "rises", "time", "error")


def score(line):
    return line.get("nlp", line.get("nlpd", 1e300))


def ended_early(line):
    return "failed" not in line and line["seconds"] < SHARE * line["case"]["deadline"]


def converged_early(line):
    return ended_early(line) and line["stop"] == "converged"


def where(line):
    case = line["case"]
    return f"{case['deadline']} s, seed {case['seed']}"


def constant(group, _):
    for line in group:
        if "failed" in line:
            yield f"{where(line)}: {line['failed']}"
        elif score(line) > line["constant"]:
            yield f"{where(line)}: {score(line):.4g} is above the constant's {line['constant']:.4g}"


def coverage(group, _):
    for line in group:
        if "coverage" in line and not (line["coverage"] is not None and LOW <= line["coverage"] <= HIGH):
            yield f"{where(line)}: 90% intervals hold {100 * (line['coverage'] or 0):.1f}%"


def medians(group, deadlines, value=score):
    """deadline: median over the seeds, of the deadlines that have lines."""
    found = {deadline: [value(line) for line in group if line["case"]["deadline"] == deadline]
             for deadline in deadlines}
    return {deadline: statistics.median(values) for deadline, values in found.items() if values}


def rises(group, deadlines):
    found = list(medians(group, deadlines).items())
    for (before, low), (after, high) in zip(found, found[1:]):
        if high > low + RISE:
            yield f"{before} s to {after} s: {low:.4f} to {high:.4f}"


def longer(line, every):
    """The shortest fit of at least twice the length, all else equal."""
    same = [other for other in every if other["case"] | {"deadline": 0} == line["case"] | {"deadline": 0} and
            other["case"]["deadline"] >= 2 * line["case"]["deadline"]]
    return min(same, key=lambda other: other["case"]["deadline"], default=None)


def time(group, _, every=()):
    for line in filter(ended_early, group):
        used = f"{where(line)}: {line['seconds']:.1f} s used, {line['stop']}"
        other = longer(line, every)
        if line["stop"] != "converged":
            yield used
        elif other is None:
            yield f"{used}; no longer fit to compare with"
        elif abs(score(other) - score(line)) > AGREE:
            yield f"{used} at {score(line):.4f}, but {other['case']['deadline']} s give {score(other):.4f}"


def error(group, deadlines):
    found = medians([line for line in group if "error" in line], deadlines, lambda line: line["error"])
    if found and found[max(found)] > min(found.values()) + POINTS + 1e-9:
        yield f"{100 * found[max(found)]:.2f}% after {max(found)} s, {100 * min(found.values()):.2f}% before"


def judge(group, deadlines, every):
    """By rule, what breaks it."""
    found = {"constant": constant, "coverage": coverage, "rises": rises, "error": error}
    broken = {name: list(rule(group, deadlines)) for name, rule in found.items()}
    return broken | {"time": list(time(group, deadlines, every))}


def grouped(lines):
    groups = defaultdict(list)
    for line in lines:
        case = line["case"]
        groups[case["table"], case["method"], case["load"]].append(line)
    return groups


def cell(group, deadline):
    found = medians(group, [deadline])
    return f"{found[deadline]:.4g}" if found else "-"


def applies(rule, group):
    classes = any("nlp" in line for line in group)
    return rule not in (("coverage",) if classes else ("error",))


def report(lines, deadlines):
    """Prints the table and what breaks rules; whether all of them hold."""
    row = "{:<8} {:<12} {:<5} {:>9}" + " {:>9}" * len(deadlines) + "  " + " {:<8}" * len(RULES)
    print(row.format("table", "method", "load", "constant", *(f"{deadline} s" for deadline in deadlines), *RULES))
    said, good = [], bool(lines)
    for key, every in grouped(lines).items():
        group = [line for line in every if line["case"]["deadline"] in deadlines]
        if not group:
            continue
        broken = judge(group, deadlines, every)
        verdicts = ["FAIL" if broken[rule] else "PASS" if applies(rule, group) else "-" for rule in RULES]
        print(row.format(*key, f"{group[0]['constant']:.4g}", *(cell(group, deadline) for deadline in deadlines),
                         *verdicts))
        said += [f"{' '.join(key)}, {rule}: {text}" for rule in RULES for text in broken[rule]]
        good = good and "FAIL" not in verdicts
    print("\n" + "\n".join(said) if said else "")
    print(f"{len(lines)} fits: {'PASS' if good else 'FAIL'}")
    return good
