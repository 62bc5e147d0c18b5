import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import linear_cost, linear_path_cost
from isthmus.theory.linear_costs import SUMMED
from theorem_checks import assert_at_most, assert_close

pytestmark = pytest.mark.theorem("FC-30")
VALUES = torch.tensor([4.0, 1.0, 0.3], dtype=torch.float64)


def assert_limit(values: Tensor, limit: Tensor) -> None:
    errors = [float(linear_path_cost(values, depth=d) - 3 * d - limit) for d in (1000, 2000, 4000)]
    assert_close(errors[0] / errors[1], 2.0, relative=0.02)  # O(1/L)
    assert_close(errors[1] / errors[2], 2.0, relative=0.02)


def test_the_straight_path_tends_to_the_logarithm_of_the_volume() -> None:
    assert_limit(VALUES, 2 * VALUES.log().sum())
    with pytest.raises(AssertionError):
        assert_limit(VALUES, VALUES.log().sum())


@settings(deadline=None, max_examples=40)
@given(
    values=st.lists(st.floats(1e-3, 1e3), min_size=0, max_size=4).map(lambda v: torch.tensor(v, dtype=torch.float64)),
    depth=st.integers(1, 30),
)
def test_no_path_costs_less_than_the_optimal_factors(values: Tensor, depth: int) -> None:
    assert_at_most(linear_cost(torch.diag(values), depth=depth), linear_path_cost(values, depth=depth), slack=1e-10)


def test_the_weights_of_the_path_have_this_norm() -> None:
    matrix = torch.tensor([[1.0, 0.5], [0.2, 2.0]], dtype=torch.float64)
    depth, gram = 5, matrix.mT @ matrix

    def kernel(q: float) -> Tensor:
        return (1 - q) * torch.eye(2, dtype=torch.float64) + q * gram

    cost = sum(torch.trace(kernel(l / depth) @ torch.linalg.inv(kernel((l - 1) / depth))) for l in range(1, depth + 1))
    assert_close(linear_path_cost(torch.linalg.svdvals(matrix), depth=depth), torch.as_tensor(cost))


@pytest.mark.parametrize("value", [1e-150, 1e-8, 1e-3, 0.1, 0.9, 1.0, 1 + 1e-7, 5.0, 1e3, 1e8, 1e150])
def test_of_more_layers_than_are_summed_it_is_bounded_as_tightly(value: float) -> None:
    """A depth of 2^50 had asked for nine petabytes."""
    depth = SUMMED + 1
    layer, square = np.arange(depth, dtype=np.longdouble), np.longdouble(value) ** 2
    exceeds = ((square - 1) / (depth - layer + layer * square)).sum()
    found = linear_path_cost(torch.tensor([value], dtype=torch.float64), depth=depth)
    assert_at_most(float(depth + exceeds), found, slack=0)
    assert_at_most(found, float(depth + exceeds), slack=2e-7 / depth + 1e-12)
    with pytest.raises(AssertionError):
        assert_at_most(found, depth * (1 - 1e-9) + exceeds, slack=0)


def test_the_deepest_path_has_reached_its_limit() -> None:
    values = torch.tensor([5.0, 2.0, 0.25], dtype=torch.float64)
    deep = linear_path_cost(values, depth=2**40) - 3 * 2**40
    assert_close(deep, 2 * values.log().sum(), relative=0, absolute=0.02)  # rounding is counted
    assert_limit(values, 2 * values.log().sum())
    empty = torch.zeros(0, dtype=torch.float64)
    assert float(linear_path_cost(empty, depth=2**45)) == 0
