"""Added neurons change a network by little, and by nothing without noise."""

import torch

from isthmus import FullyConnected
from isthmus.networks.widening import widened
from theorem_checks import normal


def network() -> FullyConnected:
    return FullyConnected(3, 2, width=4, depth=3, seed=0, dtype=torch.float64)


def change(noise: float) -> float:
    x, before = normal(1, 20, 3), network()
    with torch.no_grad():
        return float((widened(before, 9, noise=noise)(x) - before(x)).abs().max() / before(x).abs().max())


def test_without_noise_the_function_stays() -> None:
    assert change(0.0) <= 1e-15
    assert widened(network(), 9, noise=0.0).dimensions == (3, 9, 9, 2)


def test_it_moves_like_the_square_of_the_noise() -> None:
    assert 0 < change(1e-3) < 1e-4
    assert 50 < change(1e-3) / change(1e-4) < 200


def test_layers_that_are_wider_stay_as_they_are() -> None:
    before = network()
    same = widened(before, 2, noise=0.5)
    for mine, other in zip(same.parameters(), before.parameters(), strict=True):
        assert torch.equal(mine, other)
