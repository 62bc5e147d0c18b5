"""The rows that a search is over: all of them, or of many a sample, and the rest, which check the answer."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from isthmus.discovery.choices import ROWS_TO_WHITEN, SHARE_TOGETHER
from isthmus.discovery.data.checking import CheckedData, check_enough
from isthmus.discovery.data.problem import Problem, RowLabels, pose
from isthmus.discovery.data.scaling import Scaling, Standardiser, targets_among_inputs
from isthmus.discovery.data.splitting import (
    BLOCKS,
    copies,
    folds,
    heldout_rows,
    joins,
    memory_of,
    near_sets,
    sets_of_rows,
    settings_of,
    stretches,
)
from isthmus.discovery.halves import INDEX
from isthmus.discovery.settings import Settings
from isthmus.errors import DataError, DataWarning, outside
from isthmus.processes.shared_state import silenced
from isthmus.tasks.arrays import counted

MOST_IN_SETS = 100_000  # rows among which sets are looked for, whose columns are copied for it
FEW_GROUPS = 3  # held out: errors of two trajectories of eight were a 45th to 2.7 times those of new ones
MOST_CELLS = 20_000_000  # and cells, all of which are copied
AT_ONCE = 10_000  # rows that a network goes over at once where the rest are looked at


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Some rows of a data set.

    Attributes:
        data: these rows.
        held: which of them are held out.
        everything: all rows.
        taken: which of all rows these are.
        groups: a label of each of all rows, whose rows stay together; or None.
        ordered: whether the rows are a time series.
        by_inputs: whether nobody gave the groups: they are rows of (nearly) equal inputs, or of equal values in most
            columns.
    """

    data: CheckedData
    held: NDArray[np.bool_]
    everything: CheckedData
    taken: NDArray[np.bool_]
    groups: NDArray[np.generic] | None = None
    ordered: bool = False
    by_inputs: bool = False

    @classmethod
    def of(
        cls, data: CheckedData, settings: Settings, *, groups: ArrayLike | None = None, most: int | None = None
    ) -> "Sample":
        """At most so many rows, as even as can be: classes by their shares, whole groups, a time series thinned.

        The same rows for the same seed; those of a smaller sample are among those of a larger one, except of a series.
        Rows that repeat others are one row, which weighs as many: see `with_copies_counted`. Rows of equal inputs and
        other targets stay together, and sets whose rows are equal in most columns or hardly differ: what they share
        beside the inputs would be predicted of those held out.

        Raises:
            DataError: groups that do not fit the rows.
        """
        labels, found = None if groups is None else np.asarray(groups), False
        if groups is None and not settings.ordered:
            data = with_copies_counted(data)
            labels = None if data.y is data.x else settings_of(data.x)
            few = len(data.x) <= MOST_IN_SETS  # of more the sample is asked, see `sets`
            sets = sets_of_rows(data.x) if labels is None and few else None
            if sets is not None and len(sets.columns) >= SHARE_TOGETHER * data.x.shape[1]:
                labels = sets.labels
            if labels is None and sets is None and few and data.x.size <= MOST_CELLS and not data.loss.classes:
                labels = near_sets(data.x)
            found = labels is not None
        taken = np.ones(len(data.x), dtype=bool)
        if most is not None and len(data.x) > most and (labels is None or labels.shape == taken.shape):
            taken = _taken(data, labels, most, ordered=settings.ordered, seed=settings.seed)
        of_these = labels[taken] if labels is not None and labels.shape == taken.shape else labels
        held = heldout_rows(
            int(taken.sum()), seed=settings.seed, fraction=settings.heldout, groups=of_these, ordered=settings.ordered
        )
        return cls(data.rows(taken), held, data, taken, labels, settings.ordered, found)

    def folds(self, settings: Settings, count: int) -> list["Sample"]:
        """The same rows, each of them held out in one of so many parts; groups and blocks of a series stay whole."""
        labels = self.groups[self.taken] if self.groups is not None else None
        masks = folds(len(self.held), seed=settings.seed, count=count, groups=labels, ordered=settings.ordered)
        return [replace(self, held=mask) for mask in masks]

    def without_held(self, settings: Settings) -> "Sample":
        """The rows that are not held out, a part of them held out in their place: of them, not of those, is chosen.

        Whole groups again, while there are two; of one group any rows.
        """
        kept, taken = ~self.held, self.taken.copy()
        taken[np.flatnonzero(self.taken)[self.held]] = False
        labels = None if self.groups is None else self.groups[taken]
        if labels is not None and len(np.unique(labels)) < 2:
            labels = None
        held = heldout_rows(
            int(kept.sum()), seed=settings.seed, fraction=settings.heldout, groups=labels, ordered=settings.ordered
        )
        return replace(self, data=self.data.rows(kept), held=held, taken=taken)

    @property
    def held_weight(self) -> NDArray[np.float64]:
        """Of each held-out row, as it was given or 1."""
        weight = self.data.weight
        return np.ones(int(self.held.sum())) if weight is None else weight[self.held]

    def larger(self, times: int, settings: Settings) -> "Sample":
        """With so many times as many rows, or all there are."""
        return Sample.of(self.everything, settings, groups=self.groups, most=times * len(self.held))

    def of_others(self, data: CheckedData) -> "Sample":
        """Other rows in the place of these, as many; of what would check them nothing is known."""
        groups = None if self.groups is None else self.groups[self.taken]
        return replace(self, data=data, everything=data, taken=np.ones(len(self.held), dtype=bool), groups=groups)

    def notes(self) -> list[str]:
        """Sentences for the user: what has become of the data, and which rows stay together though nobody said so."""
        told = self.data.notes(are_tied=self.ordered or self.groups is not None)
        if self.groups is not None and not self.by_inputs:
            return [*told, *self._few_groups()]
        if self.groups is None:
            return [*told, *self._joins()]
        _, first, number = np.unique(self.groups, return_index=True, return_inverse=True)
        x, count = self.everything.x, len(first)
        equal = (x == x[first][number]).all(axis=0)
        rows = f"The inputs are {count:,} sets of rows "
        if equal.all():
            rows = f"{len(x):,} rows have {count:,} different inputs"
        elif equal.mean() >= SHARE_TOGETHER:
            rows += "whose values are the same in most columns"
        else:
            rows += "that hardly differ, far from each other"
        return [
            *told,
            f"{rows}: such rows are held out together and count as one in every standard error. Other sets, or each "
            "row by itself: groups (--groups).",
        ]

    def _joins(self) -> list[str]:
        """Whether a series looks like several that were put one after another."""
        x, y = self.data.x, self.data.y
        rows = joins(x, *([] if y is x or self.data.loss.classes else [y])) if self.ordered else []
        if not len(rows):
            return []
        first = int(np.flatnonzero(self.taken)[rows[0]]) + 1
        return [
            f"The series starts anew at {counted(len(rows), 'place')}, first near row {first:,}: if it is several, one "
            "after another, name them by groups (--groups) in the place of ordered; then whole ones are held out."
        ]

    def _few_groups(self) -> list[str]:
        """Whether so few groups are held out that the error of others is hardly known."""
        assert self.groups is not None
        count = len(np.unique(self.groups[self.taken][self.held]))
        if count >= FEW_GROUPS:
            return []
        held = f"{counted(count, 'group')} held out of {len(np.unique(self.groups))}"
        return [
            f"Errors rest on {held}: those of other groups may be several times as large, or as small. Give more "
            "groups; another seed holds out others."
        ]

    @property
    def num_unseen(self) -> int:
        """Rows that are left."""
        return len(self.taken) - len(self.held)

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """Which of all rows check the answer: those that are left; of a series those between two that are held out.

        Beside a row that was fitted, one of a series tells nothing: it is nearly that row.
        """
        if not self.ordered:
            return ~self.taken
        held, before = np.append(self.held, False), np.cumsum(self.taken) - 1
        return ~self.taken & held[before] & held[before + 1]

    @property
    def resemblance(self) -> tuple[int, int]:
        """Of a series, over how many rows both inputs and targets resemble each other; and of a held-out block."""
        same = self.data.y is self.data.x
        lags = [memory_of(part) for part in ((self.data.x,) if same else (self.data.x, self.data.y))]
        return min(lags), len(self.held) // BLOCKS

    @property
    def sets(self) -> tuple[tuple[str, ...], int] | None:
        """Columns that keep their values together in sets of rows of which nothing is known, and how many sets."""
        if self.groups is not None or self.ordered:
            return None
        found = sets_of_rows(self.data.x)
        if found is None:
            return None
        return tuple(self.data.input_names[column] for column in found.columns), len(np.unique(found.labels))

    @property
    def together(self) -> NDArray[np.int64] | None:
        """A number of each row of the sample, the same for rows that resemble each other: see `Problem`."""
        if self.groups is not None:
            return np.unique(self.groups[self.taken], return_inverse=True)[1].astype(np.int64)
        return stretches(self.held) if self.ordered else None

    def posed(self, settings: Settings) -> Problem | None:
        """The problem in standardised units; None where the targets do not vary."""
        data, scaling = self.data, Scaling(settings.scaling)
        inputs = Standardiser.of(data.x, scaling=scaling)
        inputs.warn_of_constants(data.x, "input", data.input_names)
        if not len(inputs.kept):
            raise DataError(f"discover(x): all {len(data.x)} rows of x are identical but for rounding.")
        if data.powers and data.powers.coordinates.space:
            inputs = inputs.restricted(data.powers.coordinates.matrix).whitened(data.x)
        elif settings.rank_kind is INDEX and data.y is not data.x and len(data.x) >= ROWS_TO_WHITEN * len(inputs.kept):
            inputs = inputs.whitened(data.x)
            inputs.warn_of_dependences(data.columns)
        targets = None
        if data.loss.standardised:
            targets = Standardiser.of(data.y, scaling=scaling, total=True, robust=data.loss.robust)
        if targets and data.y is not data.x:
            targets.warn_of_constants(data.y, "target", data.target_names)
        if not (len(targets.kept) if targets else bool((data.y != data.y[0]).any())):
            return None
        if targets and data.y is not data.x:
            told = targets_among_inputs(data.x, data.y, (data.input_names, data.target_names))
            if told and settings.rank_kind is INDEX:  # else to pass an input on is a task like others
                warnings.warn(told, DataWarning, stacklevel=outside())
        problem = pose(
            data.x, data.y, self.held, loss=data.loss, inputs=inputs, targets=targets, weight=data.weight,
            labels=RowLabels(data.numbers, self.together),
        )  # fmt: skip
        names = [data.target_names[column] for column in targets.kept] if targets else []
        return replace(problem, target_names=tuple(names))

    def posed_again(self, settings: Settings) -> Problem | None:
        """The same without a word on constant columns, which was said when the data were posed first."""
        with silenced(DataWarning):
            return self.posed(settings)

    def unseen_error(self, problem: Problem, network: nn.Module) -> float:
        """`Problem.heldout_error` of the `unseen` rows, on which nothing was fitted, chosen or scaled.

        Of squares over those of the constant that was best for the sample, of these rows: where few of them hold most
        of the variance, that of the sample is another (3.4 % of it, 2.6 % of theirs).

        Raises:
            ZeroDivisionError: there are none.
        """
        total, constant, weight = 0.0, 0.0, 0.0
        for part in self._unseen():
            of_part = float(part.weight.sum()) if part.weight is not None else float(len(part.x))
            rows = problem.with_held(part.x, part.y, part.weight)
            total += of_part * rows.heldout_error(network)
            constant += of_part * rows.heldout_error_of_constant() if problem.loss.is_quadratic else 0.0
            weight += of_part
        return total / (constant or weight)

    def _unseen(self) -> Iterator[CheckedData]:
        left = np.flatnonzero(self.unseen)
        for start in range(0, len(left), AT_ONCE):
            yield self.everything.rows(left[start : start + AT_ONCE])


def with_copies_counted(data: CheckedData) -> CheckedData:
    """The data with each of its rows once, by the weight of all its copies; themselves where rows hardly repeat others.

    Losses are the same. But a copy of a row that was trained on would be held out: noise in 40 rows of 600, each about
    15 times, was 3 dimensions, confidently, with .06 % lost of held-out rows and 2.7 times the variance of fresh ones.

    Raises:
        DataError: fewer than three differ.
    """
    first = copies(data.x, data.y)
    if first is None:
        return data
    kept, weight = np.unique(first), np.ones(len(first)) if data.weight is None else data.weight
    check_enough(len(kept), that=f" that differ, of {len(first):,}")
    return replace(
        data.rows(kept), weight=np.bincount(first, weights=weight)[kept], num_copies=len(first) - len(kept),
        given=data.fingerprint(),
    )  # fmt: skip


def _taken(
    data: CheckedData, groups: NDArray[np.generic] | None, most: int, *, ordered: bool, seed: int
) -> NDArray[np.bool_]:
    n = len(data.x)
    if ordered:
        return np.arange(n) % -(-n // most) == 0
    rng, taken = np.random.default_rng(seed), np.zeros(n, dtype=bool)
    if groups is not None:
        labels, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        order = rng.permutation(len(labels))
        within = np.cumsum(sizes[order]) <= most
        within[:2] = True  # one to train on and one to hold out
        return np.isin(number, order[within])
    order = rng.permutation(n)
    if data.loss.classes:
        order = order[np.argsort(_place_in_class(data.y[order]), kind="stable")]
    taken[order[:most]] = True
    return taken


def _place_in_class(classes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each row, the share of its class that comes before it."""
    place = np.zeros(len(classes))
    for label in np.unique(classes):
        own = np.flatnonzero(classes == label)
        place[own] = np.arange(len(own)) / len(own)
    return place
