#!/usr/bin/env python3
"""Two programs on the same tables: what a tighter bound of Gaussian noise does to predictions.

    bench/.venv/bin/python bench/tight_bound.py --old OTHER/thiele --new build/thiele [--tables boston,protein] [--splits 1,2]

--old is a build before sparse fits learned by the bounds of Titsias (arXiv 2502.08730) and of Bui, Ashman and Turner
(arXiv 2502.04750), --new one after; neither has a switch. Tables and splits are those of `bench/run default` for
regression, all but the largest. Fits, each with --inducing M, one kernel, one seed, one thread:

  collapsed    thiele fit --method collapsed
  dtc          thiele fit --method dtc
  stochastic   thiele fit --method variational --batch 512 --deadline SECONDS: minibatches, in the same time

Writes tight_bound.jsonl (resumed where it is) and tight_bound.txt. The last line is PASS or FAIL: for each method and M
no table's mean test NLPD may be worse than before by more than 0.01, and at least half of the tables must have a better
one. Times are of the processor.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import default_tables  # noqa: E402

BENCH = Path(__file__).resolve().parent
TABLES = (*default_tables.UCI, "boston", "creep", "abalone", "sarcos-y1", "sarcos-y4", "protein")
METHODS = {"collapsed": ["--method", "collapsed"], "dtc": ["--method", "dtc"],
           "stochastic": ["--method", "variational", "--batch", "512"]}
WORSE = 0.01
SCORES = {"rmse": "rmse", "nlpd": "nlpd", "coverage": "coverage90"}


def timed(words):
    """What a command says, and the seconds that it had the processor."""
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        said, wrong = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(wrong.decode())
    return said, usage.ru_utime + usage.ru_stime


def measure(program, table, method, inducing, deadline):
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.thiele"
        words = [program, "fit", table.paths[0], "--target", "y", "-o", model, *METHODS[method], "--inducing", inducing,
                 "--kernel", "matern52(ard)", "--threads", "1", "--quiet"]
        _, seconds = timed(words + (["--deadline", deadline] if method == "stochastic" else []))
        said, _ = timed([program, "score", model, table.paths[1], "--json", "--quiet", "--threads", "1"])
    scores = json.loads(said)
    return {name: scores[key] for name, key in SCORES.items()} | {"seconds": seconds}


def study(arguments, lines):
    """One line a fit; those that are there already are kept."""
    bench = SimpleNamespace(data=arguments.data, build=arguments.build)
    done = {tuple(line[key] for key in ("table", "split", "method", "inducing", "side")) for line in lines}
    with open(arguments.out / "tight_bound.jsonl", "a", encoding="utf-8") as file:
        for name in arguments.tables:
            for split in arguments.splits:
                table = default_tables.load(bench, name, split)
                for method in arguments.methods:
                    for inducing in arguments.inducing:
                        for side in ("old", "new"):
                            key = (name, split, method, inducing, side)
                            if key in done:
                                continue
                            found = measure(getattr(arguments, side), table, method, inducing, arguments.deadline)
                            lines.append(dict(zip(("table", "split", "method", "inducing", "side"), key)) | found)
                            file.write(json.dumps(lines[-1]) + "\n")
                            file.flush()


def means(lines, side):
    """Of the splits, by table, method and M."""
    out = {}
    for line in (line for line in lines if line["side"] == side):
        out.setdefault((line["method"], line["inducing"], line["table"]), []).append(line)
    return {key: {name: float(np.mean([one[name] for one in found])) for name in (*SCORES, "seconds")}
            for key, found in out.items()}


def report(lines):
    old, new = means(lines, "old"), means(lines, "new")
    row = "{:<11} {:>4} {:<13} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} {:>7}"
    text = [row.format("method", "M", "table", "RMSE old", "new", "NLPD old", "new", "change", "90% old", "new", "s old",
                       "new")]
    groups = {}
    for key in sorted(key for key in new if key in old):
        a, b = old[key], new[key]
        change = b["nlpd"] - a["nlpd"]
        groups.setdefault(key[:2], []).append(change)
        text.append(row.format(*key, f"{a['rmse']:.4g}", f"{b['rmse']:.4g}", f"{a['nlpd']:.3f}", f"{b['nlpd']:.3f}",
                               f"{change:+.3f}", f"{a['coverage']:.3f}", f"{b['coverage']:.3f}", f"{a['seconds']:.1f}",
                               f"{b['seconds']:.1f}"))
    good = True
    for (method, inducing), changes in groups.items():
        better, worst = sum(change < 0.0 for change in changes), max(changes)
        holds = 2 * better >= len(changes) and worst <= WORSE
        good = good and holds
        text.append(f"{method}, M = {inducing}: better on {better} of {len(changes)}, mean change "
                    f"{np.mean(changes):+.4f}, at worst {worst:+.4f}: {'holds' if holds else 'does not hold'}")
    return "\n".join([*text, "PASS" if good else "FAIL"]) + "\n", good


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    listed = lambda kind: lambda text: [kind(word) for word in text.split(",")]  # noqa: E731
    parser.add_argument("--old", required=True, type=Path)
    parser.add_argument("--new", required=True, type=Path)
    parser.add_argument("--tables", type=listed(str), default=list(TABLES))
    parser.add_argument("--splits", type=listed(int), default=[1, 2, 3])
    parser.add_argument("--methods", type=listed(str), default=list(METHODS))
    parser.add_argument("--inducing", type=listed(int), default=[100, 300])
    parser.add_argument("--deadline", type=float, default=10.0, help="of stochastic fits, seconds")
    parser.add_argument("--build", type=Path, default=BENCH.parent / "build", help="where bench-arm is")
    data = os.environ.get("THIELE_DATA", BENCH.parent.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(data), help="the folder of data sets (default: $THIELE_DATA)")
    parser.add_argument("--out", type=Path, default=BENCH / "results", help="default: bench/results")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    kept = arguments.out / "tight_bound.jsonl"
    lines = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()] if kept.exists() else []
    study(arguments, lines)
    text, good = report(lines)
    (arguments.out / "tight_bound.txt").write_text(text, encoding="utf-8")
    print(text, end="")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
