"""Starts, objective curves and scree curve of networks of one size, unit by unit; every unit is resumable.

In which order the ridges come: `ridge_path`; the ranks: `objective_curves`. What is read off the curves, and when
larger networks are asked: `search`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from isthmus.discovery.architectures import architecture_of
from isthmus.discovery.curves import Result
from isthmus.discovery.ladder import Ladder
from isthmus.discovery.objective_curves import WHOLE, Curves, has_gaps, objective_curves
from isthmus.discovery.problem import Problem
from isthmus.discovery.ridge_path import choose_ridge, next_ridge
from isthmus.discovery.settings import Settings
from isthmus.discovery.work import Unit, Workshop
from isthmus.errors import NotConverged
from isthmus.training import FitEvent, Outcome

LONG_CURVE, LONG_BESIDE = 20, 8  # about how many ranks of a curve with gaps are trained, and of one beside it
OVERSHOOT = 2  # ranks above that of the trained network that the curves cover
WORDS = {"start": "training", "raise": "higher ranks", "truncate": "objective curve", "scree": "scree curve"}

Starts = dict[float, list[Result]]


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """What one pass trained before its scree curve.

    Attributes:
        ridge: that of least held-out error.
        starts: results of the trained starts by ridge.
        ladder: the ranks of the best start at the chosen ridge.
        curves: results of the truncated networks by ridge, then rank.
    """

    ridge: float
    starts: Starts
    ladder: Ladder
    curves: Curves

    @property
    def curve(self) -> dict[int, Result]:
        """The objective curve at the chosen ridge."""
        return self.curves[self.ridge]

    def least_objective(self, ridge: float) -> float:
        """Of all its networks at this ridge; infinite where there are none."""
        results = [*self.starts.get(ridge, []), *self.curves.get(ridge, {}).values()]
        return min((result["objective"] for result in results), default=math.inf)

    @property
    def seconds(self) -> float:
        """Time that its units took one after the other, in this sitting or an earlier one."""
        results = [r for at in self.starts.values() for r in at] + [r for c in self.curves.values() for r in c.values()]
        return sum({id(result): result["seconds"] for result in results}.values())

    def with_ranks(self, found: dict[int, Result]) -> "Trained":
        """The same with these ranks on the curve of the chosen ridge too."""
        curve = dict(sorted({**self.curve, **found}.items()))
        return Trained(self.ridge, self.starts, self.ladder, {**self.curves, self.ridge: curve})


def planned_evaluations(settings: Settings, problem: Problem) -> int:
    """About how many gradient evaluations a pass and its scree curve take, for the estimate of time left."""
    ridges, (ranks, beside) = _planned_ridges(settings), _planned_ranks(settings, problem)
    starts = ridges * (len(settings.starts) * settings.start_evaluations + settings.raise_evaluations)
    curves = (ranks + (ridges - 1) * beside) * settings.polish_evaluations
    return starts + curves + planned_scree(settings, problem)


def planned_scree(settings: Settings, problem: Problem) -> int:
    """About how many of them the scree curve takes."""
    return _planned_ranks(settings, problem)[0] * settings.refine_evaluations


def most_ranks(settings: Settings, problem: Problem) -> int:
    """The largest rank that networks of this size can show."""
    return min(settings.room, problem.most_rank)


def least(results: Sequence[Result]) -> Result:
    """The start with the least objective: the theory speaks of the global minimum, so ranks are never averaged."""
    return min(results, key=lambda r: r["objective"])


class SearchPass:
    """Runs the stages in order; the key prefix keeps passes apart that work in the same folder.

    What cut it short, or was left out, is in `warnings`.
    """

    def __init__(self, problem: Problem, settings: Settings, workshop: Workshop, *, prefix: str, label: str) -> None:
        self.problem, self.settings, self.workshop = problem, settings, workshop
        self.prefix, self.label = prefix, label
        self.stages = architecture_of(settings)
        self.warnings: list[str] = []
        self.tried: set[float] = set()

    def run(self) -> Trained:
        """The chosen ridge, the starts along all, and the objective curves there and beside it."""
        starts = self._ridge_path()
        ridge = self._choose(starts)
        starts = self._with_neighbours(starts, ridge)
        around = self._neighbourhood(starts, ridge)
        self._try_higher_ranks(starts, around)
        ladders = [self._ladder(least(starts[r])) for r in around]
        curves = objective_curves(ladders, self._truncated, constant=self.problem.constant_loss())
        if not curves[ridge]:
            raise NotConverged(f"discover: at ridge {ridge:g} no network of any rank ended; give other ridges.")
        for empty in [r for r, curve in curves.items() if not curve]:
            self.warnings.append(f"At ridge {empty:g} no network of any rank ended; its objective curve is left out.")
            del curves[empty]
        return Trained(ridge, starts, ladders[0], curves)

    def in_gap(self, rank: int, trained: Trained) -> set[int]:
        """The rank and those beside it, as far as a curve with gaps leaves them out."""
        ladder, curve = trained.ladder, trained.curve
        if not has_gaps(ladder):
            return set()
        return {r for r in (rank - 1, rank, rank + 1) if 0 < r <= ladder.most and r not in curve}

    def at_ranks(self, ranks: set[int], trained: Trained) -> dict[int, Result]:
        """The best start truncated to these ranks, those that can be used."""
        return {r["rank"]: r for r in self._truncated([(trained.ladder, r) for r in sorted(ranks, reverse=True)])}

    def scree_curve(self, curve: dict[int, Result]) -> dict[int, Result]:
        """Refined halves through each rank; what is one network on the objective curve is one here."""
        cost = self.settings.refine_evaluations
        networks = {result["rank"]: result for result in curve.values()}
        units = [
            self._unit("scree", self.stages.refined_halves, base["ridge"], rank, base=base, rank=rank, cost=cost)
            for rank, base in sorted(networks.items(), reverse=True)
        ]
        refined = {r["rank"]: r for r in reversed(self._run(units))}
        return {rank: refined[r["rank"]] for rank, r in sorted(curve.items()) if r["rank"] in refined}

    def _ridge_path(self) -> dict[float, list[Result]]:
        """Cold starts at each ridge, from the middle of the path until the least held-out error is bracketed."""
        ridges, patience = self.settings.ridges, self.settings.patience
        found: dict[float, list[Result]] = {}
        errors: dict[int, float] = {}
        useless = self.problem.heldout_error_of_constant()
        while (i := next_ridge(errors, len(ridges), patience=patience, useless=useless)) is not None:
            if found and self.workshop.out_of_time():
                self._say_out_of_time()
                break
            results = self._starts_at(ridges[i])
            errors[i] = least(results)["heldout_error"] if results else math.inf
            if results:
                found[ridges[i]] = results
                self.workshop.tracker.rank = least(results)["jacobian_rank"]
        spared = _planned_ridges(self.settings) - len(errors)  # below 0 where the best lay far from the middle
        self.workshop.tracker.skip(spared * len(self.settings.starts) * self.settings.start_evaluations)
        if not found:
            raise NotConverged("discover: every start diverged at every ridge; scale the data or give larger ridges.")
        return dict(sorted(found.items(), reverse=True))

    def _with_neighbours(self, starts: Starts, ridge: float) -> Starts:
        """The chosen ridge is not always that of least error, whose neighbours alone were trained."""
        i = self.settings.ridges.index(ridge)
        beside = [r for r in self.settings.ridges[max(i - 1, 0) : i + 2] if r not in self.tried]
        if beside and not self.workshop.out_of_time():
            starts = starts | {r: found for r in beside if (found := self._starts_at(r))}
        return dict(sorted(starts.items(), reverse=True))

    def _choose(self, starts: Starts) -> float:
        best = {ridge: least(results) for ridge, results in starts.items()}
        return choose_ridge(
            {ridge: result["heldout_error"] for ridge, result in best.items()},
            {ridge: result["objective"] for ridge, result in best.items()},
            constant_error=self.problem.heldout_error_of_constant(),
            constant_objective=self.problem.constant_loss(),
        )

    def _starts_at(self, ridge: float) -> list[Result]:
        """The starts that can be used."""
        self.tried.add(ridge)
        numbers = range(len(self.settings.starts))
        units = [self._unit("start", self.stages.trained_start, ridge, n, number=n) for n in numbers]
        usable = self._run(units)
        if not usable:
            self.warnings.append(f"Every start diverged at ridge {ridge:g}; it is left out.")
        return usable

    def _say_out_of_time(self) -> None:
        text = "The time limit cut the search short; give more seconds for a sharper answer."
        if text not in self.warnings:
            self.warnings.append(text)

    def _try_higher_ranks(self, starts: dict[float, list[Result]], ridges: list[float]) -> None:
        """Add the best start of each ridge once more with a rank more, where that lowers its objective."""
        cost, raised_start = self.settings.raise_evaluations, self.stages.raised_start
        if raised_start is None:
            return
        bases = [least(starts[ridge]) for ridge in ridges]
        units = [self._unit("raise", raised_start, b["ridge"], b["start"], base=b, cost=cost) for b in bases]
        for result in self._run(units):
            base = next(b for b in bases if b["ridge"] == result["ridge"])
            higher = result["activation_rank"] > base["activation_rank"]
            if higher and result["objective"] < base["objective"]:
                starts[base["ridge"]].append(result)

    def _neighbourhood(self, starts: dict[float, list[Result]], ridge: float) -> list[float]:
        """The chosen ridge and its neighbours on the path."""
        path = list(starts)
        i = path.index(ridge)
        return [ridge, *(path[j] for j in (i - 1, i + 1) if 0 <= j < len(path))]

    def _truncated(self, wanted: Sequence[tuple[Ladder, int]]) -> list[Result]:
        cost = self.settings.polish_evaluations
        units = [
            self._unit("truncate", self.stages.truncated, l.ridge, rank, base=l.base, rank=rank, cost=cost)
            for l, rank in wanted
        ]
        if self.workshop.out_of_time():
            self._say_out_of_time()
        return self._run(units)

    def _run(self, units: list[Unit]) -> list[Result]:
        """The results that can be used."""
        results = self.workshop.run(units)
        if any(r["outcome"] == Outcome.TIME_LIMIT.name for r in results):
            self._say_out_of_time()
        return [r for r in results if r["usable"]]

    def _ladder(self, base: Result) -> Ladder:
        most = self._widest(base)
        spare = self.stages.spare_rank
        return Ladder(base, most if spare is None else spare(self.problem, self.settings, base, most), most)

    def _widest(self, base: Result) -> int:
        return min(base["activation_rank"] + OVERSHOOT, most_ranks(self.settings, self.problem))

    def _unit(  # noqa: PLR0913
        self,
        stage: str,
        compute: Callable[..., Result],
        ridge: float,
        index: int,
        *,
        cost: int | None = None,
        **arguments: object,
    ) -> Unit:
        def run(checkpoint: Path | None, callback: Callable[[FitEvent], bool]) -> Result:
            seconds = self.workshop.seconds_left()
            return partial(compute, self.problem, self.settings, **arguments)(
                seconds=seconds, checkpoint=checkpoint, callback=callback
            )

        if stage == "start":
            arguments["ridge"] = ridge
        return Unit(
            key=f"{self.prefix}{stage}-{ridge:g}-{index}",
            compute=run,
            cost=cost or self.settings.start_evaluations,
            stage=self.label + WORDS[stage],
            ridge=ridge,
            start=index,
        )


def _planned_ridges(settings: Settings) -> int:
    """Ridges that are trained where the best is the first or beside it: it and its neighbours."""
    return min(2 * settings.patience + 1, len(settings.ridges))


def _planned_ranks(settings: Settings, problem: Problem) -> tuple[int, int]:
    """About how many ranks are trained at the chosen ridge, and at one beside it."""
    most = most_ranks(settings, problem)
    return (LONG_CURVE, LONG_BESIDE) if most > WHOLE else (min(most, 6), min(most, 6))
