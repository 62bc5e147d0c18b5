"""The remedy of curved coordinates: networks with a deeper middle, which prefer fewer of them."""

import math
from dataclasses import replace
from typing import ClassVar

from isthmus.discovery.depth.path import DepthPath, DepthSearch, planned_depth_evaluations
from isthmus.discovery.depth.units import DepthSettings
from isthmus.discovery.halves import RANK
from isthmus.discovery.kinds.connected import Connected
from isthmus.discovery.kinds.family import DESCENDED
from isthmus.discovery.remedies.remedy import Case, Remedy

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


def ranks_of(path: DepthPath) -> str:
    """The least and the largest rank that were trained, in words."""
    trained = path.table["objective"].notnull().any("middle_layers").values
    low, high = path.table["rank"].values[trained][[0, -1]].tolist()
    return f"rank {low}" if low == high else f"ranks {low} to {high}"
