import pytest
import torch

from isthmus.theory import linear_cost
from theorem_checks import assert_at_most, normal

pytestmark = pytest.mark.theorem("FC-44")


def test_the_cost_is_lower_semicontinuous() -> None:
    limit = torch.diag(torch.tensor([2.0, 0.0, 0.0], dtype=torch.float64))
    direction = normal(0, 3, 3)
    for depth in (1, 2, 5, 20):
        tail = [linear_cost(limit + 10.0**-i * direction, depth=depth) for i in range(3, 8)]
        assert_at_most(linear_cost(limit, depth=depth), torch.stack(tail).min() + 1e-2)
    deep = linear_cost(limit + 1e-6 * direction, depth=20)
    with pytest.raises(AssertionError):  # not upper semicontinuous: the ranks of the sequence are paid
        assert_at_most(deep, linear_cost(limit, depth=20) + 1e-2)
