"""Lines of results: bench/results/NAME.jsonl, the machine first, then one line a measurement.

A line has study (the task), part of it, case (a dict: what was measured), who, version, and figures: seconds (a list of
repetitions) or others by name; agreement where numbers were compared first; quick; `failed` in place of figures.
"""

import json
import statistics


class Lines:
    """Writes lines as they come."""

    def __init__(self, path, study, machine, quick):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file, self.study, self.quick = open(path, "w", encoding="utf-8"), study, quick
        self.write({"study": study, "quick": quick, "machine": machine})

    def write(self, line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def add(self, part, case, who, **figures):
        line = {"study": self.study, "part": part, "case": case, "who": who, "quick": self.quick} | figures
        self.write(line)
        print(f"{self.study} {part:<12} {text_of(case):<52} {who:<9} {brief(line)}", flush=True)
        return line


class Kept(Lines):
    """Lines that are added to those of earlier runs: a case that is there is not measured again, unless it failed."""

    def __init__(self, path, study, machine, quick):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.known = {key_of(line["case"]): line for line in self.lines_of(path) if "failed" not in line}
        self.file, self.study, self.quick = open(path, "a", encoding="utf-8"), study, quick
        self.write({"study": study, "quick": quick, "machine": machine})

    @staticmethod
    def lines_of(path):
        """The last line of each case."""
        found = read(path)[1] if path.exists() else []
        return list({key_of(line["case"]): line for line in found}.values())

    def get(self, case):
        return self.known.get(key_of(case))

    def add(self, part, case, who, **figures):
        self.known[key_of(case)] = super().add(part, case, who, **figures)
        return self.known[key_of(case)]

    def close(self):
        self.file.close()


def key_of(case):
    return json.dumps(case, sort_keys=True)


def text_of(case):
    return ", ".join(f"{name} {value}" if not isinstance(value, str) else value for name, value in case.items())


def brief(line):
    if "failed" in line:
        return line["failed"]
    if "over" in line:
        return f"ended after {line['over']:g} s"
    parts = []
    if "seconds" in line:
        parts.append(duration(median(line["seconds"])))
    for name in ("rmse", "nlpd", "nlp", "error", "crps", "brier", "coverage50", "coverage", "gap", "value", "reached",
                 "rows_per_second", "bytes"):
        if line.get(name) is not None:
            parts.append(f"{name} {line[name]:.6g}")
    if "agreement" in line:
        parts.append(f"agrees to {max(line['agreement'].values()):.0e}")
    return "  ".join(parts + ([line["stop"]] if "stop" in line else []))


def median(seconds):
    return statistics.median(seconds) if isinstance(seconds, list) else seconds


def duration(seconds):
    """Three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size or unit == "µs":
            return f"{seconds / size:.3g} {unit}"
    return ""


def read(path):
    """(machine, lines) of a file of results; a file that was cut off is read as far as it goes."""
    machine, lines = {}, []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue
        if "machine" in line:
            machine = line["machine"] | {"quick": line["quick"]}
        else:
            lines.append(line)
    return machine, lines
