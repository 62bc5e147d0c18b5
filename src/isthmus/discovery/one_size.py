"""The part of a search that trains networks of one size: starts along the ridges, curves, halves; a unit of work each.

In which order, and why it stops: `search`, which begins here and goes on to wider networks. Thresholds: `choices`.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from isthmus.discovery.choices import HALVES, OVERSHOOT, choose_ridge
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.findings import SizeFindings, Starts
from isthmus.discovery.halves import RANK
from isthmus.discovery.minimum import Minimum, least
from isthmus.discovery.objective_curves import (
    Curve,
    Curves,
    Ladder,
    Wanted,
    likely_next,
    objective_curves,
    reading_of,
)
from isthmus.discovery.ridge_starts import RidgeStarts, Workbench
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.runner import UnitRunner
from isthmus.discovery.work.unit import Phase, Unit
from isthmus.errors import NotConverged
from isthmus.theory.curve_readings import CurveReading

RAISE = Phase("raise", "higher ranks")
TRUNCATE = Phase("truncate", "objective curve")
HAND_ON = Phase("hand-on", "objective curve")
REFINE = Phase("scree", "scree curve")
LONGER_TRAINED = Phase("longer", "training on")
HALVE = Phase("half", "halves of the rows")
ALL_ROWS = Phase("whole", "all rows")


class OneSize(Workbench):
    """The part of a search that trains networks of one size; what cut it short, or was left out, is in `warnings`."""

    def __init__(self, problem: Problem, settings: Settings, runner: UnitRunner, *, prefix: str, label: str) -> None:
        super().__init__(problem, settings, runner, prefix=prefix, label=label)
        self.starts = RidgeStarts(self)

    def trained(self) -> SizeFindings:
        """The starts along the ridges, the chosen ridge, and the objective curves there and beside it."""
        starts = self.starts.along()
        return self.at(starts, self._choose(starts))

    def at(self, starts: Starts, ridge: float) -> SizeFindings:
        """The objective curves at this ridge and beside it."""
        starts = self.starts.with_neighbours(starts, ridge)
        around = self._neighbourhood(starts, ridge)
        polished = self._try_higher_ranks(starts, around)
        ladders = [self._ladder(least([*starts[r], *(m for m in polished if m.ridge == r)])) for r in around]
        train = partial(self._truncated, likely=likely_next(ladders))
        curves = objective_curves(ladders, train, constant=self.problem.constant_loss())
        if not curves[ridge]:
            raise NotConverged(f"discover: at ridge {ridge:g} no network of any rank ended; give other ridges.")
        if self.settings.rank_kind is not RANK:
            self._hand_on(starts, curves, ladders[0])
        for empty in [r for r, curve in curves.items() if not curve]:
            self.warnings.append(f"At ridge {empty:g} no network of any rank ended; its objective curve is left out.")
            del curves[empty]
        return SizeFindings(ridge, starts, ladders[0], curves)

    def reading(self, curve: Curve) -> CurveReading:
        """The rank that an objective curve reads."""
        return reading_of(curve, self.problem.constant_loss(), self.problem.loss.compared)

    def _hand_on(self, starts: Starts, curves: Curves, ladder: Ladder) -> None:
        """Lead the starts of more directions, those at other ridges too, through ranks above the reading; in place.

        Which weak combinations a start has found is chance, and a smaller ridge finds more of them: on 24 columns with
        noise of 20 % one of four starts had the third of three, which is 4 % of the objective.
        """
        curve, done = curves[ladder.ridge], set[tuple[int, int]]()
        bases = [minimum for ridge in curves for minimum in starts[ridge] if minimum is not ladder.base]
        while True:
            read = self.reading(curve).rank
            most = min(read + OVERSHOOT, self.foresight.most_ranks)
            wanted = [
                (i, rank)
                for i, base in enumerate(bases)
                for rank in range(read + 1, most + 1)
                if rank <= max(base.activation_rank, base.jacobian_rank) and (i, rank) not in done
            ]
            if not wanted:
                return
            done |= {*wanted}
            cost = self.settings.polish_evaluations * len(wanted)
            self.runner.tracker.foresee(self.runner.tracker.left() + cost)
            for minimum in self.handed_on([(bases[i], rank, ladder.ridge) for i, rank in wanted]):
                rank = minimum.dimensions
                if rank not in curve or minimum.objective < curve[rank].objective:
                    curve[rank] = minimum
            curves[ladder.ridge] = curve = dict(sorted(curve.items()))

    def handed_on(self, wanted: Sequence[tuple[Minimum, int, float]], *, name: str = HAND_ON.key) -> list[Minimum]:
        """Minima led through a rank at another ridge, or at their own."""
        cost, units = self.settings.polish_evaluations, list[Unit]()
        for base, rank, ridge in wanted:
            phase = Phase(f"{name}-{base.ridge:g}-{base.start}-{base.kind}", HAND_ON.words)
            compute = partial(self.family.truncated, base=replace(base, ridge=ridge), rank=rank)
            units.append(self.unit(phase, compute, ridge, rank, cost=cost))
        return self.run(units)

    def _choose(self, starts: Starts) -> float:
        best = {ridge: least(minima) for ridge, minima in starts.items()}
        return choose_ridge(
            {ridge: minimum.heldout_error for ridge, minimum in best.items()},
            {ridge: minimum.objective for ridge, minimum in best.items()},
            constant_error=self.problem.heldout_error_of_constant(),
            constant_objective=self.problem.constant_loss(),
            compared=self.problem.errors_compared,
        )

    def _neighbourhood(self, starts: Starts, ridge: float) -> list[float]:
        """The chosen ridge and its neighbours on the path."""
        path = list(starts)
        i = path.index(ridge)
        return [ridge, *(path[j] for j in (i - 1, i + 1) if 0 <= j < len(path))]

    def _try_higher_ranks(self, starts: Starts, ridges: list[float]) -> list[Minimum]:
        """Add the best start of each ridge once more with a rank more, where that lowers its objective.

        Returns:
            What this trained to a lower objective, with a rank more or not: polished starts.
        """
        if not self.family.raises_ranks:
            return []
        bases = {ridge: least(starts[ridge]) for ridge in ridges}
        cost = self.settings.raise_evaluations
        raised = self.run([
            self.unit(RAISE, partial(self.family.raised, base=b), ridge, b.start or 0, cost=cost)
            for ridge, b in bases.items()
        ])  # fmt: skip
        lower = [minimum for minimum in raised if minimum.objective < bases[minimum.ridge].objective]
        for minimum in lower:
            if minimum.activation_rank > bases[minimum.ridge].activation_rank:
                starts[minimum.ridge].append(minimum)
        return lower if self.family.known_well else []

    def _ladder(self, base: Minimum) -> Ladder:
        most = min(base.activation_rank + OVERSHOOT, self.foresight.most_ranks)
        spare, brief = self.family.spare_rank(base, most), self.family.known_well
        return Ladder(base, spare, most, self.problem.loss.compared, brief=brief)

    def _truncated(self, wanted: Wanted, *, likely: Wanted = ()) -> list[Minimum]:
        cost = self.settings.polish_evaluations
        units, ahead = [
            [
                self.unit(TRUNCATE, partial(self.family.truncated, base=l.base, rank=rank), l.ridge, rank, cost=cost)
                for l, rank in some
            ]
            for some in (wanted, likely)
        ]
        if self.runner.out_of_time():
            self.say_out_of_time()
        return self.run(units, ahead)

    def in_gap(self, rank: int, trained: SizeFindings) -> set[int]:
        """The rank and those beside it, as far as a curve with gaps leaves them out."""
        ladder, curve = trained.ladder, trained.curve
        if not ladder.has_gaps:
            return set()
        return {r for r in (rank - 1, rank, rank + 1) if 0 < r <= ladder.most and r not in curve}

    def at_ranks(self, ranks: set[int], trained: SizeFindings) -> Curve:
        """The best start truncated to these ranks, those that can be used."""
        found = self._truncated([(trained.ladder, r) for r in sorted(ranks, reverse=True)])
        return {minimum.dimensions: minimum for minimum in found}

    def scree_curve(self, curve: Curve, *, name: str = "") -> Curve:
        """Refined halves through each rank; what is one network on the objective curve is one here.

        A name keeps the files of other networks at the same ridge and ranks apart.
        """
        networks, cost = {m.dimensions: m for m in curve.values()}, self.settings.refine_evaluations
        units = [
            self.unit(
                Phase(name + REFINE.key, REFINE.words),
                partial(self.family.refined, base=base),
                base.ridge,
                rank,
                cost=cost,
            )
            for rank, base in sorted(networks.items(), reverse=True)
        ]
        # fmt: skip
        refined = {m.dimensions: m for m in reversed(self.run(units))}
        return {rank: refined[m.dimensions] for rank, m in sorted(curve.items()) if m.dimensions in refined}

    def trained_on(self, starts: Starts) -> Starts:
        """The starts, each trained for as many evaluations more as L-BFGS has in one."""
        cost = self.settings.lbfgs_evaluations
        units = [
            self.unit(LONGER_TRAINED, partial(self.family.trained_on, base=m), ridge, i, cost=cost)
            for ridge, minima in starts.items() for i, m in enumerate(minima)
        ]  # fmt: skip
        found = self.run(units)
        return {ridge: at for ridge in starts if (at := [m for m in found if m.ridge == ridge])}

    def on_halves(self, base: Minimum) -> list[Minimum]:
        """A minimum trained on with each of some halves of the rows, drawn by the seed."""
        cost = self.settings.refine_evaluations // 2
        self.runner.tracker.foresee(self.runner.tracker.left() + HALVES * cost)
        return self.run([
            self.unit(HALVE, partial(self.family.on_half, base=base, number=n), base.ridge, n, cost=cost)
            for n in range(HALVES)
        ])  # fmt: skip

    def on_all_rows(self, base: Minimum) -> Minimum | None:
        """A refined minimum trained on with the held-out rows too, if that ended well."""
        cost = self.settings.refine_evaluations
        self.runner.tracker.foresee(self.runner.tracker.left() + cost)
        compute = partial(self.family.on_all_rows, base=base)
        return next(iter(self.run([self.unit(ALL_ROWS, compute, base.ridge, base.dimensions, cost=cost)])), None)
