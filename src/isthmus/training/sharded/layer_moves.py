"""Exact moves and truncation for networks whose parameters lie in several processes, at most two layers at a time.

The same with whole parameters: `moves`, `sharded.row_moves`. The layers: `sharded.layer_shares`.
"""

from dataclasses import replace
from functools import reduce

import torch
from torch import Tensor

from isthmus.networks import FullyConnected
from isthmus.networks.min_norm import projected_on
from isthmus.networks.rebalancing import balance_layers
from isthmus.training.moves import Move, best_of_rank, least_norm, middle_layers, middle_rank, rebalancing
from isthmus.training.sharded.layer_step import LayerwiseStep, passed
from isthmus.training.sharded.row_moves import stacked_triangles, triangle
from isthmus.training.solvers.schedule import Schedule
from isthmus.training.solvers.solver import Adam, Solver
from isthmus.training.solvers.trials import ExactMoves, RankTrials, lower_rank
from isthmus.training.steps.step import Step


def layerwise_rebalancing(step: Step) -> None:
    """`moves.rebalancing`, two layers at a time."""
    assert isinstance(step, LayerwiseStep)
    layers = step.layers
    weight, bias = layers.read(1)
    for l in range(1, layers.depth):
        above, bias_above = layers.read(l + 1)
        balance_layers([weight, above], None if bias is None else [bias])
        layers.write(l, weight, bias)
        weight, bias = above, bias_above
    layers.write(layers.depth, weight, bias)


def layerwise_least_norm(step: Step) -> None:
    """`moves.least_norm` on the rows of all processes, one layer at a time."""
    assert isinstance(step, LayerwiseStep)
    layers, received = step.layers, step.run_inputs()
    for l, slope in enumerate(step.slopes, 1):
        weight, bias = layers.read(l)
        received_next = [passed(a, weight, bias, slope) for a in received]
        one = FullyConnected.from_layers([weight], None if bias is None else [bias], dtype=None)
        projected = projected_on(one, [_factor(step, received)])
        layers.write(l, projected.weights[0].detach(), None if bias is None else projected.biases[0].detach())
        received = received_next


def _factor(step: LayerwiseStep, received: list[Tensor]) -> Tensor:
    """Triangular R with R^T R = A^T A, A = [a 1] what a layer receives on the rows of all processes."""
    has_bias = step.layers.has_bias

    def leaf(i: int) -> Tensor:
        of_leaf = step.of_leaf(i, received)
        inputs = (torch.cat([a, a.new_ones(len(a), 1)], 1) if has_bias else a for a in of_leaf)
        return reduce(stacked_triangles, (triangle(a.double()) for a in inputs))

    side = received[0].shape[1] + has_bias
    like = received[0].new_empty(side, side, dtype=torch.float64)
    return step.rows.team.fold(step.rows.leaves, leaf, stacked_triangles, like)


def layerwise_lower_rank(step: Step) -> bool:
    """`trials.lower_rank`, one layer at a time."""
    assert isinstance(step, LayerwiseStep)
    rank = middle_rank(step.network)
    if rank > 1:
        for l in middle_layers(step.network):
            weight, bias = step.layers.read(l)
            step.layers.write(l, best_of_rank(weight, rank - 1), bias)
    return rank > 1


_LAYERWISE: dict[object, Move] = {rebalancing: layerwise_rebalancing, least_norm: layerwise_least_norm}


def layerwise_schedule(schedule: Schedule) -> Schedule:
    """The same solvers, with moves that take a network layer by layer.

    Raises:
        ValueError: a move that needs the whole network at once.
    """
    return tuple(_layerwise(solver) for solver in schedule)


def _layerwise(solver: Solver) -> Solver:
    if isinstance(solver, Adam | ExactMoves):
        return replace(solver, moves=tuple(_known(move) for move in solver.moves))
    if isinstance(solver, RankTrials):
        if solver.attempt is not lower_rank:
            raise _needs_all(solver.attempt)
        return replace(solver, attempt=layerwise_lower_rank)
    return solver


def _known(move: Move) -> Move:
    if move not in _LAYERWISE:
        raise _needs_all(move)
    return _LAYERWISE[move]


def _needs_all(move: object) -> ValueError:
    name = getattr(move, "__name__", move)
    return ValueError(
        f"fit_shards(schedule, split_parameters=True): the move {name} needs the whole network in each process. "
        "Leave the move or split_parameters out."
    )
