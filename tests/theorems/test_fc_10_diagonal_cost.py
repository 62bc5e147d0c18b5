import pytest
import torch
from hypothesis import given, settings

from isthmus.theory import diagonal_linear_cost
from theorem_checks import DEPTHS, SEEDS, assert_at_most, assert_close, normal

pytestmark = pytest.mark.theorem("FC-10")


@settings(deadline=None, max_examples=50)
@given(seed=SEEDS, depth=DEPTHS)
def test_equal_roots_attain_the_cost_and_nothing_beats_it(seed: int, depth: int) -> None:
    vectors = normal(seed, depth, 5)
    product = vectors.prod(0)
    roots = product.abs() ** (1 / depth)
    assert_close(diagonal_linear_cost(product, depth=depth), depth * roots.square().sum())
    assert_at_most(diagonal_linear_cost(product, depth=depth), vectors.square().sum())
    if depth > 1:
        with pytest.raises(AssertionError):
            assert_close(diagonal_linear_cost(product, depth=depth), depth * roots.sum())


def test_large_depth_counts_the_non_zeros() -> None:
    vector = torch.tensor([3.0, 0.0, -0.5, 0.0, 1e-3], dtype=torch.float64, requires_grad=True)
    cost = diagonal_linear_cost(vector, depth=10**6)
    assert_close(cost.detach() / 10**6, 3.0, relative=1e-5)
    cost.backward()
    assert vector.grad is not None
    assert bool(torch.isfinite(vector.grad).all())
