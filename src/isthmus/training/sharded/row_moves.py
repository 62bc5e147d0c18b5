"""The exact move that reads samples, for samples that lie in several processes. Moves of weights alone: `moves`."""

from functools import reduce

import torch
from torch import Tensor

from isthmus.networks import FullyConnected
from isthmus.networks.min_norm import layer_inputs, projected_on
from isthmus.training.moves import movable, take_over
from isthmus.training.sharded.row_step import ShardedStep
from isthmus.training.steps.step import Step


def sharded_least_norm(step: Step) -> None:
    """`moves.least_norm` on the rows of all processes; no process holds the activations of more than its own."""
    assert isinstance(step, ShardedStep)
    if network := movable(step.network):
        take_over(network, projected_on(network, input_factors(step, network)))


def input_factors(step: ShardedStep, network: FullyConnected) -> list[Tensor]:
    """For each layer a triangular R, (inputs, inputs), with R^T R = A^T A, A what the layer receives on all rows.

    Triangles of the leaves, factored again in pairs (Demmel, Grigori, Hoemmen and Langou 2012): as accurate as a
    factorisation of the whole A. The Gram matrix A^T A would be easier to sum, but squares the condition: singular
    values below 1e-8 of the largest drown in it, and `moves.least_norm` keeps those above 1e-12.
    """
    rows = step.rows
    sides = [d + network.has_bias for d in network.dimensions[:-1]]

    def unpacked(flat: Tensor) -> list[Tensor]:
        parts = flat.split([side * side for side in sides])
        return [part.view(side, side) for part, side in zip(parts, sides, strict=True)]

    def stacked(a: Tensor, b: Tensor) -> Tensor:
        pairs = zip(unpacked(a), unpacked(b), strict=True)
        return torch.cat([stacked_triangles(*pair).reshape(-1) for pair in pairs])

    def leaf(i: int) -> Tensor:
        received = (layer_inputs(network, rows.at(*run)[0]) for run in rows.runs(i))
        return reduce(stacked, (torch.cat([triangle(a).reshape(-1) for a in inputs]) for inputs in received))

    like = torch.zeros(sum(side * side for side in sides), dtype=torch.float64, device=step.theta.device)
    with torch.no_grad():
        return unpacked(rows.team.fold(rows.leaves, leaf, stacked, like))


def triangle(matrix: Tensor) -> Tensor:
    """The triangular factor of a matrix (rows, side) with its square (side, side) filled up by zeros."""
    r = torch.linalg.qr(matrix, mode="r").R
    return torch.cat([r, r.new_zeros(matrix.shape[1] - len(r), matrix.shape[1])])


def stacked_triangles(a: Tensor, b: Tensor) -> Tensor:
    """The triangular factor of all rows, from those of the first and of the last."""
    return triangle(torch.cat([a, b]))
