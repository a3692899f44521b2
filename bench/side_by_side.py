#!/usr/bin/env python3
"""
side_by_side.py [--write]: a regression and a classification, each in thiele, scikit-learn, GPyTorch and GPflow: the
programs of bench/side_by_side, each in the environment that has the peer (bench/setup-peers), in a process
of its own. Prints lines of code, seconds of processor from the data to predictions, and the negative log predictive
density of held-out rows. --write puts docs/side-by-side.md together from the programs and these figures, which takes
all four. Usage, with the package on the path (absolute, as PYTHONPATH has it):
    bench/side_by_side.py [--write]
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BENCH = Path(__file__).resolve().parent
PROGRAMS = BENCH / "side_by_side"
PAGE = BENCH.parent / "docs" / "side-by-side.md"
PEERS = {  # title, module, environment of bench; None: this interpreter
    "thiele": ("thiele", "thiele", None),
    "scikit_learn": ("scikit-learn", "sklearn", ".venv"),
    "gpytorch_": ("GPyTorch", "gpytorch", ".venv-peers"),
    "gpflow_": ("GPflow", "gpflow", ".venv-gpflow"),
}
# Training rows, held-out rows, and what the page says of the task.
TASKS = {
    "regression": (
        500,
        500,
        "Friedman's function of five of eight inputs, noise of standard deviation 1. An exact Gaussian process with "
        "a squared exponential with\na length-scale per input; predictions are of observations, noise included.",
    ),
    "classification": (
        200,
        500,
        "Two classes inside and outside a ring of two inputs, a third that does nothing, one label of twenty wrong. "
        "The same kernel;\neach library's own way to two classes: scikit-learn has Laplace's approximation, the others "
        "a bound.",
    ),
}
# Imports first, so that they are not in the time.
RUNNER = """
import json, re, sys, time, warnings
warnings.simplefilter("ignore")
text = open(sys.argv[1]).read()
for line in re.findall(r"^(?:import|from) .*$", text, re.M):
    exec(line)
import numpy as np
start, names = time.process_time(), {}
exec(compile(text, sys.argv[1], "exec"), names)
seconds = time.process_time() - start
y = np.load("test.npy")[:, -1]
if "probability" in names:
    p = names["probability"]
    nlpd = -np.mean(np.log(np.where(y == 1.0, p, 1.0 - p)))
    error = np.mean((p > 0.5) != (y == 1.0))
else:
    mean, variance = names["mean"], names["variance"]
    nlpd = np.mean(0.5 * np.log(2.0 * np.pi * variance) + 0.5 * (y - mean) ** 2 / variance)
    error = np.sqrt(np.mean((y - mean) ** 2))
print(json.dumps({"seconds": seconds, "nlpd": float(nlpd), "error": float(error)}))
"""


def make_regression(rows):
    import numpy as np

    rng = np.random.default_rng(1)
    x = rng.uniform(0.0, 1.0, (rows, 8))
    f = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20.0 * (x[:, 2] - 0.5) ** 2 + 10.0 * x[:, 3] + 5.0 * x[:, 4]
    return np.column_stack([x, f + rng.standard_normal(rows)])


def make_classification(rows):
    import numpy as np

    rng = np.random.default_rng(2)
    x = rng.uniform(-1.0, 1.0, (rows, 3))
    inside = np.hypot(x[:, 0], x[:, 1]) < 0.75
    return np.column_stack([x, inside ^ (rng.uniform(size=rows) < 0.05)])


def make_data(task, folder, train=None, test=None):
    """train.npy and test.npy, whose last column is the target; as many rows as the task has, or fewer."""
    import numpy as np

    train, test = train or TASKS[task][0], test or TASKS[task][1]
    table = {"regression": make_regression, "classification": make_classification}[task](train + test)
    np.save(Path(folder) / "train.npy", table[:train])
    np.save(Path(folder) / "test.npy", table[train:])


def interpreter(name):
    """The Python that has a peer, its environment's or this one, or None."""
    _, module, environment = PEERS[name]
    python = BENCH / environment / "bin" / "python" if environment else None
    check = f"import importlib.util as u; assert u.find_spec('{module}')"
    if python and python.exists() and subprocess.run([python, "-c", check], capture_output=True).returncode == 0:
        return python
    return sys.executable if importlib.util.find_spec(module) else None


def run(task, name, folder):
    """What one program reached, or None where its peer is not installed."""
    python = interpreter(name)
    if python is None:
        return None
    single = ("OMP", "MKL", "OPENBLAS")
    settings = {f"{library}_NUM_THREADS": "1" for library in single}
    settings |= {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    settings |= {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [python, "-c", RUNNER, str(PROGRAMS / task / f"{name}.py")],
        cwd=folder,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{task} by {name}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def lines(task, name):
    """Lines that are neither empty nor comments."""
    text = (PROGRAMS / task / f"{name}.py").read_text().splitlines()
    return sum(1 for line in text if line.strip() and not line.strip().startswith("#"))


def compare(task):
    """The table of a task, as lines, and whether it has every peer."""
    error = "RMSE" if task == "regression" else "error"
    table, complete = [f"| library | lines | seconds | NLPD | {error} |", "|---|--:|--:|--:|--:|"], True
    print("\n".join(table), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        make_data(task, folder)
        for name, (title, _, _) in PEERS.items():
            made = run(task, name, folder)
            if made is None:
                print(f"{title} is not installed: bench/setup-peers", file=sys.stderr)
                complete = False
                continue
            numbers = f"{made['seconds']:.2f} | {made['nlpd']:.3f} | {made['error']:.3f}"
            table.append(f"| {title} | {lines(task, name)} | {numbers} |")
            print(table[-1], flush=True)
    return table, complete


def page(tables):
    parts = [
        "# Side by side\n",
        "A regression and a classification in four libraries. Each program is what its library's introduction would "
        "have one write; a test runs all of them.\nLines count code without empty ones. Seconds are those of "
        "processors, all threads added up, from the data to predictions, without imports, in one run. GPyTorch takes "
        "the 200 steps of\nAdam "
        "that its program says, which do not reach the end in the regression; the others stop by themselves. NLPD is "
        "the mean negative log predictive density of\nthe held-out rows, lower being better. Written by "
        "`bench/side_by_side.py --write`.\n",
    ]
    for task, table in tables.items():
        train, test, text = TASKS[task]
        parts += [f"## {task.capitalize()}\n", f"{train} rows to learn from, {test} held out. {text}\n"]
        parts += ["\n".join(table) + "\n"]
        for name, (title, _, _) in PEERS.items():
            program = (PROGRAMS / task / f"{name}.py").read_text().rstrip()
            parts += [f"### {title}, {task}\n", f"```python\n{program}\n```\n"]
    return "\n".join(parts)


def main():
    tables, complete = {}, True
    for task in TASKS:
        tables[task], every = compare(task)
        complete = complete and every
    if "--write" in sys.argv and not complete:
        sys.exit("side_by_side.py: the page is written when all four are installed")
    if "--write" in sys.argv:
        PAGE.write_text(page(tables))


if __name__ == "__main__":
    main()
