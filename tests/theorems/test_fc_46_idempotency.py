import pytest
import torch
from hypothesis import given, settings

from isthmus.theory import idempotency_defect, log_pseudo_determinant
from theorem_checks import SEEDS, assert_at_most, assert_close, normal

pytestmark = pytest.mark.theorem("FC-46")


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS)
def test_autoencoders_that_project_have_no_defect_and_oblique_ones_cost_more(seed: int) -> None:
    surface, gradient = normal(seed, 4, 2), normal(seed + 1, 2, 4)
    oblique = surface @ torch.linalg.inv(gradient @ surface) @ gradient
    orthogonal = surface @ torch.linalg.pinv(surface)
    both = torch.stack([oblique, orthogonal])
    assert_close(idempotency_defect(both), torch.zeros(2), absolute=1e-9 * float(oblique.square().sum()))
    volumes = log_pseudo_determinant(both, rank=2)
    assert_close(volumes[1], 0.0, absolute=1e-12)
    assert_at_most(0.0, volumes[0])
    with pytest.raises(AssertionError):
        assert_close(idempotency_defect(2 * both), torch.zeros(2), absolute=1e-9)


@pytest.mark.parametrize("size", [1e-200, 1e-100, 1e100, 1e150])
def test_defects_of_very_large_and_small_jacobians(size: float) -> None:
    J = torch.diag(torch.tensor([1.0, 2.0, 3.0]).double())[None] * size
    expected = 98**0.5 * size * size if size > 1 else 14**0.5 * size  # |J^2| and |J|
    assert_close(idempotency_defect(J), torch.tensor([expected], dtype=torch.float64))


def test_a_multiple_of_the_identity_has_a_known_defect() -> None:
    assert_close(idempotency_defect(2 * torch.eye(4)[None]), torch.tensor([4.0]))
