import pytest
import torch

from isthmus.constructions import compose_with_identity, x_cross_example
from isthmus.networks import jacobians
from isthmus.theory import optimal_linear_factors, schatten_lower_bound
from theorem_checks import assert_at_most, assert_close, normal, random_network, with_spectrum

pytestmark = pytest.mark.theorem("FC-14")


def test_cost_per_layer_closes_in_on_the_rank_from_both_sides() -> None:
    matrix = with_spectrum(0, [20.0, 3.0, 0.1], 5, 4)
    for depth in (10, 100, 1000):
        lower = schatten_lower_bound(matrix[None], depth=depth) / depth
        upper = sum(w.square().sum() for w in optimal_linear_factors(matrix, depth=depth)) / depth
        assert_at_most(lower, upper)
        assert_close(torch.as_tensor(upper), torch.tensor(3.0), absolute=12 / depth)
        with pytest.raises(AssertionError):  # the limit is the rank, not one less
            assert_close(torch.as_tensor(upper), torch.tensor(2.0), absolute=0.5)


def assert_near(bound: float, rank: int, depth: int, *, constant: float = 100.0) -> None:
    assert_close(bound, float(rank), absolute=constant / depth)


def test_a_nonlinear_map_of_rank_two_is_enclosed_at_every_depth() -> None:
    inner, outer = random_network(0, [4, 6, 2]), random_network(1, [2, 7, 3])
    x = normal(2, 40, 4)
    composed = compose_with_identity(inner, outer, 0, x=x)
    found = jacobians(composed.network, x)
    for depth in (10**3, 10**4, 10**5):  # k L + constant is the norm with L - 4 identity layers: FC-15
        lower = float(schatten_lower_bound(found, depth=depth)) / depth
        upper = composed.inner_dimension + composed.constant / depth
        assert_at_most(lower, upper)
        assert_near(lower, 2, depth, constant=2 * composed.constant)
        assert_near(upper, 2, depth, constant=2 * composed.constant)
    with pytest.raises(AssertionError):
        assert_near(upper, 3, 10**5, constant=2 * composed.constant)


def test_the_x_cross_leaves_a_gap_between_its_two_ranks() -> None:
    example = x_cross_example()
    found = jacobians(example.network, normal(0, 50, 2))
    assert_near(float(schatten_lower_bound(found, depth=10**4)) / 10**4, example.jacobian_rank, 10**4)
    with pytest.raises(AssertionError):  # Jacobians do not see the bottleneck rank
        assert_near(float(schatten_lower_bound(found, depth=10**4)) / 10**4, example.bottleneck_rank, 10**4)
