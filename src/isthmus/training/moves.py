"""Moves between iterations: exact ones that keep the function and lower the penalty, and truncation to a lower rank."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from isthmus.networks import FullyConnected, min_norm_projection
from isthmus.networks.rebalancing import balance_sweep
from isthmus.training.steps.step import Step


@runtime_checkable
class Move(Protocol):
    """Changes `step.theta` in place between two iterations."""

    def __call__(self, step: Step) -> None:
        """Make the move."""
        ...


def rebalancing(step: Step) -> None:
    """One sweep of neuron rebalancing: exact, the penalty never rises (FC-23). No-op for other networks."""
    if isinstance(step.network, FullyConnected):
        with torch.no_grad():
            balance_sweep(step.network)


def least_norm(step: Step) -> None:
    """Drop what the weights do outside the span of the training activations: exact on the training data.

    Changes nothing where the activations span their space; the penalty never rises. No-op for other networks.
    """
    if isinstance(step.network, FullyConnected):
        projected = min_norm_projection(step.network, step.x)
        with torch.no_grad():
            for mine, theirs in zip(step.network.parameters(), projected.parameters(), strict=True):
                mine.copy_(theirs)


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
    """`middle_rank`, or None of a network that is not made of one matrix after the other."""
    return middle_rank(network) if isinstance(network, FullyConnected) else None


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
