"""Moves between iterations: exact ones that keep the function and lower the penalty, and truncation to a lower rank."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from isthmus.networks import FullyConnected, min_norm_projection
from isthmus.networks.departures import departure
from isthmus.networks.rebalancing import balance_sweep
from isthmus.training.steps.memory_step import frozen
from isthmus.training.steps.step import Step

Move = Callable[[Step], None]  # changes `step.theta` in place between two iterations


def in_sequence(network: nn.Module) -> FullyConnected | None:
    """The network itself, if it is one matrix after the other, as the moves here need it, and nothing else."""
    return network if isinstance(network, FullyConnected) and not departure(network, FullyConnected) else None


def movable(network: nn.Module) -> FullyConnected | None:
    """The same of a network that is trained as a whole: moves change every layer, frozen ones too."""
    return None if frozen(network) else in_sequence(network)


def take_over(network: nn.Module, other: nn.Module) -> None:
    """Give a network the parameters of another of its shape, in place."""
    with torch.no_grad():
        for mine, theirs in zip(network.parameters(), other.parameters(), strict=True):
            mine.copy_(theirs)


def rebalancing(step: Step) -> None:
    """One sweep of neuron rebalancing: exact, the penalty never rises (FC-23). No-op for all but `movable` ones."""
    if network := movable(step.network):
        with torch.no_grad():
            balance_sweep(network)


def least_norm(step: Step) -> None:
    """Drop what the weights do outside the span of the training activations: exact on the training data.

    Changes nothing where the activations span their space; the penalty never rises. No-op for other networks, and
    where a part is frozen.
    """
    if network := movable(step.network):
        take_over(network, min_norm_projection(network, step.x))


def middle_layers(network: FullyConnected) -> list[int]:
    """Numbers of the weight matrices that the bottleneck runs through.

    Those beside a linear hidden layer where there is one, else all but the first and the last.
    """
    if network.linear:
        return [l for l in range(1, network.depth + 1) if l in network.linear or l - 1 in network.linear]
    return list(range(2, network.depth))


def middle_rank(network: FullyConnected, *, tolerance: float = 0.1) -> int:
    """Least number, over the middle matrices, of singular values above `tolerance` times the largest (*estimate*)."""
    counts: list[int] = []
    for l in middle_layers(network):
        weight = network.weights[l - 1].detach().double()
        if not bool(torch.isfinite(weight).all()):
            return 0  # diverged: there is no map whose rank could be read
        s = torch.linalg.svdvals(weight)
        counts.append(int((s > tolerance * s[0]).sum()) if float(s[0]) > 0 else 0)
    return min(counts, default=0)


def rank_shown(network: nn.Module) -> int | None:
    """`middle_rank`, or None of a network without a middle: of two layers, or not of one matrix after the other."""
    connected = in_sequence(network)
    return None if connected is None or not middle_layers(connected) else middle_rank(connected)


def truncate_middle(network: FullyConnected, rank: int) -> None:
    """Replace every middle matrix by its best approximation of that rank, in place."""
    with torch.no_grad():
        for l in middle_layers(network):
            weight = network.weights[l - 1]
            weight.copy_(best_of_rank(weight, rank))


def best_of_rank(matrix: Tensor, rank: int) -> Tensor:
    """The closest matrix of at most that rank (singular value decomposition in float64)."""
    u, s, vh = torch.linalg.svd(matrix.detach().double(), full_matrices=False)
    return ((u[:, :rank] * s[:rank]) @ vh[:rank]).to(matrix.dtype)
