"""The scree curve: errors of refined halves on held-out rows, and how often its reading comes back.

It is read again over resampled held-out rows, without new training, and over the trained starts.

What the readings are: `theory.curve_readings`. How they combine to a verdict: `decision`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from isthmus.discovery.data.problem import Problem
from isthmus.discovery.kinds.family import Family
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.objective_curves import Curve
from isthmus.theory.comparison import Comparison, by_ratio
from isthmus.theory.curve_readings import (
    CurveReading,
    Gain,
    RowLosses,
    gain_beyond,
    plateau_reading,
    scree_reading,
    standard_error,
    with_gaps_filled,
)

RESAMPLES = 200
ROUNDING = 1e-9  # of sums of weights
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
    together: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> float:
    """Share of bootstrap resamples of the held-out rows whose scree curve reads `rank`.

    Args:
        losses: of every held-out row (columns) through 0 and more dimensions (rows).
        rank: the reading in question.
        read: how the curve is read, given the weights of the rows; `bends`, or `plateau_reading`.
        weight: of each row, any common factor.
        together: a number of each row, the same for rows that are drawn together; None: each by itself.
        seed: of the resamples, 200.

    Raises:
        ValueError: fewer than two curves, or no row.
    """
    if losses.shape[0] < 2 or losses.shape[1] < 1:
        raise ValueError(f"scree_share(losses): needs at least two ranks and one row, got shape {losses.shape}.")
    rng, n = np.random.default_rng(seed), losses.shape[1]
    block = np.arange(n) if together is None else np.unique(together, return_inverse=True)[1]
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


def weighted_median(values: Array, weight: Array) -> float:
    """The mean of the least and the largest value with at most half of the weight on either side."""
    order = np.argsort(values)
    below = np.cumsum(weight[order]) / weight.sum()
    low, high = np.searchsorted(below, [0.5 - ROUNDING, 0.5 + ROUNDING])
    return float(values[order[low]] + values[order[min(high, len(order) - 1)]]) / 2


def start_share(starts: Mapping[float, Sequence[Minimum]], ridges: Sequence[float], rank: int) -> float:
    """Share of the starts at these ridges whose Jacobian reads `rank`."""
    read = [start.jacobian_rank == rank for ridge in ridges for start in starts[ridge]]
    return sum(read) / len(read)


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutCurve:
    """Errors on held-out rows, by rank.

    Attributes:
        family: the networks.
        halves: those refined through each rank.
    """

    family: Family[Any]
    halves: Curve

    def errors(self, constant: float) -> list[float]:
        """By rank; through no dimension: the best constant of the training rows, on the held-out rows."""
        known = {rank: constant if m.collapsed else m.heldout_error for rank, m in self.halves.items()}
        return with_gaps_filled({0: constant} | known, self.family.problem.errors_compared)

    def train_errors(self) -> dict[int, float]:
        """Of the rows that the halves were trained on, by those ranks that do not lead to a constant."""
        return {rank: minimum.train_error for rank, minimum in self.halves.items() if not minimum.collapsed}

    def reading(self, errors: Sequence[float]) -> CurveReading:
        """By where they become flat, or by their largest bend; rank 0, not sharp, where there are no halves."""
        family, compared = self.family, self.family.problem.errors_compared
        if not self.halves:
            return CurveReading(0, 0.0)
        if family.settings.rank_kind.plateau:
            return self._read()(self.row_losses(), weight=self._weight)
        return scree_reading(errors, complete=len(errors) > family.most_rank, measured=self.halves, compared=compared)

    def gains(self, ridge: float, beside: Sequence[Minimum]) -> dict[int, Gain]:
        """What more dimensions save, with networks of other ridges too: a large one may hide a weak direction."""
        problem, made, ranks = self.family.problem, self.family.network_of, self._ranks()
        networks = [RowLosses(rank, ridge, losses) for rank, losses in zip(ranks, self.row_losses(), strict=True)]
        networks += [RowLosses(m.dimensions, m.ridge, row_losses(problem, made(m))) for m in beside]
        found = {
            rank: gain_beyond(rank, networks, weight=self._weight, together=problem.together_held) for rank in ranks
        }
        return {rank: gain for rank, gain in found.items() if gain is not None}

    def medians(self) -> dict[int, float]:
        """By rank, the median loss of held-out rows over their mean: small where few rows lose most of it."""
        losses, weight = self.row_losses(), self._weight
        share = np.ones(losses.shape[1]) if weight is None else weight
        return {
            rank: weighted_median(row, share) / max(float(np.average(row, weights=share)), 1e-300)
            for rank, row in zip(self._ranks(), losses, strict=True)
        }

    def beyond_chance(self) -> dict[int, float]:
        """By rank, how many standard errors less than the constant the halves lose of held-out rows; 0 if none is."""
        losses, weight = self.row_losses(), self._weight
        share = np.full(losses.shape[1], 1.0 / losses.shape[1]) if weight is None else weight
        saved = losses[0] - losses
        error = standard_error(saved, share, self.family.problem.together_held)
        known = (saved @ share) / np.where(error > 0, error, np.inf)
        return dict(zip(self._ranks(), known.tolist(), strict=True))

    def share(self, rank: int) -> float:
        """Share of resampled held-out rows that read this rank."""
        settings = self.family.settings
        losses, weight = self.row_losses(), self._weight
        return scree_share(
            losses, rank, read=self._read(), weight=weight, together=self.family.problem.together_held,
            seed=settings.seed,
        )  # fmt: skip

    def row_losses(self) -> Array:
        """Of the held-out rows through 0 and through each of the ranks."""
        made, halves = self.family.network_of, self.halves
        networks = [None if halves[r].collapsed else made(halves[r]) for r in sorted(halves)]
        return np.stack([row_losses(self.family.problem, network) for network in (None, *networks)])

    def _ranks(self) -> list[int]:
        return [0, *sorted(self.halves)]

    def _read(self) -> Read:
        """How the losses of rows are read."""
        family, ranks, compared = self.family, self._ranks(), self.family.problem.errors_compared
        if family.settings.rank_kind.plateau:
            together = family.problem.together_held
            return partial(plateau_reading, ranks=ranks, together=together, compared=compared)
        return partial(bends, ranks=ranks, complete=ranks[-1] >= family.most_rank, compared=compared)

    @property
    def _weight(self) -> Array | None:
        weight = self.family.problem.weight_held
        return None if weight is None else weight.double().numpy()
