"""Task 5, the papers' tables: the studies that have scripts of their own, run through the same entry point.

Each writes its lines, tables (NAME.txt) and figures (NAME.png) under bench/results as it always does; bench/report
copies the tables into docs/results/papers.md.
"""

import subprocess
from dataclasses import dataclass

from .sides import BENCH, PeerError


@dataclass
class Study:
    what: str
    script: str
    minutes: float
    tables: tuple = ()  # files that it writes, and the report copies
    figures: tuple = ()
    peers: tuple = ()
    quick: tuple = ("--quick",)
    out: str = "--out"  # how it is told where to write; empty: it only prints, and that is kept
    folder: str = ""  # of its own under bench/results
    build: str = "--build"  # how it is told where the programs are; or --thiele, which program
    json: str = ""  # takes --json FILE, and needs it to leave anything behind
    environment: str = ".venv"
    more: tuple = ()  # further words

    def words(self, bench):
        program = bench.thiele if self.build == "--thiele" else bench.build
        words = [BENCH / self.environment / "bin" / "python", BENCH / self.script, self.build, program]
        if self.out:
            words += [self.out, bench.out / self.folder]
        if self.json:
            suffix = "_quick" if bench.quick else ""
            words += ["--json", bench.out / f"{self.json}{suffix}.jsonl"]
        return list(map(str, words + list(self.more) + (list(self.quick) if bench.quick else [])))

    def run(self, bench):
        """The text that it prints is kept where it writes no table itself."""
        with subprocess.Popen(self.words(bench), stdout=subprocess.PIPE, text=True) as process:
            said = []
            for line in process.stdout:
                print(line, end="", flush=True)
                said.append(line)
        if not self.out:
            name = f"{self.script.removesuffix('.py')}{'_quick' if bench.quick else ''}.txt"
            (bench.out / name).write_text("".join(said), encoding="utf-8")
        if process.returncode not in (0, 1):  # 1: a check did not hold, which the table says
            raise PeerError(f"{self.script} ended with status {process.returncode}")


QUICK_STEP = ("--shapes", "256:100", "--repetitions", "2", "--threads", "1")
QUICK_ADAM = ("--sets", "protein", "--budget", "4", "--deadlines", "1", "--rates", "0.01")
STUDIES = {
    "savigp-small": Study("SAVIGP, section 9.3: small sets, sparsity, mining", "savigp_small.py", 60,
                          ("savigp_small/table.md",), ("savigp_small/mining.png",), quick=("--quick", "cancer"),
                          out="--output", folder="savigp_small"),
    "savigp-medium": Study("SAVIGP, sections 9.4 and 9.5: MNIST, SARCOS, airline", "savigp_medium.py", 140,
                           ("medium.txt",), ("airline_epochs.png", "airline_bound.png"), build="--thiele"),
    "aaci-samplers": Study("AACI, table 2: samplers", "aaci_samplers.py", 40, ("aaci_samplers.txt",)),
    "aaci-gap": Study("AACI, figures 2 and 5: the gap of the augmented bound", "aaci_gap.py", 3, ("aaci_gap.txt",),
                      ("aaci_gap.png",)),
    "aaci-speed": Study("AACI, figure 3: time to a test NLPD", "aaci_speed.py", 280, ("aaci_speed.txt",),
                        ("aaci_speed.png",), ("gpytorch",), quick=("--quick", "protein-student-t")),
    "aaci-outliers": Study("outliers: Gaussian noise beside robust likelihoods", "aaci_outliers.py", 2,
                           ("aaci_outliers.txt",)),
    "anytime-figures": Study("anytime, figures 3 to 5: airline and a generated field", "anytime_figures.py", 95,
                             ("anytime_figures.txt",), ("anytime_airline.png", "anytime_field.png")),
    "anytime-deadline": Study("anytime: deadlines and kills", "anytime_deadline.py", 8, ("anytime_deadline.txt",)),
    "calibration": Study("coverage of 90% intervals after --calibrate, every method", "calibration.py", 20,
                         ("calibration.txt",)),
    "decoupled": Study("decoupled bases, tables 2 to 6 and figure 2", "decoupled_tables.py", 1440,
                       ("decoupled_tables.txt",), ("decoupled_tables.png",)),
    "decoupled-short": Study("decoupled bases beside SVI in 15 seconds of one thread", "decoupled_tables.py", 12,
                             ("decoupled_short/decoupled_tables.txt",), folder="decoupled_short",
                             more=("arm", "sarcos4449", "protein", "airline", "--methods", "own,equal", "--outputs",
                                   "1,4,7", "--airline-rows", 50000, "--deadline", 15, "--threads", 1, "--curve", 0)),
    "online": Study("models that go on learning", "online.py", 25, ("online.txt",), more=("--threads", 1)),
    "sklearn-exact": Study("exact regression: accuracy on real sets, speed", "sklearn_exact.py", 20,
                           ("sklearn_exact.txt",), peers=("sklearn",), out="", json="sklearn_exact"),
    "gpytorch-step": Study("one step, with the targets of speed", "gpytorch_step.py", 2, ("gpytorch_step.txt",),
                           peers=("gpytorch",), quick=QUICK_STEP, out="", json="gpytorch_step",
                           environment=".venv-peers"),
    "natural-vs-adam": Study("natural gradients beside Adam: protein, MNIST", "natural_vs_adam.py", 30,
                             ("natural_vs_adam.txt",), peers=("gpytorch",), quick=QUICK_ADAM, out="",
                             json="natural_vs_adam", environment=".venv-peers"),
}
