import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.networks import jacobians
from isthmus.theory import log_pseudo_determinant, optimal_linear_factors, prefix_jacobians, suffix_jacobians
from theorem_checks import SEEDS, assert_at_most, assert_close, chain, linearised, normal, random_network, with_spectrum

pytestmark = pytest.mark.theorem("RES-07")


def logs(matrix: Tensor) -> Tensor:
    """log s_i, as differences of the log pseudo-determinants of growing rank."""
    partial = torch.stack([log_pseudo_determinant(matrix, rank=r) for r in range(min(matrix.shape) + 1)])
    return partial.diff()


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, k=st.integers(1, 4))
def test_products_of_ratios_are_bounded_by_the_outer_factors(seed: int, k: int) -> None:
    A, B, C = normal(seed, 4, 4), normal(seed + 1, 4, 4), normal(seed + 2, 4, 4)
    ratios, outer = logs(A @ B @ C) - logs(B), (logs(A) + logs(C))[:k].sum()
    for chosen in itertools.combinations(range(4), k):
        assert_at_most(ratios[list(chosen)].sum(), outer, slack=1e-9)


def test_the_largest_outer_values_are_needed() -> None:
    A = torch.diag(torch.tensor([5.0, 0.1], dtype=torch.float64))
    identity = torch.eye(2, dtype=torch.float64)
    ratios = logs(A @ identity) - logs(identity)
    with pytest.raises(AssertionError):  # the smallest instead of the largest
        assert_at_most(ratios[0], logs(A)[1] + logs(identity)[1])


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, k=st.integers(1, 2))
def test_rectangular_factors_and_a_middle_one_of_low_rank_obey_it(seed: int, k: int) -> None:
    A, B, C = normal(seed, 3, 5), with_spectrum(seed + 1, [2.0, 0.1], 5, 4), normal(seed + 2, 4, 6)
    ratios, outer = logs(A @ B @ C)[:2] - logs(B)[:2], (logs(A)[:k] + logs(C)[:k]).sum()
    for chosen in itertools.combinations(range(2), k):
        assert_at_most(ratios[list(chosen)].sum(), outer, slack=1e-9)


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(seed=SEEDS, l=st.integers(1, 3))
def test_a_layer_of_a_network_stands_between_what_comes_before_and_behind(seed: int, l: int) -> None:
    """J = J_l W_l Ja_{l-1}: no layer's singular values are stretched by more than those of both sides."""
    network, x = random_network(seed, [4, 5, 5, 4]), normal(seed + 1, 6, 4)
    net, found = linearised(network, x), jacobians(network, x).detach()
    before, behind = prefix_jacobians(net.weights, net.derivatives), suffix_jacobians(net.weights, net.derivatives)
    for i, whole in enumerate(found):
        assert_close(behind[l - 1][i] @ net.weights[l - 1] @ before[l - 1][i], whole, absolute=1e-12)
        k = int(torch.linalg.matrix_rank(whole, rtol=1e-9))
        ratios = logs(whole)[:k] - logs(net.weights[l - 1])[:k]
        for size in range(1, k + 1):
            outer = (logs(behind[l - 1][i])[:size] + logs(before[l - 1][i])[:size]).sum()
            for chosen in itertools.combinations(range(k), size):
                assert_at_most(ratios[list(chosen)].sum(), outer, slack=1e-9)


def test_aligned_factors_meet_it_and_others_do_not() -> None:
    A = with_spectrum(0, [4.0, 1.5, 0.3], 4, 4)
    first, middle, last = optimal_linear_factors(A, depth=3)
    turned = middle @ torch.linalg.qr(normal(3, len(middle), len(middle))).Q

    def excess(between: Tensor, size: int) -> Tensor:
        ratios = logs(chain([first, between, last]))[:3] - logs(between)[:3]
        return (logs(first) + logs(last))[:size].sum() - ratios[:size].sum()

    for size in (1, 2, 3):
        assert_close(excess(middle, size), 0.0, absolute=1e-9)
    assert float(excess(turned, 1)) > 0.1
