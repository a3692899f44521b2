"""The tasks of bench/run, by name: what each is, beside whom, how long it takes, and the function that runs it."""

import sys
from dataclasses import dataclass
from pathlib import Path

from . import default, exact, growth, ladder, nlpd, papers, predict, robust, start, starts, step
from .sides import Peer


@dataclass
class Task:
    what: str
    peers: tuple
    minutes: float  # of two cores, estimated
    run: object
    own_results: bool = False  # writes its lines itself, and tables and figures


@dataclass
class Bench:
    """What a task is given."""
    arguments: object
    lines: object
    scratch: Path
    facts: dict

    def __post_init__(self):
        own = self.arguments
        self.build, self.quick, self.data, self.out = own.build, own.quick, own.data, own.out
        self.threads = [int(word) for word in own.threads.split(",")]
        self.version = self.facts["thiele"]
        self.thiele = own.thiele or self.build / "thiele"
        self.running = {}

    def peer(self, name, threads):
        """A running peer; one process serves all cases of a number of threads."""
        found = self.running.get((name, threads))
        if found is None or found.process.poll() is not None:
            found = self.running[name, threads] = Peer(name, threads)
        return found

    def close(self):
        for peer in self.running.values():
            peer.close()


TASKS = {
    "step": Task("one gradient step of sparse regression and classification", ("gpytorch", "gpflow"), 5, step.run),
    "nlpd": Task("time to a good test NLPD, regression and classification", ("gpytorch", "gpflow"), 9, nlpd.run),
    "exact": Task("exact regression, N = 500 to 5000: evaluation and whole fit",
                  ("sklearn", "gpytorch", "gpboost", "gpy"), 9, exact.run),
    "robust": Task("Student-t regression and counts: step, time to NLPD, whole fits",
                   ("gpytorch", "gpflow", "gpboost", "gpy"), 11, robust.run),
    "predict": Task("one row, a million rows, memory; M = 500", ("gpytorch", "gpflow", "gpy"), 4, predict.run),
    "growth": Task("time and memory by N, M, M_alpha, D, Q, K, S, threads", (), 4, growth.run),
    "start": Task("from the start of a process to the first prediction", ("gpytorch", "gpflow", "sklearn", "gpy"), 1,
                  start.run),
}
MEASURED = list(TASKS)
TASKS |= {
    "ladder": Task("deadlines of 2 to 80 s, by method: scores, time used; rules", (), 590, ladder.run, True),
    "default": Task("the default fit on 22 tables of five splits: scores, seconds; rules",
                    ("lightgbm", "gpboost", "sklearn", "gpytorch"), 3000, default.run, True),
    "starts": Task("the default fit beside twenty starts, on a hundred generated tables", (), 40, starts.run, True),
}
TASKS |= {name: Task(study.what, study.peers, study.minutes, study.run, True) for name, study in papers.STUDIES.items()}


def add_options(parser):
    """Those of single tasks."""
    ladder.add_options(parser)
    default.add_options(parser)
    starts.add_options(parser)


def chosen(names):
    """`all` is all that is measured here; `papers` all of the papers' tables."""
    out = []
    for name in names:
        out += MEASURED if name == "all" else list(papers.STUDIES) if name == "papers" else [name]
    for name in out:
        if name not in TASKS:
            sys.exit(f"there is no {name}: bench/run list")
    return list(dict.fromkeys(out))
