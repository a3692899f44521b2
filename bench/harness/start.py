"""Task 7, from the start of a process to the first prediction: `thiele predict MODEL ROW` beside a Python process that
imports a library, loads a saved model and predicts one row; the model of predict.py (M = 500; scikit-learn, which has
no sparse model, an exact one of 500 rows). Wall-clock from before the process is made until its first line of output.
One process goes before uncounted, so that files are in memory: a first start after booting takes longer for all.

GPyTorch loads a state_dict, GPflow the parameters of an SVGP (uncompiled: compiling takes longer than one prediction),
GPy the training rows and parameters, from which it computes the posterior again; scikit-learn a pickle.
"""

import subprocess
import time

import numpy as np

from . import predict
from .sides import PeerError, environment, installed, python_of, script_of

PEERS = ("gpytorch", "gpflow", "sklearn", "gpy")


def first_line(words, lines=1):
    """Seconds until so many lines have come."""
    begin = time.perf_counter()
    process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               env=environment(1))
    for _ in range(lines):
        text = process.stdout.readline()
    seconds = time.perf_counter() - begin
    process.stdout.read()
    if process.wait() != 0 or not text:
        raise PeerError(f"{words[0]} failed with status {process.returncode}")
    return seconds


def measure(bench, who, version, words, lines, repetitions):
    first_line(words, lines)
    bench.lines.add("start", {"what": "first prediction", "M": predict.M, "D": predict.D, "threads": 1}, who,
                    version=version, seconds=[first_line(words, lines) for _ in range(repetitions)])


def run(bench):
    scratch = bench.scratch
    predict.save_model(bench)
    row = np.zeros((1, predict.D))
    np.save(scratch / "row.npy", row)
    np.savetxt(scratch / "row.csv", row, delimiter=",", header=",".join(f"x{d + 1}" for d in range(predict.D)),
               comments="")
    measure(bench, "thiele", bench.version, [bench.thiele, "predict", scratch / "model.thiele", scratch / "row.csv"], 2,
            20)
    for name in filter(installed, PEERS):
        model = scratch / f"{name}.model"
        try:
            peer = bench.peer(name, 1)
            peer.ask("save", problem=scratch / "problem.npz", model=model)
            words = [python_of(name), script_of(name), "--start", model, scratch / "row.npy"]
            measure(bench, name, peer.version, words, 1, 2 if bench.quick else 5)
        except PeerError as error:
            bench.lines.add("start", {"what": "first prediction", "M": predict.M, "D": predict.D, "threads": 1}, name,
                            failed=str(error))
