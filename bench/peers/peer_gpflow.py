#!/usr/bin/env python3
"""GPflow for bench/harness (protocol: serving.py), as its documentation has it.

SVGP (whitened, full q_sqrt), SquaredExponential with a length-scale per input, its own likelihoods (Bernoulli with the
logistic link on its quadrature; StudentT with its degrees of freedom fixed, as they always are there; Poisson with the
closed expectation), training_loss and Adam in a compiled tf.function, which is built before any clock runs. Predictions
by the cached posterior(), compiled; a function that returns means only lets TensorFlow leave out the variances. Double
precision; jitter 0 where the matrices are good without.
"""

import math
import os
import sys
import time
import warnings
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, str(Path(__file__).resolve().parent))
warnings.filterwarnings("ignore")
import gpflow  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from serving import in_chunks, load, mean_nlpd, pack, serve, start, timed  # noqa: E402

RATE, EVAL_BATCH = 1e-3, 2048


# --- the model ----------------------------------------------------------------------------------------------------


def make_likelihood(problem):
    name = problem["likelihood"]
    if name == "gaussian":
        return gpflow.likelihoods.Gaussian(problem["phi"][0])
    if name == "student-t":
        return gpflow.likelihoods.StudentT(scale=problem["phi"][0], df=problem["nu"])
    return gpflow.likelihoods.Bernoulli(invlink=tf.sigmoid) if name == "logistic" else gpflow.likelihoods.Poisson()


KERNELS = {"se": gpflow.kernels.SquaredExponential, "matern52": gpflow.kernels.Matern52}


def make_svgp(problem, likelihood, num_data=None):
    """The model at the problem's Z, q and hyperparameters."""
    kernel = KERNELS[problem.get("kernel", "se")](variance=problem["variance"], lengthscales=problem["lengthscale"])
    return gpflow.models.SVGP(kernel, likelihood, problem["Z"].copy(), num_latent_gps=1, q_mu=problem["m"][:, None],
                              q_sqrt=problem["factor"][None], whiten=True, num_data=num_data)


def compiled_step(model, batch):
    """A function of what `batch` takes; the rows come from it, inside the compiled function."""
    optimizer = tf.keras.optimizers.Adam(RATE)
    variables = model.trainable_variables
    optimizer.build(variables)

    @tf.function
    def step(*what):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            loss = model.training_loss(batch(*what))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return step, optimizer


class Sparse:
    def __init__(self, problem, nodes=20):
        gpflow.config.set_default_jitter(0.0)
        B = problem["B"]
        rows = tf.constant(problem["X"][:B]), tf.constant(problem["y"][:B, None])
        likelihood = make_likelihood(problem)
        likelihood.quadrature = gpflow.quadrature.NDiagGHQuadrature(1, nodes)
        self.model, self.rows = make_svgp(problem, likelihood, len(problem["y"])), rows
        self.step, _ = compiled_step(self.model, lambda: rows)

    def steps(self, n):
        return timed(self.step, n)

    def answer(self):
        model, kernel = self.model, self.model.kernel
        learned = [getattr(model.likelihood, name, None) for name in ("variance", "scale")]
        hypers = [kernel.lengthscales, kernel.variance, *(p for p in learned if p is not None)]
        Z = model.inducing_variable.Z
        with tf.GradientTape() as tape:
            value = model.elbo(self.rows)
        raw = [model.q_mu, model.q_sqrt, Z, *hypers]
        slopes = tape.gradient(value, [p.unconstrained_variable for p in raw])
        m, packed, z, *rest = slopes
        slope = np.tril(model.q_sqrt.transform.forward(packed).numpy()[0])
        mean, variance = model.predict_f(self.rows[0])
        logs = [self.chain(p, s) for p, s in zip(hypers, rest)]
        factor = model.q_sqrt.numpy()[0]
        return float(value), {
            "m": m.numpy().ravel(), "S": pack(slope, np.diag(slope) * np.diag(factor)),
            "hyperparameters": np.concatenate(logs), "Z": z.numpy().ravel(),
            "mean": mean.numpy().ravel(), "variance": variance.numpy().ravel()}

    @staticmethod
    def chain(parameter, slope):
        """From a gradient in the unconstrained variable to one in the log."""
        with tf.GradientTape() as tape:
            log = tf.reduce_sum(tf.math.log(parameter.transform.forward(parameter.unconstrained_variable)))
        return (slope / tape.gradient(log, parameter.unconstrained_variable)).numpy().ravel()


# --- training -----------------------------------------------------------------------------------------------------


def median_distance(X):
    sample = X[np.random.default_rng(0).permutation(len(X))[:500]]
    square = ((sample[:, None] - sample[None]) ** 2).sum(axis=-1)
    return float(np.median(np.sqrt(square[np.triu_indices(len(sample), 1)])))


def first_model(problem, likelihood):
    """As bench/aaci_adam.py begins: q = p, length-scales at the median distance, a constant mean, Z fixed."""
    X, Z = problem["X"], problem["Z"]
    lengthscale = median_distance(X)
    own = {"gaussian": lambda: gpflow.likelihoods.Gaussian(0.7), "poisson": gpflow.likelihoods.Poisson,
           "logistic": lambda: gpflow.likelihoods.Bernoulli(invlink=tf.sigmoid),
           "student-t": lambda: gpflow.likelihoods.StudentT(scale=0.7, df=problem["nu"])}[likelihood]()
    kernel = gpflow.kernels.SquaredExponential(
        0.7, np.full(X.shape[1], lengthscale) if problem["ard"] else lengthscale)
    model = gpflow.models.SVGP(kernel, own, Z, num_data=len(X), mean_function=gpflow.functions.Constant(0.0))
    gpflow.set_trainable(model.inducing_variable, False)
    return model


def score(model, problem, likelihood, predict):
    """Test NLPD in the units of the data."""
    parts = [predict(tf.constant(problem["X_test"][i:i + EVAL_BATCH]))
             for i in range(0, len(problem["X_test"]), EVAL_BATCH)]
    mean, variance = (np.concatenate([part[k].numpy().ravel() for part in parts]) for k in (0, 1))
    own = model.likelihood
    phi = {"gaussian": lambda: [own.variance.numpy().item()],
           "student-t": lambda: [float(own.df), own.scale.numpy().item()]}
    return math.log(problem["scale"]) + mean_nlpd(likelihood, problem["y_test"], mean, variance,
                                                  phi.get(likelihood, list)())


def train(problem, likelihood, batch, rate, budget):
    """Points (seconds of training, test NLPD), about one for each tenth that is added to the time."""
    gpflow.config.set_default_jitter(1e-6)
    problem = load(problem)
    model = first_model(problem, likelihood)
    X, y = tf.constant(problem["X"]), tf.constant(problem["y"][:, None])
    step, optimizer = compiled_step(model, lambda rows: (tf.gather(X, rows), tf.gather(y, rows)))
    predict = tf.function(model.predict_f, reduce_retracing=True)
    optimizer.learning_rate = 0.0
    step(tf.zeros(batch, dtype=tf.int64))  # compiles; moves nothing
    optimizer.learning_rate = rate
    for variable in optimizer.variables[2:]:
        variable.assign(tf.zeros_like(variable))
    optimizer.iterations.assign(0)
    random, points, clock, due, steps = np.random.default_rng(0), [], 0.0, 0.5, 0
    while clock < budget:
        order = random.permutation(len(problem["y"]))
        for first in range(0, len(order) - batch + 1, batch):
            begin = time.perf_counter()
            step(tf.constant(order[first:first + batch]))
            clock += time.perf_counter() - begin
            steps += 1
            if clock >= due or clock >= budget:
                points.append([clock, score(model, problem, likelihood, predict)])
                due = max(1.1 * clock, clock + 0.5)
            if clock >= budget:
                break
    return {"points": [point for point in points if math.isfinite(point[1])], "steps": steps}


# --- prediction ---------------------------------------------------------------------------------------------------


class Predictor:
    def __init__(self, problem):
        gpflow.config.set_default_jitter(0.0)
        posterior = make_svgp(problem, gpflow.likelihoods.Gaussian()).posterior()
        shape = [tf.TensorSpec([None, problem["Z"].shape[1]], tf.float64)]
        self.compiled = tf.function(posterior.predict_f, input_signature=shape)
        self.compiled_mean = tf.function(lambda X: posterior.predict_f(X)[0], input_signature=shape)

    def both(self, X):
        mean, variance = self.compiled(X)
        return mean.numpy(), variance.numpy()

    def mean(self, X):
        return self.compiled_mean(X).numpy()


def saved(path):
    """The parameters in a file, as gpflow.utilities.parameter_dict saves them; compiling would take longer."""
    problem = load(path)
    gpflow.config.set_default_jitter(0.0)
    return make_svgp(problem, gpflow.likelihoods.Gaussian()).predict_f


# --- what is asked ------------------------------------------------------------------------------------------------

state = {}


def hello(threads):
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    return {"version": gpflow.__version__, "on": f"tensorflow {tf.__version__}"}


def svgp(problem, answer, nodes=20):
    state["own"] = Sparse(load(problem), nodes)
    value, parts = state["own"].answer()
    np.savez(answer, **parts)
    return {"value": value}


def predictor(problem, answer):
    numbers = load(problem)
    state["own"], state["dims"] = Predictor(numbers), numbers["Z"].shape[1]
    mean, variance = state["own"].both(numbers["X_test"])
    np.savez(answer, mean=mean, variance=variance)
    return {}


def latency(row, n, what):
    x, predict = np.array([row]), getattr(state["own"], what)
    predict(x)
    return {"seconds": timed(lambda: predict(x), n)}


def throughput(rows, chunk, budget):
    X = np.random.default_rng(1).normal(size=(rows, state["dims"]))
    seconds, done = in_chunks(state["own"].both, X, chunk, budget)
    return {"seconds": seconds, "rows": done}


def save(problem, model):
    numbers = load(problem)
    with open(model, "wb") as file:
        np.savez(file, **{name: numbers[name] for name in ("Z", "m", "factor", "variance", "lengthscale", "kernel")})
    return {}


if __name__ == "__main__":
    start(saved)
    serve({"hello": hello, "svgp": svgp, "steps": lambda n: {"seconds": state["own"].steps(n)}, "train": train,
           "predictor": predictor, "latency": latency, "throughput": throughput, "save": save})
