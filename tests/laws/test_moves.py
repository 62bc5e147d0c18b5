"""Every move on every network: the function is kept, and the penalty obeys the move's law."""

import copy
from collections.abc import Callable

import pytest
import torch

from isthmus.errors import ShapeError
from isthmus.networks import (
    FullyConnected,
    balance_linear_runs,
    caratheodory_prune,
    delete_dead_neurons,
    fold_constant_neurons,
    insert_identity_layers,
    merge_parallel_neurons,
    min_norm_projection,
    rebalance,
    walk,
)
from tolerances import rounding

Move = Callable[[FullyConnected, torch.Tensor], FullyConnected]

# exact and never raising the penalty; True: exact for every input, False: on the data it was given
NEVER_RAISING: dict[str, tuple[Move, bool]] = {
    "rebalance": (lambda network, _x: rebalance(network), True),
    "min_norm_projection": (min_norm_projection, False),
    "delete_dead_neurons": (lambda network, _x: delete_dead_neurons(network), True),
    "delete_dead_neurons_on_data": (delete_dead_neurons, False),
    "merge_parallel_neurons": (lambda network, _x: merge_parallel_neurons(network), True),
    "caratheodory_prune": (caratheodory_prune, False),
    "balance_linear_runs": (lambda network, _x: balance_linear_runs(network), True),
    "fold_constant_neurons": (lambda network, _x: fold_constant_neurons(network), True),
    "fold_constant_neurons_on_data": (fold_constant_neurons, False),
}
# exact at a stated cost: the change of the penalty
AT_A_COST: dict[str, tuple[Move, Callable[[FullyConnected], float]]] = {
    "insert_after_input": (lambda n, _x: insert_identity_layers(n, 2, position=0), lambda n: 2 * n.dimensions[0]),
    "insert_after_first": (lambda n, _x: insert_identity_layers(n, 3, position=1), lambda n: 3 * n.dimensions[1]),
    "insert_after_output": (
        lambda n, _x: insert_identity_layers(n, 1, position=n.depth),
        lambda n: n.dimensions[-1],
    ),
    "insert_at_the_thinnest": (lambda n, _x: insert_identity_layers(n, 4), lambda n: 4 * min(n.dimensions)),
}


def blemished(network: FullyConnected) -> FullyConnected:
    """With one dead, one constant, one unused and two parallel neurons in the first hidden layer."""
    with torch.no_grad():
        first, second = network.weights[0], network.weights[1]
        first[0] = 0
        second[:, 1] = 0
        first[2] = 2.5 * first[3]
        first[4] = 0
        if network.has_bias:
            for l, bias in enumerate(network.biases):
                bias.copy_(torch.linspace(-1, 1, len(bias), dtype=bias.dtype) * (l + 1) / 2)
            network.biases[0][0] = 0
            network.biases[0][2] = 2.5 * network.biases[0][3]
            network.biases[0][4] = 0.7
    return network


def make(slope: float, *, bias: bool, linear: tuple[int, ...], seed: int) -> FullyConnected:
    return blemished(
        FullyConnected(
            4, 3, width=[9, 8, 6], depth=4, negative_slope=slope, linear=linear, bias=bias, seed=seed,
            dtype=torch.float64,
        )
    )  # fmt: skip


KINDS = [(0.0, ()), (0.3, ()), (-0.4, ()), (0.0, (1, 2)), (0.3, (2,)), (0.0, (1, 2, 3))]
NETWORKS = {
    f"slope={slope},bias={bias},linear={linear}": make(slope, bias=bias, linear=linear, seed=seed)
    for seed, (slope, linear) in enumerate(KINDS)
    for bias in (True, False)
}
DATA = torch.randn(3, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
ELSEWHERE = 3 * torch.randn(50, 4, generator=torch.Generator().manual_seed(6), dtype=torch.float64)


def scale_of(network: FullyConnected, x: torch.Tensor) -> float:
    return max(float(state.preactivation.detach().abs().max()) for state in walk(network, x))


def assert_same_function(before: FullyConnected, after: FullyConnected, x: torch.Tensor) -> None:
    assert float((before(x) - after(x)).detach().abs().max()) <= rounding(size=40, condition=scale_of(before, x))


def assert_penalty_moves_by_at_most(before: FullyConnected, after: FullyConnected, change: float = 0.0) -> None:
    old = float(before.penalty().detach())
    assert float(after.penalty().detach()) <= old + change + rounding(size=10, condition=old + abs(change))


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("name", NEVER_RAISING)
def test_the_function_stays_and_the_penalty_does_not_rise(name: str, network: FullyConnected) -> None:
    move, everywhere = NEVER_RAISING[name]
    original = copy.deepcopy(network)
    after = move(network, DATA)
    assert after is not network
    assert_same_function(network, after, ELSEWHERE if everywhere else DATA)
    assert_penalty_moves_by_at_most(network, after)
    assert all(torch.equal(p, q) for p, q in zip(network.parameters(), original.parameters(), strict=True))


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("name", AT_A_COST)
def test_inserting_identities_costs_their_width_each(name: str, network: FullyConnected) -> None:
    move, cost = AT_A_COST[name]
    after = move(network, DATA)
    assert_same_function(network, after, ELSEWHERE)
    assert_penalty_moves_by_at_most(network, after, cost(network))
    with pytest.raises(AssertionError):  # one identity less would not pay for it
        assert_penalty_moves_by_at_most(network, after, cost(network) - 1)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_a_move_made_wrongly_fails_the_same_assertions(network: FullyConnected) -> None:
    wrong = copy.deepcopy(network)
    with torch.no_grad():
        wrong.weights[1][:, 3] += wrong.weights[1][:, 2]  # merged parallel neurons without the factor 2.5
        wrong.weights[1][:, 2] = 0
    with pytest.raises(AssertionError):
        assert_same_function(network, wrong, DATA)
    heavier = copy.deepcopy(network)
    with torch.no_grad():
        heavier.weights[0].mul_(1 + 1e-9)
    with pytest.raises(AssertionError):
        assert_penalty_moves_by_at_most(network, heavier)


@pytest.mark.parametrize("name", NEVER_RAISING)
def test_a_float32_network_stays_one(name: str) -> None:
    network = blemished(FullyConnected(4, 3, width=[9, 8, 6], depth=4, seed=3))
    x = DATA.float()
    after = NEVER_RAISING[name][0](network, x)
    assert {parameter.dtype for parameter in after.parameters()} == {torch.float32}
    gap = float((after(x) - network(x)).detach().abs().max())
    assert gap <= rounding(size=40, condition=scale_of(network, x), dtype=torch.float32)


# what drops singular values of a matrix below rounding of the largest drops what other layers would weigh up
BY_THE_LARGEST = {"min_norm_projection", "balance_linear_runs"}


def with_scales_apart(network: FullyConnected, powers: int) -> FullyConnected:
    """The same function by neurons of scales 2^-powers .. 2^powers in every hidden layer."""
    weights, biases = network.written_layers()
    for l in range(network.depth - 1):
        scale = torch.linspace(-powers, powers, len(weights[l]), dtype=torch.float64).round().exp2().to(weights[l])
        weights[l], weights[l + 1] = weights[l] * scale[:, None], weights[l + 1] / scale
        if biases is not None:
            biases[l] = biases[l] * scale
    return network.rewritten(weights, biases)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("name", sorted({*NEVER_RAISING} - BY_THE_LARGEST))
def test_neurons_of_any_scale_keep_the_function(name: str, network: FullyConnected) -> None:
    """Constant, dead and parallel are of a neuron by itself; beside one of another scale all had been constant."""
    network = copy.deepcopy(network).float()
    x = ELSEWHERE.float()
    scaled = with_scales_apart(network, 13)
    assert torch.equal(scaled(x), network(x))  # powers of two round nothing
    after = NEVER_RAISING[name][0](scaled, x)
    gap = float((after(x) - network(x)).detach().abs().max())
    assert gap <= rounding(size=40, condition=scale_of(network, x), dtype=torch.float32)


@pytest.mark.parametrize("dimensions", [(0, 2), (3, 0), (3, 2)])
@pytest.mark.parametrize("num_samples", [1, 7])
@pytest.mark.parametrize("name", [*NEVER_RAISING, "insert_at_the_thinnest"])
def test_networks_without_inputs_or_outputs_and_single_samples_pass(
    name: str, num_samples: int, dimensions: tuple[int, int]
) -> None:
    network = FullyConnected(*dimensions, width=[5, 4], depth=3, seed=0, dtype=torch.float64)
    x = DATA[:1, : dimensions[0]].repeat(num_samples, 1)
    move = NEVER_RAISING[name][0] if name in NEVER_RAISING else AT_A_COST[name][0]
    after = move(network, x)
    assert after.dimensions[0] == dimensions[0]
    if dimensions[1]:
        assert_same_function(network, after, x)


@pytest.mark.parametrize("name", [name for name, (_, everywhere) in NEVER_RAISING.items() if not everywhere])
def test_moves_on_no_data_are_refused(name: str) -> None:
    with pytest.raises(ShapeError, match="needs at least one sample"):
        NEVER_RAISING[name][0](make(0.0, bias=True, linear=(), seed=0), DATA[:0])


def test_blemishes_are_removed_and_the_penalty_falls() -> None:
    network = make(0.0, bias=True, linear=(), seed=0)
    after = delete_dead_neurons(merge_parallel_neurons(fold_constant_neurons(network, allow_rise=True)))
    assert after.dimensions[1] == 5  # dead, unused, constant and one of the parallel pair are gone
    assert after.penalty() < network.penalty()
    assert_same_function(network, after, ELSEWHERE)
