import pytest
import torch
from hypothesis import given, settings

from isthmus.theory import kernel_alignment
from theorem_checks import SEEDS, assert_at_most, assert_close, normal

pytestmark = pytest.mark.theorem("FC-33")


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS)
def test_rotations_shifts_and_scales_do_not_matter(seed: int) -> None:
    points, rotation = normal(seed, 20, 4), torch.linalg.qr(normal(seed + 1, 6, 6)).Q[:4]
    assert_close(kernel_alignment(points, 3 * points @ rotation + normal(seed + 2, 6)), 1.0)
    other = kernel_alignment(points, normal(seed + 3, 20, 4))
    assert_at_most(other, 1.0)
    with pytest.raises(AssertionError):
        assert_close(other, 1.0)


def test_one_column_each_has_the_square_of_the_correlation() -> None:
    """0, 1, 2, 5 and 1, 0, 3, 2 centred have squares 14 and 5 and the product 4."""
    left, right = (torch.tensor(v, dtype=torch.float64)[:, None] for v in ([0, 1, 2, 5], [1, 0, 3, 2]))
    assert_close(kernel_alignment(left, right), 16 / 70)
    with pytest.raises(AssertionError):
        assert_close(kernel_alignment(left, right).sqrt(), 16 / 70)


def test_two_columns_against_a_number_worked_out_by_hand() -> None:
    """Both are centred; |A^T B|^2 = 2^2 + 1^2, |A^T A|^2 = 10, |B^T B|^2 = 4."""
    left = torch.tensor([[1.0, 0], [0, 1], [-1, -1]], dtype=torch.float64)
    right = torch.tensor([[1.0], [0], [-1]], dtype=torch.float64)
    assert_close(kernel_alignment(left, right), 5 / (10 * 4) ** 0.5)


def test_a_constant_representation_aligns_with_nothing() -> None:
    assert_close(kernel_alignment(normal(0, 5, 2), torch.ones(5, 3, dtype=torch.float64)), 0.0)
