"""The rank as a function of depth: an open arc falls to one coordinate, a closed circle does not."""

import numpy as np
import pytest

import isthmus
from isthmus import Limits, discover, tasks
from isthmus.discovery.depth_path import DepthPath
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
