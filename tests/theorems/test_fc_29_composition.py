import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isthmus.theory import linear_cost, linear_cost_expansion
from theorem_checks import SEEDS, assert_at_most, assert_close, normal

pytestmark = pytest.mark.theorem("FC-29")


def assert_composition_adds(outer: Tensor, inner: Tensor, rank: int) -> None:
    parts = [linear_cost_expansion(m, rank=rank).R1 for m in (outer @ inner, outer, inner)]
    assert_at_most(parts[0], parts[1] + parts[2])


@settings(deadline=None, max_examples=50)
@given(seed=SEEDS, k=st.integers(1, 3))
def test_first_corrections_are_subadditive_under_composition(seed: int, k: int) -> None:
    inner, outer = normal(seed, k, 4), normal(seed + 1, 5, k)
    assert_composition_adds(outer, inner, k)


def test_the_ranks_must_agree() -> None:
    outer, inner = torch.diag(torch.tensor([1.0, 1e-3])), torch.diag(torch.tensor([1.0, 0.0]))
    product, first, second = (linear_cost_expansion(m).R1 for m in (outer @ inner, outer, inner))
    with pytest.raises(AssertionError):
        assert_at_most(product, first + second)


def test_the_inequality_behind_it_holds_at_every_depth() -> None:
    inner, outer = normal(0, 3, 4), normal(1, 5, 3)
    for first, second in ((1, 1), (2, 5), (7, 3)):
        whole = linear_cost(outer @ inner, depth=first + second)
        assert_at_most(whole, linear_cost(inner, depth=first) + linear_cost(outer, depth=second))


def test_constants_break_additivity_of_sums_when_the_last_bias_is_penalised() -> None:
    def constant_cost(c: float) -> float:
        """R1 of a constant: the last bias alone, or t of it through hidden layers at 2 t (AM-GM)."""
        t = max(0.0, c - 1)
        return (c - t) ** 2 + 2 * t

    assert_close(constant_cost(0.5), 0.25)
    assert_close(constant_cost(0.25), 0.0625)
    with pytest.raises(AssertionError):  # R1(f + g) <= R1(f) + R1(g), as printed
        assert_at_most(constant_cost(0.5), 2 * constant_cost(0.25))
    cross_term = 2 * 0.25 * 0.25
    assert_at_most(constant_cost(0.5), 2 * constant_cost(0.25) + cross_term)
    assert math.isclose(constant_cost(0.5), 2 * constant_cost(0.25) + cross_term)
