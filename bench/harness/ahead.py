"""Cases side by side, and where another is ahead of thiele.

bench/reasons.json says why, by case: a list of {study, part, who, case, reason, profile}, of which all but the reason
may be left out; the first entry whose fields all match is taken (of `case` those keys that it names). profile is what
bench/profile is to be asked to show it.
"""

import json

from .lines import median, text_of

OWN = "thiele"


def figure(line):
    """Seconds to compare, smaller is better; None where there is nothing to compare."""
    if line is None or "failed" in line:
        return None
    if line.get("part") == "nlpd":
        return line.get("reached")
    if "seconds" in line:
        return median(line["seconds"])
    return 1.0 / line["rows_per_second"] if line.get("rows_per_second") else None


def side_by_side(lines, part):
    """[(case, {who: line})] in the order in which cases came; the best of several rates counts."""
    out = {}
    for line in lines:
        if line["part"] != part:
            continue
        case = {name: value for name, value in line["case"].items() if name != "rate"}
        sides = out.setdefault(json.dumps(case), (case, {}))[1]
        old = sides.get(line["who"])
        if old is None or better(line, old):
            sides[line["who"]] = line
    return list(out.values())


def better(line, other):
    ours, theirs = figure(line), figure(other)
    if ours is None or theirs is None:
        return theirs is None and (ours is not None or (line.get("nlpd") or 1e300) < (other.get("nlpd") or 1e300))
    return ours < theirs


def ratio(sides, who, own=OWN):
    """How many times as long as thiele it takes; infinite where it never came, None where nothing compares."""
    ours, theirs = figure(sides.get(own)), figure(sides.get(who))
    if ours is None:
        return 0.0 if theirs is not None and own in sides and "failed" not in sides[own] else None
    if theirs is None:
        came_not = who in sides and "failed" not in sides[who] and sides[who]["part"] == "nlpd"
        return float("inf") if came_not else None
    return theirs / ours


def peers_of(cases):
    return sorted({who for _, sides in cases for who in sides if not who.startswith(OWN)})


def behind(lines):
    """(line of the peer, ratio) of every case where a peer takes less time, be it than one way of thiele of several:
    its default with another rule counts too, and the case says which."""
    out = []
    for part in dict.fromkeys(line["part"] for line in lines):
        for case, sides in side_by_side(lines, part):
            for who in peers_of([(case, sides)]):
                for own in (name for name in sides if name.startswith(OWN)):
                    times = ratio(sides, who, own)
                    if times is not None and times < 1.0:
                        beside = {} if own == OWN else {"beside": own}
                        out.append((sides[who] | {"case": case | beside}, times))
    return out


def reason_for(line, reasons):
    for entry in reasons:
        same = all(entry.get(name, line[name]) == line[name] for name in ("study", "part", "who"))
        if same and all(line["case"].get(name) == value for name, value in entry.get("case", {}).items()):
            profile = f" (`bench/profile {entry['profile']}`)" if "profile" in entry else ""
            return entry["reason"] + profile
    return "not explained yet: `bench/profile`, then an entry in `bench/reasons.json`"


def ahead_table(found, reasons):
    """found: pairs of behind()."""
    rows = ["| task | case | who | time, thiele = 1 | why |", "|---|---|---|---:|---|"]
    for line, times in found:
        text = f"{times:.2f}" if times else "thiele never"
        rows.append(f"| {line['study']}, {line['part']} | {text_of(line['case'])} | {line['who']} | {text} | "
                    f"{reason_for(line, reasons)} |")
    return "\n".join(rows)
