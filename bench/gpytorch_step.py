#!/usr/bin/env python3
"""One gradient step of sparse variational regression against GPyTorch's SVGP, both measured in one run.

A step is the value of the bound on a minibatch of B rows, its gradient in everything that is learned (m and the factor
of S of a full Gaussian q, whitened; length-scales of an RBF kernel with ARD, its variance, the noise variance; M
inducing inputs), and one step of Adam; D = 8, double precision. Both programs get the same numbers from a file. Before
any time is taken both must give the same bound and the same gradient in every parameter, to 1e-6 of the largest one of
its kind.

What is fair:
- Same machine, same number of threads (torch.set_num_threads; thiele's own), double precision on both sides.
- Repetitions of the two alternate, each of as many steps as take BLOCK seconds; the ratio is the median of the ratios
  of neighbours, so that what slows the machine down for a while slows down both. Warm-up steps are not counted.
- Rows are in memory on both sides; thiele's step copies its minibatch out of the N rows as a fit does, GPyTorch's does
  not have to.
- GPyTorch as its documentation has it: ApproximateGP, VariationalStrategy (whitened, learn_inducing_locations),
  CholeskyVariationalDistribution, ScaleKernel(RBFKernel(ard)), GaussianLikelihood, VariationalELBO, torch.optim.Adam
  over all parameters, zero_grad / loss / backward / step. The version in requirements-peers.txt has the hand-written
  backward pass for B > M. Kzz is well conditioned, so no factorisation is repeated with more jitter; its jitter is 0,
  since thiele adds none to a matrix that can be factored.
- thiele as `thiele fit --optimizer adam` steps: thi_vfit_evaluate with the likelihood's own expectations, the rule of
  src/optim, the new values taken over (bench/peer.c).

The fraction of the bare product is 5 B M^2 + 4 M^3 flops over thiele's time over the rate of a 1500^3 dgemm on each
thread, measured beside it. The last line is PASS or FAIL, and so is the exit status; the targets are for each number of
threads.

    bench/setup-peers; cmake --build build --target bench-peer
    bench/.venv-peers/bin/python bench/gpytorch_step.py --json results.jsonl

takes two minutes on an idle machine. It has to be idle: torch's threads spin while they wait for each other, and where
they have to share a core a step on two threads takes up to a hundred times as long. The script says so when it sees it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
D = 8
# (B, M) and how many times as fast it is to be.
TARGETS = {(256, 100): 8.0, (1000, 200): 4.0, (1000, 1000): 2.5, (4096, 500): 3.0}
TOLERANCE = 1e-6
PRODUCT_TARGET, PRODUCT_FROM = 0.7, 500
BLOCK = 0.4
RATE = 1e-3

warnings.filterwarnings("ignore", category=FutureWarning)
import gpytorch  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="where bench-peer is")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, with commas (default: 1,2)")
    parser.add_argument("--shapes", help="B:M, with commas (default: all four)")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write each result as a line of JSON")
    return parser.parse_args()


# --- the problem --------------------------------------------------------------------------------------------------


class Problem:
    """Numbers for both: 2 B rows, of which the first B are the minibatch; q away from the prior; Z among the rows."""

    def __init__(self, B, M):
        random = np.random.default_rng(B + M)
        self.B, self.N, self.M = B, 2 * B, M
        self.X = random.normal(size=(self.N, D))
        self.y = np.sin(self.X @ random.normal(size=D)) + 0.3 * random.normal(size=self.N)
        self.Z = random.normal(size=(M, D))
        self.lengthscale = np.linspace(1.0, 1.6, D)
        self.variance, self.noise = 1.3, 0.2
        self.m = 0.5 * random.normal(size=M)
        self.factor = np.tril(0.3 / np.sqrt(M) * random.normal(size=(M, M)), -1)
        self.factor += np.diag(random.uniform(0.4, 0.9, M))

    def write(self, path):
        hypers = [*self.lengthscale, self.variance, self.noise]
        parts = (self.X, self.y, hypers, self.Z, self.m, pack(self.factor, np.log(np.diag(self.factor))))
        np.concatenate([np.ravel(part) for part in parts]).tofile(path)


def pack(matrix, diagonal):
    """The lower triangle by columns, with this diagonal: how thiele orders the numbers of a factor."""
    matrix = matrix.copy()
    np.fill_diagonal(matrix, diagonal)
    return matrix.T[np.triu_indices(len(matrix))]


# --- GPyTorch -----------------------------------------------------------------------------------------------------


class SVGP(gpytorch.models.ApproximateGP):
    def __init__(self, Z):
        q = gpytorch.variational.CholeskyVariationalDistribution(Z.size(0))
        super().__init__(gpytorch.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=True,
                                                                  jitter_val=0.0))
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=D))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Peer:
    def __init__(self, problem):
        self.problem = problem
        self.X, self.y = (torch.from_numpy(a[: problem.B].copy()) for a in (problem.X, problem.y))
        self.model = SVGP(torch.from_numpy(problem.Z.copy()))
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()
        strategy = self.model.variational_strategy
        self.q = strategy._variational_distribution
        with torch.no_grad():
            self.q.variational_mean.copy_(torch.from_numpy(problem.m))
            self.q.chol_variational_covar.copy_(torch.from_numpy(problem.factor))
        strategy.variational_params_initialized.fill_(1)
        self.model.covar_module.outputscale = problem.variance
        self.model.covar_module.base_kernel.lengthscale = torch.from_numpy(problem.lengthscale)
        self.likelihood.noise = problem.noise
        self.bound = gpytorch.mlls.VariationalELBO(self.likelihood, self.model, num_data=problem.N)
        self.optimizer = torch.optim.Adam([*self.model.parameters(), *self.likelihood.parameters()], lr=RATE)
        self.model.train()
        self.likelihood.train()

    def step(self):
        self.optimizer.zero_grad()
        loss = -self.bound(self.model(self.X), self.y)
        loss.backward()
        self.optimizer.step()

    def steps(self, n):
        begin = time.perf_counter()
        for _ in range(n):
            self.step()
        return time.perf_counter() - begin

    def logs(self):
        """(raw parameter, log of the number) of each kind, in thiele's order."""
        kernel = self.model.covar_module
        noise = self.likelihood.noise_covar
        return ((kernel.base_kernel.raw_lengthscale, kernel.base_kernel.lengthscale),
                (kernel.raw_outputscale, kernel.outputscale), (noise.raw_noise, noise.noise))

    def answer(self):
        """Bound and gradient by parts: VariationalELBO is a row's share, so it is multiplied by N."""
        self.optimizer.zero_grad()
        value = self.problem.N * self.bound(self.model(self.X), self.y)
        value.backward()
        factor = self.q.chol_variational_covar
        slope = factor.grad.tril().numpy()
        hypers = []
        for raw, number in self.logs():
            (chain,) = torch.autograd.grad(number.log().sum(), raw)
            hypers.append((raw.grad / chain).numpy().ravel())
        parts = {"m": self.q.variational_mean.grad.numpy(),
                 "S": pack(slope, np.diag(slope) * np.diag(factor.detach().numpy())),
                 "hyperparameters": np.concatenate(hypers),
                 "Z": self.model.variational_strategy.inducing_points.grad.numpy().ravel()}
        return value.item(), parts


# --- thiele -------------------------------------------------------------------------------------------------------


class Own:
    """A running bench-peer: one question a line, one number as the answer."""

    def __init__(self, build, problem, threads, scratch):
        self.problem, self.answer_path = problem, scratch / "answer"
        problem.write(scratch / "problem")
        program = build / "bench-peer"
        arguments = [program, f"problem={scratch / 'problem'}", f"answer={self.answer_path}", f"B={problem.B}",
                     f"N={problem.N}", f"M={problem.M}", f"D={D}", f"threads={threads}"]
        try:
            self.process = subprocess.Popen(list(map(str, arguments)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            text=True)
        except OSError as error:
            sys.exit(f"{program}: {error.strerror}; build it first")
        if self.process.stdout.readline().strip() != "ready":
            sys.exit(f"{program} failed")

    def ask(self, question, n):
        self.process.stdin.write(f"{question} {n}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def steps(self, n):
        return self.ask("step", n)

    def answer(self):
        numbers = np.fromfile(self.answer_path)
        M = self.problem.M
        m, S, hypers, Z, _ = np.split(numbers[1:], np.cumsum([M, M * (M + 1) // 2, D + 2, D * M]))
        return numbers[0], {"m": m, "S": S, "hyperparameters": hypers, "Z": Z}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# --- the comparison -----------------------------------------------------------------------------------------------


def differences(peer, own):
    """By part, relative to its largest number."""
    (value, parts), (own_value, own_parts) = peer.answer(), own.answer()
    found = {"bound": abs(own_value - value) / abs(value)}
    for name, part in parts.items():
        found[name] = float(np.max(np.abs(own_parts[name] - part)) / np.max(np.abs(part)))
    return found


def count_steps(side):
    """Warms up; how many steps take about BLOCK seconds."""
    side.steps(2)
    return max(1, round(BLOCK / (side.steps(3) / 3)))


def compare(problem, threads, arguments, scratch):
    torch.set_num_threads(threads)
    peer, own = Peer(problem), Own(arguments.build, problem, threads, scratch)
    result = {"B": problem.B, "M": problem.M, "threads": threads, "differences": differences(peer, own)}
    result["same"] = max(result["differences"].values()) <= TOLERANCE
    if result["same"]:
        counts = count_steps(peer), count_steps(own)
        times, products = [], []
        for _ in range(arguments.repetitions):
            times.append([side.steps(n) / n for side, n in zip((peer, own), counts)])
            products.append(own.ask("product", 1))
        flops = 5.0 * problem.B * problem.M**2 + 4.0 * problem.M**3
        result |= {"gpytorch": [t[0] for t in times], "thiele": [t[1] for t in times],
                   "ratio": statistics.median(t[0] / t[1] for t in times),
                   "product": statistics.median(1e-9 * flops / t[1] / rate for t, rate in zip(times, products))}
    own.close()
    return result


ROW = "{:>5} {:>5} {:>7} {:>12} {:>13} {:>11} {:>7} {:>7} {:>8}  {}"


def report(result):
    """Prints a line; True when all is as it should be."""
    worst = max(result["differences"].values())
    shape = (result["B"], result["M"])
    target = TARGETS.get(shape, 0.0)
    if not result["same"]:
        print(ROW.format(*shape, result["threads"], f"{worst:.1e}", "", "", "", "", "", "FAIL: different numbers"))
        print("   ", ", ".join(f"{name} {value:.1e}" for name, value in result["differences"].items()))
        return False
    slow = result["ratio"] < target
    inefficient = shape[1] >= PRODUCT_FROM and result["product"] < PRODUCT_TARGET
    faults = (("too slow", slow), ("below 70% of the product", inefficient))
    verdict = ", ".join(text for text, holds in faults if holds)
    print(ROW.format(*shape, result["threads"], f"{worst:.1e}", f"{1e3 * statistics.median(result['gpytorch']):.2f}",
                     f"{1e3 * statistics.median(result['thiele']):.2f}", f"{result['ratio']:.2f}", f"{target:g}",
                     f"{100 * result['product']:.0f}%", f"FAIL: {verdict}" if verdict else "PASS"), flush=True)
    return not verdict


def main():
    arguments = parse_arguments()
    torch.set_default_dtype(torch.float64)
    shapes = list(TARGETS)
    if arguments.shapes:
        shapes = [tuple(map(int, shape.split(":"))) for shape in arguments.shapes.split(",")]
    print(f"one step of sparse variational regression, D = {D}: gpytorch {gpytorch.__version__} on torch "
          f"{torch.__version__}, medians of {arguments.repetitions}\n")
    if os.getloadavg()[0] > 0.5:
        print(f"the machine is busy (load {os.getloadavg()[0]:.1f}): times are rough, and void for several threads\n")
    print(ROW.format("B", "M", "threads", "difference", "gpytorch ms", "thiele ms", "ratio", "wanted", "product", ""))
    good, lines = True, []
    with tempfile.TemporaryDirectory() as folder:
        for threads in map(int, arguments.threads.split(",")):
            for shape in shapes:
                result = compare(Problem(*shape), threads, arguments, Path(folder))
                good &= report(result)
                lines.append(json.dumps(result))
    if arguments.json:
        arguments.json.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\nPASS" if good else "\nFAIL")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
