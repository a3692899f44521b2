"""Tasks 1 and 3, time to a score: seconds until the test NLPD is within 1% of the best that anyone reaches, and until
it is within 1% of the best of the peers.

thiele: the default fit with a deadline, told the likelihood and nothing else. thiele, same model, and the peers:
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
DEFAULT_DEADLINES = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0)
OWN, SAME = "thiele", "thiele, same model"
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


def points_by(bench, table, deadlines, threads, options):
    """Without deadlines that come before there is a model."""
    points = []
    for deadline in deadlines:
        try:
            seconds, nlpd, stop = fit_own(bench, table, deadline, threads, options)
        except PeerError as error:
            if "before there was a result" not in str(error):
                raise
            continue
        points.append([seconds, nlpd])
        if stop != "deadline":
            break
    return points


def own_points(bench, table, threads):
    """By name."""
    same = [*table.sparse_options(), "--method", METHODS[table.likelihood], "--epochs", 100000]
    if table.rows > 2 * BATCH:
        same += ["--batch", BATCH]
    few = slice(2, 4) if bench.quick else slice(None)
    return {OWN: points_by(bench, table, DEFAULT_DEADLINES[:2] if bench.quick else DEFAULT_DEADLINES, threads,
                           table.default_options()),
            SAME: points_by(bench, table, DEADLINES[few], threads, same)}


def peer_points(bench, table, name, rate, threads, budget):
    peer = bench.peer(name, threads)
    batch = min(BATCH, table.rows // 2)
    return peer.version, peer.ask("train", problem=table.problem, likelihood=table.likelihood, batch=batch, rate=rate,
                                  budget=budget)["points"]


def first_within(points, bar):
    return min((seconds for seconds, nlpd in points if nlpd <= bar), default=None)


def bar_of(courses):
    """Within 1% of the best of them."""
    best = min((nlpd for points in courses for _, nlpd in points), default=float("-inf"))
    return best + MARGIN * abs(best)


def compare(bench, name, threads, budget):
    if not available(bench, name):
        print(f"{name} is skipped: there is no data for it in {bench.data}")
        return
    table, found = Set(bench, name), {}
    for own, points in own_points(bench, table, threads).items():
        found[own, None] = (bench.version, points)
    for peer in filter(installed, PEERS):
        for rate in RATES[:1] if bench.quick else RATES:
            case = {"set": name, "threads": threads, "rate": rate}
            try:
                found[peer, rate] = peer_points(bench, table, peer, rate, threads, budget)
            except PeerError as error:
                bench.lines.add("nlpd", case, peer, failed=str(error))
    bar, theirs = (bar_of(points for (who, _), (_, points) in found.items() if which(who))
                   for which in (lambda who: True, lambda who: who in PEERS))
    for (who, rate), (version, points) in found.items():
        case = {"set": name, "threads": threads} | ({} if rate is None else {"rate": rate})
        bench.lines.add("nlpd", case, who, version=version, points=points, bar=bar, reached=first_within(points, bar),
                        peers_bar=theirs, reached_peers=first_within(points, theirs),
                        nlpd=min((nlpd for _, nlpd in points), default=None))


def run(bench):
    for name, budget in (("protein-gaussian", 45.0), ("mnist-logistic", 160.0), ("generated-logistic", 160.0)):
        compare(bench, name, bench.threads[-1], 2.0 if bench.quick else budget)
