"""Doubts that the search settles itself, end to end on small tasks: an arc, too few rows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import isthmus
from isthmus import Limits, Verdict, tasks
from isthmus.reports.pictures import pictures_of
from isthmus.reports.verdict import verdict_of
from isthmus.tasks import Activation

pytestmark = pytest.mark.filterwarnings("ignore:Neighbouring rows resemble")  # along the arc they do

# held-out rows lose at most .04 % of the arc so, from 21 starts; after 224 gradients up to .1 %, from which it is asked
# who loses it, and one start of seven left a doubt
FEW = {"limits": Limits(evaluations=336), "ridge": 3e-4, "starts": 1, "workers": 1}


def arc() -> np.ndarray:
    """Points along most of a circle: two columns, one coordinate."""
    angle = 1.7 * np.pi * np.arange(120) / 120
    return np.stack([np.cos(angle), np.sin(angle)], 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("remedied") / "run"


@pytest.fixture(scope="module")
def found(folder: Path) -> isthmus.Discovery:
    return isthmus.discover(arc(), out=folder, **FEW)  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
def test_an_arc_is_followed_by_one_coordinate_without_being_asked(found: isthmus.Discovery) -> None:
    assert (found.rank, found.verdict) == (1, Verdict.CONFIDENT), found.reasons
    (one,) = found.remedies
    assert (one["name"], one["rank"], one["verdict"]) == ("deeper middle", 1, "CONFIDENT")
    assert found.depth_path is not None
    assert found.depth_path.deep_rank == 1


@pytest.mark.slow
def test_its_halves_are_those_of_the_deepest_networks(found: isthmus.Discovery) -> None:
    x = arc()
    assert found.transform(x).shape == (120, 1)
    lost = np.square(found.predict(x) - x).sum() / np.square(x - x.mean(0)).sum()
    assert lost < 0.02
    coordinate = found.transform(x)[:, 0]
    assert min((np.diff(coordinate) > 0).mean(), (np.diff(coordinate) < 0).mean()) == 0.0, "it runs along the arc"


@pytest.mark.slow
def test_what_was_done_is_kept_and_said(found: isthmus.Discovery, folder: Path) -> None:
    again = isthmus.load(folder)
    assert [dict(one) for one in again.remedies] == [dict(one) for one in found.remedies]
    (line,) = [line for line in verdict_of(again).lines if line.label == "Doubts"]
    assert "layers in the middle (1, confident)" in line.text


@pytest.mark.slow
def test_the_page_says_that_depth_decided_where_the_objective_curve_shows_another_rank(
    found: isthmus.Discovery,
) -> None:
    captions = {picture.name: picture.caption for picture in pictures_of(found)}
    assert "deeper ones decided for 1" in captions["objective_curve"]
    undecided = {picture.name: picture.caption for picture in pictures_of(replace(found, remedies=()))}
    assert "deeper ones" not in undecided["objective_curve"]


@pytest.mark.slow
def test_in_a_hurry_the_doubt_is_said_instead(found: isthmus.Discovery) -> None:
    quick = isthmus.discover(arc(), effort="quick", **FEW)  # pyright: ignore[reportArgumentType]
    assert quick.remedies == ()
    assert (quick.rank, quick.verdict) == (2, Verdict.DOUBTFUL)
    assert quick.rank > found.rank


@pytest.mark.slow
def test_twenty_rows_of_noise_are_too_few() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(20, 4)), rng.normal(size=(20, 2))
    found = isthmus.discover(x, y, **FEW)  # pyright: ignore[reportArgumentType]
    assert found.verdict is Verdict.TOO_FEW_DATA
    assert found.remedies == ()
    assert "Too few data" in verdict_of(found).headline


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "seed"), [(30, 2), (30, 3), (30, 5), (24, 2), (40, 3)])
def test_of_few_rows_no_rank_is_wrong_without_a_doubt(rows: int, seed: int) -> None:
    """Maps through 3 dimensions were read as 2 without one, at 99 %: the third changes little that 24 rows tell."""
    task = tasks.teacher(3, d_in=12, d_out=8, num_samples=rows, noise=0.02, seed=seed)
    found = isthmus.discover(task.x, task.y, workers=1)
    assert found.rank == 3 or found.verdict is not Verdict.CONFIDENT, found.reasons
    assert found.rank == 3 or (found.probability or 0) < 0.8


def test_an_unknown_effort_is_refused() -> None:
    with pytest.raises(ValueError, match="effort"):
        isthmus.discover(arc(), effort="much")


@pytest.mark.slow
def test_remedies_give_the_same_bits_in_a_folder_and_out_of_it_with_one_worker_and_two(
    found: isthmus.Discovery,
) -> None:
    again = isthmus.discover(arc(), **{**FEW, "workers": 2})  # pyright: ignore[reportArgumentType]
    assert np.array_equal(again.predict(arc()), found.predict(arc()))
    assert [dict(one) for one in again.remedies] == [dict(one) for one in found.remedies]


@pytest.mark.slow
def test_targets_on_a_surface_are_not_taken_for_independent_ones() -> None:
    """Four targets of three hidden numbers were read as 4, without a doubt: as coordinates they fill 3.1 dimensions."""
    task = tasks.teacher(
        3, noise=0.02, latent_dim=4, d_in=16, d_out=4, num_samples=1013, seed=199577046, activation=Activation.RELU
    )
    found = isthmus.discover(task.x, task.y, encoder="curved", effort="quick", workers=1)
    assert found.rank == 3 or found.verdict is not Verdict.CONFIDENT
    # with some libraries of products the held-out error bends at 3 already, and nothing has to be said of coordinates
    agree = {found.readings[f"{name}_rank"] for name in ("objective", "scree", "jacobian")} == {4}
    assert not agree or "the coordinates of the rows fill 3" in " ".join(found.reasons)


def in_a_larger_unit(name: str) -> tuple[np.ndarray, int]:
    """Arrays without names, some of whose columns are in a unit that makes them hold nearly all of the variance."""
    rng = np.random.default_rng(4)
    if name == "one of eight":
        return rng.normal(size=(200, 8)) * [100, *[1] * 7], 8
    if name == "seven of twenty":
        return rng.normal(size=(300, 20)) * ([100] * 7 + [1] * 13), 20
    if name == "a curve beside waves in noise":
        t, z = rng.uniform(0, 6, (500, 1)), rng.normal(size=(500, 5))
        curve = np.sin(t @ rng.normal(size=(1, 12)) + rng.uniform(0, 6, 12))
        waves = np.sin(0.7 * z @ rng.normal(size=(5, 28)) + rng.uniform(0, 6, 28))
        return np.hstack([100 * curve, waves + 0.25 * rng.normal(size=waves.shape)]), 6
    t, z = rng.uniform(0, 4 * np.pi, 300), rng.uniform(-1, 1, size=(300, 2))
    helix = np.column_stack([np.cos(t), np.sin(t), t / 4, np.cos(t + 1) + t / 8])
    return np.hstack([1e4 * helix, np.sin(2.5 * z @ rng.normal(size=(2, 4)) + rng.normal(size=4))]), 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["one of eight", "seven of twenty", "a helix beside a surface", "a curve beside waves in noise"]
)
def test_columns_in_a_larger_unit_are_not_the_answer(name: str) -> None:
    """They were, with confidence, where all columns were scaled by one number: the first was 1, at 99.7 %."""
    x, rank = in_a_larger_unit(name)
    found = isthmus.discover(x, workers=1)
    lifted = "lost, though others tell of them" in found.reasons[0]  # of columns in noise one scale is the answer
    assert found.rank >= rank or lifted, found.summary()
    assert found.rank == rank or found.verdict is not Verdict.CONFIDENT


def with_a_weak_dimension(share: float) -> tuple[np.ndarray, np.ndarray]:
    """Five targets of two curved coordinates and of a product that has so much of their variance."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 6))
    parts = np.column_stack([np.tanh(x[:, 0] + x[:, 1]), x[:, 0] ** 2 - x[:, 1], x[:, 2] * x[:, 3]])
    parts = (parts - parts.mean(0)) / parts.std(0)
    along = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    strong = parts[:, :2] @ along[:2]
    return x, strong / strong.std(0) + (5 * share) ** 0.5 * parts[:, 2:] * along[2]


@pytest.mark.slow
def test_a_dimension_too_weak_for_its_ridge_is_doubted_and_looked_for_at_smaller_ones() -> None:
    """It was 2 with confidence, .96 % of the variance lost."""
    x, y = with_a_weak_dimension(0.01)
    quick = isthmus.discover(x, y, effort="quick", workers=1)
    assert (quick.rank, quick.verdict) == (2, Verdict.DOUBTFUL)
    assert "further dimension" in quick.reasons[0]
    found = isthmus.discover(x, y, workers=1)
    assert found.rank == 3
    assert found.remedies[0]["name"] == "smaller ridges"
    assert found.heldout_error < 0.1 * quick.heldout_error
    told = isthmus.discover(x, y, workers=1, ridge=[3e-3, 1e-3, 3e-4])
    assert (told.rank, told.verdict) == (2, Verdict.DOUBTFUL), "ridges that were given are kept"
    assert all(one["name"] != "smaller ridges" for one in told.remedies)


@pytest.mark.slow
def test_without_one_nothing_is_doubted() -> None:
    x, y = with_a_weak_dimension(0.0)
    found = isthmus.discover(x, y, workers=1)
    assert (found.rank, found.verdict) == (2, Verdict.CONFIDENT)
    assert found.remedies == ()
