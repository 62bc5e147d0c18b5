import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.theory import linear_cost, piecewise_jacobian, trailing_singular_value_bound
from theorem_checks import SEEDS, assert_at_most, assert_close, linearised, normal, random_network, with_spectrum

pytestmark = pytest.mark.theorem("FC-20")


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, depth=st.integers(1, 5), k=st.integers(0, 2))
def test_the_norm_caps_the_next_singular_value(seed: int, depth: int, k: int) -> None:
    net = linearised(random_network(seed, [4, *[5] * (depth - 1), 3]), normal(seed, 10, 4))
    values = torch.linalg.svdvals(piecewise_jacobian(net.weights, net.derivatives))
    bound = trailing_singular_value_bound(values[:, :k], penalty=net.penalty, depth=depth)
    assert_at_most(values[:, k], bound)


def test_the_bound_is_met_by_balanced_linear_networks() -> None:
    matrix, values = with_spectrum(0, [2.0, 0.7], 3, 3), torch.tensor([2.0], dtype=torch.float64)
    cost = float(linear_cost(matrix, depth=6))
    assert_close(trailing_singular_value_bound(values, penalty=cost, depth=6), 0.7, relative=1e-11)
    with pytest.raises(AssertionError):
        assert_at_most(0.7, trailing_singular_value_bound(values, penalty=0.9 * cost, depth=6))


def test_a_norm_below_the_first_terms_leaves_nothing() -> None:
    values = torch.tensor([2.0], dtype=torch.float64)
    assert_close(trailing_singular_value_bound(values, penalty=0.1, depth=6), 0.0)
