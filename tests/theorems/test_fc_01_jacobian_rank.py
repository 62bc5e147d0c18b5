import pytest
import torch

from isthmus.theory import jacobian_rank_lower_bound
from theorem_checks import normal, with_spectrum

pytestmark = pytest.mark.theorem("FC-01")


def assert_rank(jacobians: torch.Tensor, expected: int, *, tolerance: float = 1e-9) -> None:
    assert jacobian_rank_lower_bound(jacobians, tolerance=tolerance).rank == expected


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_an_affine_map_shows_the_rank_of_its_matrix(rank: int) -> None:
    matrix = with_spectrum(rank, [3.0, 1.0, 0.2][:rank], 4, 3)
    assert_rank(matrix.expand(5, 4, 3), rank)
    with pytest.raises(AssertionError):
        assert_rank(matrix.expand(5, 4, 3), rank + 1)


def test_the_witness_is_the_clearest_sample_of_the_largest_rank() -> None:
    jacobians = torch.stack([with_spectrum(1, s, 4, 4) for s in ([5.0], [1.0, 0.01], [1.0, 0.5], [0.0])])
    found = jacobian_rank_lower_bound(jacobians, tolerance=1e-6)
    assert found == (2, 2)


def test_the_tolerance_is_relative_to_the_largest_singular_value_of_all_samples() -> None:
    jacobians = torch.stack([with_spectrum(1, [1e4], 3, 3), with_spectrum(2, [1.0, 1.0, 1.0], 3, 3)])
    assert_rank(jacobians, 3, tolerance=1e-5)
    assert_rank(jacobians, 1, tolerance=1e-3)


def test_rounding_is_not_certified_however_small_the_tolerance() -> None:
    product = with_spectrum(1, [1.0, 0.5], 50, 50) + 1e-17 * normal(3, 50, 50)
    assert_rank(product[None], 2, tolerance=1e-300)


@pytest.mark.parametrize("shape", [(0, 3, 2), (4, 0, 2)])
def test_an_empty_batch_has_rank_zero(shape: tuple[int, int, int]) -> None:
    assert jacobian_rank_lower_bound(torch.zeros(shape), tolerance=0.1).rank == 0


def test_zero_and_one_by_one_matrices() -> None:
    assert_rank(torch.zeros(3, 2, 2), 0)
    assert_rank(torch.tensor([[[-2.0]]]), 1)
