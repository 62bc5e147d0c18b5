"""The depth path: each rank trained at several depths, its objective a line in depth, and the rank that wins at each.

One unit of its work: `depth.units`. How lines are read: `theory.depth_lines`. The picture: `plots.depth_path`.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import xarray as xr

from isthmus.discovery.choices import FILLED, GLUED, TOGETHER
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.depth.between_rows import LinesBetweenRows, filled_by, two_do_not_hold, with_holds
from isthmus.discovery.depth.row_maps import MAPPED_RANKS
from isthmus.discovery.depth.units import (
    MAPS,
    DepthSettings,
    RankStart,
    at_depth,
    descended,
    kinds_of,
    objective_at_depth,
    ranked_start,
    start_cost,
)
from isthmus.discovery.factorisation import cut_network
from isthmus.discovery.kinds.connected import Connected
from isthmus.discovery.minimum import Minimum
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.runner import UnitRunner
from isthmus.discovery.work.unit import Session, Unit
from isthmus.theory.depth_lines import DepthReading, depth_reading

DEEPER = 4  # times the depths that were asked for, as deep as is gone where the rank has just changed
_COLUMNS = ("objective", "train_error", "heldout_error", "penalty", "between", "true_rank", "stationarity")


@dataclass(frozen=True, slots=True)
class DepthPath:
    """The rank of a task as a function of depth.

    Attributes:
        table: dimensions "rank" (1, 2, ...) and "middle_layers": `objective`, `train_error`, `heldout_error` (relative
            to the variance of the targets), `between` (largest error between neighbouring rows; NaN for classes),
            `penalty`, `regularity` (penalty - rank * depth, the theory's R1: how curved the two halves are),
            `true_rank` (rank that the middle ended with), `holds` (whether the rank keeps the data together), `unsure`
            (whether that is not known, because the rows lie too far apart: such a rank wins by 5 % only),
            `stationarity`; NaN for low ranks that were not trained, because two above them do not hold, and for
            those that the objective curve leaves out, of more than 24, or far below what coordinates fill; coordinate
            `depth` (weight matrices); attributes `ridge`, `loss` and `filled`, dimensions that the coordinates of the
            rows fill through the largest rank (NaN for classes).
        reading: lines, winner at each depth, flat rank, deep rank and where they switch.
    """

    table: xr.Dataset
    reading: DepthReading

    @classmethod
    def of(cls, table: xr.Dataset) -> "DepthPath":
        """The path whose table is this, read anew.

        A rank that is as many dimensions as coordinates fill need not be 5 % lower: of inputs with other numbers beside
        those that count, rows lie far apart whatever the rank is.
        """
        depths = table["middle_layers"].values.tolist()
        collapsed = table["true_rank"] < table["rank"]
        objectives = table["objective"].where(~collapsed).transpose("rank", "middle_layers").values.tolist()
        holds = table["holds"].transpose("rank", "middle_layers").values.tolist()
        # paths saved by an older version have none
        unsure = table.get("unsure", xr.zeros_like(table["holds"]))
        doubtful = unsure & ~(abs(table["rank"] - float(table.attrs.get("filled", math.nan))) < FILLED)
        cautious = doubtful.transpose("rank", "middle_layers").values.tolist()
        return cls(table, depth_reading(depths, objectives, holds, cautious, ridge=float(table.attrs["ridge"])))

    @property
    def is_sure(self) -> bool:
        """Whether the deep rank is known to hold the data together; else their rows lie too far apart to tell."""
        deepest = self.table.isel(middle_layers=-1)
        return "unsure" not in deepest or not self.deep_rank or not bool(deepest["unsure"].sel(rank=self.deep_rank))

    @property
    def filled(self) -> float:
        """Dimensions that the coordinates of the rows fill through the largest rank; NaN where that is not known."""
        return float(self.table.attrs.get("filled", math.nan))

    @property
    def lost(self) -> float:
        """Held-out error through the largest rank, at the largest depth."""
        errors = self.table["heldout_error"].isel(middle_layers=-1)
        return float(errors[errors.notnull()][-1])

    @property
    def moves(self) -> bool:
        """Whether another rank wins at the depth before the largest."""
        return len(self.reading.winners) > 1 and self.reading.winners[-2] != self.deep_rank

    @property
    def may_fall(self) -> bool:
        """Whether deeper networks may need fewer: the rank has just changed, or rows fill fewer dimensions, untorn.

        Of ranks that fewer may follow which start from maps of the rows; what others lose may be their training.
        """
        curved = self.deep_rank > self.filled + FILLED and len(self.torn) < self.deep_rank - 1
        return self.deep_rank <= MAPPED_RANKS + 1 and (self.moves or curved)

    @property
    def torn(self) -> frozenset[int]:
        """The ranks below the deep one that do not hold the data together at the largest depth."""
        holds = self.table["holds"].isel(middle_layers=-1)
        return frozenset(rank for rank in range(1, self.deep_rank) if not bool(holds.sel(rank=rank)))

    @property
    def rise(self) -> float:
        """Log of the objective one dimension below the deep rank over that of it, at the largest depth.

        Infinite where one fewer was left out, because fewer do not hold the data together, or does not itself.
        """
        deepest, rank = self.table.isel(middle_layers=-1), self.deep_rank
        if rank <= 1 or not bool(deepest["holds"].sel(rank=rank - 1)):
            return math.inf
        below, here = (float(deepest["objective"].sel(rank=r)) for r in (rank - 1, rank))
        return math.log(below / here)

    @property
    def flat_rank(self) -> int:
        """The rank of the shallowest network: components that a nearly linear answer needs."""
        return self.reading.flat_rank

    @property
    def deep_rank(self) -> int:
        """The rank of the deepest network: the fewest coordinates, however curved, that pay at this depth."""
        return self.reading.deep_rank


def planned_depth_evaluations(
    settings: Settings, problem: Problem, depth: DepthSettings, *, ranks: Collection[int], led: int = 0
) -> int:
    """About how many gradient evaluations a depth path over these ranks takes, some of which were led down before."""
    descent = settings.descent_steps + settings.descent_evaluations
    starts = sum(start_cost(settings, kind) for rank in ranks for kind in kinds_of(problem, depth, rank))
    polished = len(ranks) * len(depth.middle_layers) * settings.polish_evaluations
    return starts + polished + (len(ranks) - led) * descent


class DepthSearch:
    """Runs the units of a depth path in order.

    Args:
        family: networks of the size that the objective curve was found with.
        depth: which depths, and how the ranks start.
        runner: where units run.
        afterwards: gradient evaluations that are planned after the path, for the time left.
        name: keeps the files of another path of the same data apart.
    """

    def __init__(
        self, family: Connected, depth: DepthSettings, runner: UnitRunner, *, afterwards: int = 0, name: str = "path"
    ) -> None:
        self.family, self.depth, self.runner, self.afterwards = family, depth, runner, afterwards
        self.name = name
        problem = family.problem
        self.found: dict[tuple[int, int], Minimum] = {}  # by rank and number of middle layers
        self.lines = LinesBetweenRows.of(problem) if problem.loss.is_quadratic else None  # theirs is a squared error

    def run(self, curve: Mapping[int, Minimum], rank: int) -> DepthPath | None:
        """The path for ranks 1 to `rank` and a little beyond, from the objective curve at one ridge.

        None where nothing could be trained.
        """
        most = min(rank + self.depth.beyond, self.family.most_rank, max(curve, default=0))
        bases = {r: curve[min(r, max(curve))] for r in range(1, most + 1) if r in curve}
        if not bases:
            self._foresee(())
            return None
        found = self.found
        waiting, ridge = sorted(bases, reverse=True), next(iter(bases.values())).ridge
        above: Minimum | None = None
        self._foresee([r for r in waiting if r >= self.depth.lowest])
        while waiting:
            together = [r for r in waiting[:TOGETHER] if r >= self.depth.lowest] or waiting[:TOGETHER]
            waiting = waiting[len(together) :]
            if together[-1] < self.depth.lowest:
                self._foresee(together)
            anchors = self._anchors({r: bases[r] for r in together})
            above = self.descend(anchors, above, led={r for r in anchors if bases[r].kind == RankStart.DESCENDED})
            units = [self._move(anchors[r], m) for r in anchors for m in self.depth.middle_layers]
            found |= {_place(m): m for m in self.runner.run(units) if m.usable}
            table = self._table(found, most, ridge)
            enough = waiting and waiting[0] < self.depth.lowest and DepthPath.of(table).deep_rank > together[-1]
            if two_do_not_hold(table) or enough:
                self._foresee(())
                break
        ranks = sorted({rank for rank, _ in found})
        self._hand_on(found, ranks, self.depth.middle_layers[::-1], "up")
        self._hand_on(found, ranks, self.depth.middle_layers, "down")
        return self._until_it_stays(ranks, most, ridge) if found else None

    def _until_it_stays(self, ranks: Sequence[int], most: int, ridge: float) -> DepthPath:
        """The path; of data that are autoencoded twice as deep, and again, while deeper networks may need fewer.

        Where one more coordinate bends less, it wins until its share of the penalty, ridge for each layer, outweighs
        that: of 565 pictures of a pendulum three end lowest with 32 layers, two with 64.
        """
        path = DepthPath.of(self._table(self.found, most, ridge))
        farthest = DEEPER * self.depth.middle_layers[-1]
        while path.may_fall and self.family.problem.autoencoding and not self.runner.out_of_time():
            before = self.depth.middle_layers[-1]
            if 2 * before > farthest:
                break
            units = [self._move(self.found[rank, before], 2 * before) for rank in ranks if (rank, before) in self.found]
            self.runner.tracker.foresee(sum(unit.cost for unit in units) + self.afterwards)
            self.found |= {_place(m): m for m in self.runner.run(units) if m.usable}
            self.depth = replace(self.depth, middle_layers=(*self.depth.middle_layers, 2 * before))
            path = DepthPath.of(self._table(self.found, most, ridge))
        return path

    @property
    def deepest(self) -> dict[int, Minimum]:
        """What was found at the largest depth, by rank."""
        return {rank: m for (rank, middle), m in sorted(self.found.items()) if middle == self.depth.middle_layers[-1]}

    def _foresee(self, ranks: Collection[int]) -> None:
        settings, problem = self.family.settings, self.family.problem
        planned = planned_depth_evaluations(settings, problem, self.depth, ranks=ranks)
        self.runner.tracker.foresee(planned + self.afterwards)

    def _anchors(self, bases: Mapping[int, Minimum]) -> dict[int, Minimum]:
        """The best start for each rank, at the anchoring depth."""
        problem = self.family.problem
        units = [
            self._unit(
                f"start-{rank}-{number}",
                partial(
                    ranked_start, self.family, kind=kind, number=number, rank=rank, middle=self.depth.anchor, base=base
                ),
                start_cost(self.family.settings, kind), base.ridge, number,
            )
            for rank, base in bases.items()
            for number, kind in enumerate(kinds_of(problem, self.depth, rank))
        ]  # fmt: skip
        best: dict[int, Minimum] = {}
        for minimum in self._looked_at(self.runner.run(units)):
            rank = minimum.dimensions
            if minimum.usable and (rank not in best or self._better(minimum, best[rank])):
                best[rank] = minimum
        return best

    def descend(self, anchors: dict[int, Minimum], above: Minimum | None, led: Collection[int] = ()) -> Minimum | None:
        """Train the highest rank on, and each lower one also from the one above it; the last is given back.

        Of data that are autoencoded the best start of a rank is trained on too where it is a map of the rows: a spiral
        of 2,500 rows ended through one dimension at an objective of .0465, trained on at .0268, two at .0249. Ranks
        that were led down before the path stay where nothing better was found for them or above them.
        """
        settings = self.family.settings
        cost = settings.descent_steps + settings.descent_evaluations
        for rank in sorted(anchors, reverse=True):
            here = anchors[rank]
            if self.runner.out_of_time():
                return above
            if rank in led and here.kind == RankStart.TRUNCATED and (above is None or above.kind == here.kind):
                above = here
                continue
            bases = {f"descend-{rank}": above or here}
            if above is not None and here.kind in MAPS and self.family.problem.autoencoding:
                bases[f"on-{rank}"] = here
                self.runner.tracker.foresee(self.runner.tracker.left() + cost)
            units = [
                self._unit(key, partial(descended, self.family, rank=rank, base=base), cost, here.ridge, rank)
                for key, base in bases.items()
            ]
            for minimum in self._looked_at(self.runner.run(units)):
                if minimum.usable and self._better(minimum, anchors[rank]):
                    anchors[rank] = minimum
            above = anchors[rank]
        return above

    def _hand_on(
        self, found: dict[tuple[int, int], Minimum], ranks: list[int], depths: Sequence[int], way: str
    ) -> None:
        """Along these depths, go on from the neighbour's minimum where that is lower than the one found there.

        A minimum of rank r is a network of rank r at every other depth. A deep network unrolls curves that a shallow
        one, at equal effort, leaves coiled: without this the shallow ends of a line lie too high.
        """
        for before, middle in pairwise(depths):
            units: list[Unit] = []
            for rank in ranks:
                base, here = found.get((rank, before)), found.get((rank, middle))
                if base is None or here is None or self.runner.out_of_time():
                    continue
                moved = self._torn(base), objective_at_depth(self.family, base, middle)
                if moved < (self._torn(here), here.objective):
                    units.append(self._move(base, middle, way))
            self.runner.tracker.foresee(sum(unit.cost for unit in units) + self.afterwards)
            for minimum in self.runner.run(units):
                if minimum.usable and self._better(minimum, found[_place(minimum)]):
                    found[_place(minimum)] = minimum

    def _looked_at(self, minima: Sequence[Minimum]) -> list[Minimum]:
        """The same, with what they lose between rows where that is known to tell."""
        if self.lines is None or not self.lines.close:
            return [*minima]
        return [replace(one, between=self.lines.error(self.family.network_of(one))) for one in minima]

    def _better(self, one: Minimum, other: Minimum) -> bool:
        """Whether it holds the data together where the other does not, or does so as well and lies lower.

        Finitely many rows lie on a curve with jumps, or that crosses itself, which is often the lower minimum.
        """
        return (self._torn(one), one.objective) < (self._torn(other), other.objective)

    def _torn(self, minimum: Minimum) -> bool:
        return self.lines is not None and self.lines.close and minimum.between > GLUED

    def _move(self, base: Minimum, middle: int, way: str = "") -> Unit:
        compute = partial(at_depth, self.family, base=base, middle=middle, lines=self.lines)
        cost = self.family.settings.polish_evaluations
        return self._unit(f"{base.rank}-{middle}{way}", compute, cost, base.ridge, middle)

    def _unit(self, key: str, compute: Callable[[Session], Minimum], cost: int, ridge: float, number: int) -> Unit:
        return Unit(f"{self.name}-{ridge:g}-{key}", compute, cost, "depth path", ridge, number)

    def _table(self, found: Mapping[tuple[int, int], Minimum], most: int, ridge: float) -> xr.Dataset:
        depths, ranks = self.depth.middle_layers, range(1, most + 1)
        settings = self.family.settings
        layers = settings.encoder.layers + settings.decoder.layers + 1
        columns = {
            name: (
                ("rank", "middle_layers"),
                np.array([[_number(found.get((r, m)), name) for m in depths] for r in ranks]),
            )
            for name in _COLUMNS
        }
        table = xr.Dataset(
            columns,
            coords={
                "rank": np.array(ranks, dtype=np.int64),
                "middle_layers": np.array(depths, dtype=np.int64),
                "depth": ("middle_layers", np.array(depths, dtype=np.int64) + layers),
            },
            attrs={"ridge": ridge, "loss": self.family.problem.loss.name},
        )
        table["regularity"] = table["penalty"] - table["rank"] * table["depth"]
        table.attrs["filled"] = self._filled(found)
        close = self.lines is None or self.lines.close
        return with_holds(table, close=close, autoencoding=self.family.problem.autoencoding)

    def _filled(self, found: Mapping[tuple[int, int], Minimum]) -> float:
        """Dimensions that the coordinates of the rows fill through the largest rank, which leave out most noise."""
        if self.lines is None or not found:
            return math.nan
        rank = max(rank for rank, _ in found)
        flattest = min(middle for of, middle in found if of == rank)
        network, problem = self.family.network_of(found[rank, flattest]), self.family.problem
        return filled_by(cut_network(network, problem.x, rank, layer=self.family.middle).encoder, problem)


def _place(minimum: Minimum) -> tuple[int, int]:
    """Where it stands in the table."""
    assert minimum.middle is not None
    return minimum.dimensions, minimum.middle


def _number(minimum: Minimum | None, name: str) -> float:
    return math.nan if minimum is None else float(getattr(minimum, name))
