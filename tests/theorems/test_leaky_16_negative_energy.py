import pytest
import torch

from isthmus.diagnostics import leaky_path
from isthmus.networks import LeakyResNet
from isthmus.theory import negative_energy_fraction
from isthmus.training import Outcome, fit
from isthmus.training.solvers.preconditioned import PreconditionedLBFGS
from leaky_networks import RIDGE, small_data, trained
from theorem_checks import assert_at_most, assert_close, normal

pytestmark = pytest.mark.theorem("LEAKY-16")


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_it_is_the_share_of_the_negative_part(scale: float) -> None:
    A = torch.tensor([[3.0, -4.0], [0.0, 0.0]], dtype=torch.float64)
    assert_close(negative_energy_fraction(scale * A), 16 / 25)
    assert_close(negative_energy_fraction(-scale * A), 9 / 25)
    assert_close(negative_energy_fraction(torch.stack([A, A.abs()])), torch.tensor([16 / 25, 0.0], dtype=torch.float64))
    assert float(negative_energy_fraction(0 * A)) == 0


def test_the_middle_of_a_trained_network_is_less_negative_than_its_first_layer() -> None:
    """11 to 56 times from 24 starts, at an effective depth of 3."""
    network, _ = trained()
    share = negative_energy_fraction(leaky_path(network, *small_data(), ridge=RIDGE).activations)
    middle = share[len(share) // 2]
    assert_at_most(4 * middle, share[0])
    with pytest.raises(AssertionError):
        assert_at_most(4 * negative_energy_fraction(normal(0, 12, 5)), share[0])


def shares(effective_depth: float, *, depth: int) -> torch.Tensor:
    """By layer, of the first start that does not end as a constant.

    Ten of forty end so at an effective depth of 8: the stream is shorter than the smoothing then, and no layer of it is
    a slow one of a ReLU network.
    """
    x, y = small_data()
    solver = PreconditionedLBFGS(smoothing=(0.1,), tolerance=1e-6, evaluations=2000)
    for seed in range(10):
        network = LeakyResNet(
            3, 3, width=10, depth=depth, effective_depth=effective_depth, seed=seed, dtype=torch.float64
        )
        result = fit(network, x, y, ridge=RIDGE, solver=solver)
        assert result.stationarity <= 1e-6
        if result.outcome is not Outcome.COLLAPSED:
            return negative_energy_fraction(leaky_path(network, x, y, ridge=RIDGE).activations)
    pytest.fail("ten starts collapsed")


@pytest.mark.slow
def test_slow_layers_lose_their_negative_part_as_the_effective_depth_grows() -> None:
    """In the middle, at steps rho Lt = 1/4 throughout; the ends, which are fast, keep theirs.

    From 54 starts that did not collapse the least share was 66 times smaller or more, that of the first layer never
    below .42.
    """
    short, long = shares(2.0, depth=8), shares(8.0, depth=32)
    assert_at_most(20 * long.min(), short.min(), slack=0.0)
    for end in (0, -1):
        with pytest.raises(AssertionError):
            assert_at_most(20 * long[end], short.min(), slack=0.0)
    assert min(float(short[0]), float(long[0])) > 0.3
