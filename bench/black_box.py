#!/usr/bin/env python3
"""Likelihoods from their log densities alone, against the same models in closed form or by quadrature.

Heteroscedastic noise, regression networks of two nodes with 2, 4 and 7 outputs and softmax with 3 and 10 classes exist
in closed form; bench/plugins has them as plug-ins, which the library knows nothing about. Both are fitted to the same
generated tables with the same settings, by mc: and qmc:, with several seeds. The product y1 = f0 f1 + e, y2 = f0 f2 + e
(tests/cli/false_ends) is compared with quadrature. Printed: the bound and the NLPD of test rows, less those of
the other way (nats a row), and the ratio of the times of the fits.

    bench/black_box.py [--seeds 5] [--cases network4,softmax10] [--expectations mc:500,qmc:512] [--method variational]
    bench/black_box.py --airline 700000
"""
import argparse
import csv
import json
import math
import pathlib
import random
import resource
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def draw_function(rng, inputs, length):
    """A draw of a Gaussian process with a squared-exponential kernel, by random Fourier features."""
    waves = [([rng.gauss(0, 1 / length) for _ in range(inputs)], rng.uniform(0, 2 * math.pi)) for _ in range(200)]
    return lambda x: 0.1 * sum(math.cos(p + sum(a * b for a, b in zip(w, x))) for w, p in waves)


def heteroscedastic(rng, x):
    f, s = draw_function(rng, 2, 1.0), draw_function(rng, 2, 2.0)
    return [[f(r) + math.exp(0.5 * (s(r) - 2)) * rng.gauss(0, 1)] for r in x]


def network(outputs):
    def table(rng, x):
        nodes = [draw_function(rng, 2, 1.0) for _ in range(2)]
        weights = [[draw_function(rng, 2, 3.0) for _ in range(2)] for _ in range(outputs)]
        rows = []
        for r in x:
            f = [g(r) for g in nodes]
            rows.append([sum((1 + 0.5 * w(r)) * v for w, v in zip(of, f)) + 0.2 * rng.gauss(0, 1) for of in weights])
        return rows
    return table


def softmax(classes):
    def table(rng, x):
        f = [draw_function(rng, 2, 1.5) for _ in range(classes)]
        return [["abcdefghij"[max(range(classes), key=lambda c: 2 * f[c](r) - math.log(rng.expovariate(1)))]] for r in x]
    return table


# name: table, targets, built-in, source of the plug-in, its definitions, options
CASES = {
    "heteroscedastic": (heteroscedastic, 1, "heteroscedastic", "heteroscedastic", "", []),
    "network2": (network(2), 2, "gprn(nodes=2, noise~0.1)", "network", "-DOUTPUTS=2", []),
    "network4": (network(4), 4, "gprn(nodes=2, noise~0.1)", "network", "-DOUTPUTS=4", []),
    "network7": (network(7), 7, "gprn(nodes=2, noise~0.1)", "network", "-DOUTPUTS=7", []),
    "softmax3": (softmax(3), 1, "softmax", "softmax", "-DCLASSES=3", ["--mean", "zero"]),
    "softmax10": (softmax(10), 1, "softmax", "softmax", "-DCLASSES=10", ["--mean", "zero"]),
}


def write(path, header, rows):
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(header)
        out.writerows(rows)


def make_table(folder, name, rows, seed):
    rng = random.Random(f"{name} {seed}")
    x = [[rng.uniform(-3, 3), rng.uniform(-3, 3)] for _ in range(2 * rows)]
    y = CASES[name][0](rng, x)
    header = ["a", "b"] + [f"y{i + 1}" for i in range(CASES[name][1])]
    both = [r + s for r, s in zip(x, y)]
    write(folder / "train.csv", header, both[:rows])
    write(folder / "test.csv", header, both[rows:])
    return ",".join(header[2:])


def compile_plugin(folder, source, definitions, first):
    out = folder / f"{pathlib.Path(source).stem}{definitions}{'-1' if first else ''}.so"
    subprocess.run(["cc", "-std=gnu11", "-O3", "-march=native", "-shared", "-fPIC", "-I", ROOT / "include", *definitions.split(),
                    *(["-DVERSION_1"] if first else []), source, "-o", out, "-lm"], check=True)
    return f"plugin:{out}"


def thiele(args, *rest):
    """The JSON that a command prints, and the seconds of the processor that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([args.thiele, *map(str, rest), "--json", "--quiet"], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode != 0:
        raise SystemExit(" ".join(map(str, rest)) + "\n" + run.stderr)
    return json.loads(run.stdout), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def fit(args, folder, targets, likelihood, seed, extra):
    model = folder / "model.thiele"
    started = time.perf_counter()
    said, seconds = thiele(args, "fit", folder / "train.csv", "--target", targets, "--likelihood", likelihood, "-o", model,
                           "--seed", seed, "--raw", "--kernel", args.kernel, "--method", args.method, *args.option, *extra)
    seconds = time.perf_counter() - started if args.wall else seconds
    plugin = ["--likelihood", likelihood] if likelihood.startswith("plugin:") else []
    scores, scoring = thiele(args, "score", model, folder / "test.csv", *plugin)
    return find(said, "bound"), find(scores, "nlpd", "nlp"), seconds, scoring


def find(tree, *keys):
    """The first number under one of the keys, anywhere in a JSON document."""
    if isinstance(tree, dict):
        for key in keys:
            if isinstance(tree.get(key), (int, float)):
                return tree[key]
        tree = list(tree.values())
    for branch in tree if isinstance(tree, list) else []:
        found = find(branch, *keys)
        if found is not None:
            return found
    return None


def compare(args, folder, name):
    _, outputs, builtin, source, definitions, extra = CASES[name]
    plugin = compile_plugin(folder, ROOT / f"bench/plugins/{source}.c", definitions, args.version_1)
    for seed in range(1, args.seeds + 1):
        targets = make_table(folder, name, args.rows, seed)
        own = ["--categorical", "y1"] if name.startswith("softmax") else []
        bound, nlpd, seconds, scoring = fit(args, folder, targets, builtin, seed, extra)
        line = f"{name:16} seed {seed}  closed {bound / args.rows:8.4f} {nlpd:8.4f} {seconds:6.2f} s score {scoring:5.2f}"
        for how in args.expectations.split(","):
            b, s, t, c = fit(args, folder, targets, plugin, seed, [*extra, "--expectation", how])
            line += f" | {how} {(b - bound) / args.rows:+.4f} {s - nlpd:+.4f} x{t / seconds:.2f} score {c:5.2f}"
        print(line, flush=True)


def product(args, folder):
    tools = ROOT / "tests/cli/false_ends"
    subprocess.run(["cc", "-std=gnu11", "-O2", tools / "generate.c", "-o", folder / "generate", "-lm"], check=True)
    plugin = compile_plugin(folder, tools / "product.c", "", False)
    for seed in range(1, args.seeds + 1):
        with open(folder / "train.csv", "w") as f:
            subprocess.run([folder / "generate", "product", str(seed)], stdout=f, check=True)
        (folder / "test.csv").write_text((folder / "train.csv").read_text())
        best, line = None, f"product          seed {seed} "
        for how in ["quadrature", *args.expectations.split(",")]:
            b, s, t, c = fit(args, folder, "y1,y2", plugin, seed, ["--expectation", how])
            best = b if best is None else best
            line += f" | {how} {b:.2f} ({(b - best) / 300:+.4f} a row) {t:.1f} s score {c:.2f}"
        print(line, flush=True)


def airline(args, folder):
    """Late flights, or their number, of eight inputs: mc beside quadrature, the same passes over the rows."""
    rng = random.Random(1)
    header = ["month", "day", "weekday", "distance", "air", "departure", "arrival", "age", "late", "count"]
    with open(folder / "train.csv", "w", newline="") as out:
        lines = csv.writer(out)
        lines.writerow(header)
        for _ in range(args.airline):
            x = [rng.gauss(0, 1) for _ in range(8)]
            rate = math.exp(0.5 * math.sin(x[0]) * math.cos(x[3]) + 0.3 * x[5])
            late = 1 if rng.random() < rate / (1 + rate) else -1
            count, p = 0, rng.random() - math.exp(-rate)
            term = math.exp(-rate)
            while p > 0:
                count += 1
                term *= rate / count
                p -= term
            lines.writerow([f"{v:.5g}" for v in x] + [late, count])
    for target, likelihood in (("late", "bernoulli"), ("count", "poisson")):
        first = None
        for how in ["quadrature", *args.expectations.split(",")]:
            other = "count" if target == "late" else "late"
            said, seconds = thiele(args, "fit", folder / "train.csv", "--target", target, "--ignore", other, "--likelihood",
                                   likelihood, "-o", folder / "model.thiele", "--method", args.method, "--expectation", how,
                                   "--inducing", 200, "--epochs", 2, "--kernel", args.kernel)
            first = first or seconds
            print(f"airline {likelihood:10} {how:12} {find(said, 'bound') / args.airline:.4f} a row, {seconds:.1f} s of the "
                  f"processor, x{seconds / first:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thiele", default=ROOT / "build/thiele")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--cases", default=",".join([*CASES, "product"]))
    parser.add_argument("--expectations", default="mc:500,qmc:512")
    parser.add_argument("--method", default="variational")
    parser.add_argument("--kernel", default="se")
    parser.add_argument("--option", action="append", default=[], help="a further option of fit; may be repeated")
    parser.add_argument("--version-1", action="store_true", help="plug-ins of the first version of the interface")
    parser.add_argument("--wall", action="store_true", help="time by the clock, not of the processor")
    parser.add_argument("--airline", type=int, default=0, metavar="ROWS")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if args.airline > 0:
            airline(args, folder)
            return
        for case in args.cases.split(","):
            product(args, folder) if case == "product" else compare(args, folder, case)


if __name__ == "__main__":
    main()
