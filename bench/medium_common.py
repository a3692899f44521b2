"""What the medium-scale experiments share: running the command, lines of results, tables of text, checks."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def import_small():
    """savigp_small reads the command line when it is imported; ours is another."""
    kept, sys.argv = sys.argv, sys.argv[:1]
    try:
        import savigp_small
    finally:
        sys.argv = kept
    return savigp_small


small = import_small()
CommandError, Checks, read_csv, mean_and_error = small.CommandError, small.Checks, small.read_csv, small.mean_and_error


class Thiele:
    """The program, with what all of its fits have in common."""

    def __init__(self, path, threads, extra):
        self.path, self.threads, self.extra = path, threads, extra

    def __call__(self, *arguments):
        words = [str(word) for word in arguments]
        done = subprocess.run([self.path, *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise CommandError(f"thiele {' '.join(words)}: status {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def fit_and_score(self, train, test, model, deadline, *options):
        """Fits, scores, and returns what a line of results has. Seconds are those of the whole command fit."""
        begin = time.perf_counter()
        fitted = json.loads(self("fit", train, "-o", model, "--json", "--quiet", "--threads", self.threads,
                                 "--deadline", deadline, *options, *self.extra))["model"]
        seconds = time.perf_counter() - begin
        scores = json.loads(self("score", model, test, "--json", "--quiet", "--threads", self.threads))
        sparse = fitted.get("sparse") or {}
        return {"scores": scores, "seconds": seconds, "stop": fitted["stop"], "iterations": fitted["iterations"],
                "bound": fitted.get("bound", fitted.get("log_marginal_likelihood")),
                "M": (sparse or fitted.get("blocks") or {}).get("inducing"), "passes": sparse.get("epochs")}


class Results:
    """Lines of JSON, written as they come, so that an interrupted run can be resumed. A line is known by its
    experiment, its row and whether it is of a quick run. Lines of experiments that are not run now stay."""

    def __init__(self, path, experiments, quick, resume, say=None):
        """say: makes of a line the text that is printed when it comes; None: its scores and how the fit ended."""
        self.experiments, self.quick, self.lines, self.say = experiments, quick, {}, say or brief
        path.parent.mkdir(parents=True, exist_ok=True)
        old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for text in old:
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                print(f"{path}: a line that is no JSON is left out", file=sys.stderr)
                continue
            other = line["quick"] != quick or line["experiment"] not in experiments
            if other or (resume and "failed" not in line):
                self.lines[self.key(line)] = line
        self.file = open(path, "w", encoding="utf-8")
        for line in self.lines.values():
            self.write(line)

    @staticmethod
    def key(line):
        return line["experiment"], line["row"], line["quick"]

    def write(self, line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def get(self, experiment, row):
        """The line, or None when it is absent or its fit failed."""
        line = self.lines.get((experiment, row, self.quick))
        return None if line is None or "failed" in line else line

    def failed(self):
        """What failed in this run."""
        return [line for line in self.lines.values()
                if "failed" in line and line["quick"] == self.quick and line["experiment"] in self.experiments]

    def run(self, experiment, row, make):
        """The line, made unless it is there."""
        if self.get(experiment, row) is None:
            line = {"experiment": experiment, "row": row, "quick": self.quick}
            try:
                line |= make()
            except CommandError as error:
                line["failed"] = str(error)
            self.lines[self.key(line)] = line
            self.write(line)
            print(f"{experiment:<18} {row:<28} {line.get('failed') or self.say(line)}", flush=True)
        return self.get(experiment, row)


@dataclass
class Bench:
    """What an experiment is given."""
    thiele: Thiele
    results: Results
    arguments: object
    deadline: float  # seconds for a fit
    scratch: Path

    def __post_init__(self):
        own = self.arguments
        self.data, self.out, self.quick, self.inducing = own.data, own.out, own.quick, own.inducing
        self.epochs = own.epochs

    def title(self, text):
        return text + (" (quick: a few of the rows)" if self.quick else "")

    def fit(self, experiment, row, train, test, *options):
        """The line of one fit of the program, made unless it is there."""
        return self.results.run(experiment, row, lambda: self.thiele.fit_and_score(
            train, test, self.scratch / "model.thiele", self.deadline, *options))


def brief(line):
    """Scores and how the fit ended, on one line."""
    parts = []
    for name, value in line["scores"].items():
        if isinstance(value, dict):
            parts.append(f"{name}: smse {value['smse']:.4f} nlpd {value['nlpd']:.4f}")
        elif name in ("error_rate", "nlp", "rmse", "smse", "nlpd"):
            parts.append(f"{name} {value:.4f}")
    if line.get("bound") is not None:
        parts.append(f"bound {line['bound']:.1f}")
    return "  ".join(parts + [f"{line['seconds']:.1f} s", line.get("stop") or ""])


def number(value, digits):
    return "" if value is None else f"{value:.{digits}f}"


def aligned(title, head, rows, notes=()):
    """A table of texts: the first column to the left, the others to the right."""
    widths = [max(len(row[c]) for row in [head, *rows]) for c in range(len(head))]

    def line(row):
        return "  ".join(cell.ljust(w) if c == 0 else cell.rjust(w) for c, (cell, w) in enumerate(zip(row, widths)))
    return "\n".join([title, line(head), "  ".join("-" * w for w in widths), *map(line, rows), *notes, ""])
