import gpflow
import numpy as np

train, test = np.load("train.npy"), np.load("test.npy")
center, scale = train.mean(0), train.std(0)
X, y = ((train - center) / scale)[:, :-1], ((train - center) / scale)[:, -1:]
X_test = ((test - center) / scale)[:, :-1]
kernel = gpflow.kernels.SquaredExponential(lengthscales=np.ones(X.shape[1]))
model = gpflow.models.GPR((X, y), kernel)
gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)
mean, variance = model.predict_y(X_test)
mean = mean.numpy()[:, 0] * scale[-1] + center[-1]
variance = variance.numpy()[:, 0] * scale[-1] ** 2
