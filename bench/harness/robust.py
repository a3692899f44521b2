"""Task 3, robust regression and counts. Steps as in step.py, times to a score as in nlpd.py; and whole fits of 500
abalones beside the Laplace approximations of GPBoost and GPy, which are on all rows (no inducing inputs) and of another
kind: their NLPD is in the table in place of an agreement. thiele chooses its method by itself (augmented for Student-t,
dense for counts); Matern-5/2 with a length-scale per input on all sides; seconds are those of the whole command."""

from . import nlpd, step
from .sets import Set, available
from .sides import PeerError, installed

LAPLACE, ROWS, QUICK = ("gpboost", "gpy"), 500, 100


def whole_fits(bench, name, threads):
    if not available(bench, name):
        return
    table = Set(bench, name, QUICK if bench.quick else ROWS)
    case = {"set": name, "rows": table.rows, "threads": threads}
    options = [*table.options(), "--kernel", "matern52(ard)"]
    seconds, score, _ = nlpd.fit_own(bench, table, 0, threads, options)
    bench.lines.add("fit", case, "thiele", version=bench.version, seconds=[seconds], nlpd=score)
    for who in filter(installed, LAPLACE):
        try:
            peer = bench.peer(who, threads)
            answer = peer.ask("laplace", problem=table.problem, likelihood=table.likelihood)
            bench.lines.add("fit", case, who, version=peer.version, seconds=[answer["seconds"]], nlpd=answer["nlpd"])
        except PeerError as error:
            bench.lines.add("fit", case, who, failed=str(error))


def run(bench):
    threads = bench.threads[-1]
    step.run_likelihoods(bench, ("student-t", "poisson"))
    for name in ("protein-student-t", "abalone-poisson"):
        nlpd.compare(bench, name, threads, 2.0 if bench.quick else 30.0)
    for name in ("abalone-student-t", "abalone-poisson"):
        whole_fits(bench, name, threads)
