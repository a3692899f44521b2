"""The ladder: what a deadline of 2, 5, 10, 20, 40 and 80 s gives, by method, on four tables (ladder_tables.py).

Each fit is the command of a newcomer, with a method and --deadline added; a line of bench/results/ladder.jsonl has the
seconds of the whole command, what the fit says it ended by, and how its model does on fresh rows: NLPD beside that of
the constant predictor, coverage of 90% intervals, SMSE; of classes NLP and error. One thread; `busy` keeps all other
cores spinning meanwhile. Lines come as the fits end; what is there is not fitted again. A fit that ends by convergence
before its time has one of twice the length beside it, above the ladder's end too.

    bench/run ladder --tables arm --methods auto,pic --deadlines 2,5,10 --seeds 0 --load idle
    bench/run ladder --check             rules (ladder_rules.py) on what is there; nothing is fitted

All of it takes ten hours. `--threads 2` fits with two (what `busy` then means is less clear).
"""

import json
import math
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from . import ladder_rules, ladder_tables
from .lines import Kept
from .sides import clocked

DEADLINES = (2, 5, 10, 20, 40, 80)
REGRESSION = {"auto": [], "pic-anytime": ["--method", "pic", "--anytime"],
              **{name: ["--method", name] for name in ("collapsed", "variational", "sor", "dtc", "fitc", "pitc", "pic",
                                                       "decoupled", "incremental")}}
CLASSES = {"auto": [], **{name: ["--method", name] for name in ("variational", "augmented", "decoupled")}}
QUICK = {"methods": ("auto", "variational", "pic"), "deadlines": (2, 5), "seeds": (0,), "load": "idle"}


def words(text):
    return tuple(text.split(","))


def numbers(text):
    return tuple(int(word) if float(word).is_integer() else float(word) for word in text.split(","))


def add_options(parser):
    group = parser.add_argument_group("ladder", "--tables and --check are for other tasks too")
    group.add_argument("--tables", type=words, metavar="NAMES", help=f"of {','.join(ladder_tables.MAKERS)}")
    group.add_argument("--methods", type=words, metavar="NAMES",
                       help=f"of {','.join(dict.fromkeys([*REGRESSION, *CLASSES]))}")
    group.add_argument("--deadlines", type=numbers, metavar="SECONDS", help="default: 2,5,10,20,40,80")
    group.add_argument("--seeds", type=numbers, metavar="NUMBERS", help="default: 0,1,2")
    group.add_argument("--load", choices=("idle", "busy", "both"), help="other cores (default: both)")
    group.add_argument("--check", action="store_true", help="only apply the rules to the lines that are there")


class Plan:
    """What is asked for: options, those of a quick run, or everything."""

    def __init__(self, bench):
        every = {"methods": tuple(dict.fromkeys([*REGRESSION, *CLASSES])), "deadlines": DEADLINES, "seeds": (0, 1, 2),
                 "load": "both", "tables": tuple(ladder_tables.MAKERS)}
        for name, value in (every | QUICK if bench.quick else every).items():
            setattr(self, name, getattr(bench.arguments, name) or value)
        self.loads = ("idle", "busy") if self.load == "both" else (self.load,)
        self.threads = bench.threads[0]
        unknown = [name for name in self.tables if name not in ladder_tables.MAKERS]
        unknown += [name for name in self.methods if name not in every["methods"]]
        if unknown:
            sys.exit(f"the ladder has no {', '.join(unknown)}")

    def has(self, case):
        return (case["table"] in self.tables and case["method"] in self.methods and case["seed"] in self.seeds and
                case["load"] in self.loads and case["threads"] == self.threads)


@contextmanager
def others(load):
    """busy: a loop for each core but one."""
    count = os.cpu_count() - 1 if load == "busy" else 0
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def ran(thiele, *arguments, limit=None):
    """(standard output or None, standard error) of the command."""
    done = subprocess.run([str(word) for word in (thiele, *arguments)], capture_output=True, text=True, timeout=limit)
    return done.stdout if done.returncode == 0 else None, done.stderr.strip()


def finite(value):
    """NLPD and such: what is no number counts as the worst."""
    return value if value is not None and math.isfinite(value) else 1e300


def scores(bench, table, model):
    text, said = ran(bench.thiele, "score", model, table.test, "--json", "--quiet")
    if text is None:
        return {"failed": f"score: {said[-300:]}"}
    found = json.loads(text)
    if table.classes:
        return {"nlp": finite(found["nlp"]), "error": finite(found["error_rate"])}
    return {"nlpd": finite(found["nlpd"]), "coverage": found["coverage90"], "smse": finite(found["smse"])}


def measure(bench, table, case):
    """Figures of one fit."""
    model = bench.scratch / "ladder.thiele"
    model.unlink(missing_ok=True)
    options = (CLASSES if table.classes else REGRESSION)[case["method"]]
    with others(case["load"]):
        seconds, (text, said) = clocked(lambda: ran(
            bench.thiele, "fit", table.train, "-o", model, "--json", "--threads", case["threads"], "--seed",
            case["seed"], "--deadline", case["deadline"], *table.options(), *options))
    figures = {"seconds": seconds, "constant": table.constant, "average": os.getloadavg()[0], "said": said[-500:]}
    if text is None:
        return figures | {"failed": said[-300:] or "no reason given"}
    fitted = json.loads(text)["model"]
    figures |= {"stop": fitted["stop"], "chosen": fitted["method"], "iterations": fitted["iterations"],
                "noise": fitted.get("noise"), "bound": fitted.get("bound", fitted.get("log_marginal_likelihood"))}
    return figures | scores(bench, table, model)


def fit(bench, kept, table, case):
    """The line of a case, measured unless it is there."""
    return kept.get(case) or kept.add("fit", case, "thiele", version=bench.version, commit=bench.facts["commit"],
                                      program=str(bench.thiele), **measure(bench, table, case))


def fit_ladder(bench, kept, plan, table, case):
    """All deadlines, and one of twice the length for those that converged early."""
    lines = [fit(bench, kept, table, case | {"deadline": deadline}) for deadline in sorted(plan.deadlines)]
    for line in list(lines):
        if ladder_rules.converged_early(line) and ladder_rules.longer(line, lines) is None:
            lines.append(fit(bench, kept, table, case | {"deadline": 2 * line["case"]["deadline"]}))


def fit_all(bench, kept, plan):
    tables = {}
    for name in plan.tables:
        if ladder_tables.available(bench, name):
            tables[name] = ladder_tables.load(bench, name)
        else:
            print(f"{name} is left out: there is no data for it in {bench.data}")
    for seed in plan.seeds:
        for load in plan.loads:
            for table in tables.values():
                for method in CLASSES if table.classes else REGRESSION:
                    if method in plan.methods:
                        fit_ladder(bench, kept, plan, table, {"table": table.name, "method": method, "seed": seed,
                                                              "load": load, "threads": plan.threads})


def run(bench):
    plan = Plan(bench)
    path = Path(bench.out) / "ladder.jsonl"
    if not bench.arguments.check:
        kept = Kept(path, "ladder", bench.facts, bench.quick)
        fit_all(bench, kept, plan)
        kept.close()
    lines = [line for line in Kept.lines_of(path) if plan.has(line["case"])]
    return ladder_rules.report(lines, sorted(plan.deadlines))
