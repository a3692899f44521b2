"""Task 4, prediction from one and the same model: M = 500 inducing inputs, D = 8, Matern-5/2 kernel with a length-scale
per input, Gaussian noise, everything fixed; q is the optimum at these numbers (Titsias), which thiele and GPy find by
themselves and the others are given. Mean and variance at 200 new rows must be the same to 1e-6 first.

One row at a time, the mean alone and mean with variance; then a million rows with variance by chunks, the best of the
sizes of chunks for each peer (those that get slow end after BUDGET seconds and are counted by the rows done). Warm:
what a library computes once for a model and keeps is not counted. Latencies are on one thread; sides are measured one
after the other. Peers go through Python, as their users do; thiele is bench-predict, the C API, on a model of the same
sizes and kernel with other numbers, which change nothing about its time. Memory is the most that the process held.
"""

import json
import subprocess
import time

import numpy as np

from .exact import read_csv
from .sides import PeerError, command, differences, in_turns, installed, peak_memory, read_parts, refusal

M, D, ROWS, TEST = 500, 8, 2000, 200
CHUNKS, BUDGET, COMMAND_ROWS = (1000, 10000), 10.0, 200_000
MANY = "many rows, mean and variance"
PEERS = ("gpytorch", "gpflow", "gpy")
LENGTHSCALE, VARIANCE, NOISE = np.linspace(1.0, 1.6, D), 1.3, 0.2


def kernel(A, B):
    """Matern-5/2."""
    u = np.sqrt(5.0 * ((A[:, None] / LENGTHSCALE - B[None] / LENGTHSCALE) ** 2).sum(axis=-1))
    return VARIANCE * (1.0 + u + u * u / 3.0) * np.exp(-u)


def optimal_q(X, y, Z):
    """Whitened: S = B^-1, m = B^-1 V y / s2, B = I + V V' / s2, V = L^-1 Kzx."""
    V = np.linalg.solve(np.linalg.cholesky(kernel(Z, Z)), kernel(Z, X))
    S = np.linalg.inv(np.eye(len(Z)) + V @ V.T / NOISE)
    return S @ (V @ y) / NOISE, np.linalg.cholesky(0.5 * (S + S.T))


def save_model(bench):
    """The files problem.npz for the peers, model.thiele and test.npy for thiele; its own mean and variance."""
    random, scratch = np.random.default_rng(7), bench.scratch
    X, X_test, Z = (random.normal(size=(count, D)) for count in (ROWS, TEST, M))
    y = np.sin(X @ random.normal(size=D)) + 0.4 * random.normal(size=ROWS)
    m, factor = optimal_q(X, y, Z)
    np.savez(scratch / "problem.npz", X=X, y=y, X_test=X_test, Z=Z, m=m, factor=factor, lengthscale=LENGTHSCALE,
             variance=VARIANCE, noise=NOISE, kernel="matern52")
    np.save(scratch / "train.npy", np.column_stack([X, y]))
    np.save(scratch / "Z.npy", Z)
    np.save(scratch / "test.npy", X_test)
    scales = ",".join(map(repr, LENGTHSCALE.tolist()))
    command(bench.thiele, "fit", scratch / "train.npy", "--target", -1, "-o", scratch / "model.thiele", "--quiet",
            "--raw", "--mean", "zero", "--method", "collapsed", "--inducing", M, "--inducing-from", scratch / "Z.npy",
            "--fix-inducing", "--kernel", f"matern52(ard, lengthscale=[{scales}], variance={VARIANCE})", "--set",
            f"noise={NOISE}")
    table = read_csv(command(bench.thiele, "predict", scratch / "model.thiele", scratch / "test.npy", "--latent"))
    return {"mean": table["mean"], "variance": table["sd"] ** 2}


# --- thiele -------------------------------------------------------------------------------------------------------


LATENCIES = {"row, mean": "one row, mean", "row, mean and variance": "one row, mean and variance"}


def own_predictions(bench, rows):
    """Lines of bench-predict, whose status is 1 when a target is missed."""
    program = bench.build / "bench-predict"
    if not program.exists():
        print(f"there is no {program}: build it for thiele's side of this task")
        return
    words = [program, "--json", "--rows", rows, "--threads", ",".join(map(str, bench.threads))]
    for text in subprocess.run(list(map(str, words)), capture_output=True, text=True).stdout.splitlines():
        line = json.loads(text)
        sizes = {"M": M, "D": D, "threads": line.get("threads", 1)}
        if line["case"] in LATENCIES:
            bench.lines.add("latency", {"what": LATENCIES[line["case"]]} | sizes, "thiele", version=bench.version,
                            seconds=[1e-6 * line["median"]], target=1e-6 * line["target"])
        elif line["case"] == "table":
            bench.lines.add("throughput", {"what": MANY} | sizes, "thiele", version=bench.version,
                            rows_per_second=line["rows"] / line["seconds"], fraction=line["share"],
                            bytes=1e6 * line["peak_memory_mb"])


def own_command(bench, threads, rows):
    """The whole command on many rows, reading and writing included."""
    path, out = bench.scratch / "many.npy", bench.scratch / "out.csv"
    np.save(path, np.random.default_rng(1).normal(size=(rows, D)))
    words = [bench.thiele, "predict", bench.scratch / "model.thiele", path, "--latent", "--threads", threads, "-o", out]
    seconds = in_turns({"thiele": timed_command(words)}, 1, 0.0)["thiele"]
    bench.lines.add("command", {"what": "thiele predict, NPY to CSV", "rows": rows, "threads": threads}, "thiele",
                    version=bench.version, seconds=seconds, rows_per_second=rows / seconds[0])


def timed_command(words):
    def work(n):
        begin = time.perf_counter()
        for _ in range(n):
            command(*words)
        return time.perf_counter() - begin
    return work


# --- peers --------------------------------------------------------------------------------------------------------


def agree(bench, peer, own):
    answer = bench.scratch / f"{peer.name}.npz"
    peer.ask("predictor", problem=bench.scratch / "problem.npz", answer=answer)
    return differences(own, read_parts(answer))


def latencies(bench, peer, agreement):
    row = np.random.default_rng(3).normal(size=D).tolist()
    for what, name in (("mean", "one row, mean"), ("both", "one row, mean and variance")):
        times = in_turns({peer.name: lambda n, what=what: peer.ask("latency", row=row, n=n, what=what)["seconds"]},
                         3 if bench.quick else 7, 0.1 if bench.quick else 0.3)[peer.name]
        bench.lines.add("latency", {"what": name, "M": M, "D": D, "threads": 1}, peer.name, version=peer.version,
                        seconds=times, agreement=agreement)


def throughput(bench, peer, threads, rows, agreement):
    rates = {}
    for chunk in CHUNKS:
        answer = peer.ask("throughput", rows=rows, chunk=chunk, budget=1.0 if bench.quick else BUDGET)
        rates[chunk] = answer["rows"] / answer["seconds"]
    chunk = max(rates, key=rates.get)
    bench.lines.add("throughput", {"what": MANY, "M": M, "D": D, "threads": threads}, peer.name, version=peer.version,
                    rows_per_second=rates[chunk], chunk=chunk, bytes=peak_memory(peer.process.pid),
                    agreement=agreement)


def run_peer(bench, name, own, rows):
    for threads in bench.threads:
        peer = bench.peer(name, threads)
        agreement = agree(bench, peer, own)
        failed = refusal(agreement)
        if failed:
            bench.lines.add("latency", {"what": "one row, mean and variance", "M": M, "D": D, "threads": threads}, name,
                            failed=failed, agreement=agreement, version=peer.version)
            return
        if threads == 1:
            latencies(bench, peer, agreement)
        throughput(bench, peer, threads, rows, agreement)


def run(bench):
    rows = 50_000 if bench.quick else 1_000_000
    own = save_model(bench)
    own_predictions(bench, rows)
    for threads in bench.threads:
        own_command(bench, threads, min(rows, COMMAND_ROWS))
    for name in filter(installed, PEERS):
        try:
            run_peer(bench, name, own, rows)
        except PeerError as error:
            bench.lines.add("latency", {"what": "one row, mean and variance", "M": M, "D": D, "threads": 1}, name,
                            failed=str(error))
