import mpmath
import pytest
import torch

from isthmus.theory import linear_cost, linear_cost_expansion
from theorem_checks import assert_close, with_spectrum

pytestmark = pytest.mark.theorem("FC-27")
VALUES = [3.0, 1.0, 0.4, 0.05]


def assert_third_order(R0: float, R1: float, R2: float) -> None:
    """L^2 times the remainder tends to (4/3) sum (log s)^3, worked in 50 digits."""
    with mpmath.workdps(50):
        limit = mpmath.mpf(4) / 3 * sum(mpmath.log(s) ** 3 for s in VALUES)
        for depth in (10**4, 10**6):
            cost = depth * sum(mpmath.mpf(s) ** (mpmath.mpf(2) / depth) for s in VALUES)
            remainder = depth**2 * (cost - depth * R0 - R1 - R2 / mpmath.mpf(depth))
            # R1 and R2 carry float64 rounding, which depth^2 magnifies
            assert abs(remainder - limit) < 60 / depth + 1e-15 * depth**2 * 10


def test_the_remainder_is_of_third_order() -> None:
    R0, R1, R2 = (float(r) for r in linear_cost_expansion(torch.diag(torch.tensor(VALUES, dtype=torch.float64))))
    assert R0 == 4
    with mpmath.workdps(50):
        assert_close(R1, float(2 * sum(mpmath.log(s) for s in VALUES)), relative=1e-14)
        assert_close(R2, float(2 * sum(mpmath.log(s) ** 2 for s in VALUES)), relative=1e-14)
    assert_third_order(R0, R1, R2)
    with pytest.raises(AssertionError):
        assert_third_order(R0, R1, R2 / 2)


def test_the_truncated_series_approaches_the_cost() -> None:
    matrix = with_spectrum(0, VALUES, 6, 5)
    R0, R1, R2 = linear_cost_expansion(matrix)
    assert_close(linear_cost(matrix, depth=3000), 3000 * R0 + R1 + R2 / 3000, relative=1e-9)


def test_zero_rank_deficient_and_batched() -> None:
    batch = torch.stack([torch.zeros(3, 3), with_spectrum(0, [2.0], 3, 3).float(), torch.eye(3)]).double()
    R0, R1, R2 = linear_cost_expansion(batch, rank=None)
    assert_close(R0[[0, 2]], torch.tensor([0.0, 3.0]))
    assert_close(R1[[0, 2]], torch.zeros(2), absolute=1e-14)
    assert_close(R2[[0, 2]], torch.zeros(2), absolute=1e-14)
    assert_close(linear_cost_expansion(batch[1], rank=1).R1, 2 * torch.tensor(2.0).log(), relative=1e-6)
