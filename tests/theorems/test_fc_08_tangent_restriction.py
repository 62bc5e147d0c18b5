import math

import pytest
import torch
from torch import Tensor

from isthmus.theory import jacobian_rank_lower_bound, tangent_restriction
from theorem_checks import normal

pytestmark = pytest.mark.theorem("FC-08")


def assert_rank(jacobians: Tensor, rank: int) -> None:
    assert jacobian_rank_lower_bound(jacobians, tolerance=1e-9).rank == rank


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_identity_of_a_sphere_has_jacobian_rank_one_below_its_space(n: int) -> None:
    points = torch.nn.functional.normalize(normal(n, 30, n))
    # the null space of x^T spans the tangent space at x
    tangents = torch.linalg.qr(torch.cat([points[:, :, None], normal(1, 30, n, n - 1)], 2)).Q[:, :, 1:]
    identity = torch.eye(n, dtype=torch.float64).expand(30, n, n)
    restricted = tangent_restriction(identity, tangents * 7)
    assert_rank(restricted, n - 1)
    with pytest.raises(AssertionError):  # without the restriction the sphere seems to have full rank
        assert_rank(identity, n - 1)


def test_a_symmetric_map_loses_the_directions_of_its_group() -> None:
    angle = torch.linspace(0.1, 6, 20, dtype=torch.float64)
    radius_gradient = torch.stack([angle.cos(), angle.sin()], 1)[:, None, :]  # f = |x| is invariant under rotations
    around = torch.stack([-angle.sin(), angle.cos()], 1)[:, :, None]
    along = tangent_restriction(radius_gradient, around)
    assert float(along.abs().max()) < 1e-15
    assert math.isclose(float(tangent_restriction(radius_gradient, radius_gradient.mT).abs().min()), 1.0)
