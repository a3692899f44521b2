#!/usr/bin/env python3
"""Regression networks (gprn) against independent Gaussian processes, on joints of the SARCOS arm.

Both have the same seconds, kernel and method, and are told nothing else. Tables: all targets, and with half of one
joint's training targets hidden at random. Printed: the SMSE and NLPD of every joint by both, and the ratio of the SMSE,
which must be at most 1.02 everywhere and below 1 for the joint that is hidden.

    bench/gprn.py --data DIR [--joints 4,7] [--seconds 60] [--hide 7] [--validate] [--seeds 1]

--validate: a fifth of the training rows is predicted in place of the test rows, which is what settings are chosen by.
"""
import argparse
import csv
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INPUTS, MOST_RATIO = 21, 1.02


def read(path):
    with gzip.open(path, "rt", newline="") as f:
        rows = list(csv.reader(f))
    return rows[0], rows[1:]


def write(path, header, rows, joints, hidden=None, rng=None):
    keep = list(range(INPUTS)) + [header.index(f"y{j}") for j in joints]
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow([header[k] for k in keep])
        for row in rows:
            cells = [row[k] for k in keep]
            if hidden is not None and rng.random() < 0.5:
                cells[INPUTS + joints.index(hidden)] = ""
            out.writerow(cells)


def scores(args, folder, train, test, likelihood, seed):
    model = folder / "model.thiele"
    target = ",".join(f"y{j}" for j in args.joints)
    common = ["--json", "--quiet", "--threads", args.threads]
    subprocess.run([args.thiele, "fit", train, "--target", target, "--likelihood", likelihood, "--deadline", args.seconds,
                    "--seed", str(seed), "-o", model, *common], check=True, capture_output=True)
    said = subprocess.run([args.thiele, "score", model, test, *common], check=True, capture_output=True, text=True)
    return {j: json.loads(said.stdout)[f"y{j}"] for j in args.joints}


def compare(args, folder, name, train, test, seed, hidden):
    alone = scores(args, folder, train, test, "gaussian", seed)
    network = scores(args, folder, train, test, "gprn", seed)
    good = True
    for j in args.joints:
        ratio = network[j]["smse"] / alone[j]["smse"]
        fine = ratio <= MOST_RATIO and (j != hidden or ratio < 1)
        good = good and fine
        print(f"{name:12} seed {seed} joint {j}: SMSE {alone[j]['smse']:.5f} and {network[j]['smse']:.5f}, ratio {ratio:.3f}; "
              f"NLPD {alone[j]['nlpd']:.3f} and {network[j]['nlpd']:.3f}{'' if fine else '  MISSED'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thiele", default=ROOT / "build/thiele")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="the folder that has sarcos4449")
    parser.add_argument("--joints", default="4,7")
    parser.add_argument("--hide", type=int, default=7)
    parser.add_argument("--seconds", default="60")
    parser.add_argument("--threads", default="0")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--validate", action="store_true")
    args = parser.parse_args()
    args.joints = [int(j) for j in args.joints.split(",")]
    header, train = read(args.data / "sarcos4449/train.csv.gz")
    test = read(args.data / "sarcos4449/test.csv.gz")[1]
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for seed in range(args.seeds):
            rng = random.Random(seed)
            if args.validate:
                rng.shuffle(train)
                test, rows = train[:len(train) // 5], train[len(train) // 5:]
            else:
                rows = train
            write(folder / "test.csv", header, test, args.joints)
            write(folder / "all.csv", header, rows, args.joints)
            write(folder / "hidden.csv", header, rows, args.joints, args.hide, rng)
            good = compare(args, folder, "all targets", folder / "all.csv", folder / "test.csv", seed, None) and good
            good = compare(args, folder, "half hidden", folder / "hidden.csv", folder / "test.csv", seed, args.hide) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
