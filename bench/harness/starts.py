"""True ends: whether the default fit finds what twenty other starts find, on a hundred generated tables
(starts_tables.py).

The default fit has no first guesses. A start is the same command, its method by name so that bounds compare, with first
guesses drawn at random for length-scales, variances, noise and what else the likelihood learns; every fifth one has
--restarts and another --seed in their place. A start that takes longer than a minute, and than five times the default
fit, is interrupted and counts as what it has saved. A table is good when the best bound is at most 0.05 nats a row
above that of the default fit, and the task when 97 of 100 are; the others are listed with the command that did better.

    bench/run starts [--quick]           all tables, or ten; half an hour on two idle cores
    bench/run starts --numbers 3,17      some of them
    bench/run starts --check             what is there; nothing is fitted

Lines go to bench/results/starts.jsonl as tables end, and tables that are there are not fitted again; the tables
themselves stay in bench/cache/starts, for the commands that are listed.
"""

import json
import math
import os
import shlex
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from . import starts_tables
from .ladder_tables import CACHE
from .lines import Kept
from .sides import clocked

STARTS, MARGIN, SHARE, LONGEST, QUICK = 20, 0.05, 0.97, 60.0, 10
# Powers of ten that first guesses are drawn from, times what `unit` says.
RANGES = {"lengthscale": (-1.5, 1.5), "variance": (-1.5, 1.5), "noise": (-4.0, 0.3), "scale": (-2.5, 0.3),
          "beta": (-2.5, 0.3), "nu": (0.3, 1.5), "alpha": (-1.0, 1.0), "r": (-1.0, 1.5), "shape": (-1.0, 1.5),
          "precision": (0.0, 2.0)}
LOCATED = ("gaussian", "student-t", "laplace")  # whose parameters are in units of the target


def add_options(parser):
    group = parser.add_argument_group("starts")
    group.add_argument("--numbers", type=lambda text: [int(word) for word in text.split(",")], metavar="LIST",
                       help="of tables, 0 to 99 (default: all; --check is for starts too)")


def unit(kind, input_name, table):
    """What a parameter of this kind is measured in."""
    y = table.rows[:, -1]
    if kind == "lengthscale":
        column = int(input_name[1:]) - 1 if input_name else slice(None, -1)
        return float(np.mean(table.rows[:, column].std(axis=0)))
    if table.likelihood not in LOCATED:
        return 1.0
    return {"variance": float(y.var()), "noise": float(y.var()), "scale": float(y.std()),
            "beta": float(y.std())}.get(kind, 1.0)


def guesses(random, parameters, table):
    """name~value of all parameters that have a range."""
    out = []
    for parameter in parameters:
        name, _, input_name = parameter["name"].rstrip("]").partition("[")
        kind = name.rpartition(".")[2]
        if not parameter["fixed"] and kind in RANGES:
            value = unit(kind, input_name, table) * 10.0 ** random.uniform(*RANGES[kind])
            out.append(f"{parameter['name']}~{value:.6g}")
    return ", ".join(out)


def fit(bench, table, model, options, longest=None):
    """(the model's description or None, standard error). Interrupted after `longest` seconds."""
    words = [str(word) for word in (bench.thiele, "fit", table.path, "-o", model, "--json", "--quiet", "--threads", 1,
                                    *table.options(), *options)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        text, said = process.communicate(timeout=longest)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        text, said = process.communicate()
    try:
        return json.loads(text)["model"], said
    except (json.JSONDecodeError, KeyError):
        return None, said.strip()[-300:]


def bound_of(model):
    value = None if model is None else model.get("bound", model.get("log_marginal_likelihood"))
    return value if value is not None and math.isfinite(value) else -math.inf


def start_options(random, number, parameters, table):
    if number % 5 == 4:
        return ["--restarts", 4, "--seed", number]
    return ["--set", guesses(random, parameters, table)]


def command_of(table, options):
    return "thiele fit " + shlex.join(map(str, (table.path, *table.options(), *options)))


def measure(bench, number):
    """(case, figures) of a table."""
    table = starts_tables.make(number, CACHE / "starts")
    model = bench.scratch / f"starts-{number}.thiele"
    case = {"number": number}
    facts = {"likelihood": table.likelihood, "kernel": table.kernel, "rows": len(table.rows),
             "inputs": table.rows.shape[1] - 1, "level": table.level, "sparse": table.sparse}
    seconds, (first, said) = clocked(lambda: fit(bench, table, model, []))
    if first is None:
        return case, facts | {"failed": said}
    random, bounds, chosen = np.random.default_rng([15, number]), [], []
    for start in range(STARTS):
        options = ["--method", first["method"], *start_options(random, start, first["parameters"], table)]
        bounds.append(bound_of(fit(bench, table, model, options, max(LONGEST, 5.0 * seconds))[0]))
        chosen.append(options)
    best = int(np.argmax(bounds))
    gap = (bounds[best] - bound_of(first)) / len(table.rows)
    return case, facts | {"method": first["method"], "stop": first["stop"], "bound": bound_of(first),
                          "best": bounds[best], "gap": gap, "bounds": [b if math.isfinite(b) else None for b in bounds],
                          "default": command_of(table, []), "better": command_of(table, chosen[best])}


def report(lines):
    """The list of what is not good; whether enough is."""
    good = [line for line in lines if "failed" not in line and line["gap"] <= MARGIN]
    bad = sorted((line for line in lines if line not in good), key=lambda line: -line.get("gap", math.inf))
    for line in bad:
        about = (f"{line['case']['number']:>3} {line['likelihood']:<18} {line['kernel'] or 'default':<14} "
                 f"{line['rows']:>5} rows, {line['inputs']} inputs, noise {line['level']:.3f}")
        if "failed" in line:
            print(f"{about}: {line['failed']}")
            continue
        print(f"{about}: {line['method']}{', sparse' if line['sparse'] else ''}, {line['stop']} at "
              f"{line['bound']:.1f}, best {line['best']:.1f}, {line['gap']:.3f} nats a row\n    {line['better']}")
    passed = bool(lines) and len(good) >= SHARE * len(lines)
    print(f"{len(good)} of {len(lines)} tables within {MARGIN} nats a row: {'PASS' if passed else 'FAIL'}")
    return passed


def run(bench):
    path = Path(bench.out) / "starts.jsonl"
    numbers = bench.arguments.numbers or range(QUICK if bench.quick else starts_tables.COUNT)
    if not bench.arguments.check:
        kept = Kept(path, "starts", bench.facts, bench.quick)
        wanted = [number for number in numbers if kept.get({"number": number}) is None]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for done in as_completed([pool.submit(measure, bench, number) for number in wanted]):
                case, figures = done.result()
                kept.add("table", case, "thiele", version=bench.version, commit=bench.facts["commit"], **figures)
        kept.close()
    return report([line for line in Kept.lines_of(path) if line["case"]["number"] in numbers])
