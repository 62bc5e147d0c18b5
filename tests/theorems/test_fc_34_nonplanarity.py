import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import linear_cost, nonplanarity_bound
from theorem_checks import SEEDS, assert_at_most, assert_close, normal, with_spectrum

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
    jacobians = normal(seed, 6, 3, 3)
    found = nonplanarity_bound(jacobians, rank=k, sweeps=300)
    assert_at_most(found.value, found.upper)
    assert_close(found.weights.sum(), 1.0)
    left, values, _ = torch.linalg.svd(jacobians)
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


def test_points_of_lower_rank_are_passed_over() -> None:
    jacobians = torch.cat([two_lines(0.7), torch.zeros(1, 2, 1, dtype=torch.float64)])
    found = nonplanarity_bound(jacobians, rank=1)
    assert_close(found.value, math.log1p(math.sin(0.7)), absolute=1e-9)
    assert float(found.weights[2]) == 0
    with pytest.raises(ValueError, match="none of 3 has it"):
        nonplanarity_bound(torch.zeros(3, 2, 2), rank=1)
