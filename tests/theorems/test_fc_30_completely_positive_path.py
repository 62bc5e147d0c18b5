import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import linear_cost, linear_path_cost
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
