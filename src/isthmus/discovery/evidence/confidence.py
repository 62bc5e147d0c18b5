"""How often the reading comes back: over the trained starts, and over resampled held-out rows without new training.

What the readings are: `theory.curve_readings`. How they combine to a verdict: `decision`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from isthmus.discovery.data.problem import Problem
from isthmus.discovery.minimum import Minimum
from isthmus.theory.curve_readings import plateau_reading, scree_reading, with_gaps_filled

RESAMPLES = 200
BLOCKS = 10  # held-out rows of a time series are drawn in so many blocks, for neighbours resemble each other
Array = NDArray[np.float64]


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
    ranks: Sequence[int] | None = None,
    complete: bool = False,
    weight: Array | None = None,
    ordered: bool = False,
    plateau: bool = False,
    seed: int = 0,
) -> float:
    """Share of bootstrap resamples of the held-out rows whose scree curve reads `rank`.

    Args:
        losses: of every held-out row (columns) through these numbers of dimensions (rows), (len(ranks), n_held).
        rank: the reading in question.
        ranks: 0 and those that were trained, ascending; the errors of others lie between. None: 0, 1, 2, ...
        complete: no map needs more than K dimensions.
        weight: of each row, any common factor.
        ordered: rows are a time series: blocks of neighbours are drawn.
        plateau: the curve is read by where it becomes flat, not by its bend.
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
    known = list(range(len(losses))) if ranks is None else list(ranks)
    hits = 0
    for _ in range(RESAMPLES):
        drawn = np.bincount(rng.integers(num_blocks, size=num_blocks), minlength=num_blocks)[block] * share
        if plateau and drawn.sum() > 0:
            hits += plateau_reading(losses, ranks=known, weight=drawn).rank == rank
        elif drawn.sum() > 0:
            errors = dict(zip(known, (losses @ drawn / drawn.sum()).tolist(), strict=True))
            hits += scree_reading(with_gaps_filled(errors), complete=complete).rank == rank
    return hits / RESAMPLES


def start_share(starts: Mapping[float, Sequence[Minimum]], ridges: Sequence[float], rank: int) -> float:
    """Share of the starts at these ridges whose Jacobian reads `rank`."""
    read = [start.jacobian_rank == rank for ridge in ridges for start in starts[ridge]]
    return sum(read) / len(read)
