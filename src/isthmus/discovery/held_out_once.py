"""Searches that together hold out every row once: at the ridge that was chosen, each without a fifth of the rows.

What is read off them: of classes `accuracy`; of the held-out error the remedy `EveryRowHeldOut`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isthmus.discovery.data.sample import Sample
from isthmus.discovery.evidence.confidence import Array, bends, row_losses
from isthmus.discovery.search import Search
from isthmus.errors import NotConverged
from isthmus.theory.curve_readings import CurveReading

FOLDS = 5


def planned_evaluations(search: Search) -> int:
    """Gradient evaluations that they will take."""
    foresight, settings = search.size.foresight, search.size.settings
    return FOLDS * (foresight.all - (foresight.ridges - 1) * len(settings.starts) * settings.start_evaluations)


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """A search over the other rows, and the weights of those that it held out."""

    search: Search
    weight: Array


def held_out_once(sample: Sample, search: Search) -> list[Fold] | None:
    """Of each fifth of the rows; None where one found nothing or time ran out."""
    settings = replace(search.size.settings, ridges=(search.trained.ridge,))
    done: list[Fold] = []
    for number, part in enumerate(sample.folds(settings, FOLDS)):
        problem = part.posed_again(settings)
        if problem is None or search.runner.out_of_time():
            return None
        fold = Search(problem, settings, search.runner, name=f"{search.name or 'fold'}-{number}")
        search.runner.tracker.foresee(search.runner.tracker.left() + fold.size.foresight.all)
        try:
            fold.run()
        except NotConverged:
            return None
        if search.runner.out_of_time():  # this part was cut short
            return None
        weight = part.data.weight
        done.append(Fold(fold, np.ones(len(problem.x_held)) if weight is None else weight[part.held]))
    return done


def scree_of(folds: Sequence[Fold]) -> CurveReading:
    """The reading of the held-out error of all rows; a rank that a fold did not train is as the one below it."""
    searches = [fold.search for fold in folds]
    most = max(max(search.scree, default=0) for search in searches)
    return bends(
        np.concatenate([_losses(search, most) for search in searches], axis=1),
        weight=np.concatenate([fold.weight for fold in folds]),
        ranks=range(most + 1),
        complete=most >= searches[0].size.family.most_rank,
        compared=searches[0].problem.errors_compared,
    )


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
