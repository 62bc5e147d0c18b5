"""Searches that together hold out every row once: at the ridge that was chosen, each without a fifth of the rows.

Read off them are the curve of the held-out error, for a remedy, and of classes the least rank through which as many
are told apart as through any:

    accuracy rank = least k such that  mean(d_k) <= s_k / sqrt(n),   d_ki = [right through best] - [right through k]

with d over all n rows, each predicted by networks that were not fitted to it, s_k its standard
deviation, and "best" the rank that tells most apart: the rule of one standard error, for differences of the same rows.
The rank of the least minimum, which the rest of `discovery` asks for, counts what lowers the loss, and classes often
lack one. Of few rows accuracy asks for more dimensions than the classes lie in: centres in 3 dimensions, 1,176 rows,
are told apart by 69 % through 3 and by 79 % through 4, also where these are trained from random weights. Of 1,085 rows
around centres in 2 dimensions 71 % are through 2 and 82 % through 3; at three times the ridge 80 and 81 %, still fewer
through 2. Others gain nothing there, nor where 2 is trained down from more dimensions (73 to 74 %; 78 % through 3).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isthmus.discovery.data.problem import Numbers
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.evidence.confidence import Array, bends, row_losses
from isthmus.discovery.search import Search
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.search_memory import Foresight
from isthmus.errors import NotConverged
from isthmus.theory.curve_readings import CurveReading, Gain, RowLosses, gain_beyond, plateau_reading, standard_error

FOLDS = 5
ACCURACY = "rank for accuracy"  # what the bar says of the work for it
RESAMPLES, SEED = 400, 11
Right = Array  # (ranks from 0, rows): 1 where a row's class is predicted


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
        weight = part.data.weight
        share = np.ones(len(problem.x_held)) if weight is None else weight[part.held]
        done.append(Fold(fold, share, problem.together_held))
    return done


def scree_of(folds: Sequence[Fold]) -> CurveReading:
    """The reading of the held-out error of all rows; a rank that a fold did not train is as the one below it."""
    losses, weight, together = _of_all_rows(folds)
    family, compared = folds[0].search.size.family, folds[0].search.problem.errors_compared
    ranks = range(len(losses))
    if family.settings.rank_kind.plateau:
        return plateau_reading(losses, ranks=ranks, weight=weight, together=together, compared=compared)
    return bends(losses, weight=weight, ranks=ranks, complete=ranks[-1] >= family.most_rank, compared=compared)


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
    return losses, np.concatenate([fold.weight for fold in folds]), _together([fold.together for fold in folds])


def _together(parts: Sequence[Numbers | None]) -> Numbers | None:
    """Numbers of the rows of all parts, of which no two share one: no group and no stretch is in two."""
    known = [np.unique(part, return_inverse=True)[1] for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    first = np.cumsum([0, *(int(numbers.max()) + 1 for numbers in known)])
    return np.concatenate([numbers + start for numbers, start in zip(known, first, strict=False)])


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


@dataclass(frozen=True, slots=True, eq=False)
class AccuracyRank:
    """The rank of accuracy, an *estimate*.

    Attributes:
        rank: the least that is within one standard error of the best.
        low, high: that hold 95 % of what resampled rows give.
        accuracy: share of the rows told right through 0, 1, 2, ... dimensions.
        error: standard error of each.
    """

    rank: int
    low: int
    high: int
    accuracy: Array
    error: Array

    def of_ranks(self, ranks: Sequence[int]) -> dict[str, tuple[str, Array]]:
        """The columns that a table by rank gets, NaN beyond the ranks that are known."""
        known = {"fold_accuracy": self.accuracy, "fold_accuracy_error": self.error}
        return {
            name: ("rank", np.array([values[r] if r < len(values) else np.nan for r in ranks]))
            for name, values in known.items()
        }

    def as_readings(self) -> dict[str, float | int | None]:
        """Its numbers among the readings of a discovery."""
        return {"accuracy_rank": self.rank, "accuracy_rank_low": self.low, "accuracy_rank_high": self.high}


def accuracy_rank(sample: Sample, search: Search) -> AccuracyRank | None:
    """By searches that hold out every row once; None where time ran out."""
    search.runner.tracker.begin(ACCURACY, planned_evaluations(search.size.foresight, search.size.settings))
    folds = held_out_once(sample, search)
    if folds is None:
        return None
    together = _together([fold.together for fold in folds])
    return read([right_by_rank(fold.search) for fold in folds], [fold.weight for fold in folds], together)


def right_by_rank(search: Search) -> Right:
    """Of the held-out rows, which are right through 0, 1, ... dimensions; a rank not trained is as the one below it."""
    problem = search.problem
    rows = [np.asarray(problem.y_held == int(problem.best_constant().argmax()), dtype=np.float64)]
    for rank in range(1, max(search.scree, default=0) + 1):
        minimum = search.scree.get(rank)
        rows.append(rows[-1] if minimum is None else problem.right(search.size.family.network_of(minimum)).numpy())
    return np.stack(rows)


def read(found: Sequence[Right], weights: Sequence[Array], together: Numbers | None = None) -> AccuracyRank:
    """The rank from what each part of the rows says; a rank beyond those of a part is as its largest.

    Args:
        found: of each part.
        weights: of its rows.
        together: a number of each row of all parts, the same for rows that are right or wrong together.
    """
    most = max(len(right) for right in found)
    right = np.concatenate([np.pad(part, ((0, most - len(part)), (0, 0)), mode="edge") for part in found], axis=1)
    weight = np.concatenate(weights)
    weight = weight / weight.sum()
    rng, n = np.random.default_rng(SEED), len(weight)
    number = np.arange(n) if together is None else together
    m = int(number.max()) + 1
    drawn = (np.bincount(rng.integers(0, m, m), minlength=m)[number] for _ in range(RESAMPLES))
    again = [_rank(right, weight * times, together) for times in drawn]
    low, high = np.quantile(again, [0.025, 0.975], method="inverted_cdf").astype(int).tolist()
    accuracy = right @ weight
    error = standard_error(right, weight, together)
    return AccuracyRank(_rank(right, weight, together), low, high, accuracy, error)


def _rank(right: Right, weight: Array, together: Numbers | None) -> int:
    """The least rank within one standard error of the best."""
    share = weight / weight.sum()
    means = right @ share
    lost = right[means.argmax()] - right
    return int(np.flatnonzero(lost @ share <= standard_error(lost, share, together))[0])
