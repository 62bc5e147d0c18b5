import math

import pytest
import torch
from torch import Tensor

from isthmus.theory import RankCertificate, antipodal_loop_certificate, borsuk_ulam_certificate
from theorem_checks import assert_close, normal

pytestmark = pytest.mark.theorem("FC-07")


def circle(num: int) -> Tensor:
    angle = torch.arange(num, dtype=torch.float64) * (2 * math.pi / num)
    return torch.stack([angle.cos(), angle.sin()], 1)


def assert_certified(found: RankCertificate, rank: int) -> None:
    assert found.rank == rank, f"{found.measured} against {found.threshold}"


def on_grid(values: Tensor, antipodes: Tensor, *, spacing: float, k: int = 1) -> RankCertificate:
    return borsuk_ulam_certificate(values, antipodes, sphere_dimension=k, lipschitz=1.0, spacing=spacing)


def test_the_identity_on_a_circle_has_rank_two() -> None:
    points = circle(100)
    assert_certified(on_grid(points, -points, spacing=math.pi / 100), 2)
    with pytest.raises(AssertionError):  # too coarse a grid proves nothing
        assert_certified(on_grid(points, -points, spacing=1.1), 2)
    flat = torch.stack([points[:, 0], 0 * points[:, 1]], 1)  # f = (x, 0) has rank 1: (0, 1) and its antipode agree
    with pytest.raises(AssertionError):
        assert_certified(on_grid(flat, -flat, spacing=math.pi / 100), 2)


def test_the_identity_on_a_sphere_has_rank_three() -> None:
    points = torch.nn.functional.normalize(normal(0, 4000, 3))
    assert_certified(on_grid(points, -points, spacing=0.2, k=2), 3)
    flat = points * torch.tensor([1.0, 1.0, 0.0])
    with pytest.raises(AssertionError):
        assert_certified(on_grid(flat, -flat, spacing=0.2, k=2), 3)


def test_on_a_polygon_the_minimum_is_exact() -> None:
    found = antipodal_loop_certificate(circle(8))
    assert_certified(found, 2)
    assert_close(found.measured, 2 * math.cos(math.pi / 8))
    with pytest.raises(AssertionError):  # (|x|, |y|) gives antipodes one value
        assert_certified(antipodal_loop_certificate(circle(8).abs()), 2)


@pytest.mark.parametrize(("share", "rank"), [(1e-10, 0), (1e-8, 2)])
def test_antipodes_must_be_apart_by_more_than_the_rounding_of_the_values(share: float, rank: int) -> None:
    """Values of size 1, antipodes 2 apart: what exceeds the threshold by less than 1e-9 certifies nothing."""
    found = borsuk_ulam_certificate(circle(8), -circle(8), sphere_dimension=1, lipschitz=1.0 - share, spacing=1.0)
    assert found.measured > found.threshold
    assert_certified(found, rank)
