from contextlib import suppress

import pytest
import torch
from torch import Tensor

from isthmus.diagnostics import leaky_path
from isthmus.diagnostics.leaky_kinks import kink_stationarity
from isthmus.networks import LeakyResNet, walk
from isthmus.training import fit
from isthmus.training.solvers.preconditioned import TO_RELU, PreconditionedLBFGS
from leaky_networks import RIDGE, random_leaky, small_data
from theorem_checks import normal

pytestmark = pytest.mark.theorem("LEAKY-25")


class NoKink(Exception):
    """The neuron does not change its sign on the line that is looked at."""


def on_a_kink(network: LeakyResNet, x: Tensor) -> Tensor:
    """Samples of which the first has a neuron of layer 2 at 0, found by halving."""
    direction, low, high = normal(9, 3), -8.0, 8.0

    def entry(t: float) -> float:
        with torch.no_grad():
            return float(walk(network, x[:1] + t * direction)[2].activation[0, 0])

    if entry(low) * entry(high) >= 0:
        raise NoKink
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if entry(low) * entry(middle) > 0 else (low, middle)
    return torch.cat([x[:1] + high * direction, x[1:]])


def residual(network: LeakyResNet, x: Tensor, y: Tensor, ridge: float) -> tuple[Tensor, float]:
    """What is not critical, weighted so that its size over the second number is the stationarity."""
    path = leaky_path(network, x, y, ridge=ridge)
    root = path.steps.sqrt()[:, None, None]
    return root * (path.weights - path.critical), float((root * path.weights).norm())


def test_away_from_kinks_it_is_the_stationarity_of_the_path() -> None:
    network, x, y = random_leaky(0), normal(2, 8, 3), normal(3, 8, 2)
    found = kink_stationarity(network, x, y, ridge=RIDGE, width=1e-9)
    assert (found.kinks, found.entries) == (0, 6 * 8 * 5)
    assert found.generalised == found.raw
    assert found.raw == pytest.approx(leaky_path(network, x, y, ridge=RIDGE).total_stationarity, rel=1e-12)


def beside_a_kink(seed: int, ridge: float) -> tuple[LeakyResNet, Tensor, Tensor, float]:
    """A network, samples on a kink, what is not critical there, and where on the segment it is nearest to 0."""
    network = random_leaky(seed)
    x = on_a_kink(network, normal(2, 1, 3))
    beside = 1e-8 * normal(9, 3)
    (a, size), (b, _) = (residual(network, x + sign * beside, normal(3, 1, 2), ridge) for sign in (-1, 1))
    return network, x, torch.stack([a, b]) / size, float((a * (a - b)).sum() / (a - b).square().sum())


def test_at_one_kink_it_is_the_nearest_point_of_a_segment() -> None:
    y, ridge = normal(3, 1, 2), 1e-3
    for seed in range(100):  # the first for which this point is well inside
        with suppress(NoKink):
            network, x, (a, b), share = beside_a_kink(seed, ridge)
            if 0.2 < share < 0.8:
                break
    else:
        raise AssertionError("no network has it inside")
    found = kink_stationarity(network, x, y, ridge=ridge, width=1e-9)
    assert found.kinks == 1
    assert found.generalised == pytest.approx(float((a + share * (b - a)).norm()), rel=1e-7)
    assert found.generalised < (1 - 1e-5) * min(float(a.norm()), float(b.norm()))


@pytest.mark.slow
def test_followed_down_to_the_relu_a_network_is_critical_with_the_best_slopes_and_with_no_derivative() -> None:
    x, y = small_data()
    network = LeakyResNet(3, 3, width=5, depth=8, effective_depth=3.0, seed=0, dtype=torch.float64)
    end = fit(
        network, x, y, ridge=RIDGE, solver=PreconditionedLBFGS(smoothing=TO_RELU, tolerance=1e-4, evaluations=1500)
    )
    assert float(network.smoothing) == 0.0
    found = kink_stationarity(network, x, y, ridge=RIDGE, width=3 * TO_RELU[-2])
    assert 0 < found.kinks < found.entries / 10
    assert found.raw == pytest.approx(end.stationarity, rel=1e-6)
    assert found.raw > 0.1
    assert found.generalised < 1e-3
    with pytest.raises(AssertionError):
        assert kink_stationarity(network, x, y, ridge=RIDGE, width=1e-12).generalised < 1e-3


def test_a_width_of_zero_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="kink_stationarity.*width"):
        kink_stationarity(random_leaky(0), normal(2, 8, 3), normal(3, 8, 2), ridge=0.1, width=0.0)
