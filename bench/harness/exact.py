"""Task 2, exact regression: N rows of a generated function of 8 inputs, Matern-5/2 with a length-scale per input.

One evaluation is the log marginal likelihood and its gradient at fixed parameters (GPBoost: the value alone, since it
offers no gradient); value, gradient, and mean and variance at 50 new rows must be the same to 1e-6 first. A whole fit
begins at the same parameters for the peers, each with its own optimiser and stopping; thiele's is that of the whole
command, which explores first guesses of its own. The log likelihood that was reached is beside the time. A fit that
would take more than BUDGET seconds, judged by 60 evaluations, is left out.
"""

import json
import sys

import numpy as np

from .lines import median
from .sides import PeerError, clocked, command, differences, in_turns, installed, read_parts, refusal

ROWS, QUICK = (500, 1000, 2000, 5000), (500,)
PEERS = ("sklearn", "gpytorch", "gpboost", "gpy")
D, LENGTHSCALE, NOISE, TEST = 8, 1.5, 0.1, 50
BUDGET, EVALUATIONS = 90.0, 60


def make_data(n):
    """The numbers of bench/exact.c; sklearn_exact.py reads the command line when it is imported."""
    kept, sys.argv = sys.argv, sys.argv[:1]
    try:
        from sklearn_exact import make_data as make
    finally:
        sys.argv = kept
    return make(n, D)


def save_problem(bench, n):
    X, y = make_data(n)
    X_test = np.random.default_rng(n).uniform(-2.0, 2.0, size=(TEST, D))
    np.savez(bench.scratch / "problem.npz", X=X, y=y, X_test=X_test, lengthscale=np.full(D, LENGTHSCALE), variance=1.0,
             noise=NOISE)
    np.save(bench.scratch / "train.npy", np.column_stack([X, y]))
    np.save(bench.scratch / "test.npy", X_test)


def fit_command(bench, threads, *options):
    model = bench.scratch / "model.thiele"
    return json.loads(command(bench.thiele, "fit", bench.scratch / "train.npy", "--target", -1, "-o", model, "--json",
                              "--quiet", "--raw", "--mean", "zero", "--method", "exact", "--threads", threads,
                              *options))["model"]


def read_csv(text):
    """By column name; text is what thiele predict prints."""
    names, *rows = [line.split(",") for line in text.splitlines()]
    return dict(zip(names, np.array(rows, dtype=float).T))


def own_answer(bench, n, threads):
    """Value and gradient of bench-exact, mean and variance of the command at the same parameters."""
    found = json.loads(command(bench.build / "bench-exact", n, D, threads, 1))
    scales = ",".join([str(LENGTHSCALE)] * D)
    fit_command(bench, threads, "--kernel", f"matern52(ard, lengthscale=[{scales}], variance=1)", "--set",
                f"noise={NOISE}")
    table = read_csv(command(bench.thiele, "predict", bench.scratch / "model.thiele", bench.scratch / "test.npy",
                             "--latent"))
    return {"value": found["value"], "gradient": np.array(found["gradient"]), "mean": table["mean"],
            "variance": table["sd"] ** 2}


def own_evaluations(bench, n, threads):
    return lambda count: count * json.loads(command(bench.build / "bench-exact", n, D, threads, count))["seconds"]


def ask_peers(bench, threads, own, case):
    sides = {}
    for name in filter(installed, PEERS):
        try:
            peer, answer = bench.peer(name, threads), bench.scratch / f"{name}.npz"
            value = peer.ask("exact", problem=bench.scratch / "problem.npz", answer=answer)["value"]
            agreement = differences(own, read_parts(answer) | {"value": value})
        except PeerError as error:
            bench.lines.add("evaluation", case, name, failed=str(error))
            continue
        facts = {"version": peer.version, "agreement": agreement, "gradient": "gradient" in agreement}
        failed = refusal(agreement)
        if failed:
            bench.lines.add("evaluation", case, name, failed=failed, **facts)
        else:
            sides[name] = (peer, facts)
    return sides


def evaluations(bench, n, threads, case):
    """Records times of one evaluation; the peers that agreed, with theirs."""
    save_problem(bench, n)
    sides = ask_peers(bench, threads, own_answer(bench, n, threads), case)
    works = {"thiele": own_evaluations(bench, n, threads)}
    works |= {name: peer.evaluations for name, (peer, _) in sides.items()}
    times = in_turns(works, 3 if bench.quick or n > 2000 else 5)
    bench.lines.add("evaluation", case, "thiele", version=bench.version, seconds=times["thiele"], gradient=True)
    for name, (_, facts) in sides.items():
        bench.lines.add("evaluation", case, name, seconds=times[name], **facts)
    return {name: (peer, median(times[name]) * (1.0 if facts["gradient"] else 3.0))
            for name, (peer, facts) in sides.items()}


def fits(bench, threads, case, sides):
    seconds, model = clocked(lambda: fit_command(bench, threads, "--kernel", "matern52(ard)"))
    bench.lines.add("fit", case, "thiele", version=bench.version, seconds=[seconds],
                    value=model["log_marginal_likelihood"])
    for name, (peer, evaluation) in sides.items():
        if EVALUATIONS * evaluation > BUDGET:
            bench.lines.add("fit", case, name, failed=f"left out: about {EVALUATIONS * evaluation:.0f} s")
            continue
        try:
            answer = peer.ask("fit")
            bench.lines.add("fit", case, name, version=peer.version, seconds=[answer["seconds"]], value=answer["value"])
        except PeerError as error:
            bench.lines.add("fit", case, name, failed=str(error))


def run(bench):
    threads = bench.threads[-1]
    for n in QUICK if bench.quick else ROWS:
        case = {"N": n, "D": D, "threads": threads}
        fits(bench, threads, case, evaluations(bench, n, threads, case))
