import gpflow
import numpy as np

train, test = np.load("train.npy"), np.load("test.npy")
X, y = train[:, :-1], train[:, -1:]
center, scale = X.mean(0), X.std(0)
kernel = gpflow.kernels.SquaredExponential(lengthscales=np.ones(X.shape[1]))
model = gpflow.models.VGP(((X - center) / scale, y), kernel, gpflow.likelihoods.Bernoulli())
gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)
probability = model.predict_y((test[:, :-1] - center) / scale)[0].numpy()[:, 0]
