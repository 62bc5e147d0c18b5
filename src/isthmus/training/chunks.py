"""How many rows a gradient goes over at once, so that their activations fit into the memory that a fit may take.

The steps themselves: `steps` (all rows at once), `sharded_step` (run by run, added up in a fixed order).
"""

import copy

import torch
from torch import Tensor, nn

from isthmus.networks import FullyConnected, LeakyResNet
from isthmus.training.losses import DataLoss
from isthmus.training.sharded_step import ShardedStep
from isthmus.training.steps import Step, step_of
from isthmus.training.team import Team

MEMORY = 2_000_000_000  # bytes of working memory where `Limits` names none
FEWEST = 256  # rows at once, however little memory there is
VECTORS = 45  # as long as the parameters, that L-BFGS works on: its pairs, gradients, directions


def step_within(network: nn.Module, x: Tensor, data: DataLoss, ridge: float, *, memory: int | None) -> Step:
    """The fastest exact step whose activations fit into `memory` bytes: all rows at once if that is possible.

    Objective and gradient are the same up to rounding, whatever the number of rows at once, of a network that treats
    each row on its own (as batch normalisation in training does not). A leaky network takes all rows at once, for its
    solver linearises over all of them.
    """
    rows = rows_at_once(network, x, MEMORY if memory is None else memory)
    if len(x) <= rows or isinstance(network, LeakyResNet):
        return step_of(network, x, data, ridge)
    return ShardedStep(network, x, data, ridge, total=len(x), team=Team(), at_once=rows)


def rows_at_once(network: nn.Module, x: Tensor, memory: int) -> int:
    """Rows whose activations fit into what the vectors of the solver leave of the memory; at least 256."""
    parameters = sum(p.numel() * p.element_size() for p in network.parameters())
    return max((memory - VECTORS * parameters) // bytes_of_row(network, x), FEWEST)


def bytes_of_row(network: nn.Module, x: Tensor) -> int:
    """Bytes that one row takes in a gradient: activations, and gradients at two layers.

    For modules other than `FullyConnected` it is twice what their parts give out (*estimate*: that is what autograd
    keeps, more or less).
    """
    if isinstance(network, FullyConnected):
        d = network.dimensions
        return (sum(d) + 2 * max(d)) * x.element_size()
    sizes: list[int] = []

    def count(_module: nn.Module, _inputs: object, output: object) -> None:
        if isinstance(output, Tensor):
            sizes.append(output.numel() * output.element_size())

    copied = copy.deepcopy(network).eval()  # a row through the network itself would count in its running averages
    for part in copied.modules():
        part.register_forward_hook(count)
    with torch.no_grad():
        copied(x[:1])
    return 2 * max(sum(sizes), x.element_size())
