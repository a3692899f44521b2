#!/usr/bin/env python3
"""Figure 1 of Cheng and Boots (2017) from the example program sinc_decoupled: a small shared basis, decoupled bases and
a large shared one on 500 noisy rows of sinc. Runs the example and draws sinc_decoupled.png.

    cmake --build build --target example-sinc_decoupled
    bench/.venv/bin/python bench/sinc_decoupled.py
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from aaci_common import pyplot
from medium_common import ROOT, read_csv

TITLES = {"small": "one basis of 7", "decoupled": "100 for the mean, 7 for the covariance", "large": "one basis of 100"}


def draw(rows, curves, path):
    """Sinc in red, rows as circles, means in black with bands of two standard deviations."""
    plot = pyplot()
    figure, axes = plot.subplots(1, len(TITLES), figsize=(13, 3.6), sharey=True)
    for axis, (name, title) in zip(axes, TITLES.items()):
        mean, sd = curves[f"mean.{name}"], curves[f"sd.{name}"]
        axis.fill_between(curves["x"], mean - 2.0 * sd, mean + 2.0 * sd, color="0.8")
        axis.plot(rows["x"], rows["y"], "o", ms=3, mfc="none", mec="tab:blue", mew=0.5, alpha=0.6)
        axis.plot(curves["x"], curves["sinc"], color="tab:red", lw=1.5)
        axis.plot(curves["x"], mean, color="black", lw=1)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("x")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="where the programs are")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results", help="folder of the figure")
    arguments = parser.parse_args()
    program = arguments.build.resolve() / "examples" / "example-sinc_decoupled"
    if not program.exists():
        sys.exit(f"there is no {program}: build it first")
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, folder], check=True)
        rows, curves = (read_csv(Path(folder) / name) for name in ("sinc_rows.csv", "sinc_curves.csv"))
    draw(rows, curves, arguments.out / "sinc_decoupled.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
