import pytest
from hypothesis import given, settings

from isthmus.theory import bottleneck_rank_upper_bound, jacobian_rank_lower_bound, piecewise_jacobian
from theorem_checks import SEEDS, linearised, normal, random_network, with_spectrum

pytestmark = pytest.mark.theorem("FC-02")


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS)
def test_no_jacobian_exceeds_the_least_inner_dimension(seed: int) -> None:
    net = linearised(random_network(seed, [5, 8, 2, 8, 4]), normal(seed, 20, 5))
    upper = bottleneck_rank_upper_bound(net.weights)
    jacobians = piecewise_jacobian(net.weights, net.derivatives)
    assert upper == 2
    assert jacobian_rank_lower_bound(jacobians, tolerance=1e-10).rank <= upper


def test_the_rank_of_a_matrix_counts_not_its_size() -> None:
    weights = [with_spectrum(0, [1.0, 2.0, 3.0], 6, 5), with_spectrum(2, [4.0, 1.0], 6, 6), normal(1, 3, 6)]
    assert bottleneck_rank_upper_bound(weights) == 2
    with pytest.raises(AssertionError):  # the width alone says 3
        assert bottleneck_rank_upper_bound(weights) == min(len(w) for w in weights)


@pytest.mark.parametrize("thin", [0, 1, 2])
def test_the_thinnest_matrix_counts_wherever_it_stands(thin: int) -> None:
    weights = [with_spectrum(i, [1.0, 2.0, 3.0][: 1 if i == thin else 3], 5, 5) for i in range(3)]
    assert bottleneck_rank_upper_bound(weights) == 1
    with pytest.raises(AssertionError):
        assert bottleneck_rank_upper_bound([w for i, w in enumerate(weights) if i != thin]) == 1


def test_a_constant_network_has_rank_zero() -> None:
    assert bottleneck_rank_upper_bound([normal(0, 4, 3), 0 * normal(1, 4, 4), normal(2, 2, 4)]) == 0
