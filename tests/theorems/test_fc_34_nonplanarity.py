import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.networks import jacobians
from isthmus.theory import last_matrix_lower_bound, linear_cost, nonplanarity_bound, schatten_lower_bound
from theorem_checks import SEEDS, assert_at_most, assert_close, normal, random_network, with_spectrum

pytestmark = pytest.mark.theorem("FC-34")


def two_lines(angle: float) -> Tensor:
    return torch.tensor([[[1.0], [0.0]], [[math.cos(angle)], [math.sin(angle)]]], dtype=torch.float64)


@pytest.mark.parametrize("angle", [0.0, 0.2, 0.7, math.pi / 2])
def test_two_lines_cost_the_logarithm_of_one_plus_the_sine(angle: float) -> None:
    found = nonplanarity_bound(two_lines(angle), rank=1)
    assert_close(found.value, math.log1p(math.sin(angle)), absolute=1e-9)
    if angle:
        with pytest.raises(AssertionError):
            assert_close(found.value, math.log1p(math.sin(angle) ** 2 / 2), absolute=1e-9)


def test_one_plane_costs_nothing_and_one_point_its_volume() -> None:
    plane = with_spectrum(0, [1.0, 1.0], 5, 2)
    rotated = torch.stack([plane @ torch.linalg.qr(normal(i, 2, 2)).Q for i in range(6)])
    assert_close(nonplanarity_bound(rotated, rank=2).value, 0.0, absolute=1e-9)
    single = with_spectrum(1, [3.0, 0.5, 0.1], 4, 4)[None]
    assert_close(nonplanarity_bound(single, rank=3).value, 2 * math.log(0.15), absolute=1e-9)


@settings(deadline=None, max_examples=4)
@given(seed=SEEDS, k=st.integers(1, 2))
def test_the_value_lies_below_every_last_matrix_and_above_each_point(seed: int, k: int) -> None:
    points = normal(seed, 6, 3, 3)
    found = nonplanarity_bound(points, rank=k, sweeps=300)
    assert_at_most(found.value, found.upper)
    assert_close(found.weights.sum(), 1.0)
    left, values, _ = torch.linalg.svd(points)
    frames, volumes = left[:, :, :k], 2 * values[:, :k].log().sum(1)

    def primal(matrix: Tensor) -> Tensor:
        grams = frames.mT @ torch.linalg.inv(matrix) @ frames
        return torch.trace(matrix) - k + (volumes + torch.logdet(grams)).max()

    for i in range(20):
        root = normal(seed + i, 3, 3)
        assert_at_most(found.value, primal(root @ root.mT + 0.01 * torch.eye(3, dtype=torch.float64)))
    assert_at_most(volumes.max(), found.upper)  # FC-28 point by point is weaker
    assert_at_most(volumes.max(), found.value, slack=0.05)


def test_a_linear_network_of_any_depth_obeys_it() -> None:
    matrix = with_spectrum(2, [2.0, 0.5], 3, 3)
    value = nonplanarity_bound(matrix[None], rank=2).value
    for depth in (2, 5, 30):
        assert_at_most(2 * depth + value, linear_cost(matrix, depth=depth))


@settings(deadline=None, max_examples=10)
@given(seed=SEEDS, depth=st.integers(2, 5), slope=st.sampled_from([0.0, 0.3]))
def test_the_last_matrix_of_a_network_bounds_its_penalty(seed: int, depth: int, slope: float) -> None:
    network, x = random_network(seed, [4, *[5] * (depth - 1), 3], slope=slope), normal(seed + 1, 12, 4)
    found = jacobians(network, x).detach()
    bound = last_matrix_lower_bound(found, network.weights[-1].detach(), depth=depth)
    assert_at_most(bound, network.penalty().detach())
    assert_at_most(schatten_lower_bound(found, depth=depth), bound)  # FC-13 lets each point choose its own


@pytest.mark.parametrize("depth", [2, 3, 8])
def test_it_is_sharp_for_balanced_linear_networks_and_no_bound_for_another_depth(depth: int) -> None:
    values = torch.tensor([3.0, 0.5], dtype=torch.float64)
    map_, last = torch.diag(values), torch.diag(values ** (1 / depth))
    assert_close(last_matrix_lower_bound(map_[None], last, depth=depth), linear_cost(map_, depth=depth))
    with pytest.raises(AssertionError):
        assert_close(last_matrix_lower_bound(map_[None], last, depth=depth + 1), linear_cost(map_, depth=depth))
    # any other last matrix costs more
    assert_at_most(linear_cost(map_, depth=depth), last_matrix_lower_bound(map_[None], 1.3 * last, depth=depth))


def test_a_jacobian_that_the_last_matrix_cannot_give_is_refused() -> None:
    plane = torch.eye(3, dtype=torch.float64)[:, :2]
    inside = plane @ normal(0, 2, 4)
    found = last_matrix_lower_bound(inside[None], plane, depth=3)
    assert_close(found, 2.0 + linear_cost(inside, depth=2))
    with pytest.raises(ValueError, match="in the span of last_matrix"):
        last_matrix_lower_bound(normal(0, 1, 3, 4), plane, depth=3)
    with pytest.raises(ValueError, match="depth >= 2"):
        last_matrix_lower_bound(inside[None], plane, depth=1)
    with pytest.raises(ShapeError, match="3 and 2"):
        last_matrix_lower_bound(normal(0, 1, 2, 4), plane, depth=3)
    assert_close(last_matrix_lower_bound(inside[None][:0], plane, depth=3), 2.0)


def test_points_of_lower_rank_are_passed_over() -> None:
    lines = torch.cat([two_lines(0.7), torch.zeros(1, 2, 1, dtype=torch.float64)])
    found = nonplanarity_bound(lines, rank=1)
    assert_close(found.value, math.log1p(math.sin(0.7)), absolute=1e-9)
    assert float(found.weights[2]) == 0
    with pytest.raises(ValueError, match="none of 3 has it"):
        nonplanarity_bound(torch.zeros(3, 2, 2), rank=1)


def test_a_rank_beyond_the_smaller_side_is_refused() -> None:
    for shape in ((2, 2, 3), (2, 3, 2)):
        with pytest.raises(ValueError, match="<= rank <= 2"):
            nonplanarity_bound(normal(0, *shape), rank=3)


def test_the_error_of_jacobians_is_counted_behind_the_last_matrix() -> None:
    """W = 2 and J = 6 up to .1: W^+ J = 3 up to .0505 (1 % of it spare), so 4 + 2.9495^2 at depth 2."""
    J, W, error = torch.full((1, 1, 1), 6.0).double(), torch.full((1, 1), 2.0).double(), torch.full((1,), 0.1).double()
    assert_close(last_matrix_lower_bound(J, W, depth=2, error=error), 4 + 2.9495**2, relative=1e-8)
    assert_close(last_matrix_lower_bound(J, W, depth=2), 4 + 9.0, relative=1e-8)
    with pytest.raises(AssertionError):  # the error as if W were 1
        assert_close(last_matrix_lower_bound(J, W, depth=2, error=2 * error), 4 + 2.9495**2, relative=1e-3)


def test_the_error_of_jacobians_turns_their_planes() -> None:
    """diag(2, 1) up to .1 at rank 2: 2 log 2, by 4 k error / s_k = .8 / .9 outward on both sides."""
    found = nonplanarity_bound(torch.diag(torch.tensor([2.0, 1.0]).double())[None], rank=2, error=0.1)
    assert_close(found.value, 2 * math.log(2) - 0.8 / 0.9, absolute=1e-9)
    assert_close(found.upper, 2 * math.log(2) + 0.8 / 0.9, absolute=1e-9)
