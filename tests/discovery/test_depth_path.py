"""The rank as a function of depth: an open arc falls to one coordinate, a closed circle does not."""

import math

import numpy as np
import pytest

import isthmus
from isthmus import Limits, discover, tasks
from isthmus.discovery.curves import Result
from isthmus.discovery.depth_path import DepthPath, two_do_not_hold
from isthmus.reports.depth_words import depth_sentence
from isthmus.theory.depth_lines import STRAIGHT_FROM

SLOPE = 0.15  # relative error allowed to a fitted slope


def arc(turn: float) -> np.ndarray:
    """120 points, evenly spread over this share of the unit circle."""
    angle = 2 * np.pi * turn * np.arange(120) / 120
    return np.stack([np.cos(angle), np.sin(angle)], 1)


def small_path(turn: float) -> isthmus.Discovery:
    return discover(arc(turn), ridge=3e-4, starts=1, limits=Limits(evaluations=224), depth_path=True)


@pytest.fixture(scope="module")
def discovered() -> isthmus.Discovery:
    return small_path(0.85)


@pytest.fixture(scope="module")
def opened(discovered: isthmus.Discovery) -> DepthPath:
    path = discovered.depth_path
    assert path is not None
    return path


def test_the_verdict_knows_what_deeper_networks_do(discovered: isthmus.Discovery) -> None:
    assert discovered.rank == 2
    assert any("deeper networks do with 1" in reason for reason in discovered.reasons)


def rows(between: dict[int, list[float]]) -> dict[tuple[int, int], Result]:
    return {(r, m): {"between": value} for r, values in between.items() for m, value in enumerate(values)}


@pytest.mark.parametrize(
    ("between", "stops"),
    [
        ({5: [0.01, 0.01], 4: [2.0, 2.0], 3: [1.5, 3.0]}, True),
        ({5: [0.01, 0.01], 4: [2.0, 2.0], 3: [1.5, 0.1]}, False),  # it holds when deep
        ({5: [0.01, 0.01], 4: [0.02, 0.02], 3: [2.0, 2.0]}, False),  # one alone may be a failed training
        ({5: [0.5, 0.5], 4: [1.9, 1.9], 3: [1.9, 1.9]}, False),  # all are as far from the rows between
        ({5: [0.01], 4: [0.01], 3: [0.01], 2: [3.0], 1: [3.0]}, True),
        ({2: [3.0], 1: [3.0]}, False),
        ({3: [math.nan], 2: [math.nan], 1: [math.nan]}, False),  # classes have no rows between
    ],
)
def test_lower_ranks_are_given_up_when_two_do_not_hold(between: dict[int, list[float]], stops: bool) -> None:
    assert two_do_not_hold(rows(between)) is stops


def test_where_rows_lie_far_apart_held_out_rows_have_to_be_lost_too() -> None:
    glued = rows({5: [0.01], 4: [2.0], 3: [1.5]})
    lost, kept = ({key: result | {"heldout_error": error} for key, result in glued.items()} for error in (0.2, 0.05))
    assert two_do_not_hold(lost, close=False)
    assert not two_do_not_hold(kept, close=False)
    assert two_do_not_hold(kept, close=True)


@pytest.mark.slow
def test_ranks_below_two_that_do_not_hold_are_left_out() -> None:
    on_sphere = np.random.default_rng(0).normal(size=(150, 4))
    on_sphere /= np.linalg.norm(on_sphere, axis=1, keepdims=True)
    path = discover(on_sphere, ridge=3e-4, starts=1, limits=Limits(evaluations=224), depth_path=True).depth_path
    assert path is not None
    tried = path.table["objective"].notnull().all("middle_layers")
    assert tried.values.tolist() == [False, True, True, True]
    assert path.table["holds"].any("middle_layers").values.tolist() == [False, False, False, True]
    assert path.deep_rank == 4
    assert "Fewer than 2 were not tried: 2 and 3 cut" in depth_sentence(path)


@pytest.mark.slow
def test_a_curve_in_four_columns_is_followed_down_to_one() -> None:
    t = np.linspace(0, 1, 150)[:, None]
    path = discover(
        np.hstack([t, np.sin(4 * t), np.cos(4 * t), t**2]), ridge=3e-4, starts=1, limits=Limits(evaluations=224),
        depth_path=True,
    ).depth_path  # fmt: skip
    assert path is not None
    assert bool(path.table["objective"].notnull().all())
    assert "not tried" not in depth_sentence(path)


def assert_lines_have_the_slope_of_theory(path: DepthPath) -> None:
    for line in path.reading.lines:
        assert line.slope == pytest.approx(path.table.attrs["ridge"] * line.rank, rel=SLOPE)


def test_an_arc_is_a_plane_when_shallow_and_a_line_when_deep(opened: DepthPath) -> None:
    assert (opened.flat_rank, opened.deep_rank) == (2, 1)
    assert_lines_have_the_slope_of_theory(opened)
    last = opened.table["middle_layers"].values[-1]
    assert opened.table["middle_layers"].values[0] <= opened.reading.switch <= last
    assert float(opened.table["between"].sel(rank=1).isel(middle_layers=-1)) < 0.1


def test_the_slope_test_fails_for_the_wrong_rank(opened: DepthPath) -> None:
    shifted = opened.table.assign(objective=opened.table["objective"] + 1e-3 * opened.table["middle_layers"])
    with pytest.raises(AssertionError):
        assert_lines_have_the_slope_of_theory(DepthPath.of(shifted))


@pytest.mark.slow
def test_a_closed_circle_keeps_two_dimensions_although_a_cut_one_costs_less() -> None:
    found = small_path(1.0)
    path = found.depth_path
    assert path is not None
    assert not any("columns are kept" in reason for reason in found.reasons)
    assert (path.flat_rank, path.deep_rank) == (2, 2)
    deepest = path.table.isel(middle_layers=-1)
    assert float(deepest["between"].sel(rank=1)) > 1.0
    assert not bool(deepest["holds"].sel(rank=1))


def test_the_penalty_is_rank_times_depth_plus_regularity(opened: DepthPath) -> None:
    table = opened.table
    ridge, loss = table.attrs["ridge"], table["train_error"]
    np.testing.assert_allclose(table["objective"], loss + ridge * table["penalty"], rtol=1e-4)
    np.testing.assert_allclose(table["penalty"], table["rank"] * table["depth"] + table["regularity"])
    # R1 hardly depends on depth: that is what makes the lines straight
    deep = table["regularity"].where(table["middle_layers"] >= STRAIGHT_FROM, drop=True)
    assert float((deep.max("middle_layers") - deep.min("middle_layers")).max()) < 0.2 * float(deep.max())


def test_a_depth_path_that_was_cut_short_says_so() -> None:
    found = discover(arc(0.85), ridge=3e-4, starts=1, limits=Limits(seconds=0.3), depth_path=True)
    assert any("cut the depth path short" in text for text in found.warnings)
    assert found.depth_path is not None
    assert found.depth_path.table.sizes == {"rank": 2, "middle_layers": 6}


MANIFOLDS = {"helix": (3, 1), "swiss_roll": (3, 2), "circle": (2, 2), "torus": (3, 3)}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ranks"), MANIFOLDS.items(), ids=MANIFOLDS)
def test_manifolds_have_their_flat_and_deep_rank_by_default(name: str, ranks: tuple[int, int]) -> None:
    path = discover(getattr(tasks, name)().x, depth_path=True).depth_path
    assert path is not None
    assert (path.flat_rank, path.deep_rank) == ranks
    # a rank whose least network is one of a smaller rank has no line of its own
    own = path.table["true_rank"] == path.table["rank"]
    held = (path.table["holds"] & own).isel(middle_layers=-1).values
    sound = [line for line, holds in zip(path.reading.lines, held, strict=True) if holds]
    assert {path.flat_rank, path.deep_rank} <= {line.rank for line in sound}
    for line in sound:
        assert line.slope == pytest.approx(path.table.attrs["ridge"] * line.rank, rel=SLOPE)
