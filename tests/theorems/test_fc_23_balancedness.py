import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from closeness import assert_same_values, random
from isthmus.networks import FullyConnected, rebalance
from isthmus.networks.rebalancing import balance_sweep
from tolerances import rounding

pytestmark = pytest.mark.theorem("FC-23")


def make(slope: float = 0.0, *, bias: bool = True, seed: int = 0) -> FullyConnected:
    network = FullyConnected(
        3, 2, width=[6, 4, 5], depth=4, negative_slope=slope, bias=bias, seed=seed, dtype=torch.float64
    )
    with torch.no_grad():
        for vector in network.biases:
            vector.copy_(random(len(vector), seed=seed + 1))
        network.weights[1].mul_(7)
    return network


def assert_neurons_are_balanced(network: FullyConnected) -> None:
    """|w_i|^2 + b_i^2 = |outgoing_i|^2 for every hidden neuron, hence layer by layer."""
    for l in range(1, network.depth):
        bias = network.bias_of(l)
        incoming = network.weights[l - 1].square().sum(1) + (0 if bias is None else bias.square())
        outgoing = network.weights[l].square().sum(0)
        scale = float(outgoing.detach().max())
        assert float((incoming - outgoing).detach().abs().max()) <= rounding(size=100, condition=scale)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 999), slope=st.sampled_from([0.0, 0.3, -0.4]), bias=st.booleans())
def test_rebalancing_keeps_the_function_and_balances_every_neuron(seed: int, slope: float, bias: bool) -> None:
    network, x = make(slope, bias=bias, seed=seed), random(20, 3)
    balanced = rebalance(network)
    assert_same_values(balanced(x), network(x))
    assert_neurons_are_balanced(balanced)
    assert balanced.penalty() < network.penalty()
    with pytest.raises(AssertionError):
        assert_neurons_are_balanced(network)


@pytest.mark.parametrize("bias", [True, False])
def test_neurons_that_do_nothing_cost_nothing_afterwards(bias: bool) -> None:
    network, x = make(bias=bias), random(20, 3)
    with torch.no_grad():
        network.weights[2][:, 1] = 0.0  # nobody reads neuron 1 of layer 2
        network.weights[0][3] = 0.0  # nothing comes into neuron 3 of layer 1
        if bias:
            network.biases[0][3] = 0.0
    balanced = rebalance(network)
    assert_same_values(balanced(x), network(x))
    assert_neurons_are_balanced(balanced)
    assert not balanced.weights[1][1].any()
    assert not balanced.weights[1][:, 3].any()
    assert not bias or balanced.biases[1][1] == 0


def test_a_neuron_that_gives_a_constant_is_kept() -> None:
    network, x = make(), random(20, 3)
    with torch.no_grad():
        network.weights[0][3] = 0.0
        network.biases[0][3] = 2.0
    balanced = rebalance(network)
    assert_same_values(balanced(x), network(x))
    assert balanced.biases[0][3] > 0


def test_each_sweep_lowers_the_penalty() -> None:
    network, penalties = make(), list[float]()
    with torch.no_grad():
        for _ in range(6):
            penalties.append(float(network.penalty()))
            balance_sweep(network)
    assert all(after < before for before, after in zip(penalties[:-1], penalties[1:], strict=True))


def test_the_minimum_is_global_over_all_rescalings() -> None:
    network = make()
    weights = [w.detach().numpy() for w in network.weights]
    biases = [b.detach().numpy() for b in network.biases]
    widths = [6, 4, 5]

    def penalty(scales: np.ndarray) -> float:
        t = [np.zeros(3), *np.split(scales, np.cumsum(widths)[:-1]), np.zeros(2)]
        factors = [np.exp(2 * (t[l + 1][:, None] - t[l][None])) for l in range(4)]
        matrices = sum(float((f * w**2).sum()) for f, w in zip(factors, weights, strict=True))
        return matrices + sum(float((np.exp(2 * t[l + 1]) * biases[l] ** 2).sum()) for l in range(4))

    least = float(rebalance(network).penalty().detach())
    for seed in range(2):
        start = np.random.default_rng(seed).normal(size=sum(widths))
        found = minimize(penalty, start, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 2000})
        assert abs(float(found.fun) - least) <= 1e-9 * least
        assert penalty(start) > 1.01 * least
