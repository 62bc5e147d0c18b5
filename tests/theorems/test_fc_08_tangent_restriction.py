import math

import pytest
import torch
from torch import Tensor

from isthmus.errors import ShapeError
from isthmus.theory import jacobian_rank_lower_bound, tangent_restriction
from shape_checks import own_shape_checks
from theorem_checks import assert_close, normal

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


def test_the_lengths_of_the_directions_do_not_count() -> None:
    jacobians, direction = normal(0, 4, 3, 3), normal(1, 4, 3, 1)
    exact = jacobians @ (direction / direction.norm(dim=1, keepdim=True))
    assert_close(tangent_restriction(jacobians, 1e-20 * direction).abs(), exact.abs())
    with pytest.raises(AssertionError):
        assert_close((jacobians @ (1e-20 * direction)).abs(), exact.abs())


@pytest.mark.parametrize("repeated", [0.0, 1.0, -3.0])
def test_dependent_directions_would_count_one_that_nobody_gave(repeated: float) -> None:
    first = normal(1, 4, 3, 1)
    identity = torch.eye(3, dtype=torch.float64).expand(4, 3, 3)
    assert_rank(tangent_restriction(identity, first), 1)
    made_up = identity @ torch.linalg.qr(torch.cat([first, repeated * first], 2)).Q
    with pytest.raises(AssertionError):
        assert_rank(made_up, 1)
    with pytest.raises(ValueError, match="those of sample 0 are dependent"):
        tangent_restriction(identity, torch.cat([first, repeated * first], 2))


def test_directions_that_do_not_fit_are_refused() -> None:
    with own_shape_checks(), pytest.raises(ShapeError, match=r"needs tangents \(4, 3, k\), k <= 3"):
        tangent_restriction(normal(0, 4, 3, 3), normal(1, 4, 2, 1))


def test_a_symmetric_map_loses_the_directions_of_its_group() -> None:
    angle = torch.linspace(0.1, 6, 20, dtype=torch.float64)
    radius_gradient = torch.stack([angle.cos(), angle.sin()], 1)[:, None, :]  # f = |x| is invariant under rotations
    around = torch.stack([-angle.sin(), angle.cos()], 1)[:, :, None]
    along = tangent_restriction(radius_gradient, around)
    assert float(along.abs().max()) < 1e-15
    assert math.isclose(float(tangent_restriction(radius_gradient, radius_gradient.mT).abs().min()), 1.0)
