"""What two thin factors say of their product: its spectrum and rank without forming it, and their excess weight."""

import pytest
import torch
from jaxtyping import TypeCheckError
from torch.testing import assert_close

from isthmus.errors import ShapeError
from isthmus.theory.factor_products import factor_gap, product_rank, product_singular_values

DOUBLE = torch.float64


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


@pytest.mark.parametrize(("m", "k", "n"), [(7, 3, 9), (2, 5, 6), (4, 4, 4), (1, 3, 1)])
def test_singular_values_are_those_of_the_product(m: int, k: int, n: int) -> None:
    outer, inner = numbers(3, m, k), numbers(3, k, n, seed=1)
    whole = torch.linalg.svdvals(outer @ inner)[:, : min(m, k, n)]
    assert_close(product_singular_values(outer, inner), whole)


@pytest.mark.parametrize("rank", [0, 1, 2, 4])
def test_a_planted_rank_is_found_in_single_precision_too(rank: int) -> None:
    outer, inner = numbers(40, rank) @ numbers(rank, 4, seed=1), numbers(4, 30, seed=2)
    assert int(product_rank(outer, inner)) == rank
    assert int(product_rank(outer.float().double(), inner, eps=torch.finfo(torch.float32).eps)) == rank


def test_balanced_factors_have_no_excess_and_scaled_ones_what_the_scale_says() -> None:
    u, s, vh = torch.linalg.svd(numbers(6, 5), full_matrices=False)
    outer, inner, total = u * s.sqrt(), s.sqrt()[:, None] * vh, float(s.sum())
    assert float(factor_gap(outer, inner)) <= 1e-12 * total
    assert_close(factor_gap(3 * outer, inner / 3), torch.tensor((9 + 1 / 9) / 2 * total - total, dtype=DOUBLE))


def test_shapes_that_do_not_meet_are_refused() -> None:
    with pytest.raises((ShapeError, TypeCheckError), match=r"as many columns of outer|dimension k"):
        product_singular_values(numbers(3, 2), numbers(3, 2))
