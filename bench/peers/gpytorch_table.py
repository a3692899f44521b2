"""GPyTorch's sparse variational fit of a whole table, for peer_gpytorch.py: as its documentation has it. M inducing
inputs begin at rows drawn at random, Matern-5/2 with a length-scale per input that begins at the median distance
of rows, minibatches in a new order each epoch, Adam over all parameters at one rate. Gaussian noise, the logistic
likelihood of two classes, its own softmax of more with a latent function for each. It ends after `budget` seconds, or
STEPS steps. Single precision, its default; when a factor fails, the rest of the time begins anew in double precision.
On a GPU where there is one.
"""

import time

import gpytorch
import numpy as np
import torch
from gpytorch.likelihoods.likelihood import _OneDimensionalLikelihood
from linear_operator.utils.errors import NanError, NotPSDError
from serving import load, measured

BATCH, RATE, STEPS, CHUNK, NODES, DRAWS = 1024, 0.01, 4000, 1024, 40, 512
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Logistic(_OneDimensionalLikelihood):
    def forward(self, f, *args, **kwargs):
        return torch.distributions.Bernoulli(logits=f)


class Model(gpytorch.models.ApproximateGP):
    def __init__(self, Z, first, latents):
        batch = torch.Size([latents] if latents > 1 else [])
        q = gpytorch.variational.CholeskyVariationalDistribution(len(Z), batch_shape=batch)
        strategy = gpytorch.variational.VariationalStrategy(self, Z.expand(*batch, *Z.shape).clone(), q,
                                                            learn_inducing_locations=True)
        if latents > 1:
            strategy = gpytorch.variational.IndependentMultitaskVariationalStrategy(strategy, num_tasks=latents)
        super().__init__(strategy)
        kernel = gpytorch.kernels.MaternKernel(2.5, ard_num_dims=Z.size(-1), batch_shape=batch)
        kernel.lengthscale = first
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=batch)
        self.covar_module = gpytorch.kernels.ScaleKernel(kernel, batch_shape=batch)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def likelihood_of(classes):
    if not classes:
        return gpytorch.likelihoods.GaussianLikelihood()
    return Logistic() if classes == 2 else gpytorch.likelihoods.SoftmaxLikelihood(num_classes=classes,
                                                                                  mixing_weights=False)


def train(numbers, M, kind, end):
    """(model, likelihood, steps) when the clock says `end`."""
    X, y = (torch.from_numpy(numbers[name]).to(DEVICE, kind) for name in ("X", "y"))
    classes, N, steps = numbers["classes"], len(numbers["y"]), 0
    draw = torch.Generator().manual_seed(0)
    rows = torch.randperm(N, generator=draw)
    first = torch.pdist(X[rows[:500]]).median().item()
    model = Model(X[rows[:M]], first, classes if classes > 2 else 1).to(DEVICE, kind)
    likelihood = likelihood_of(classes).to(DEVICE, kind)
    y = y.long() if classes > 2 else y
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=N)
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=RATE)
    model.train()
    likelihood.train()
    while steps < STEPS:
        for part in torch.randperm(N, generator=draw).split(min(BATCH, N)):
            if time.perf_counter() >= end or steps >= STEPS:
                return model, likelihood, steps
            optimizer.zero_grad()
            loss = -bound(model(X[part]), y[part])
            loss.backward()
            optimizer.step()
            steps += 1
    return model, likelihood, steps


def fit(numbers, M, budget):
    end = time.perf_counter() + budget
    try:
        return train(numbers, M, torch.float32, end)
    except (NotPSDError, NanError):
        return train(numbers, M, torch.float64, end)


def probabilities(mean, sd, classes):
    """Of two classes by Gauss-Hermite nodes, of more by draws of independent functions."""
    if classes == 2:
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        p = (1.0 / (1.0 + np.exp(-(mean[:, None] + sd[:, None] * nodes)))) @ (weights / weights.sum())
        return np.column_stack([1.0 - p, p])
    random, total = np.random.default_rng(0), 0.0
    for _ in range(DRAWS):
        f = mean + sd * random.normal(size=mean.shape)
        f = np.exp(f - f.max(axis=1, keepdims=True))
        total = total + f / f.sum(axis=1, keepdims=True)
    return total / DRAWS


def table(problem, answer, who, M, budget):
    numbers = load(problem)
    (model, likelihood, steps), clock = measured(lambda: fit(numbers, M, budget))
    model.eval()
    likelihood.eval()
    kind, parts = next(model.parameters()).dtype, []
    with torch.no_grad():
        for rows in np.array_split(numbers["X_test"], -(-len(numbers["X_test"]) // CHUNK)):
            law = model(torch.from_numpy(rows).to(DEVICE, kind))
            law = law if numbers["classes"] else likelihood(law)
            parts.append([law.mean.double().cpu().numpy(), law.variance.double().sqrt().cpu().numpy()])
    mean, sd = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    laws = ({"probability": probabilities(mean, sd, numbers["classes"])} if numbers["classes"] else
            {"mean": mean, "sd": sd})
    np.savez(answer, **{f"{who}/{key}": value for key, value in laws.items()})
    return clock | {"steps": steps, "precision": str(kind)}
