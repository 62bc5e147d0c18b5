import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import log_pseudo_determinant
from theorem_checks import SEEDS, assert_at_most, normal, with_spectrum

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
