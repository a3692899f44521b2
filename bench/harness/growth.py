"""Task 6, growth of time and memory: one size at a time over a ladder, the others fixed; bench/report fits exponents.

Steps are whole ones (bench-peer: value, all gradients, Adam); exact regression is one evaluation (bench-exact);
decoupled bases are the last steps of a fit by the command, from its log. Times of one thread, except for the growth in
threads. What the papers' complexity sections promise is in PROMISED, beside which exponents are reported: they are
upper bounds for large sizes, so an exponent below is as it should be, and one above would not.
"""

import json
import statistics
import subprocess
import time

import numpy as np

from .sides import Own, PeerError, environment, peak_memory

SVI = "O(Q (M²D + BMD + M³ + BM²)), savigp-jmlr section 8"
# By curve: exponents of time and memory (None: nothing is said) and where they are from.
PROMISED = {
    "N, exact": (3, 2, "O(DN² + N³), O(N²): decoupled-svdgp, table 1"),
    "N, one step of minibatches": (0, 1, "independent of N, savigp-jmlr section 5; the rows themselves are in memory"),
    "B": (1, 1, SVI),
    "M": (3, 2, SVI + "; memory O(BM + M²): decoupled-svdgp, table 1"),
    "M_alpha": (1, 1,
                "O(D N_m M_alpha + N_m M_beta² + M_beta³), O(N_m M_alpha + M_beta²): decoupled-svdgp, table 1"),
    "D": (1, 1, SVI),
    "Q": (1, 1, SVI),
    "K": (1, 1, "diagonal components: O(Q (M²D + BMD + M³ + KBM + KBSL)), savigp-jmlr section 8"),
    "S": (1, None, "O(KBSL) for S draws a row, savigp-jmlr section 8"),
    "threads": (-1, None, "ideal: time as 1 / threads"),
}
# By curve: the ladder, and what bench-peer is asked for each rung.
STEPS = {
    "N, one step of minibatches": ((4000, 16000, 64000, 256000), lambda n: {"N": n, "B": 1000, "M": 200}),
    "B": ((500, 1000, 2000, 4000, 8000), lambda n: {"B": n, "M": 200}),
    "M": ((128, 256, 512, 1024, 2048), lambda n: {"B": 1000, "M": n}),
    "D": ((4, 8, 16, 32, 64, 128), lambda n: {"B": 1000, "M": 200, "D": n}),
    "Q": ((2, 4, 8, 16), lambda n: {"B": 1000, "M": 200, "likelihood": "softmax", "classes": n}),
    "K": ((1, 2, 4, 8, 16), lambda n: {"B": 1000, "M": 200, "K": n}),
    "S": ((250, 1000, 4000, 16000),
          lambda n: {"B": 1000, "M": 100, "likelihood": "student-t(nu=4)", "expectation": f"mc:{n}"}),
}
EXACT, EXACT_QUICK = (500, 1000, 2000, 4000), (250, 500)
BASES, BASES_QUICK = (1024, 2048, 4096, 8192), (256, 512)


def rungs(bench, ladder):
    return ladder[:2] if bench.quick else ladder


def step_curve(bench, name, ladder, fields):
    for n in rungs(bench, ladder):
        own = Own(bench.build, 1, **fields(n))
        own.steps(1)
        first = own.steps(1)
        count = max(1, min(50, round(0.3 / first)))
        seconds = [own.steps(count) / count for _ in range(2 if bench.quick or first > 1.0 else 4)]
        bench.lines.add("growth", {"curve": name, "n": n}, "thiele", version=bench.version, seconds=seconds,
                        bytes=own.ask("memory"))
        own.close()


def threads_curve(bench):
    for threads in bench.threads:
        for shape in ({"B": 1000, "M": 200}, {"B": 4096, "M": 500}):
            own = Own(bench.build, threads, **shape)
            own.steps(2)
            seconds = [own.steps(5) / 5 for _ in range(2 if bench.quick else 5)]
            bench.lines.add("growth", {"curve": "threads", "n": threads} | shape, "thiele", version=bench.version,
                            seconds=seconds, product=own.ask("product", 4))
            own.close()


def run_measured(bench, words):
    """Standard output and the most bytes that the process held, looked at every few milliseconds."""
    size = 0
    with open(bench.scratch / "said", "w+", encoding="utf-8") as said:
        process = subprocess.Popen(list(map(str, words)), stdout=said, stderr=subprocess.STDOUT, env=environment(1))
        while process.poll() is None:
            size = max(size, peak_memory(process.pid) or 0)
            time.sleep(0.005)
        said.seek(0)
        text = said.read()
    if process.returncode != 0:
        raise PeerError(f"{words[0]}: {text.strip()[-300:]}")
    return text, size


def exact_curve(bench):
    for n in EXACT_QUICK if bench.quick else EXACT:
        text, size = run_measured(bench, [bench.build / "bench-exact", n, 8, 1, 3])
        bench.lines.add("growth", {"curve": "N, exact", "n": n}, "thiele", version=bench.version,
                        seconds=[json.loads(text)["seconds"]], bytes=size)


def last_steps(log):
    """The median time between the last steps of the phase "fit", when the basis is whole."""
    lines = [json.loads(text) for text in log.read_text(encoding="utf-8").splitlines()]
    times = [line["seconds"] for line in lines if line["phase"] == "fit"]
    gaps = np.diff(times)
    return statistics.median(gaps[-max(3, len(gaps) // 8):])


def bases_curve(bench):
    """20,000 rows of 8 inputs, hyperparameters fixed; batches of 1024, 128 functions for the covariance, all steps but
    the last few grow the basis of the mean."""
    random = np.random.default_rng(5)
    X = random.normal(size=(4000 if bench.quick else 20000, 8))
    y = np.sin(X @ random.normal(size=8)) + 0.3 * random.normal(size=len(X))
    np.save(bench.scratch / "rows.npy", np.column_stack([X, y]))
    log = bench.scratch / "log.jsonl"
    for n in BASES_QUICK if bench.quick else BASES:
        growth = max(1, n // 32)
        _, size = run_measured(bench, [bench.thiele, "fit", bench.scratch / "rows.npy", "--target", -1, "-o",
                                bench.scratch / "model.thiele", "--quiet", "--method", "decoupled", "--inducing", 128,
                                "--mean-inducing", n, "--growth", growth, "--batch", 1024, "--iterations", 40,
                                "--threads", 1, "--kernel", "se(lengthscale=3, variance=1)", "--set",
                                "noise=0.1", "--log", log])
        bench.lines.add("growth", {"curve": "M_alpha", "n": n}, "thiele", version=bench.version,
                        seconds=[last_steps(log)], bytes=size)


def run(bench):
    exact_curve(bench)
    for name, (ladder, fields) in STEPS.items():
        step_curve(bench, name, ladder, fields)
    try:
        bases_curve(bench)
    except PeerError as error:
        bench.lines.add("growth", {"curve": "M_alpha"}, "thiele", failed=str(error))
    threads_curve(bench)
