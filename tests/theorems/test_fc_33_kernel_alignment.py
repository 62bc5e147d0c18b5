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


def test_a_constant_representation_aligns_with_nothing() -> None:
    assert_close(kernel_alignment(normal(0, 5, 2), torch.ones(5, 3, dtype=torch.float64)), 0.0)
