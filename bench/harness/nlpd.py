"""Tasks 1 and 3, time to a score: seconds until the test NLPD is within 1% of the best that anyone reaches.

M = 200 inducing inputs, the same k-means centres for all, which stay where they are; the same rows, kernel, likelihood
and threads; everything else is learned. thiele's seconds are those of the whole command (starting, reading, first
guesses, saving), by rising deadlines, so that its time is known from above only. The peers' clocks stand still while
data is read, functions are compiled and test rows are scored; they begin at length-scales equal to the median distance
of rows and take Adam with each of the rates, of which the best counts. Minibatches have 1024 rows on all sides (of
small tables half of the rows; thiele takes all of those at once). Choosing Z is on nobody's clock.
"""

import json

from .sets import Set, available
from .sides import PeerError, clocked, command, installed

DEADLINES = (0.15, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0)
RATES, BATCH, MARGIN = (0.01, 0.1), 1024, 0.01
PEERS = ("gpytorch", "gpflow")
METHODS = {"gaussian": "variational", "logistic": "augmented", "student-t": "augmented", "poisson": "variational"}


def fit_own(bench, table, deadline, threads, options):
    """(seconds of the command, test NLPD, how it ended)"""
    model = bench.scratch / "model.thiele"
    seconds, text = clocked(lambda: command(
        bench.thiele, "fit", table.tables[0], "-o", model, "--json", "--quiet", "--threads", threads,
        *(["--deadline", deadline] if deadline else []), *options))
    scores = json.loads(command(bench.thiele, "score", model, table.tables[1], "--json", "--quiet"))
    return seconds, scores["nlp" if table.classes else "nlpd"], json.loads(text)["model"]["stop"]


def own_points(bench, table, threads):
    points = []
    options = [*table.sparse_options(), "--method", METHODS[table.likelihood], "--epochs", 100000]
    if table.rows > 2 * BATCH:
        options += ["--batch", BATCH]
    for deadline in DEADLINES[2:4] if bench.quick else DEADLINES:
        seconds, nlpd, stop = fit_own(bench, table, deadline, threads, options)
        points.append([seconds, nlpd])
        if stop != "deadline":
            break
    return points


def peer_points(bench, table, name, rate, threads, budget):
    peer = bench.peer(name, threads)
    batch = min(BATCH, table.rows // 2)
    return peer.version, peer.ask("train", problem=table.problem, likelihood=table.likelihood, batch=batch, rate=rate,
                                  budget=budget)["points"]


def first_within(points, bar):
    return min((seconds for seconds, nlpd in points if nlpd <= bar), default=None)


def compare(bench, name, threads, budget):
    if not available(bench, name):
        print(f"{name} is skipped: there is no data for it in {bench.data}")
        return
    table, found = Set(bench, name), {}
    found["thiele", None] = (bench.version, own_points(bench, table, threads))
    for peer in filter(installed, PEERS):
        for rate in RATES[:1] if bench.quick else RATES:
            case = {"set": name, "threads": threads, "rate": rate}
            try:
                found[peer, rate] = peer_points(bench, table, peer, rate, threads, budget)
            except PeerError as error:
                bench.lines.add("nlpd", case, peer, failed=str(error))
    best = min(nlpd for _, points in found.values() for _, nlpd in points)
    bar = best + MARGIN * abs(best)
    for (who, rate), (version, points) in found.items():
        case = {"set": name, "threads": threads} | ({} if rate is None else {"rate": rate})
        bench.lines.add("nlpd", case, who, version=version, points=points, bar=bar, reached=first_within(points, bar),
                        nlpd=min((nlpd for _, nlpd in points), default=None))


def run(bench):
    for name in ("protein-gaussian", "mnist-logistic"):
        compare(bench, name, bench.threads[-1], 2.0 if bench.quick else 45.0)
