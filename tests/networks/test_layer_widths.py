"""A linear run in fewer coordinates: the same function, never a larger penalty, and the way back. Added neurons."""

import pytest
import torch
from tests.tolerances import rounding

from isthmus.networks import FullyConnected
from isthmus.networks.layer_widths import narrow_linear_run, widen_linear_run, widened
from isthmus.networks.network import penalty_of as penalty
from isthmus.training.moves import truncate_middle
from theorem_checks import normal

WIDTHS, LINEAR = (8, 7, 6, 7, 9), (2, 3, 4)


def truncated_network(rank: int, *, bias: bool = True) -> FullyConnected:
    network = FullyConnected(5, 4, width=WIDTHS, depth=6, linear=LINEAR, bias=bias, seed=3, dtype=torch.float64)
    with torch.no_grad():
        for parameter in network.biases:
            parameter.normal_(generator=torch.Generator().manual_seed(5))
    truncate_middle(network, rank)
    return network


@pytest.mark.parametrize("rank", [1, 2, 5])
@pytest.mark.parametrize("bias", [True, False])
def test_a_truncated_run_fits_in_as_many_neurons_as_its_rank(rank: int, bias: bool) -> None:
    network = truncated_network(rank, bias=bias)
    x = torch.randn(20, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    narrow = narrow_linear_run(network, rank)

    assert narrow.dimensions == (5, 8, rank, rank, rank, 9, 4)
    assert narrow.linear == network.linear
    torch.testing.assert_close(narrow(x), network(x), rtol=0, atol=rounding(size=64, factor=100))
    assert penalty(narrow).item() <= penalty(network).item() * (1 + 1e-12)


def test_fewer_neurons_than_the_rank_change_the_function() -> None:
    network = truncated_network(3)
    x = torch.randn(20, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert float((narrow_linear_run(network, 2)(x) - network(x)).detach().norm()) > 1e-3


def test_what_no_one_reads_goes_out_of_the_penalty() -> None:
    # W_2 has rank 4 while W_3, which reads it, has rank 2 only
    network = truncated_network(4)
    with torch.no_grad():
        network.weights[2][2:] = 0
    assert penalty(narrow_linear_run(network, 4)).item() < penalty(network).item() - 0.1


def test_a_run_that_is_narrow_already_stays() -> None:
    network = truncated_network(2)
    assert narrow_linear_run(network, 9).dimensions == network.dimensions


def test_widened_again_it_is_the_same_function_at_the_same_penalty() -> None:
    network = truncated_network(2)
    x = torch.randn(20, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    narrow = narrow_linear_run(network, 2)
    wide = FullyConnected(5, 4, width=WIDTHS, depth=6, linear=LINEAR, seed=9, dtype=torch.float64)
    widen_linear_run(narrow, wide)

    torch.testing.assert_close(wide(x), narrow(x), rtol=0, atol=rounding(size=64, factor=100))
    torch.testing.assert_close(penalty(wide), penalty(narrow))
    assert wide.dimensions == network.dimensions


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
