"""The starts of a search along its ridges: which are trained, in which order, from where, and on which bench.

What is made of them: `one_size`. By which thresholds ridges follow each other: `choices`.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

from isthmus.discovery.choices import SLACK, next_ridge, ridges_at_once, ridges_beside
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.findings import CUT_SHORT, Starts
from isthmus.discovery.halves import RANK
from isthmus.discovery.kinds import family_of
from isthmus.discovery.kinds.family import WARMER
from isthmus.discovery.minimum import Minimum, least
from isthmus.discovery.settings import Settings, start_kinds
from isthmus.discovery.work.runner import UnitRunner
from isthmus.discovery.work.search_memory import Foresight
from isthmus.discovery.work.unit import Phase, Session, Unit
from isthmus.errors import NotConverged
from isthmus.training import Outcome

WARM_UP = Phase("warm-up", "training")
START = Phase("start", "training")
COLD = Phase("cold", "training")


class Workbench:
    """Where networks of one size are trained, each training a unit of work; what cut it short is in `warnings`."""

    def __init__(self, problem: Problem, settings: Settings, runner: UnitRunner, *, prefix: str, label: str) -> None:
        self.problem, self.settings, self.runner = problem, settings, runner
        self.prefix, self.label = prefix, label
        self.family = family_of(problem, settings)
        self.foresight = Foresight.of(self.family)
        self.warnings: list[str] = []

    def run(self, units: Sequence[Unit], ahead: Sequence[Unit] = ()) -> list[Minimum]:
        """The minima that can be used."""
        return [minimum for minimum in self.minima(units, ahead) if minimum.usable]

    def minima(self, units: Sequence[Unit], ahead: Sequence[Unit] = ()) -> list[Minimum]:
        """Those of all units, in order, also what cannot be used."""
        minima = self.runner.run(units, ahead=ahead)
        if any(minimum.outcome is Outcome.TIME_LIMIT for minimum in minima):
            self.say_out_of_time()
        return minima

    def say_out_of_time(self) -> None:
        """Complain once."""
        if CUT_SHORT not in self.warnings:
            self.warnings.append(CUT_SHORT)

    def unit(self, phase: Phase, compute: Callable[[Session], Minimum], ridge: float, index: int, *, cost: int) -> Unit:
        """A unit of work of this size, known by its phase, ridge and number."""
        key = f"{self.prefix}{phase.key}-{ridge:g}-{index}"
        return Unit(key=key, compute=compute, cost=cost, stage=self.label + phase.words, ridge=ridge, start=index)


class RidgeStarts:
    """Starts at one ridge after the other.

    Networks whose first layers are curved go on from the warm-up at the first ridge, where their middle still has all
    its dimensions. Ended networks are handed to no other ridge: those keep a rank that is clean but false.
    """

    def __init__(self, bench: Workbench) -> None:
        self.bench, self.ridges, self.count = bench, bench.settings.ridges, len(bench.settings.starts)
        self.tried: set[float] = set()
        self.ahead: dict[tuple[float, int], Minimum] = {}  # starts that nobody asked for yet, by ridge and number
        self.warm: dict[int, Minimum] = {}  # the warm-ups, by number
        self.planned = 0  # gradients of the units so far

    def along(self) -> Starts:
        """Those at each ridge, from the middle of the path until the least held-out error is bracketed."""
        patience, runner = self.bench.settings.patience, self.bench.runner
        at_once = ridges_at_once(len(self.ridges), patience=patience, starts=self.count, workers=runner.workers)
        first, *others = [self.ridges[i] for i in at_once]
        self._warm_up(first)
        self._train_ahead([*((first, n) for n in range(self.count)), *((ridge, 0) for ridge in others)])
        found: Starts = {}
        errors: dict[int, float] = {}
        useless = self.bench.problem.heldout_error_of_constant()
        while (i := next_ridge(errors, len(self.ridges), patience=patience, useless=useless)) is not None:
            if found and (self.ridges[i], 0) not in self.ahead and runner.out_of_time():
                self.bench.say_out_of_time()
                break
            usable = self.at(self.ridges[i], found)
            errors[i] = least(usable).heldout_error if usable else math.inf
            if usable:
                found[self.ridges[i]] = usable
                runner.tracker.rank = least(usable).jacobian_rank
        count, each = self.bench.foresight.batches[0]
        runner.tracker.skip(count * each - self.planned)  # below 0 where the best lay far from the middle
        if not found:
            raise NotConverged("discover: every start diverged at every ridge; scale the data or give larger ridges.")
        return dict(sorted(found.items(), reverse=True))

    def with_neighbours(self, starts: Starts, ridge: float) -> Starts:
        """The chosen ridge is not always that of least error, whose neighbours alone were trained."""
        i = self.ridges.index(ridge)
        beside = [r for r in self.ridges[max(i - 1, 0) : i + 2] if r not in self.tried]
        if beside and not self.bench.runner.out_of_time():
            self._train_ahead([(r, 0) for r in beside])
            starts = starts | {r: found for r in beside if (found := self.at(r, starts))}
        return dict(sorted(starts.items(), reverse=True))

    def at(self, ridge: float, found: Starts) -> list[Minimum]:
        """The starts that can be used: all, or the first alone where the others lost at the ridge beside it.

        Random weights are for targets of which a linear map says nothing, and that is seen at one ridge.
        """
        numbers = range(1 if self.first_suffices(ridge, found) else self.count)
        self._train_ahead([(ridge, n) for n in numbers])
        self.tried.add(ridge)
        usable = [m for n in numbers if (m := self.ahead.pop((ridge, n))).usable]
        if not usable:
            self.bench.warnings.append(f"Every start diverged at ridge {ridge:g}; it is left out.")
        return usable

    def first_suffices(self, ridge: float, found: Starts) -> bool:
        """Whether no other start ended clearly lower than the one from a linear map at the nearest ridge."""
        settings = self.bench.settings
        if not found or not self._hands_on or settings.starts != start_kinds(RANK, None):  # else all were asked for
            return False
        at = self.ridges.index
        minima = found[min(found, key=lambda r: abs(at(r) - at(ridge)))]
        first = min((m.objective for m in minima if m.start == 0), default=math.inf)
        return first <= self.bench.problem.loss.compared.raised(least(minima).objective, 1 + SLACK)

    @property
    def _hands_on(self) -> bool:
        """Whether one warm-up does for all ridges."""
        return self.bench.family.known_well and len(self.ridges) > 1

    def _warm_up(self, ridge: float) -> None:
        if self._hands_on:
            family, cost = self.bench.family, self.bench.settings.linear_steps
            units = [
                self.bench.unit(WARM_UP, partial(family.warmed_up, ridge=ridge, number=n), ridge, n, cost=cost)
                for n in range(self.count)
            ]
            self.warm = {n: m for n, m in enumerate(self._minima(units)) if m.usable}

    def _train_ahead(self, wanted: Sequence[tuple[float, int]]) -> None:
        """Train starts at several ridges at once; what is never asked for changes nothing."""
        missing = [place for place in wanted if place not in self.ahead]
        known = {*self.tried, *(ridge for ridge, _ in [*wanted, *self.ahead])}
        beside = [(ridge, 0) for ridge in ridges_beside(self.ridges, known)]
        units, ahead = [[self._start(*place) for place in some] for some in (missing, beside)]
        found = dict(zip(missing, self._minima(units, ahead), strict=True))
        lost = [p for p, m in found.items() if p[1] in self.warm and (m.collapsed or not m.usable)]
        if lost:  # a warm-up that ends here alone may find its way
            found |= zip(lost, self._minima([self._cold(*place, phase=COLD) for place in lost]), strict=True)
        self.ahead |= found

    def _minima(self, units: Sequence[Unit], ahead: Sequence[Unit] = ()) -> list[Minimum]:
        self.planned += sum(unit.cost for unit in units)
        return self.bench.minima(units, ahead)

    def _start(self, ridge: float, number: int) -> Unit:
        if number not in self.warm:
            return self._cold(ridge, number)
        settings, compute = self.bench.settings, partial(self.bench.family.gone_on, base=self.warm[number], ridge=ridge)
        cost = settings.handed_evaluations + settings.linear_steps // WARMER
        return self.bench.unit(START, compute, ridge, number, cost=cost)

    def _cold(self, ridge: float, number: int, *, phase: Phase = START) -> Unit:
        compute = partial(self.bench.family.started, ridge=ridge, number=number)
        return self.bench.unit(phase, compute, ridge, number, cost=self.bench.settings.start_evaluations)
