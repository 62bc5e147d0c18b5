"""The estimators in the hands of a scikit-learn user: pipeline, clone, pickle, grid search, data frames, precision."""

import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import isthmus
from isthmus import BottleneckAutoencoder, BottleneckClassifier, BottleneckRegressor, Limits, discover, tasks
from isthmus.discovery.data.splitting import heldout_rows
from isthmus.errors import DataError, ShapeError
from tolerances import rounding

SMALL: dict[str, Any] = {"ridge": 3e-3, "starts": 1, "evaluations": 60, "effort": "quick", "random_state": 0}
BRIEF = SMALL | {"evaluations": 20}  # for what does not depend on how good the fit is
ESTIMATORS = (BottleneckRegressor, BottleneckClassifier, BottleneckAutoencoder)


def data() -> tuple[np.ndarray, np.ndarray]:
    task = tasks.teacher(2, d_in=8, d_out=4, latent_dim=3, num_samples=120, noise=0.02, seed=1)
    assert task.y is not None
    return task.x, task.y


X, Y = data()
LABELS = np.array(["low", "high"])[(Y[:, 0] > np.median(Y[:, 0])).astype(int)]
TARGETS: dict[type, Any] = {BottleneckRegressor: Y, BottleneckClassifier: LABELS, BottleneckAutoencoder: None}


@pytest.fixture(scope="module")
def regressor() -> BottleneckRegressor:
    return BottleneckRegressor(**SMALL).fit(X, Y)


@pytest.fixture(scope="module")
def classifier() -> BottleneckClassifier:
    return BottleneckClassifier(**SMALL).fit(X, LABELS)


@pytest.fixture(scope="module")
def autoencoder() -> BottleneckAutoencoder:
    return BottleneckAutoencoder(**SMALL).fit(X)


def test_all_three_keep_what_their_docstrings_name_and_three_things_alike(
    regressor: BottleneckRegressor, classifier: BottleneckClassifier, autoencoder: BottleneckAutoencoder
) -> None:
    for fitted in (regressor, classifier, autoencoder):
        learned = {name for name in vars(fitted) if name.endswith("_") and not name.startswith(("_", "n_features"))}
        attributes = str(inspect.getdoc(type(fitted))).partition("Attributes:")[2]
        assert learned == set(re.findall(r"^ {4}(\w+_): ", attributes, re.MULTILINE))
        assert learned >= {"rank_", "scree_", "discovery_"}
        assert fitted.rank_ == fitted.discovery_.rank == fitted.transform(X).shape[1]


@pytest.mark.slow
def test_the_regressor_is_discover_with_the_same_arguments(regressor: BottleneckRegressor) -> None:
    found = discover(X, Y, ridge=3e-3, starts=1, limits=Limits(evaluations=60), seed=0, workers=1, effort="quick")
    assert regressor.rank_ == found.rank == regressor.discovery_.rank
    assert regressor.scree_.identical(found.scree)
    np.testing.assert_array_equal(regressor.predict(X), found.predict(X))
    np.testing.assert_array_equal(regressor.transform(X), found.transform(X))


def test_the_regressor_predicts_and_scores(regressor: BottleneckRegressor) -> None:
    assert regressor.predict(X).shape == Y.shape
    assert regressor.score(X, Y) > 0.8
    assert not hasattr(regressor, "inverse_transform")


def test_predictions_are_not_rounded_to_the_precision_of_the_samples() -> None:
    """Unix seconds, and numbers that float32 does not hold."""
    x = X.astype(np.float32)
    for offset, unit in ((1.7e9, 10.0), (0.0, 1e60)):
        targets = offset + unit * Y
        fitted = BottleneckRegressor(**SMALL).fit(x, targets)
        assert fitted.score(x, targets) == pytest.approx(fitted.score(x.astype(float), targets), abs=1e-6)
        assert fitted.predict(x).dtype == np.float64


@pytest.mark.parametrize("kind", TARGETS)
def test_what_was_not_fitted_says_so(kind: type[Any]) -> None:
    for name in ("predict", "transform", "predict_proba", "inverse_transform"):
        if hasattr(kind, name):
            with pytest.raises(NotFittedError):
                getattr(kind(), name)(X)


def test_a_series_gives_its_target_its_name() -> None:
    for y in (pd.Series(Y[:, 0], name="yield"), pd.DataFrame({"yield": Y[:, 0]})):
        assert BottleneckRegressor(**SMALL).fit(X, y).discovery_.target_names == ("yield",)


def test_tensors_are_samples_also_with_gradients_and_of_types_that_numpy_lacks() -> None:
    x, y = torch.tensor(X, requires_grad=True), torch.from_numpy(Y).bfloat16()
    fitted = BottleneckRegressor(**SMALL).fit(x, y)
    assert fitted.predict(x).shape == Y.shape
    np.testing.assert_array_equal(fitted.transform(x), fitted.transform(X))


def test_the_first_coordinate_is_the_one_that_predictions_miss_most(regressor: BottleneckRegressor) -> None:
    found, z = regressor.discovery_, regressor.transform(X[~heldout_rows(len(X), seed=0)])
    assert z.shape[1] >= 2
    whole, changes = found.decode(z), list[float]()
    for c in range(z.shape[1]):
        held = z.copy()
        held[:, c] = z[:, c].mean()
        changes.append(float((np.square(found.decode(held) - whole) / Y.var(0)).sum()))
    assert changes == sorted(changes, reverse=True)


def test_a_target_that_does_not_vary_needs_no_coordinate() -> None:
    flat = BottleneckRegressor(**SMALL).set_output(transform="pandas").fit(X, np.full(len(X), 3.0))
    assert flat.rank_ == 0
    assert flat.transform(X).shape == (len(X), 0)
    assert set(flat.predict(X)) == {3.0}


@pytest.mark.slow
def test_one_target_comes_back_as_it_came() -> None:
    single = BottleneckRegressor(**SMALL).fit(X, Y[:, 0])
    assert single.predict(X).shape == (len(X),)
    directions = single.discovery_.directions
    assert directions is not None
    assert directions.shape == (single.rank_, X.shape[1]), "the combinations of the inputs that it depends on"
    assert BottleneckRegressor(encoder="curved", **SMALL).fit(X, Y[:, 0]).rank_ == 1


def test_the_classifier_predicts_labels_and_probabilities(classifier: BottleneckClassifier) -> None:
    assert classifier.classes_.tolist() == ["high", "low"]
    chances = classifier.predict_proba(X)
    np.testing.assert_allclose(chances.sum(1), 1.0, rtol=rounding(size=2))
    assert (classifier.predict(X) == classifier.classes_[chances.argmax(1)]).all()
    assert classifier.score(X, LABELS) > 0.8
    assert classifier.discovery_.target_names == ("high", "low")


def test_the_autoencoder_goes_there_and_back(autoencoder: BottleneckAutoencoder) -> None:
    coordinates = autoencoder.transform(X)
    assert coordinates.shape == (len(X), autoencoder.n_components_)
    np.testing.assert_allclose(
        autoencoder.inverse_transform(coordinates), autoencoder.discovery_.predict(X), rtol=rounding(size=100)
    )
    assert 0.5 < autoencoder.score(X) <= 1.0
    with pytest.raises(ShapeError, match="coordinates as columns"):
        autoencoder.inverse_transform(np.zeros((3, autoencoder.n_components_ + 1)))


@pytest.mark.dear(1)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_pipeline_with_data_frames_names_its_coordinates(kind: type[Any]) -> None:
    frame = pd.DataFrame(X, columns=[f"sensor {i}" for i in range(X.shape[1])], index=range(500, 500 + len(X)))
    steps: Any = make_pipeline(StandardScaler(), kind(**BRIEF)).set_output(transform="pandas")
    coordinates = steps.fit(frame, TARGETS[kind]).transform(frame)
    fitted = steps[-1]
    assert list(coordinates.columns) == [f"{kind.__name__.lower()}{i}" for i in range(fitted.discovery_.rank)]
    assert coordinates.columns.tolist() == steps.get_feature_names_out().tolist()
    assert (coordinates.index == frame.index).all()
    assert fitted.feature_names_in_.tolist() == list(fitted.discovery_.input_names) == list(frame.columns)


@pytest.mark.parametrize("name", ["regressor", "classifier", "autoencoder"])
def test_a_pickled_copy_gives_the_same_bits_and_a_clone_is_unfitted(name: str, request: pytest.FixtureRequest) -> None:
    fitted = request.getfixturevalue(name)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.transform(X), fitted.transform(X))
    fresh: Any = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    assert not hasattr(fresh, "discovery_")


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.slow
def test_a_grid_search_picks_the_ridge_that_predicts(kind: type[Any]) -> None:
    search = GridSearchCV(kind(**BRIEF), {"ridge": [3e-3, 1e3]}, cv=2).fit(X, TARGETS[kind])
    assert search.best_params_ == {"ridge": 3e-3}
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] > scores[1] + 0.1


@pytest.mark.parametrize("name", ["regressor", "classifier", "autoencoder"])
def test_coordinates_keep_their_precision_and_predictions_that_of_the_targets(
    name: str, request: pytest.FixtureRequest
) -> None:
    fitted = request.getfixturevalue(name)
    outputs = {"regressor": "predict", "classifier": "predict_proba", "autoencoder": "inverse_transform"}[name]
    for dtype in (np.float32, np.float64):
        coordinates = fitted.transform(X.astype(dtype))
        given, kept = (coordinates, dtype) if name == "autoencoder" else (X.astype(dtype), np.float64)
        assert coordinates.dtype == dtype
        assert getattr(fitted, outputs)(given).dtype == kept


@pytest.mark.slow
def test_the_number_of_threads_does_not_change_the_numbers(regressor: BottleneckRegressor) -> None:
    many = BottleneckRegressor(**SMALL, n_jobs=3).fit(X, Y)
    np.testing.assert_array_equal(many.predict(X), regressor.predict(X))
    with pytest.raises(ValueError, match="a whole number of at least one"):
        discover(X, Y, workers=0, effort="quick")


@pytest.mark.slow
def test_arguments_drawn_with_numpy_are_those_of_python(tmp_path: Path, regressor: BottleneckRegressor) -> None:
    drawn = {"ridge": np.array([3e-3]), "starts": np.int64(1), "evaluations": np.int64(60), "depth": np.int64(11)}
    same = BottleneckRegressor(**drawn, effort=SMALL["effort"], random_state=np.int64(0)).fit(X, Y)
    np.testing.assert_array_equal(same.predict(X), regressor.predict(X))
    same.discovery_.save(tmp_path)
    assert isthmus.load(tmp_path).settings == regressor.discovery_.settings
    with pytest.raises(TypeError, match=r"starts=1\.5: needs a whole number"):
        BottleneckRegressor(starts=1.5).fit(X, Y)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_random_state_may_be_a_generator_or_nothing(kind: Callable[[int], Any], regressor: BottleneckRegressor) -> None:
    one, other = (BottleneckRegressor(**(SMALL | {"random_state": kind(3)})).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    drawn = kind(3)
    seed = int(drawn.randint(2**31 - 1) if isinstance(drawn, np.random.RandomState) else drawn.integers(2**31 - 1))
    assert one.discovery_.settings["seed"] == seed
    assert not np.array_equal(one.predict(X), regressor.predict(X)), "the seed matters, so the above could fail"


@pytest.mark.slow
def test_verbose_writes_lines_and_silence_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    BottleneckRegressor(**BRIEF).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    BottleneckRegressor(**BRIEF, verbose=True).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("[BottleneckRegressor]   0 % training")
    assert 1 <= len(err.splitlines()) <= 11


@pytest.mark.slow
def test_a_short_time_ends_the_search_with_what_it_has() -> None:
    hurried = BottleneckRegressor(max_seconds=0.2, random_state=0).fit(X, Y)
    assert any("time limit" in text for text in hurried.discovery_.warnings)
    assert hurried.predict(X).shape == Y.shape


@pytest.mark.slow
def test_weights_are_heard_and_checked(regressor: BottleneckRegressor) -> None:
    half = (np.arange(len(X)) % 2).astype(float)
    weighted = BottleneckRegressor(**SMALL).fit(X, Y, sample_weight=half)
    labelled = pd.Series(half, index=np.arange(len(X))[::-1])  # by whatever labels, it goes row for row
    assert BottleneckRegressor(**SMALL).fit(X, Y, sample_weight=labelled).rank_ == weighted.rank_
    alone = BottleneckRegressor(**SMALL).fit(X[1::2], Y[1::2], sample_weight=np.ones(len(X) // 2))
    np.testing.assert_array_equal(weighted.predict(X), alone.predict(X))
    assert not np.array_equal(weighted.predict(X), regressor.predict(X))
    with pytest.raises(DataError, match="weights >= 0, got -1 in row 3"):
        BottleneckAutoencoder(**SMALL).fit(X, sample_weight=np.where(np.arange(len(X)) == 2, -1.0, 1.0))
    with pytest.raises(DataError, match="one weight per row"):
        BottleneckClassifier(**SMALL).fit(X, LABELS, sample_weight=[1.0])


def test_a_class_without_weight_is_no_class() -> None:
    only = BottleneckClassifier(**SMALL).fit(X, LABELS, sample_weight=LABELS == "low")
    assert only.classes_.tolist() == ["low"]
    assert set(only.predict(X)) == {"low"}
    assert only.rank_ == 0


def test_isthmus_does_not_import_scikit_learn() -> None:
    code = "import sys, isthmus; assert not {'sklearn', 'torch'} & set(sys.modules), sorted(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "BottleneckRegressor" in isthmus.__all__


def test_counts_that_are_none_are_refused_by_name() -> None:
    for name in ("depth", "starts", "evaluations"):
        with pytest.raises(TypeError, match=f"{name}=2.5: needs a whole number"):
            BottleneckRegressor(**{name: 2.5}).fit(X, Y)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_groups_and_the_order_of_samples_reach_the_search(kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    heard: dict[str, Any] = {}

    class Heard(Exception):
        """Nothing is searched."""

    def asked(*_: object, **arguments: object) -> None:
        heard.update(arguments)
        raise Heard

    monkeypatch.setattr("isthmus.estimators.shell.discover", asked)
    labels = np.arange(len(X)) // 4
    copied: Any = clone(kind(ordered=True))
    with pytest.raises(Heard):
        copied.fit(X, TARGETS[kind], groups=labels.tolist())
    assert heard["ordered"] is True
    np.testing.assert_array_equal(heard["groups"], labels)
    with pytest.raises(Heard):
        kind().fit(X, TARGETS[kind])
    assert (heard["ordered"], heard["groups"]) == (False, None)


def test_scikit_learn_routes_groups_to_the_fit() -> None:
    class Heard(BottleneckRegressor):
        """Notes its groups."""

        def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "Heard":
            self.heard_ = groups
            return self

    labels = np.arange(len(X)) // 4
    with config_context(enable_metadata_routing=True):
        routed: Any = make_pipeline(StandardScaler(), Heard().set_fit_request(groups=True)).fit(X, Y, groups=labels)
    np.testing.assert_array_equal(routed[-1].heard_, labels)
