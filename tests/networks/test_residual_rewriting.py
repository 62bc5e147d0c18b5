import pytest
import torch

from isthmus import factorise
from isthmus.networks import LeakyResNet, ResNet, Waist, as_fully_connected, walk
from leaky_networks import random_leaky
from theorem_checks import assert_close, normal


def shaken(network: ResNet) -> ResNet:
    with torch.no_grad():
        for number, bias in enumerate(network.biases):
            bias.copy_(normal(number, *bias.shape))
    return network.double()


def networks() -> list[LeakyResNet | ResNet]:
    resnets = [
        shaken(ResNet(3, 2, width=5, depth=depth, block_depth=size, linear=linear, inner_width=inner, seed=1))
        for depth, size, linear, inner in
        [(3, 1, False, 5), (3, 2, False, 4), (3, 1, True, 5), (2, 2, True, 4), (0, 1, False, 5)]
    ]  # fmt: skip
    return [random_leaky(0), random_leaky(1, bias=False, scheme="exponential"), *resnets]


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("narrow", [False, True])
def test_the_function_is_the_same_and_so_is_the_stream(number: int, narrow: bool) -> None:
    network, x = networks()[number].requires_grad_(False), normal(3, 20, 3)
    middle = network.depth // 2
    if narrow:
        network.narrow(Waist(middle, torch.linalg.qr(normal(8, 5, 2)).Q, normal(9, 5)))
    written = as_fully_connected(network).requires_grad_(False)
    assert_close(written(x), network(x), relative=1e-12)
    assert written.depth == network.depth + 2
    behind = 1 if isinstance(network, LeakyResNet) else network.block_depth
    stream = walk(network, x)[behind * middle].activation
    assert_close(walk(written, x)[middle].preactivation[:, :5], stream, relative=1e-12)
    with pytest.raises(AssertionError):
        assert_close(written(x), network(x * (1 + 1e-9)), relative=1e-12)


def test_a_smoothed_relu_is_refused() -> None:
    with pytest.raises(ValueError, match=r"its smoothing is 0\.1"):
        as_fully_connected(random_leaky(0, smoothing=0.1))


@pytest.mark.parametrize("number", [0, 2, 3])
def test_a_residual_network_is_cut_through_its_waist_without_error(number: int) -> None:
    network, x = networks()[number].requires_grad_(False), normal(3, 20, 3)
    network.narrow(Waist(1, torch.linalg.qr(normal(8, 5, 2)).Q, normal(9, 5)))
    halves = factorise(network, x, 2, layer=2)
    assert halves.relative_error <= 1e-12
    assert halves.encoder(x).shape == (20, 2)
    assert_close(halves.decoder(halves.encoder(x)).detach(), network(x), relative=1e-11)
    assert factorise(network, x, 1, layer=2).relative_error > 1e-3
