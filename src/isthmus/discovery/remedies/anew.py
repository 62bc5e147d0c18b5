"""The remedies that search anew: over more rows, at smaller ridges, with one scale for columns, in deeper networks."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from isthmus.discovery.choices import (
    COLUMN_LOST,
    FEW_COLUMNS,
    LIFTED,
    LOST,
    MORE_ROWS,
    MORE_TAKEN,
    SMALLER,
    SPREAD_COLUMNS,
    SPREAD_LEAST,
    UNEQUAL,
)
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.data.scaling import Scaling
from isthmus.discovery.depth.path import DepthPath, DepthSearch, planned_depth_evaluations
from isthmus.discovery.depth.units import DepthSettings
from isthmus.discovery.halves import RANK
from isthmus.discovery.kinds.connected import Connected
from isthmus.discovery.kinds.family import DESCENDED
from isthmus.discovery.remedies.remedy import Case, Remedy, sureness
from isthmus.discovery.search import Search
from isthmus.discovery.settings import Settings
from isthmus.tasks.arrays import counted, listing


class OneScale(Remedy):
    """All columns are scaled together, where each was given variance 1 and the scaling was left to us."""

    name: ClassVar[str] = "one scale"
    settles: ClassVar[float] = 0.3
    settles_lifted: ClassVar[float] = 0.9  # of what is lost to noise that each column's own scale lifts

    def answers(self, case: Case) -> bool:
        """Where columns of one kind have unequal variances, none of which holds most of it."""
        search = case.search
        free = case.numbered and search.size.settings.scaling == Scaling.COLUMN.value
        return free and search.problem.autoencoding and are_unequal(search.problem)

    def chance(self, case: Case) -> float:
        """More where what is lost is in the columns that hardly vary."""
        return self.settles_lifted if lifts_noise(case.search) else self.settles

    def cost(self, case: Case) -> int:
        """Of a whole search."""
        return case.search.size.foresight.all

    def apply(self, case: Case) -> str:
        """Search anew; what it finds is believed where it is more sure, or as sure of fewer dimensions.

        Not where a column is lost that was kept before: what varies little in another unit is no noise for that. It is
        believed, too, where what was lost is in the columns that hardly vary: their noise is no question then.
        """
        before = case.search
        settings = replace(before.size.settings, scaling=Scaling.GLOBAL.value)
        search = case.anew(case.sample, settings, name="one-scale")
        ranked = [(sureness(one), -one.decision.rank) for one in (before, search)]
        lifted = lifts_noise(before)
        if hidden := 0 if lifted else num_hidden(before, search):
            lost = f"which lost {counted(hidden, 'column')} that had been kept"
            return f"scaled all columns by one number, {lost}: each was given variance 1 again"
        if ranked[1] <= ranked[0] and not lifted:
            return "scaled all columns by one number, which settled nothing: each was given variance 1 again"
        case.search, case.path = search, None
        return "scaled all columns by one number instead of each to variance 1, which lifts columns of noise"


class MoreRows(Remedy):
    """A search over several times as many rows, where some were left out."""

    name: ClassVar[str] = "more rows"
    settles: ClassVar[float] = 0.4
    most: ClassVar[int] = 3

    def answers(self, case: Case) -> bool:
        """Where there are more, unless deeper networks decided of targets."""
        return case.sample.num_unseen > 0 and not case.search.decided_by_depth

    def cost(self, case: Case) -> int:
        """Of a search, each of whose gradients goes over so many times as many rows, that takes as much as most do."""
        return math.ceil(self._times(case) * MORE_TAKEN * case.search.size.foresight.all)

    def chance(self, case: Case) -> float:
        """Less where there are fewer than so many times as many: 12,000 rows say hardly more than 10,000 of them."""
        return self.settles * (self._times(case) - 1) / (MORE_ROWS - 1)

    def apply(self, case: Case) -> str:
        """Search anew; of more rows the answer is believed."""
        before = case.search
        settings = before.size.settings
        sample = case.sample.larger(MORE_ROWS, settings)
        rows = len(sample.held)
        name = f"{before.name}-rows-{rows}" if before.name else f"rows-{rows}"
        case.sample, case.path = sample, None
        case.search = case.anew(sample, settings, name=name)
        return f"searched {rows:,} rows instead of {len(before.problem.x) + len(before.problem.x_held):,}"

    @staticmethod
    def _times(case: Case) -> float:
        return min(float(MORE_ROWS), len(case.sample.taken) / len(case.sample.held))


class SmallerRidges(Remedy):
    """A search at smaller ridges, where what is lost hangs on the inputs otherwise than through what was found.

    A dimension that saves less than it costs is in no minimum, so that neither starts nor training shows it.
    """

    name: ClassVar[str] = "smaller ridges"
    settles: ClassVar[float] = 0.6

    def answers(self, case: Case) -> bool:
        """Where the path of ridges was left to us."""
        left = case.search.left_over
        return left is not None and left.counts and case.search.size.settings.ridges == Settings().ridges

    def cost(self, case: Case) -> int:
        """Of a whole search."""
        return case.search.size.foresight.all

    def apply(self, case: Case) -> str:
        """Search anew; more dimensions are believed that stand out and leave less than half of what was lost."""
        before = case.search
        settings = before.size.settings
        ridges = tuple(before.trained.ridge * share for share in SMALLER)
        search = case.anew(case.sample, replace(settings, ridges=ridges), name=f"{before.name}-below".lstrip("-"))
        path = listing([f"{ridge:g}" for ridge in ridges], "ridge")
        more, errors = search.decision.rank, [_error(one) for one in (before, search)]
        if more <= before.decision.rank or errors[1] > errors[0] / 2 or sureness(search) < sureness(before):
            before.below = True
            before.settle()
            return f"searched at {path} too, which showed no further dimension"
        case.search, case.path = search, None
        return f"searched at {path}, where weaker dimensions pay for themselves: {100 * errors[1]:.2g} % is lost"


def _error(search: Search) -> float:
    """What is lost of held-out rows through the rank."""
    errors = search.readings.heldout_error
    return errors[min(search.decision.rank, len(errors) - 1)]


# fewer depths and starts than a path that is drawn: the ranks are led down one by one, and curved starts stand beside
BRIEF = DepthSettings(middle_layers=(4, 16, 32), random_starts=0)

AGAIN = DepthSettings(random_starts=2)
FILLS_LESS = 0.5  # share of the doubts it settles where rows fill fewer dimensions than are read


class DeeperMiddle(Remedy):
    """The rank over depth: which rank holds the data together when depth grows."""

    name: ClassVar[str] = "deeper middle"
    settles: ClassVar[float] = 0.35
    most: ClassVar[int] = 2

    def answers(self, case: Case) -> bool:
        """Doubts of curved halves: all of data that are autoencoded, again where rows fill fewer dimensions.

        Of regressions those whose coordinates fill fewer dimensions than are read.
        """
        search = case.search
        problem, settings = search.problem, search.size.settings
        curved = settings.rank_kind is RANK and isinstance(search.size.family, Connected)
        again = case.path is not None and (search.over_depth is None or search.over_depth.fills)
        rank, coordinates = search.decision.rank, search.coordinates
        able = problem.autoencoding or (problem.loss.is_quadratic and coordinates.fill_fewer(rank))
        return able and curved and not again and rank > 0

    def chance(self, case: Case) -> float:
        """More where rows, or their coordinates, fill fewer dimensions than are read, so that these may be curved."""
        return FILLS_LESS if case.search.coordinates.fill_fewer(case.search.decision.rank) else self.settles

    def cost(self, case: Case) -> int:
        """Of as many ranks as the largest reading, and one; those that were led down before are not led down again."""
        search = case.search
        settings, curve = search.size.settings, search.trained.curve
        depth, most = self.depth_of(case), min(self._most(case) + 1, search.size.family.most_rank)
        ranks = range(min(depth.lowest, most), most + 1)
        led = sum(curve[rank].kind == DESCENDED for rank in ranks if rank in curve)
        return planned_depth_evaluations(settings, search.problem, depth, ranks=ranks, led=led)

    def apply(self, case: Case) -> str:
        """Train them; the rank of the deepest is believed."""
        search, most = case.search, self._most(case)
        family, runner = search.size.family, search.runner
        assert isinstance(family, Connected)
        name = f"{search.name or 'path'}-{case.times(self.name)}" if search.name or case.path else "path"
        left = runner.tracker.left() - self.cost(case)
        deeper = DepthSearch(family, self.depth_of(case), runner, afterwards=max(left, 0), name=name)
        path = deeper.run(search.trained.curve, most)
        if path is None or runner.out_of_time():
            return "networks with a deeper middle could not be trained"
        case.path = path
        believed = search.believe(path, deeper.deepest, name=f"deep-{name}")
        layers = path.table["middle_layers"].values.tolist()
        moves = ", with which the rank still moves, so that it is not believed" if path.moves and not believed else ""
        return f"trained {ranks_of(path)} with {', '.join(map(str, layers))} layers in the middle{moves}"

    @staticmethod
    def depth_of(case: Case) -> DepthSettings:
        """Of regressions of ranks around what coordinates fill, and of all where a path of all was asked for."""
        search, depth = case.search, case.depth if case.path is None else AGAIN
        filled = math.nan if search.problem.autoencoding else search.coordinates.around(search.decision.rank)
        if math.isnan(filled):
            return depth
        lowest = max(math.floor(filled) - 1, 1) if case.depth == BRIEF else depth.lowest
        return replace(depth, lowest=lowest)

    @staticmethod
    def _most(case: Case) -> int:
        readings = case.search.readings
        return max(readings.objective.rank, readings.scree.rank, readings.jacobian_rank, 1)


def are_unequal(problem: Problem) -> bool:
    """Whether the columns' variances differ by far, though the larger ones are many."""
    variances = np.square(problem.inputs.scale / problem.inputs.scale.max())
    d = len(variances)
    many = float(variances.sum() ** 2 / np.square(variances).sum())
    enough = max(SPREAD_COLUMNS * d, SPREAD_LEAST)
    return bool(d >= FEW_COLUMNS and UNEQUAL * variances.min() < 1 and many >= enough)


def num_hidden(before: Search, after: Search) -> int:
    """How many columns the rank found before keeps more than half of, and that found after does not."""
    lost_before, lost_after = map(_lost_columns, (before, after))
    if lost_before is None or lost_after is None:
        return 0
    return int((lost_after & ~lost_before).sum())


def _lost_columns(search: Search) -> NDArray[np.bool_] | None:
    """Of which held-out columns the rank loses more than half of the variance, where that is known."""
    problem, lost = search.problem, search.coordinates.lost_by_column(search.decision.rank)
    if lost is None:
        return None
    variances = problem.y.double().var(dim=0, correction=0).numpy() * problem.y.shape[1] / problem.unit
    return lost > COLUMN_LOST * variances


def lifts_noise(search: Search) -> bool:
    """Whether what a rank loses of held-out rows is in columns that hardly vary, which variance 1 for each lifts.

        sum_j v_j e_j / sum_j v_j < LIFTED mean_j e_j,   e_j the share of column j that is lost, v_j its variance

    Not where next to nothing is lost (`LOST`).
    """
    problem, lost = search.problem, search.coordinates.lost_by_column(search.decision.rank)
    if lost is None or not lost.mean() > LOST:
        return False
    variances = np.square(problem.inputs.scale / problem.inputs.scale.max())
    return bool(np.average(lost, weights=variances) < LIFTED * lost.mean())


def are_numbered(names: Sequence[str]) -> bool:
    """Whether names differ in their numbers alone, as those of pixels, places, frequencies and of arrays do."""
    return len({re.sub(r"\d+", "", name) for name in names}) == 1


def ranks_of(path: DepthPath) -> str:
    """The least and the largest rank that were trained, in words."""
    trained = path.table["objective"].notnull().any("middle_layers").values
    low, high = path.table["rank"].values[trained][[0, -1]].tolist()
    return f"rank {low}" if low == high else f"ranks {low} to {high}"
