"""What the default fit must show, as rules on the lines of `default`:

  whole    every table has five splits of thiele, none of them failed or ended, and of each rival that it is for
  nlpd     on at least 18 of 22 tables its NLPD (classes: NLP) is the best of all or within 0.02 of it
  worst    it is nowhere more than 0.1 behind
  rmse     on at least 16 tables its RMSE (classes: error) is within 3% of the best
  seconds  no fit takes longer than a minute; on a machine that was busy with other work, a minute of processor time

CRPS (classes: the Brier score) is compared as RMSE is, without a rule. Two sides are compared by means over the splits
that both have; beside that stands the median of their distances, split by split. lightgbm-early, whose number of trees
is chosen and not 1000, is shown, and counted apart.
"""

import statistics
from collections import defaultdict

NEAR, BEHIND, SHARE, MINUTE = 0.02, 0.1, 1.03, 60.0
TABLES, SPLITS, NLPD_TABLES, RMSE_TABLES = 22, 5, 18, 16
OWN, EXTRA, IDLE = "thiele", "lightgbm-early", "constant"
FIGURES = {"NLPD": ("nlpd", "nlp"), "RMSE": ("rmse", "error"), "CRPS": ("crps", "brier"),
           "50% intervals": ("coverage50",), "90% intervals": ("coverage",), "seconds": ("seconds",), "processor": ("cpu",)}
TITLES = {"NLPD": "NLPD (classes: NLP)", "RMSE": "RMSE (classes: error)", "CRPS": "CRPS (classes: Brier score)",
          "50% intervals": "Share inside 50% intervals", "90% intervals": "Share inside 90% intervals",
          "seconds": "Seconds of a fit", "processor": "Seconds of processor time of a fit"}


def figure(line, what):
    return next((line[name] for name in FIGURES[what] if line.get(name) is not None), None)


def grouped(lines):
    """table: side: split: line, tables and sides in the order in which they came."""
    out = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        case = line["case"]
        out[case["table"]][case["side"]][case["split"]] = line
    return out


def latest(groups):
    """The lines that count."""
    return [line for sides in groups.values() for by_split in sides.values() for line in by_split.values()]


def values(by_split, what):
    found = {split: figure(line, what) for split, line in by_split.items() if "failed" not in line}
    return {split: value for split, value in found.items() if value is not None}


def mean(numbers):
    numbers = list(numbers)
    return sum(numbers) / len(numbers)


def pair(sides, own, other, what):
    """Means of both over the splits that both have; None without one."""
    ours, theirs = values(sides.get(own, {}), what), values(sides.get(other, {}), what)
    common = ours.keys() & theirs.keys()
    return (mean(ours[k] for k in common), mean(theirs[k] for k in common)) if common else None


def rivals(sides, extra):
    return [name for name in sides if name != IDLE and not name.startswith(OWN) and (extra or name != EXTRA)]


def distance(sides, extra=False, own=OWN):
    """(NLPD above the best rival's, which may be below 0; who that is), or None."""
    found = [(pair(sides, own, name, "NLPD"), name) for name in rivals(sides, extra)]
    return max(((both[0] - both[1], name) for both, name in found if both), default=None)


def ratio(sides, extra=False, own=OWN, what="RMSE"):
    """(RMSE or CRPS over the best rival's, who that is), or None."""
    found = [(pair(sides, own, name, what), name) for name in rivals(sides, extra)]
    return max(((both[0] / max(both[1], 1e-300), name) for both, name in found if both), default=None)


def median_distance(sides, other):
    """The median over splits of the NLPD above another's."""
    ours, theirs = values(sides.get(OWN, {}), "NLPD"), values(sides.get(other, {}), "NLPD")
    return statistics.median(ours[k] - theirs[k] for k in ours.keys() & theirs.keys())


def took(line):
    """Seconds of a fit: a machine busy with other work adds to the clock, not to the processor time, which is what the
    fit would take on one idle core. A fit that was ended took as long as it was given."""
    return line["over"] if "over" in line else min(line.get("seconds", 0.0), line.get("cpu", float("inf")))


def slowest(sides):
    return max(map(took, sides.get(OWN, {}).values()), default=0.0)


def gaps(groups, wanted):
    """What is missing of a whole run: (table, side, splits that are there), failed fits of thiele among it. wanted: the
    sides that each table is to have."""
    out = []
    for name, sides in wanted.items():
        for side in sides:
            found = groups.get(name, {}).get(side, {})
            there = len(values(found, "NLPD")) if side == OWN else len(found)
            if there < SPLITS:
                out.append((name, side, there))
    return out


def whole(groups, wanted):
    missing = gaps(groups, wanted)
    count = sum(len(sides) for sides in wanted.values())
    own = [f"{name} ({there})" for name, side, there in missing if side == OWN]
    return (f"{count - len(missing)} of {count} pairs of a table and a side have their {SPLITS} splits; of {OWN} lack "
            f"some: {', '.join(own) or 'none'}", not missing)


def verdicts(groups, wanted, extra=False):
    """(sentence, whether it holds) of each rule."""
    own = {name: sides for name, sides in groups.items() if sides.get(OWN)}
    behind = {name: found for name, found in ((name, distance(sides, extra)) for name, sides in own.items()) if found}
    if not behind:
        return [("nothing to compare yet", False)]
    near = sum(found[0] <= NEAR for found in behind.values())
    worst = max(behind, key=lambda name: behind[name][0])
    slow = {name: slowest(sides) for name, sides in own.items()}
    late = [name for name, seconds in slow.items() if seconds > MINUTE]
    good, count = within_share(own, "RMSE", extra)
    return [(f"NLPD best or within {NEAR} of it on {near} of {len(behind)} tables ({NLPD_TABLES} of {TABLES} needed)",
             near >= NLPD_TABLES),
            (f"farthest behind: {behind[worst][0]:+.3f} on {worst} ({behind[worst][1]}); at most {BEHIND} allowed",
             behind[worst][0] <= BEHIND),
            (f"RMSE or error within 3% of the best on {good} of {count} tables ({RMSE_TABLES} of {TABLES} needed)",
             good >= RMSE_TABLES),
            (f"longest fit {max(slow.values()):.0f} s; over a minute: {', '.join(late) or 'none'}", not late),
            whole(groups, wanted)]


def within_share(groups, what, extra=False):
    """On how many tables RMSE or CRPS is within 3% of the best, and of how many."""
    found = [own for own in (ratio(sides, extra, what=what) for sides in groups.values()) if own]
    return sum(own[0] <= SHARE for own in found), len(found)


def crps_text(groups):
    good, count = within_share(groups, "CRPS")
    return f"CRPS or Brier score within 3% of the best on {good} of {count} tables (no rule)"


# --- tables ---------------------------------------------------------------------------------------------------------


def sides_of(groups):
    names = list(dict.fromkeys(side for sides in groups.values() for side in sides))
    return sorted(names, key=lambda name: (not name.startswith(OWN), name == IDLE))


def cell(by_split, what):
    found = values(by_split, what)
    if found:
        return f"{mean(found.values()):.3g}" if what in ("seconds", "processor") else f"{mean(found.values()):.4g}"
    over = [line["over"] for line in by_split.values() if "over" in line]
    return f">{over[0]:.0f} s" if over else "failed" if by_split else ""


def matrix(groups, what):
    """(head, rows): a row a table, a column a side."""
    names, rows = sides_of(groups), []
    for name, sides in groups.items():
        if any(values(by_split, what) for by_split in sides.values()):  # classes have no intervals
            rows.append([name, *(cell(sides.get(side, {}), what) for side in names)])
    return ["table", *names], rows


def shown(head, rows):
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    return "\n".join("  ".join(text.ljust(width) if k == 0 else text.rjust(width)
                               for k, (text, width) in enumerate(zip(row, widths))) for row in [head, *rows])


def share(sides, what):
    found = values(sides.get(OWN, {}), what)
    return f"{mean(found.values()):.2f}" if found else ""


def against(groups):
    """(head, rows): thiele beside the best of its rivals, a line a table."""
    rows = []
    for name, sides in groups.items():
        far, rmse, crps = distance(sides), ratio(sides), ratio(sides, what="CRPS")
        if far:
            seconds = [took(line) for line in sides[OWN].values()]
            rows.append([name, str(len(values(sides[OWN], "NLPD"))), f"{far[0]:+.3f}",
                         f"{median_distance(sides, far[1]):+.3f}", far[1], f"{rmse[0]:.3f}", rmse[1],
                         f"{crps[0]:.3f}" if crps else "", crps[1] if crps else "", share(sides, "50% intervals"),
                         share(sides, "90% intervals"), f"{mean(seconds):.1f}", f"{slowest(sides):.1f}"])
    return ["table", "splits", "NLPD behind", "median", "the best", "RMSE ratio", "the best", "CRPS ratio", "the best",
            "in 50%", "in 90%", "seconds", "longest"], rows


def splits_text(groups):
    """Side and number of splits, on the table that has most."""
    most = {side: max(len(sides.get(side, {})) for sides in groups.values()) for side in sides_of(groups)}
    return ", ".join(f"{side} {count}" for side, count in most.items())


def gains(groups):
    """(head, rows): NLPD less that of the unlabelled side, for each label."""
    labels = [side for side in sides_of(groups) if side.startswith(f"{OWN} ")]
    rows = []
    for label in labels:
        both = [found for found in (pair(sides, label, OWN, "NLPD") for sides in groups.values()) if found]
        off = [ours - theirs for ours, theirs in both]
        if off:
            rows.append([label, f"{mean(off):+.4f}", f"{min(off):+.4f}", f"{max(off):+.4f}", str(len(off))])
    return ["label", "mean", "best", "worst", "tables"], rows


def report(lines, wanted, validate=False):
    """Prints all tables, then the rules; whether they hold. Of validation: what labels gain, no rules."""
    groups = grouped(lines)
    for what in FIGURES:
        print(f"\n{TITLES[what]} (means over splits)\n{shown(*matrix(groups, what))}")
    if validate:
        print(f"\nNLPD beside the unlabelled fit\n{shown(*gains(groups))}")
        return True
    print(f"\n{shown(*against(groups))}\n")
    found = verdicts(groups, wanted)
    for text, holds in found:
        print(f"{'PASS' if holds else 'FAIL'}: {text}")
    print(crps_text(groups))
    if any(EXTRA in sides for sides in groups.values()):
        print(f"with {EXTRA}: {'; '.join(text for text, _ in verdicts(groups, wanted, True)[:3])}")
    failed = [line for line in lines if "failed" in line]
    for line in failed:
        print(f"{line['case']['table']}, split {line['case']['split']}, {line['case']['side']}: {line['failed']}")
    return all(holds for _, holds in found)
