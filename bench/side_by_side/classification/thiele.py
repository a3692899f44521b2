import numpy as np
import thiele

train, test = np.load("train.npy"), np.load("test.npy")
model = thiele.GPClassifier(kernel="se(ard)").fit(train[:, :-1], train[:, -1])
probability = model.predict_proba(test[:, :-1])[:, 1]
