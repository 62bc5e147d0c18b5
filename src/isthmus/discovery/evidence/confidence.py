"""How often the reading comes back: over the trained starts, and over resampled held-out rows without new training.

What the readings are: `theory.curve_readings`. How they combine to a verdict: `decision`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from isthmus.discovery.data.problem import Problem
from isthmus.discovery.minimum import Minimum
from isthmus.theory.comparison import Comparison, by_ratio
from isthmus.theory.curve_readings import CurveReading, scree_reading, with_gaps_filled

RESAMPLES = 200
BLOCKS = 10  # held-out rows of a time series are drawn in so many blocks, for neighbours resemble each other
Array = NDArray[np.float64]
Read = Callable[..., CurveReading]  # of losses, with `weight` of the rows


@dataclass(frozen=True, slots=True)
class Shares:
    """How often a rank was read (*estimate*).

    Attributes:
        resamples: share of the resampled held-out sets whose scree curve reads it.
        starts: share of the starts at the chosen ridge and its neighbours whose Jacobian has that rank.
    """

    resamples: float
    starts: float


def row_losses(problem: Problem, network: nn.Module | None) -> Array:
    """Loss of each held-out row (n_held,), in the units of `Problem.heldout_error`, whose weighted mean this is.

    None stands for the best constant of the training rows.
    """
    if network is None:
        outputs = problem.best_constant().expand(len(problem.x_held), -1)
    else:
        with torch.no_grad():
            outputs = network(problem.x_held.to(next(network.parameters()).dtype)).double()
    return problem.loss.row_losses(outputs, problem.loss.cast(problem.y_held, outputs.dtype)).numpy() / problem.unit


def scree_share(
    losses: Array,
    rank: int,
    *,
    read: Read,
    weight: Array | None = None,
    ordered: bool = False,
    seed: int = 0,
) -> float:
    """Share of bootstrap resamples of the held-out rows whose scree curve reads `rank`.

    Args:
        losses: of every held-out row (columns) through 0 and more dimensions (rows).
        rank: the reading in question.
        read: how the curve is read, given the weights of the rows; `bends`, or `plateau_reading`.
        weight: of each row, any common factor.
        ordered: rows are a time series: blocks of neighbours are drawn.
        seed: of the resamples, 200.

    Raises:
        ValueError: fewer than two curves, or no row.
    """
    if losses.shape[0] < 2 or losses.shape[1] < 1:
        raise ValueError(f"scree_share(losses): needs at least two ranks and one row, got shape {losses.shape}.")
    rng, n = np.random.default_rng(seed), losses.shape[1]
    block = np.arange(n) * BLOCKS // n if ordered else np.arange(n)
    num_blocks = int(block.max()) + 1
    share = np.ones(n) if weight is None else weight
    hits = 0
    for _ in range(RESAMPLES):
        drawn = np.bincount(rng.integers(num_blocks, size=num_blocks), minlength=num_blocks)[block] * share
        hits += drawn.sum() > 0 and read(losses, weight=drawn).rank == rank
    return hits / RESAMPLES


def bends(
    losses: Array, *, weight: Array, ranks: Sequence[int], complete: bool = False, compared: Comparison = by_ratio
) -> CurveReading:
    """`scree_reading` of the mean losses of weighted rows, (len(ranks), n), through 0 and the ranks that were trained.

    Args:
        losses: as `scree_share` has them.
        weight: of each row.
        ranks: ascending; the errors of others lie between.
        complete: no map needs more dimensions.
        compared: how errors are compared.
    """
    errors = dict(zip(ranks, (losses @ weight / weight.sum()).tolist(), strict=True))
    return scree_reading(with_gaps_filled(errors, compared), complete=complete, compared=compared)


def start_share(starts: Mapping[float, Sequence[Minimum]], ridges: Sequence[float], rank: int) -> float:
    """Share of the starts at these ridges whose Jacobian reads `rank`."""
    read = [start.jacobian_rank == rank for ridge in ridges for start in starts[ridge]]
    return sum(read) / len(read)
