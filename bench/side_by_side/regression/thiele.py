import numpy as np
import thiele

train, test = np.load("train.npy"), np.load("test.npy")
model = thiele.fit(train, target="x9", method="exact", kernel="se(ard)", noise="gaussian")
made = model.predict(test)
mean, variance = made.mean, made.variance
