import pytest
import torch

from isthmus.theory import linear_cost, plateau_slope, switch_depth
from theorem_checks import assert_close, with_spectrum

pytestmark = pytest.mark.theorem("FC-31")


def energy(depth: float, loss: float, constant: float, rank: int, ridge: float) -> float:
    return loss + ridge * (rank * depth + constant)


def test_at_the_switching_depth_two_families_have_one_energy() -> None:
    loss, constant, rank, ridge = (0.9, 0.1), (3.0, 8.0), (1, 4), 0.01
    depth = switch_depth(loss=loss, constant=constant, rank=rank, ridge=ridge)

    def assert_equal(L: float) -> None:
        assert_close(energy(L, loss[0], constant[0], 1, ridge), energy(L, loss[1], constant[1], 4, ridge))

    assert_equal(depth)
    with pytest.raises(AssertionError):
        assert_equal(1.01 * depth)
    assert energy(depth - 1, 0.1, 8.0, 4, ridge) < energy(depth - 1, 0.9, 3.0, 1, ridge)  # higher rank below


def test_the_norm_of_one_family_has_its_rank_as_slope() -> None:
    matrix = with_spectrum(0, [5.0, 1.0, 0.2], 4, 4)
    depths = torch.tensor([20, 40, 80, 160])
    costs = torch.stack([linear_cost(matrix, depth=int(d)) for d in depths])
    found = plateau_slope(depths, costs)
    assert found.rank.tolist() == [3, 3, 3]
    assert_close(found.slope, torch.full((3,), 3.0), absolute=0.02)
    with pytest.raises(AssertionError):  # |W|^2 / L itself is biased by c / L
        assert_close(costs[:3] / depths[:3], torch.full((3,), 3.0), absolute=0.02)


def test_depths_must_rise() -> None:
    with pytest.raises(ValueError, match="needs rising depths"):
        plateau_slope(torch.tensor([3, 3]), torch.tensor([1.0, 2.0]))
