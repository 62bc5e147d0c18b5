import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.networks import LeakyResNet, releaked, retimed, walk, with_steps
from leaky_networks import random_leaky
from theorem_checks import SEEDS, assert_at_most, assert_close, normal

pytestmark = pytest.mark.theorem("LEAKY-17")


def uneven(seed: int, *, bias: bool) -> LeakyResNet:
    """An exponential network with some layers three times heavier than the others."""
    network = random_leaky(seed, bias=bias, scheme="exponential")
    with torch.no_grad():
        network.weights[1:3] *= 3
    return network


@settings(deadline=None, max_examples=10)
@given(seed=SEEDS, bias=st.booleans())
def test_other_steps_give_the_same_function(seed: int, bias: bool) -> None:
    network, x = uneven(seed, bias=bias), normal(seed, 6, 3)
    steps = torch.rand(6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.2
    moved = with_steps(network, steps / steps.sum())
    y = network(x).detach()
    assert_close(moved(x).detach(), y, relative=1e-12)
    if bias:
        with torch.no_grad():  # the biases moved as the weights are, without e^{Lt (r - q)}
            p, q = network.steps.cumsum(0), moved.steps.cumsum(0)
            before = torch.cat([(p - q).new_zeros(1), (p - q)[:-1]])
            moved.weights[:, :, -1] *= torch.exp(-2.5 * before)[:, None]
        with pytest.raises(AssertionError):
            assert_close(moved(x).detach(), y, relative=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_the_best_steps_lower_the_penalty_and_keep_the_function(bias: bool) -> None:
    network, x = uneven(0, bias=bias), normal(1, 6, 3)
    moved = retimed(network)
    assert_close(moved(x).detach(), network(x).detach(), relative=1e-12)
    low, high = float(moved.penalty().detach()), float(network.penalty().detach())
    assert_at_most(low, 0.95 * high)
    with pytest.raises(AssertionError):  # it had been best already
        assert_at_most(float(with_steps(network, network.steps).penalty().detach()), 0.95 * high)
    for seed in range(20):  # no steps near by are better
        near = moved.steps * (1 + 0.05 * normal(seed, 6)).clamp_min(0.5)
        assert_at_most(low, float(with_steps(network, near / near.sum()).penalty().detach()))


def test_without_bias_many_layers_end_up_equally_heavy() -> None:
    network = LeakyResNet(
        3, 3, width=3, depth=100, effective_depth=2.0, bias=False, scheme="exponential", seed=0, dtype=torch.float64
    )
    with torch.no_grad():
        network.weights[:] *= torch.linspace(0.5, 2.0, 100).double()[:, None, None]

    def unevenness(which: LeakyResNet) -> float:
        sizes = torch.linalg.matrix_norm(which.weights.detach())
        return float(sizes.max() / sizes.min())

    assert_at_most(unevenness(retimed(network)), 1.1)
    with pytest.raises(AssertionError):
        assert_at_most(unevenness(network), 1.1)


@pytest.mark.theorem("LEAKY-03")
@settings(deadline=None, max_examples=10)
@given(seed=SEEDS, bias=st.booleans(), leak=st.floats(0.1, 4.0))
def test_another_leak_scales_the_stream_if_the_biases_follow(seed: int, bias: bool, leak: float) -> None:
    network, x = random_leaky(seed, bias=bias), normal(seed, 6, 3)
    moved, factor = releaked(network, leak)
    assert_close(moved(x).detach(), factor * network(x).detach(), relative=1e-11)
    assert walk(moved, x)[-1].position == 8
    if bias and abs(leak - 2.5) > 0.1:
        with torch.no_grad():
            moved.weights[:, :, -1] = network.weights[:, :, -1]
        with pytest.raises(AssertionError):  # the paper's symmetry, biases as they were
            assert_close(moved(x).detach(), factor * network(x).detach(), relative=1e-11)


def test_what_cannot_move_is_refused_in_words() -> None:
    smooth = random_leaky(0, scheme="exponential", smoothing=0.1)
    with pytest.raises(ValueError, match="needs the relu itself; the network is smoothed by 0.1"):
        retimed(smooth)
    with pytest.raises(ValueError, match='needs scheme="exponential"'):
        retimed(random_leaky(0))
    with pytest.raises(ValueError, match='needs scheme="euler"'):
        releaked(smooth, 1.0)
    with pytest.raises(ValueError, match="needs rho Lt <= 1"):
        releaked(random_leaky(0), 6.0)
    assert retimed(random_leaky(0, scheme="exponential")).depth == 6
