import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.constructions import piecewise_linear_network
from isthmus.networks import jacobians
from isthmus.theory import (
    diameter,
    rank1_cost_lower_bound,
    rank1_stretch,
    spanning_tree_certificate,
    spanning_tree_length,
    travelling_salesman_bounds,
)
from theorem_checks import SEEDS, assert_at_most, assert_close, normal

pytestmark = pytest.mark.theorem("FC-22")


def shortest_by_enumeration(points: Tensor) -> float:
    distances = torch.cdist(points, points).tolist()
    orders = itertools.permutations(range(len(points)))
    return min(sum(distances[i][j] for i, j in itertools.pairwise(order)) for order in orders)


@settings(deadline=None, max_examples=20)
@given(seed=SEEDS, num=st.integers(2, 6))
def test_up_to_thirteen_points_the_path_is_exact(seed: int, num: int) -> None:
    points = normal(seed, num, 3)
    lower, upper = travelling_salesman_bounds(points)
    assert lower == upper
    assert_close(lower, shortest_by_enumeration(points), relative=1e-13)
    assert_at_most(spanning_tree_length(points), lower)


def test_thirteen_points_on_a_shuffled_line() -> None:
    points = torch.tensor([[7.0, 1, 4, 12, 0, 3, 3, 9, 2, 11, 5, 6, 8]], dtype=torch.float64).mT
    assert_close(travelling_salesman_bounds(points)[0], 12.0)


def test_beyond_thirteen_points_the_bounds_enclose_the_path() -> None:
    angle = torch.randperm(40, generator=torch.Generator().manual_seed(0)) * (2 * math.pi / 40)
    circle = torch.stack([angle.cos(), angle.sin()], 1).double()
    path = 39 * 2 * math.sin(math.pi / 40)
    lower, upper = travelling_salesman_bounds(torch.cat([circle, circle[:5]]))  # duplicates cost nothing
    assert_close(lower, path, relative=1e-6)
    assert_close(upper, path, relative=1e-6)
    cloud = normal(1, 200, 2)
    lower, upper = travelling_salesman_bounds(cloud)
    assert_at_most(lower, upper)
    assert_at_most(upper, 1.5 * lower)
    with pytest.raises(AssertionError):
        assert_at_most(upper, lower)


def test_two_opt_improves_on_the_tree_walk_and_bounds_a_known_path() -> None:
    grid = torch.cartesian_prod(torch.arange(6.0), torch.arange(6.0)).double()
    lower, upper = travelling_salesman_bounds(grid)
    assert_close(lower, 35.0)
    assert_at_most(upper, 40.0)


@pytest.mark.parametrize(("k", "exponent"), [(1, 0.0), (2, 0.5), (3, 2 / 3)])
def test_the_tree_grows_with_the_dimension_of_the_data(k: int, exponent: float) -> None:
    def length(num: int) -> float:
        points = torch.rand(num, k, dtype=torch.float64, generator=torch.Generator().manual_seed(k))
        return spanning_tree_length(points)

    slope = math.log(length(1600) / length(200)) / math.log(8)
    assert abs(slope - exponent) < 0.05


def test_one_dimensional_interpolators_obey_the_bound() -> None:
    x = torch.linspace(0, 1, 8, dtype=torch.float64)[:, None]
    y = normal(5, 8, 2)
    steepest = float((y.diff(dim=0).norm(dim=1) * 7).max())  # piecewise-linear in order of x
    assert_at_most(rank1_stretch(x, y), steepest)
    assert_close(rank1_cost_lower_bound(x, y, depth=6), 6 * rank1_stretch(x, y) ** (1 / 3))
    with pytest.raises(AssertionError):  # without the diameter the statement is false
        assert_at_most(rank1_stretch(x / 100, y), steepest)


def test_a_flat_map_that_fills_the_plane_is_not_rank_one() -> None:
    x = torch.cartesian_prod(torch.arange(6.0), torch.arange(6.0)).double()
    assert spanning_tree_certificate(x, x, lipschitz=1.0).rank == 2
    assert spanning_tree_certificate(x, x[:, :1], lipschitz=1.0).rank == 1
    assert spanning_tree_certificate(x, 0 * x, lipschitz=1.0).rank == 0
    with pytest.raises(AssertionError):
        assert spanning_tree_certificate(x, x, lipschitz=10.0).rank == 2


def test_without_the_hull_a_rank_one_map_needs_no_slope() -> None:
    """0 on [0, .1], 1 on [.9, 1]: flat on both: the bound speaks of the gap, where the slope is 1.25."""
    ends = torch.tensor([0.1, 0.9], dtype=torch.float64)
    network = piecewise_linear_network(ends, torch.tensor([[0.0], [1.0]], dtype=torch.float64))
    x = torch.tensor([[0.0], [0.05], [0.95], [1.0]], dtype=torch.float64)
    stretch = rank1_stretch(x, network(x).detach())
    assert_at_most(stretch, jacobians(network, torch.linspace(0, 1, 11).double()[:, None]).abs().max())
    with pytest.raises(AssertionError):
        assert_at_most(stretch, jacobians(network, x).abs().max())


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)[:, None]


def test_degenerate_sets() -> None:
    assert travelling_salesman_bounds(torch.zeros(0, 2)) == (0.0, 0.0)
    assert travelling_salesman_bounds(torch.ones(1, 2)) == (0.0, 0.0)
    assert travelling_salesman_bounds(torch.ones(20, 2)) == (0.0, 0.0)
    assert diameter(torch.ones(1, 2)) == 0.0
    assert rank1_stretch(torch.ones(3, 2), torch.ones(3, 1)) == 0.0
    with pytest.raises(ValueError, match="No function has these values"):
        rank1_stretch(torch.ones(3, 2), normal(0, 3, 1))
    with pytest.raises(ValueError, match="rows 0 and 1 have equal inputs and different outputs"):
        rank1_stretch(column(0, -0.0, 1), column(0, 5, 1))
    assert rank1_stretch(column(0, 0, 1), column(0, 1e-16, 1)) == pytest.approx(1)  # by rounding only
    assert rank1_stretch(torch.ones(2, 2), torch.tensor([[1.0], [1.0 + 1e-15]]).double()) == 0


def test_beyond_thirteen_points_the_stretch_rests_on_the_lower_bound() -> None:
    x, y = normal(3, 60, 2), normal(4, 60, 2)
    lower, upper = travelling_salesman_bounds(y)

    def assert_certified(stretch: float) -> None:
        assert_close(stretch, spanning_tree_length(y) / diameter(x))

    assert lower < upper
    assert_certified(rank1_stretch(x, y))
    with pytest.raises(AssertionError):  # an upper bound on the path bounds nothing from below
        assert_certified(upper / diameter(x))
    assert_close(rank1_cost_lower_bound(x, y, depth=1), rank1_stretch(x, y) ** 2)


def test_a_bound_beyond_the_numbers_is_the_largest_of_them() -> None:
    x, y = torch.tensor([[0.0], [1.0]]).double() * 1e-155, torch.tensor([[0.0], [1.0]]).double()
    assert 1e308 < rank1_cost_lower_bound(x, y, depth=1) < float("inf")
    assert_close(rank1_cost_lower_bound(x, y, depth=2), 2e155)
