import pytest
import torch
from torch import Tensor

from isthmus.theory import RankCertificate, betweenness_certificate
from theorem_checks import assert_close

pytestmark = pytest.mark.theorem("FC-06")

# the x-cross map of FC-05 is the identity on the cross |x_0| = |x_1|: three arms seen from the centre
ARMS = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]], dtype=torch.float64)
CENTRE = torch.zeros(1, 2, dtype=torch.float64)


def through_the_centre(i: int) -> Tensor:
    others = ARMS[[j for j in range(3) if j != i]]
    return torch.cat([others[:1], CENTRE, others[1:]])


def assert_certified(found: RankCertificate) -> None:
    assert found.rank == 2


def test_three_arms_of_a_cross_do_not_lie_on_a_line() -> None:
    found = betweenness_certificate(ARMS, [through_the_centre(i) for i in range(3)])
    assert_certified(found)
    assert_close(found.distances, torch.full((3,), 2**0.5, dtype=torch.float64))


def test_three_points_of_a_line_are_not_certified() -> None:
    values = torch.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 6.0]], dtype=torch.float64)
    found = betweenness_certificate(values, [values[[1, 2]], values[[0, 2]], values[[0, 1]]])
    with pytest.raises(AssertionError):
        assert_certified(found)
    assert_close(found.distances[1], 0.0, absolute=1e-15)


def test_a_path_must_join_the_two_other_points() -> None:
    paths = [through_the_centre(i) for i in (1, 0, 2)]
    with pytest.raises(ValueError, match=r"paths\[0\] to join"):
        betweenness_certificate(ARMS, paths)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_tolerance_is_relative_to_the_largest_value(scale: float) -> None:
    paths = [scale * through_the_centre(i) for i in range(3)]
    found = betweenness_certificate(scale * ARMS, paths, tolerance=1e-3)
    assert_certified(found)
    assert_close(found.threshold, 1e-3 * scale * float(ARMS.abs().max()))
    assert betweenness_certificate(scale * ARMS, paths, tolerance=2.0).rank == 0
