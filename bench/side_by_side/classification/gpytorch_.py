import gpytorch
import numpy as np
import torch
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

train, test = torch.from_numpy(np.load("train.npy")), torch.from_numpy(np.load("test.npy"))
center, scale = train[:, :-1].mean(0), train[:, :-1].std(0)
X, y = (train[:, :-1] - center) / scale, train[:, -1]
X_test = (test[:, :-1] - center) / scale


class Model(gpytorch.models.ApproximateGP):
    def __init__(self, X):
        distribution = CholeskyVariationalDistribution(len(X))
        super().__init__(VariationalStrategy(self, X, distribution, learn_inducing_locations=False))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1]))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


likelihood = gpytorch.likelihoods.BernoulliLikelihood()
model = Model(X).double()
objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(200):
    optimizer.zero_grad()
    loss = -objective(model(X), y)
    loss.backward()
    optimizer.step()
model.eval()
likelihood.eval()
with torch.no_grad():
    probability = likelihood(model(X_test)).probs.numpy()
