"""The estimators beyond what scikit-learn checks: uncertainty, frames, several targets, labels, going on, searches."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.inspection import permutation_importance  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_predict  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

import thiele  # noqa: E402
from thiele import GPClassifier, GPRegressor  # noqa: E402


@pytest.fixture(scope="module")
def fitted(rows):
    return GPRegressor(method="exact", kernel="se(ard)").fit(*rows)


def test_parameters_are_the_options():
    names = set(GPRegressor().get_params())
    assert names == {n for n in thiele.options() if n not in ("target", "weights", "classes", "snapshot")} | {
        "random_state",
        "n_jobs",
        "device",
        "progress",
    }
    assert "restarts : integer, default 0" in GPRegressor.__doc__
    assert repr(GPRegressor(kernel="se")) == "GPRegressor(kernel='se')"
    with pytest.raises(TypeError, match="no parameter 'kernal'"):
        GPRegressor(kernal="se")


def test_uncertainty(fitted, rows):
    x, y = rows
    mean, sd = fitted.predict(x, return_std=True)
    np.testing.assert_array_equal(fitted.predict(x), mean)
    interval = fitted.predict_interval(x, 0.9)
    np.testing.assert_allclose(interval, np.column_stack([mean - 1.6448536 * sd, mean + 1.6448536 * sd]), rtol=1e-6)
    assert fitted.predict_quantiles(x).shape == (80, 3)
    _, latent = fitted.predict(x, return_std=True, latent=True)
    assert (latent < sd).all()
    joint, covariance = fitted.predict(x[:5], return_cov=True)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), sd[:5], rtol=1e-6)
    with pytest.raises(RuntimeError, match="not both"):
        fitted.predict(x, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="level"):
        fitted.predict_interval(x, 1.0)
    densities = fitted.score_samples(x, y)
    np.testing.assert_allclose(densities, -0.5 * (np.log(2 * np.pi * sd**2) + ((y - mean) / sd) ** 2), rtol=1e-8)
    assert fitted.score_samples([[50.0, 50.0]])[0] < fitted.score_samples(x).min()


def test_samples(fitted, rows):
    x = rows[0][:4]
    mean, covariance = fitted.predict(x, return_cov=True)
    draws = fitted.sample_y(x, 4000, random_state=1)
    assert draws.shape == (4, 4000)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=0.02)
    np.testing.assert_allclose(np.cov(draws), covariance, atol=0.005)
    alone = fitted.sample_y(x, 4000, joint=False)
    np.testing.assert_allclose(alone.std(axis=1), np.sqrt(np.diag(covariance)), rtol=0.1)


def test_frames(frame):
    features = frame[["a", "b", "site", "kind"]]
    model = GPRegressor(method="exact", kernel="se(ard)").fit(features, frame["y"])
    assert list(model.feature_names_in_) == list(features.columns) and model.score(features, frame["y"]) > 0.9
    direct = thiele.fit(frame.drop(columns="label"), "y", method="exact", kernel="se(ard)")
    np.testing.assert_array_equal(model.predict(features), direct.predict(frame).mean)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(features.rename(columns={"a": "z"}))


def test_several_targets_with_gaps(rows):
    x, y = rows
    both = np.column_stack([y, -y])
    both[::7, 1] = np.nan
    model = GPRegressor(kernel="se", noise="gaussian").fit(x, both)
    mean, sd = model.predict(x, return_std=True)
    assert mean.shape == sd.shape == (80, 2)
    assert np.mean((mean - np.column_stack([y, -y])) ** 2) < 0.05
    assert model.predict_quantiles(x).shape == (80, 2, 3) and model.score_samples(x, both).shape == (80,)


def test_counts(rows):
    x, _ = rows
    counts = np.random.default_rng(3).poisson(np.exp(np.sin(x[:, 0])))
    model = GPRegressor(likelihood="poisson", kernel="se").fit(x, counts)
    assert (model.predict(x) > 0).all() and model.model_.describe()["likelihood"] == "poisson"
    draws = model.sample_y(x, 5, joint=False)
    assert (draws == np.round(draws)).all()
    with pytest.raises(thiele.UnsupportedError):
        model.sample_y(x, 5)


def test_two_values_stay_numbers(rows):
    x, y = rows
    model = GPRegressor(kernel="se").fit(x, (y > 0).astype(float))
    assert model.model_.classes == []


@pytest.mark.parametrize(
    "names", [["low", "mid", "high"], [10, 9, -1], [2.0, 1.0, 1e9], [True, False], ["1", "1.0", "b"]]
)
def test_labels(rows, names):
    x, y = rows
    labels = np.array(names)[np.digitize(y, [-0.5, 0.5] if len(names) == 3 else [0.0])]
    model = GPClassifier(kernel="se", iterations=5).fit(x, labels)
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    probability = model.predict_proba(x)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert model.score(x, labels) > 0.85 and model.predict(x).dtype == labels.dtype
    picked = probability[np.arange(80), np.searchsorted(model.classes_, labels)]
    np.testing.assert_allclose(model.score_samples(x, labels), np.log(picked))


def test_ordered_labels(rows):
    x, y = rows
    labels = np.array(["low", "mid", "high"])[np.digitize(y, [-0.5, 0.5])]
    model = GPClassifier(kernel="se", likelihood="ordinal", iterations=5, classes=["low", "mid", "high"]).fit(x, labels)
    assert list(model.classes_) == ["high", "low", "mid"] and model.model_.classes == ["low", "mid", "high"]
    assert model.score(x, labels) > 0.85


def test_partial_fit_goes_on(rows):
    x, y = rows
    model = GPRegressor(kernel="se", inducing=15).partial_fit(x[:40], y[:40])
    assert model.method_ not in ("exact", "dense")
    before = model.score(x, y)
    assert model.partial_fit(x[40:], y[40:]).score(x, y) > before
    labels = np.where(y > 0, "high", "low")
    classifier = GPClassifier(kernel="se", inducing=15, epochs=30).partial_fit(
        x[:40], labels[:40], classes=["high", "low"]
    )
    assert classifier.partial_fit(x[40:], labels[40:]).score(x, labels) > 0.85
    with pytest.raises(ValueError, match="label 'odd'"):
        classifier.partial_fit(x[:2], ["odd", "low"])


def test_partial_fit_after_an_exact_fit(rows):
    x, y = rows
    model = GPRegressor(method="exact", kernel="se").fit(x[:40], y[:40]).partial_fit(x[40:], y[40:])
    whole = GPRegressor(method="exact", kernel="se").fit(x, y)
    np.testing.assert_array_equal(model.predict(x), whole.predict(x))


@pytest.mark.parametrize(
    "options", [{"method": "exact"}, {"method": "variational", "inducing": 12}, {"likelihood": "student-t"}]
)
def test_weights_are_repeated_rows(rows, options):
    x, y = rows[0][:40], rows[1][:40]
    weights = np.arange(40) % 4
    order = np.random.default_rng(3).permutation(weights.sum())
    kernel = (
        {"kernel": "se", "iterations": 5, "epochs": 5} if "inducing" in options else {"kernel": "se", "iterations": 5}
    )
    weighted = GPRegressor(**options, **kernel).fit(x, y, sample_weight=weights)
    repeated = GPRegressor(**options, **kernel).fit(np.repeat(x, weights, axis=0)[order], np.repeat(y, weights)[order])
    np.testing.assert_array_equal(weighted.predict(x), repeated.predict(x))
    plain = GPRegressor(**options, **kernel).fit(x, y)
    assert np.abs(plain.predict(x) - weighted.predict(x)).max() > 1e-4


def test_rows_without_weight_are_gone(rows):
    x, y = rows
    keep = np.arange(80) % 3 > 0
    labels = np.where(y > 0, "high", "low")
    for made, target in (
        (GPRegressor(kernel="se", iterations=5), y),
        (GPClassifier(kernel="se", iterations=5), labels),
    ):
        weighted = clone(made).fit(x, target, sample_weight=keep.astype(float))
        fewer = clone(made).fit(x[keep], target[keep])
        np.testing.assert_array_equal(weighted.predict(x), fewer.predict(x))
        assert weighted.score(x, target, sample_weight=keep) == pytest.approx(fewer.score(x[keep], target[keep]))


def test_classes_without_weight_are_gone(rows):
    x, y = rows
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.5])]
    classifier = GPClassifier(kernel="se", iterations=3).fit(x, labels, sample_weight=labels != "middle")
    assert list(classifier.classes_) == ["high", "low"]
    with pytest.raises(ValueError, match="two classes"):
        GPClassifier().fit(x, labels, sample_weight=labels == "low")


def test_weights_of_frames_and_of_rows_that_come_later(frame):
    inputs = frame[["a", "b", "site"]]
    double = GPRegressor(method="exact", kernel="se").fit(inputs, frame["y"], sample_weight=2.0)
    import pandas

    twice = pandas.concat([inputs, inputs])
    repeated = GPRegressor(method="exact", kernel="se").fit(twice, pandas.concat([frame["y"], frame["y"]]))
    np.testing.assert_array_equal(double.predict(inputs), repeated.predict(inputs))
    more = GPRegressor(method="exact", kernel="se").fit(inputs[:40], frame["y"][:40], sample_weight=np.full(40, 2.0))
    more.partial_fit(inputs[40:], frame["y"][40:])
    whole = GPRegressor(method="exact", kernel="se").fit(inputs, frame["y"], sample_weight=np.repeat([2.0, 1.0], 40))
    np.testing.assert_array_equal(more.predict(inputs), whole.predict(inputs))


def test_weights_that_cannot_be(rows):
    x, y = rows
    for weights, message in (
        (np.full(80, -1.0), "sample_weight.*row 1.*not negative"),
        (np.zeros(80), "all weights are zero"),
    ):
        with pytest.raises(thiele.DataError, match=message):
            GPRegressor(kernel="se").fit(x, y, sample_weight=weights)
    with pytest.raises(ValueError, match="79 sample weights for 80 rows"):
        GPRegressor(kernel="se").fit(x, y, sample_weight=np.ones(79))
    with pytest.raises(thiele.UnsupportedError, match="knows no weights"):
        GPRegressor(kernel="se", method="dtc").fit(x, y, sample_weight=np.arange(80.0))


def test_searches_pipelines_and_workers(rows):
    x, y = rows
    base = GPRegressor(method="exact", iterations=3)
    search = GridSearchCV(base, {"kernel": ["se", "linear"]}, cv=2, n_jobs=2).fit(x, y)
    assert search.best_params_ == {"kernel": "se"}
    piped = make_pipeline(StandardScaler(), clone(base).set_params(kernel="se"))
    assert np.corrcoef(cross_val_predict(piped, x, y, cv=3), y)[0, 1] > 0.9
    importance = permutation_importance(search.best_estimator_, x, y, n_repeats=2, random_state=0)
    assert importance.importances_mean.shape == (2,)


def test_errors(rows):
    x, y = rows
    with pytest.raises(NotFittedError):
        GPRegressor().predict(x)
    with pytest.raises(ValueError, match="two classes"):
        GPClassifier().fit(x, np.zeros(80))
    with pytest.raises(thiele.ArgumentError, match="matern72"):
        GPRegressor(kernel="matern72").fit(x, y)
