"""Tasks 1 and 3, one gradient step: value of the bound on a minibatch, its gradient in everything that is learned (m
and the factor of S, length-scales, variance, what the likelihood learns, Z) and one step of Adam; D = 8, double
precision.

Before any time is taken bound, all gradients, means and variances must be the same to 1e-6 of the largest of their
kind. Where a likelihood has no closed expectation, thiele's quadrature is adaptive; the peers' rules begin with their
default of 20 nodes and get more until they agree, so that all are timed at the same accuracy. Rows are in memory on
both sides; thiele's step copies its minibatch out of the N rows as a fit does, the peers' do not have to.
"""

from .lines import median
from .problem import D, Problem
from .sides import Own, PeerError, differences, in_turns, installed, read_parts, refusal

SHAPES = [(256, 100), (1000, 200), (1000, 1000), (4096, 500)]
QUICK = [(256, 100)]
NODES = (20, 40, 80, 160)
PEERS = ("gpytorch", "gpflow")


def is_closed(problem):
    return problem.likelihood in ("gaussian", "poisson")


def ask_peer(peer, problem, scratch, own):
    """(agreement, nodes); the peer gets more nodes until it agrees."""
    for nodes in NODES[:1] if is_closed(problem) else NODES:
        answer = scratch / f"{peer.name}.npz"
        value = peer.ask("svgp", problem=scratch / "problem.npz", answer=answer, nodes=nodes)["value"]
        agreement = differences(own, read_parts(answer) | {"bound": value})
        if refusal(agreement) is None:
            break
    return agreement, None if is_closed(problem) else nodes


def ask_peers(bench, problem, threads, own, record):
    """Those that agree; of the others the reason is recorded."""
    sides = {}
    for name in filter(installed, PEERS):
        try:
            peer = bench.peer(name, threads)
            agreement, nodes = ask_peer(peer, problem, bench.scratch, own)
        except PeerError as error:
            record(name, failed=str(error))
            continue
        facts = {"version": peer.version, "agreement": agreement, "nodes": nodes}
        failed = refusal(agreement)
        if failed:
            record(name, failed=failed, **facts)
        else:
            sides[name] = (peer.steps, facts)
    return sides


def open_own(bench, problem, threads, expectation=None):
    """(bench-peer, its answer)"""
    files = {name: bench.scratch / name for name in ("problem", "answer")}
    own = Own(bench.build, threads, **files, B=problem.B, N=problem.N, M=problem.M, D=D, likelihood=problem.text,
              expectation=expectation)
    return own, problem.read(files["answer"])


def fixed_rule(bench, problem, threads, reference):
    """thiele with the smallest fixed rule that agrees, as for the peers: (bench-peer, facts); None where it needs no
    rule."""
    for nodes in () if is_closed(problem) else NODES:
        own, answer = open_own(bench, problem, threads, f"quadrature:{nodes}")
        agreement = differences(reference, answer)
        if refusal(agreement) is None:
            return own, {"version": bench.version, "agreement": agreement, "nodes": nodes}
        own.close()
    return None


def compare(bench, shape, likelihood, threads):
    problem = Problem(*shape, likelihood)
    case = {"likelihood": likelihood, "B": shape[0], "M": shape[1], "D": D, "threads": threads}

    def record(who, **figures):
        bench.lines.add("step", case, who, **figures)

    problem.write(bench.scratch / "problem")
    problem.save(bench.scratch / "problem.npz")
    own, reference = open_own(bench, problem, threads)
    fixed = fixed_rule(bench, problem, threads, reference)
    sides = {"thiele" if fixed is None else "thiele, adaptive": (own.steps, {"version": bench.version})}
    if fixed is not None:
        sides["thiele"] = (fixed[0].steps, fixed[1])
    sides |= ask_peers(bench, problem, threads, reference, record)
    times = in_turns({name: work for name, (work, _) in sides.items()}, 3 if bench.quick else 7,
                     0.1 if bench.quick else 0.4)
    flops = 5.0 * problem.B * problem.M**2 + 4.0 * problem.M**3
    rate = own.ask("product", 3)
    for name, (_, facts) in sides.items():
        record(name, seconds=times[name], fraction=1e-9 * flops / median(times[name]) / rate, **facts)
    for process in [own] + ([fixed[0]] if fixed else []):
        process.close()


def run_likelihoods(bench, likelihoods):
    for threads in bench.threads:
        for likelihood in likelihoods:
            for shape in QUICK if bench.quick else SHAPES:
                compare(bench, shape, likelihood, threads)


def run(bench):
    run_likelihoods(bench, ("gaussian", "logistic"))
