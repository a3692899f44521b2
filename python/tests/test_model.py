"""Models of tables: the command's numbers, predictions in every form, files, updates, scores."""

import copy
import os
import pickle
import subprocess
import threading

import numpy as np
import pytest

import thiele


def test_same_file_as_the_command(tmp_path):
    command = os.environ.get("THIELE_COMMAND")
    if not command:
        pytest.skip("THIELE_COMMAND names no command")
    table, theirs, ours = tmp_path / "t.csv", tmp_path / "theirs.thiele", tmp_path / "ours.thiele"
    thiele.Table.generate(60, seed=3).write(table)
    options = ["--target", "strength", "--ignore", "row", "--kernel", "se", "--method", "exact", "--seed", "4"]
    subprocess.run([command, "fit", table, *options, "-o", theirs], check=True, capture_output=True)
    thiele.fit(table, "strength", ignore="row", kernel="se", method="exact", seed=4).save(ours)
    assert ours.read_bytes() == theirs.read_bytes()


def test_what_it_is(model):
    assert model.targets == ["y"] and model.inputs == ["a", "b", "site", "kind"] and model.classes == []
    assert model.stop in ("converged", "iterations") and model.describe()["method"] == "exact"
    assert 0.001 < model.parameters["noise"] < 0.1
    mean, variance = model.loo()
    assert mean.shape == variance.shape == (80,)
    assert "exact" in repr(model) and "<table>" in model._repr_html_()
    assert model.holdout is None


def test_predictions_agree(model, frame):
    made = model.predict(frame, quantiles=[0.05, 0.5, 0.95], samples=3, seed=5)
    assert made.mean.shape == (80,) and made.quantiles.shape == (80, 3) and made.samples.shape == (80, 3)
    np.testing.assert_allclose(made.quantiles[:, 1], made.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(made.quantiles[:, 2] - made.mean, 1.6448536269514722 * made.sd, rtol=1e-6)
    sites, kinds = (model.describe()["columns"]["inputs"][i]["levels"] for i in (2, 3))
    x = np.column_stack(
        [frame["a"], frame["b"], [sites.index(s) for s in frame["site"]], [kinds.index(str(k)) for k in frame["kind"]]]
    )
    mean, variance = model.predict_rows(x)
    np.testing.assert_allclose(mean, made.mean, rtol=1e-12)
    np.testing.assert_allclose(variance, made.variance, rtol=1e-9)
    np.testing.assert_array_equal(model.predict_rows(x, variance=False), mean)
    joint, covariance = model.predict_joint(frame)
    np.testing.assert_allclose(joint, mean, rtol=1e-9)
    np.testing.assert_allclose(np.diag(covariance), variance, rtol=1e-6)
    one, spread = model.row(x[7], variance=True)
    assert one == pytest.approx(mean[7]) and spread == pytest.approx(variance[7]) and model.row(list(x[7])) == one
    latent = model.predict(frame, latent=True)
    np.testing.assert_allclose(made.variance - latent.variance, model.parameters["noise"], rtol=1e-6)
    columns = list(made.to_frame().columns)
    assert columns == ["mean", "sd", "q0.05", "q0.5", "q0.95", "s1", "s2", "s3"]


def test_rows_of_the_wrong_size(model):
    with pytest.raises(ValueError, match="a row of this model has 4 values"):
        model.row([1.0])
    with pytest.raises(thiele.ArgumentError, match="4 values"):
        model.predict_rows(np.ones((3, 2)))
    with pytest.raises(thiele.ArgumentError):
        model.row([np.nan, 0.0, 0.0, 0.0])


def test_files_pickles_and_copies(model, frame, tmp_path):
    model.save(tmp_path / "m.thiele")
    again = thiele.Model.load(tmp_path / "m.thiele")
    pickled = pickle.loads(pickle.dumps(model))
    expected = model.predict(frame).mean
    for other in (again, pickled, copy.copy(model), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.predict(frame).mean, expected)
    (tmp_path / "broken.thiele").write_bytes(model.to_bytes()[:-9])
    with pytest.raises(thiele.FormatError):
        thiele.Model.load(tmp_path / "broken.thiele")


def test_scores_and_densities(model, frame):
    scores = model.score(frame)
    made = model.predict(frame)
    assert scores.rmse == pytest.approx(np.sqrt(np.mean((made.mean - frame["y"]) ** 2)))
    densities = model.log_densities(frame)
    z = (frame["y"] - made.mean) / made.sd
    np.testing.assert_allclose(densities, -0.5 * (np.log(2 * np.pi * made.variance) + z**2), rtol=1e-9)
    assert -np.mean(densities) == pytest.approx(scores["nlpd"])
    assert "nlp" not in scores and dict(scores)["rows"] == 80
    with pytest.raises(AttributeError):
        _ = scores.nlp


def test_classes(frame):
    model = thiele.fit(frame[["a", "b", "label"]], "label", kernel="se")
    made = model.predict(frame)
    assert model.classes == ["high", "low"] and made.mean is None
    np.testing.assert_allclose(made.probability.sum(axis=1), 1.0)
    assert np.mean(made.label == frame["label"]) > 0.9
    np.testing.assert_allclose(model.predict_probabilities(frame[["a", "b"]]), made.probability, rtol=1e-9)
    picked = made.probability[np.arange(80), (frame["label"] == "low").astype(int)]
    np.testing.assert_allclose(model.log_densities(frame), np.log(picked), rtol=1e-9)
    assert list(made.to_frame().columns) == ["label", "p.high", "p.low"]


def test_targets_with_a_model_each(frame):
    model = thiele.fit(frame, ["y", "label"], likelihood="gaussian; bernoulli", kernel="se", inputs=["a", "b"])
    made = model.predict(frame, quantiles=[0.5])
    assert list(made.parts) == ["y", "label"]
    columns = list(made.to_frame().columns)
    assert columns == ["mean.y", "sd.y", "q0.5.y", "label.label", "p.label.high", "p.label.low"]
    assert set(model.score(frame)) == {"y", "label"}
    densities = model.log_densities(frame)
    assert densities.shape == (80, 2) and np.isfinite(densities).all()


def test_densities_of_another_likelihood(rows):
    x, y = rows
    table = {"a": x[:, 0], "count": np.round(np.exp(np.sin(x[:, 0])))}
    model = thiele.fit(table, "count", likelihood="poisson", kernel="se")
    assert -np.mean(model.log_densities(table)) == pytest.approx(model.score(table).nlpd)


def test_missing_rows(model, frame):
    holes = frame.copy()
    holes.loc[[3, 5], "a"] = np.nan
    with pytest.raises(thiele.DataError, match="row 4"):
        model.predict(holes)
    made = model.predict(holes, drop_missing=True)
    assert len(made) == 78 and 3 not in made.rows and 4 in made.rows
    assert np.isnan(model.log_densities(holes, drop_missing=True)[[3, 5]]).all()


def test_updates(frame):
    first = thiele.fit(frame[:40], "y", inputs=["a", "b"], compact=True, inducing=15, kernel="se")
    second = first.update(frame[40:], freeze=True)
    assert second.score(frame).rmse < first.score(frame).rmse and first.targets == second.targets
    timed = first.update(frame[40:].assign(t=np.arange(len(frame) - 40.0)), freeze=True, time="t", half_life=5.0)
    assert timed.score(frame[-5:]).rmse != second.score(frame[-5:]).rmse


def test_cross_validation(frame):
    made = thiele.cross_validate(frame, "y", folds=3, method="exact", kernel="se", inputs=["a", "b"])
    assert len(made.folds) == 3 and made.overall.rows == 80
    assert made.overall.nlpd == pytest.approx(
        np.average([f.nlpd for f in made.folds], weights=[f.rows for f in made.folds])
    )


def test_warnings_are_python_warnings(frame):
    with pytest.warns(thiele.ThieleWarning, match="constant|same in every row") as caught:
        thiele.fit({"a": frame["a"], "c": np.ones(80), "y": frame["y"]}, "y", method="exact", kernel="se")
    assert caught[0].filename == __file__


def test_two_threads_fit_at_once(frame):
    made = {}

    def work(seed):
        made[seed] = thiele.fit(frame, "y", method="exact", kernel="se", seed=seed, threads=1).to_bytes()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made[0] == thiele.fit(frame, "y", method="exact", kernel="se", seed=0, threads=1).to_bytes()


def test_fork_after_fit(model, frame):
    expected = model.predict(frame).mean
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(model.predict(frame).mean, expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


def batches(table, size):
    for first in range(0, len(table["y"]), size):
        yield {name: column[first : first + size] for name, column in table.items()}


def test_iterators_of_batches():
    x = np.random.default_rng(3).uniform(-3.0, 3.0, (4096, 1))
    table = {"a": x[:, 0], "y": np.sin(x[:, 0]) + 0.1 * np.random.default_rng(4).standard_normal(4096)}
    first = {name: column[:1024] for name, column in table.items()}
    rest = {name: column[1024:] for name, column in table.items()}
    model = thiele.fit(first, "y", compact=True, inducing=20, kernel="se", noise="gaussian", seed=1)
    at_once = model.update(rest, freeze=True)
    one_by_one = model.update(batches(rest, 1024), freeze=True)
    wanted = at_once.predict_rows(x[:50])
    for got, want in zip(one_by_one.predict_rows(x[:50]), wanted):
        assert np.allclose(got, want, rtol=1e-9)
    streamed = thiele.fit(batches(table, 1024), "y", inducing=20, kernel="se", noise="gaussian", seed=1)
    assert np.sqrt(np.mean((streamed.predict_rows(x)[0] - np.sin(x[:, 0])) ** 2)) < 0.02
    with pytest.raises(thiele.DataError, match="no batch"):
        thiele.fit(iter([]), "y")

    def broken():
        yield first
        raise RuntimeError("the wire was cut")

    with pytest.raises(RuntimeError, match="the wire"):
        model.update(broken())


@pytest.mark.parametrize(
    "options", [{"noise": "gaussian"}, {"noise": "gaussian", "mean": "linear"}, {"likelihood": "poisson"}]
)
def test_draws_of_samplers(options):
    random = np.random.default_rng(5)
    x = random.uniform(-3.0, 3.0, 50)
    y = (
        random.poisson(np.exp(np.sin(x)))
        if "likelihood" in options
        else 7.0 + np.sin(x) + 0.3 * random.standard_normal(50)
    )
    table = {"x": x, "y": y}
    model = thiele.fit(table, "y", method="hmc", kernel="se", draws=400, seed=1, **options)
    f = model.draws()
    sampling = model.describe()["sampling"]
    assert f.shape == (sampling["chains"], sampling["kept"] // sampling["chains"], 50)
    made = model.predict(table, latent=True)
    assert np.allclose(f.mean(axis=(0, 1)), made.mean, atol=1e-5)
    assert np.allclose(f.var(axis=(0, 1)), made.variance, rtol=1e-3, atol=1e-5)


def test_draws_by_arviz():
    arviz = pytest.importorskip("arviz")
    random = np.random.default_rng(5)
    x = random.uniform(-3.0, 3.0, 40)
    table = {"x": x, "y": np.sin(x) + 0.3 * random.standard_normal(40)}
    model = thiele.fit(table, "y", method="hmc", kernel="se", noise="gaussian", seed=1)
    data = model.to_arviz()
    assert data["posterior"]["f"].dims == ("chain", "draw", "row")
    assert float(arviz.rhat(data)["f"].max()) < 1.1


def test_models_without_draws(model):
    with pytest.raises(thiele.UnsupportedError, match="by exact has no draws: fit it by a sampler"):
        model.draws()


def test_weights_of_a_table(frame, tmp_path):
    table = frame.drop(columns="label").assign(w=np.arange(len(frame)) % 3)
    weighted = thiele.fit(table, "y", method="exact", kernel="se", weights="w")
    repeated = table.loc[table.index.repeat(table["w"])].assign(w=1)
    same = thiele.fit(repeated, "y", method="exact", kernel="se", weights="w")
    np.testing.assert_array_equal(weighted.predict(frame).mean, same.predict(frame).mean)
    weighted.save(tmp_path / "m.thiele")
    again = thiele.Model.load(tmp_path / "m.thiele")
    np.testing.assert_array_equal(again.predict(frame).mean, weighted.predict(frame).mean)
    assert "w" not in weighted.inputs


def test_report(model, frame, tmp_path):
    page = tmp_path / "report.html"
    report = model.report(frame, page, threads=1)
    assert report["report"] == 1 and report["data"]["rows"] == 80 and len(report["lamps"]) == 6
    assert report["scores"]["rmse"]["value"] == pytest.approx(model.score(frame).rmse)
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert "data" not in model.report()
    with pytest.raises(thiele.ArgumentError, match="not 'z'"):
        model.report(target="z")
