import math

import pytest
import torch
from torch import Tensor

from isthmus.theory import antipodal_loop_certificate, borsuk_ulam_certificate
from theorem_checks import assert_close, normal

pytestmark = pytest.mark.theorem("FC-07")


def circle(num: int) -> Tensor:
    angle = torch.arange(num, dtype=torch.float64) * (2 * math.pi / num)
    return torch.stack([angle.cos(), angle.sin()], 1)


def certified(values: Tensor, antipodes: Tensor, *, spacing: float, k: int = 1) -> int:
    return borsuk_ulam_certificate(values, antipodes, sphere_dimension=k, lipschitz=1.0, spacing=spacing).rank


def test_the_identity_on_a_circle_has_rank_two() -> None:
    points = circle(100)
    assert certified(points, -points, spacing=math.pi / 100) == 2
    assert certified(points, -points, spacing=1.1) == 0  # too coarse a grid proves nothing
    flat = torch.stack([points[:, 0], 0 * points[:, 1]], 1)  # f = (x, 0) has rank 1: (0, 1) and its antipode agree
    assert certified(flat, -flat, spacing=math.pi / 100) == 0


def test_the_identity_on_a_sphere_has_rank_three() -> None:
    points = torch.nn.functional.normalize(normal(0, 4000, 3))
    assert certified(points, -points, spacing=0.2, k=2) == 3


def test_on_a_polygon_the_minimum_is_exact() -> None:
    found = antipodal_loop_certificate(circle(8))
    assert found.rank == 2
    assert_close(found.measured, 2 * math.cos(math.pi / 8))
    folded = circle(8).clone()
    folded[
        :, 1
    ].abs_()  # antipodes (1, 0) and (-1, 0) still differ, but the difference crosses 0 nowhere: x never folds
    folded[:, 0].abs_()
    assert antipodal_loop_certificate(folded).rank == 0
