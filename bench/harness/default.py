"""The default fit, `thiele fit TRAIN.csv --target y -o MODEL` and nothing else, beside what a user would pick instead,
on twenty-two tables of five splits (default_tables.py).

Beside it: LightGBM (1000 trees with a Gaussian of held-out variance; the number of trees that held-out rows like best;
its quantile mode), GPBoost (Vecchia, 20 and 40 neighbours), scikit-learn up to 2,000 rows, GPyTorch (SVGP, M = 1024,
Adam for at most 160 s, on a GPU where there is one), and the constant predictor; what each does exactly is in the head
of its script under bench/peers. All have the same rows; inputs and targets are standardised for the peers and in the units of the data for
thiele. Scores are of the test rows, by the same definitions (scores.py). Seconds are those of thiele's whole command,
reading the table and writing the model included, and of the peers' fits alone. A fit that takes longer than --limit is
ended. What is quick comes first, of all splits (default_order.py).

    bench/run default --tables wine,yacht --sides thiele,lightgbm --splits 1 --threads 2
    bench/run default --check            tables and rules (default_rules.py) on what is there; nothing is fitted
    bench/report default                 docs/results/default.md and its picture
    bench/run default --validate --label NAME --fit "OPTIONS"

The last is what settings are chosen by: it deals the training rows of a split 80 to 20 and never reads the test rows;
only there does --fit add options. Lines go to bench/results/default.jsonl (default-validate.jsonl) as fits end, and
what is there is not fitted again without --again.
"""

import json
import os
import resource
import shlex
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from . import default_order, default_rules, default_tables
from .ladder import finite, numbers, ran, words
from .lines import Kept
from .scores import scores
from .sides import PeerError, clocked, installed

LIMIT, ADAM, SKLEARN_ROWS = 600.0, 160.0, 2000
# Names of scores in the lines, and those that thiele has for them.
SCORES = {"rmse": "rmse", "nlpd": "nlpd", "crps": "crps", "coverage50": "coverage50", "coverage": "coverage90"}
SCORES_OF_CLASSES = {"error": "error_rate", "nlp": "nlp", "brier": "brier"}
CHOSEN = ("method", "kernel", "stop", "iterations")  # what a line keeps of what the fit says of itself


@dataclass
class Side:
    """A question to a peer, and the names of the predictions that it answers with."""
    peer: str
    names: tuple
    fields: dict
    rows: float = float("inf")  # training rows, at most
    classes: bool = True


SIDES = {"lightgbm": Side("lightgbm", ("lightgbm", "lightgbm-early"), {"mode": "plain"}),
         "lightgbm-quantile": Side("lightgbm", ("lightgbm-quantile",), {"mode": "quantile"}, classes=False),
         "gpboost-20": Side("gpboost", ("gpboost-20",), {"neighbours": 20}),
         "gpboost-40": Side("gpboost", ("gpboost-40",), {"neighbours": 40}),
         "sklearn": Side("sklearn", ("sklearn",), {}, SKLEARN_ROWS, False),
         "gpytorch": Side("gpytorch", ("gpytorch",), {"M": 1024, "budget": ADAM})}
EVERY = ("constant", "thiele", *SIDES)
QUICK = {"tables": ("yacht", "wine"), "splits": (1,)}


def add_options(parser):
    group = parser.add_argument_group("default", "--tables and --check are for it too")
    group.add_argument("--sides", type=words, metavar="NAMES", help=f"of {','.join(EVERY)}")
    group.add_argument("--splits", type=numbers, metavar="NUMBERS", help="default: 1,2,3,4,5")
    group.add_argument("--limit", type=float, default=LIMIT, metavar="SECONDS", help="of a fit (default: 600)")
    group.add_argument("--validate", action="store_true", help="on training rows alone, to choose settings by")
    group.add_argument("--fit", default="", metavar="OPTIONS", help="with --validate: further ones of thiele fit")
    group.add_argument("--label", default="", metavar="NAME", help="of these options or this program, in the lines")
    group.add_argument("--again", action="store_true", help="fit what is there again")


@dataclass
class Plan:
    """What is asked for: options, those of a quick run, or everything."""
    bench: object
    own: object = field(init=False)

    def __post_init__(self):
        self.own = own = self.bench.arguments
        every = {"tables": default_tables.NAMES, "splits": default_tables.SPLITS,
                 "sides": ("thiele",) if own.validate else EVERY}
        for name, value in (every | QUICK if self.bench.quick else every).items():
            setattr(self, name, getattr(own, name) or value)
        self.threads, self.validate, self.limit = self.bench.threads[-1], own.validate, own.limit
        unknown = [name for name in self.tables if name not in default_tables.NAMES]
        unknown += [name for name in self.sides if name not in EVERY]
        if unknown:
            sys.exit(f"default has no {', '.join(unknown)}")
        if own.fit and not (own.validate and own.label):
            sys.exit("--fit is for --validate, with a --label: settings are chosen on training rows")

    def path(self):
        return Path(self.bench.out) / f"default{'-validate' if self.validate else ''}.jsonl"

    def has(self, case):
        return case["table"] in self.tables and case["split"] in self.splits


# --- one fit --------------------------------------------------------------------------------------------------------


def constant(table):
    y = table.train[:, -1].astype(float)
    if not table.classes:
        law = {name: np.full(len(table.test), value) for name, value in (("mean", y.mean()), ("sd", y.std()))}
    else:
        share = np.bincount(y.astype(int), minlength=table.classes) / len(y)
        law = {"probability": np.tile(share, (len(table.test), 1))}
    return {"seconds": 0.0} | scores(table.test[:, -1], law)


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def thiele(bench, plan, table):
    model, cpu = bench.scratch / "default.thiele", processor_seconds()
    model.unlink(missing_ok=True)
    try:
        seconds, (text, said) = clocked(lambda: ran(
            bench.thiele, "fit", table.paths[0], "--target", "y", "-o", model, "--json", "--threads", plan.threads,
            *table.options(), *shlex.split(plan.own.fit), limit=plan.limit))
    except subprocess.TimeoutExpired:
        return {"over": plan.limit}
    figures = {"seconds": seconds, "cpu": processor_seconds() - cpu, "said": said[-500:]}
    if text is None:
        return figures | {"failed": said[-300:] or "no reason given"}
    fitted = json.loads(text)["model"]
    figures |= {name: fitted.get(name) for name in CHOSEN} | {"model_bytes": model.stat().st_size}
    text, said = ran(bench.thiele, "score", model, table.paths[1], "--json", "--quiet", "--threads", plan.threads)
    if text is None:
        return figures | {"failed": f"score: {said[-300:]}"}
    found = json.loads(text)
    names = SCORES_OF_CLASSES if table.classes else SCORES
    return figures | {name: finite(found[own]) for name, own in names.items()}


@contextmanager
def within(peer, seconds):
    """Ends a peer that takes longer; yields a list that says so."""
    over = []
    timer = threading.Timer(seconds, lambda: (over.append(True), peer.process.kill()))
    timer.start()
    try:
        yield over
    finally:
        timer.cancel()


def ask(bench, plan, table, side):
    """By name of the prediction: figures."""
    problem, answer = bench.scratch / "table.npz", bench.scratch / "answer.npz"
    shift, unit = table.problem(problem)
    peer = bench.peer(side.peer, plan.threads)
    with within(peer, plan.limit) as over:
        try:
            clock = peer.ask("table", problem=problem, answer=answer, who=side.names[0], **side.fields)
        except PeerError as error:
            if over:
                peer.process.wait()
            said = {"over": plan.limit} if over else {"failed": str(error)}
            return {name: said | {"version": peer.version} for name in side.names}
    with np.load(answer) as file:
        laws = {name: {key.split("/")[1]: file[key] for key in file.files if key.split("/")[0] == name}
                for name in side.names}
    return {name: clock | {"version": peer.version} | scores(table.test[:, -1], law, shift, unit)
            for name, law in laws.items()}


# --- all of them ----------------------------------------------------------------------------------------------------


def named(name, plan):
    return f"{name} {plan.own.label}" if name == "thiele" and plan.own.label else name


def measure(bench, plan, table, name):
    """By the name in the lines: figures."""
    if name == "constant":
        return {name: constant(table) | {"version": ""}}
    if name == "thiele":
        who = named(name, plan)
        return {who: thiele(bench, plan, table) | {"version": bench.version, "commit": bench.facts["commit"],
                                                   "program": str(bench.thiele), "options": plan.own.fit}}
    return ask(bench, plan, table, SIDES[name])


def applies(who, name):
    side, rows, classes = SIDES.get(who), default_tables.SIZES[name][0], name in default_tables.CLASSES
    return side is None or (rows <= side.rows and (side.classes or not classes))


def expected(tables=default_tables.NAMES, sides=EVERY):
    """By table: the names that a whole run has lines of."""
    return {name: [own for who in sides if applies(who, name) for own in (SIDES[who].names if who in SIDES else [who])]
            for name in tables}


def wanted(plan, kept, name, split, who):
    side = SIDES.get(who)
    cases = [{"table": name, "split": split, "side": own} for own in (side.names if side else [named(who, plan)])]
    return plan.own.again or any(kept.get(case) is None for case in cases)


def fit_all(bench, kept, plan):
    """The quick ones first (default_order.py)."""
    jobs = [(split, who, name) for split in plan.splits for who in plan.sides for name in plan.tables
            if applies(who, name) and wanted(plan, kept, name, split, who)]
    jobs = default_order.ordered(Kept.lines_of(plan.path()), plan.limit, jobs)
    print(f"{len(jobs)} fits, some {sum(jobs.values()) / 60:.0f} minutes", flush=True)
    for split, who, name in jobs:
        fit_one(bench, kept, plan, name, split, who)


def fit_one(bench, kept, plan, name, split, who):
    table = default_tables.load(bench, name, split, plan.validate)
    for own, figures in measure(bench, plan, table, who).items():
        peer = SIDES[who].peer if who in SIDES else who
        kept.add("fit", {"table": name, "split": split, "side": own}, peer, rows=len(table.train),
                 inputs=table.train.shape[1] - 1, threads=plan.threads, average=os.getloadavg()[0], **figures)


def present(bench, plan):
    """Without what has no data here, nor peers that are not installed."""
    missing = [name for name in plan.tables if not default_tables.available(bench, name)]
    missing += [name for name in plan.sides if name in SIDES and not installed(SIDES[name].peer)]
    if missing:
        print(f"left out, since there is no data or no environment for them: {', '.join(missing)}")
    plan.tables = [name for name in plan.tables if name not in missing]
    plan.sides = [name for name in plan.sides if name not in missing]


def run(bench):
    plan = Plan(bench)
    if not bench.arguments.check:
        present(bench, plan)
        kept = Kept(plan.path(), "default", bench.facts, bench.quick)
        fit_all(bench, kept, plan)
        kept.close()
    lines = [line for line in Kept.lines_of(plan.path()) if plan.has(line["case"])]
    return default_rules.report(lines, expected(), plan.validate)
