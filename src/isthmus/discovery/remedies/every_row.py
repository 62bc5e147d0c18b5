"""The remedy of few rows: searches that together hold out every row once, each without a fifth of the rows.

Read off them is the curve of the held-out error, for a remedy. Through how many dimensions as many classes are told
apart as through any, of rows held out as well: `accuracy`; what linear maps read of such rows: `evidence.baseline`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from isthmus.discovery.data.problem import Numbers
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.data.splitting import FOLDS, numbered_apart
from isthmus.discovery.evidence.confidence import Array, bends, row_losses
from isthmus.discovery.findings import OfAllRows
from isthmus.discovery.remedies.remedy import Case, Remedy
from isthmus.discovery.row_doubts import gain_that_counts
from isthmus.discovery.search import Search
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.search_memory import Foresight
from isthmus.errors import NotConverged
from isthmus.theory.curve_readings import CurveReading, Gain, RowLosses, gain_beyond, plateau_reading


class EveryRowHeldOut(Remedy):
    """Searches over four fifths of the rows, so that each is held out once: few rows bend a curve by chance."""

    name: ClassVar[str] = "every row held out"
    settles: ClassVar[float] = 0.4

    def answers(self, case: Case) -> bool:
        """Where the held-out error alone keeps the answer in doubt, and all rows were searched."""
        search = case.search
        readings, rank = search.readings, search.decision.rank
        trained = readings.objective.rank == readings.jacobian_rank == rank > 0 and readings.is_sharp
        blunt = readings.scree.rank != rank or not readings.bends_clearly
        doubted = blunt or gain_that_counts(readings, rank) is not None
        return trained and doubted and search.over_depth is None and not readings.classes and not case.sample.num_unseen

    def cost(self, case: Case) -> int:
        """Of five searches at each of the ridges."""
        size = case.search.size
        return planned_evaluations(size.foresight, size.settings) * len(self._ridges(case.search))

    def apply(self, case: Case) -> str:
        """Search; the reading of all rows is believed."""
        search, held = case.search, f"held out every row once, in {FOLDS} searches"
        parts = [held_out_once(case.sample, search, ridge) for ridge in self._ridges(search)]
        known = [folds for folds in parts if folds is not None]
        if len(known) < len(parts):
            return f"{held}, which did not end"
        reading, gains = scree_of(known[0]), gains_of(known) if search.readings.gains else {}
        search.read_all_rows(OfAllRows(reading, errors_of(known[0]), gains), case.sample)
        return f"{held}: the error of all of them {search.readings.kind.held_out_reads.format(reading.rank)}"

    def _ridges(self, search: Search) -> list[float]:
        """The chosen one, and that of the network of more dimensions that seems to err less."""
        gain = gain_that_counts(search.readings, search.decision.rank)
        return list(dict.fromkeys([search.trained.ridge, *([gain.ridge] if gain else [])]))


def planned_evaluations(foresight: Foresight, settings: Settings) -> int:
    """Gradient evaluations that they will take at one ridge, of networks of which a search at all takes that."""
    return FOLDS * (foresight.all - (foresight.ridges - 1) * len(settings.starts) * settings.start_evaluations)


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """A search over the other rows, and of those that it held out the weights, and which belong together."""

    search: Search
    weight: Array
    together: Numbers | None = None


def held_out_once(sample: Sample, search: Search, ridge: float | None = None) -> list[Fold] | None:
    """Of each fifth of the rows, at a ridge or the chosen one; None where one found nothing or time ran out."""
    settings = replace(search.size.settings, ridges=(ridge or search.trained.ridge,))
    done: list[Fold] = []
    for number, part in enumerate(sample.folds(settings, FOLDS)):
        problem = part.posed_again(settings)
        if problem is None or search.runner.out_of_time():
            return None
        fold = Search(problem, settings, search.runner, name=f"{search.name or 'fold'}-{number}")
        try:
            fold.run()
        except NotConverged:
            return None
        if search.runner.out_of_time():  # this part was cut short
            return None
        done.append(Fold(fold, part.held_weight, problem.together_held))
    return done


def scree_of(folds: Sequence[Fold]) -> CurveReading:
    """The reading of the held-out error of all rows; a rank that a fold did not train is as the one below it."""
    losses, weight, together = _of_all_rows(folds)
    family, compared = folds[0].search.size.family, folds[0].search.problem.errors_compared
    ranks = range(len(losses))
    if family.settings.rank_kind.plateau:
        return plateau_reading(losses, ranks=ranks, weight=weight, together=together, compared=compared)
    return bends(losses, weight=weight, ranks=ranks, complete=ranks[-1] >= family.most_rank, compared=compared)


def errors_of(folds: Sequence[Fold]) -> tuple[float, ...]:
    """Of all rows, over that of the best constant, through 0, 1, ... dimensions."""
    losses, weight, _ = _of_all_rows(folds)
    errors = np.average(losses, axis=1, weights=weight)
    return tuple((errors / errors[0]).tolist())


def gains_of(parts: Sequence[Sequence[Fold]]) -> dict[int, Gain]:
    """What more dimensions save of the error of all rows, by rank.

    Args:
        parts: folds of the same rows, of one ridge each; empty: nothing is known.
    """
    networks, weight, together = list[RowLosses](), None, None
    for folds in parts:
        losses, weight, together = _of_all_rows(folds)
        networks += [RowLosses(rank, folds[0].search.trained.ridge, of) for rank, of in enumerate(losses)]
    found = {one.rank: gain_beyond(one.rank, networks, weight=weight, together=together) for one in networks}
    return {rank: gain for rank, gain in found.items() if gain is not None}


def _of_all_rows(folds: Sequence[Fold]) -> tuple[Array, Array, Numbers | None]:
    """The losses of all rows through 0, 1, ... dimensions, the weights of these rows, and which belong together."""
    searches = [fold.search for fold in folds]
    most = max(max(search.scree, default=0) for search in searches)
    losses = np.concatenate([_losses(search, most) for search in searches], axis=1)
    return losses, np.concatenate([fold.weight for fold in folds]), numbered_apart([fold.together for fold in folds])


def _losses(search: Search, most: int) -> Array:
    """Of the rows that it held out, through 0, 1, ... dimensions."""
    rows = [row_losses(search.problem, None)]
    for rank in range(1, most + 1):
        found = search.scree.get(rank)
        if found is None or found.collapsed:
            rows.append(rows[-1])
        else:
            rows.append(row_losses(search.problem, search.size.family.network_of(found)))
    return np.stack(rows)
