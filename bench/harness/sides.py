"""The two sides of a comparison: peers as processes that answer (bench/peers), and thiele's bench-peer and command.

What is fair: every peer runs in its own environment with the same number of threads, told before its libraries are
loaded; repetitions of all sides alternate, each of as many calls as take BLOCK seconds, so that what slows the machine
down for a while slows all of them; warm-up calls are not counted; and a peer whose numbers differ from thiele's by more
than TOLERANCE of the largest of their kind is not timed at all.
"""

import json
import os
import subprocess
import sys
import time

import numpy as np

from .machine import ROOT

TOLERANCE = 1e-6
BLOCK = 0.4
BENCH = ROOT / "bench"
# By name: the environment that has it.
PEERS = {"gpytorch": ".venv-peers", "sklearn": ".venv-peers", "gpflow": ".venv-gpflow", "gpboost": ".venv-gpboost",
         "lightgbm": ".venv-gpboost", "gpy": ".venv-gpy"}
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
                    "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


class PeerError(Exception):
    """What a peer could not do, in its words."""


def python_of(name):
    return BENCH / PEERS[name] / "bin" / "python"


def script_of(name):
    return BENCH / "peers" / f"peer_{name}.py"


def installed(name):
    return python_of(name).exists()


def environment(threads):
    return os.environ | {name: str(threads) for name in THREAD_VARIABLES}


class Peer:
    """A running peer: ask waits for the answer to a question with these fields."""

    def __init__(self, name, threads):
        self.name = name
        self.process = subprocess.Popen([python_of(name), script_of(name)], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(threads))
        hello = self.ask("hello", threads=threads)
        self.version = f"{hello['version']} on {hello['on']}"

    def ask(self, question, /, **fields):
        try:
            self.process.stdin.write(json.dumps({"ask": question} | {k: portable(v) for k, v in fields.items()}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise PeerError(f"{self.name} has ended") from error
        line = self.process.stdout.readline()
        if not line:
            raise PeerError(f"{self.name} ended with status {self.process.wait()} when asked for {question}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def steps(self, n):
        return self.ask("steps", n=n)["seconds"]

    def evaluations(self, n):
        return self.ask("evaluations", n=n)["seconds"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def portable(value):
    return str(value) if hasattr(value, "__fspath__") else value


class Own:
    """A running bench-peer: one question a line, one number as the answer."""

    def __init__(self, build, threads, **fields):
        program = build / "bench-peer"
        words = [f"{name}={value}" for name, value in fields.items() if value is not None]
        try:
            self.process = subprocess.Popen([str(program), f"threads={threads}", *words], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
        except OSError as error:
            sys.exit(f"{program}: {error.strerror}; build it first")
        if self.process.stdout.readline().strip() != "ready":
            raise PeerError(f"bench-peer {' '.join(words)} failed")

    def ask(self, question, n=1):
        self.process.stdin.write(f"{question} {n}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def steps(self, n):
        return self.ask("step", n)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def command(*words, **options):
    """Standard output of a program; PeerError with its sentence when it fails."""
    words = list(map(str, words))
    try:
        done = subprocess.run(words, capture_output=True, text=True, **options)
    except OSError as error:
        sys.exit(f"{words[0]}: {error.strerror}; build it first")
    if done.returncode != 0:
        raise PeerError(f"{' '.join(words)}: {done.stderr.strip()[-300:]}")
    return done.stdout


# --- agreement ----------------------------------------------------------------------------------------------------


def differences(own, peer):
    """By name, relative to the largest number of the kind; what only one side has is left out."""
    found = {}
    for name in own.keys() & peer.keys():
        ours, theirs = np.ravel(own[name]), np.ravel(peer[name])
        if ours.shape != theirs.shape:
            raise PeerError(f"{name} has {theirs.size} numbers in place of {ours.size}")
        if ours.size:
            found[name] = float(np.max(np.abs(ours - theirs)) / max(np.max(np.abs(theirs)), 1e-300))
    return dict(sorted(found.items()))


def refusal(agreement):
    """None when the numbers are the same, else why no time is taken."""
    worst = max(agreement, key=agreement.get)
    if not agreement[worst] <= TOLERANCE:
        return f"not timed: its {worst} differs by {agreement[worst]:.1e}"
    return None


def read_parts(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


# --- time ---------------------------------------------------------------------------------------------------------


def count_for(work, block):
    """Warms up; how many calls take about so many seconds."""
    first = work(1)
    if first > 2.0 * block:
        return 1
    work(2)
    return max(1, round(block / (work(3) / 3)))


def in_turns(works, repetitions, block=BLOCK):
    """works: by name, a function of n that gives the seconds of n calls. Seconds a call, by name, of each turn."""
    counts = {name: count_for(work, block) for name, work in works.items()}
    times = {name: [] for name in works}
    for _ in range(repetitions):
        for name, work in works.items():
            times[name].append(work(counts[name]) / counts[name])
    return times


def peak_memory(pid):
    """The most bytes that a running process has held; None when it has ended. Not by getrusage: its maximum is
    inherited from the process that started it."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            return next((1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM")), None)
    except OSError:
        return None


def clocked(work):
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result
