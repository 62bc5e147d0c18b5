"""The stages of a discovery for one set of data: ridge path, objective curves, scree curve. Every unit is resumable."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from isthmus.discovery.architectures import architecture_of
from isthmus.discovery.baseline import linear_errors
from isthmus.discovery.confidence import Shares, row_losses, scree_share, start_share
from isthmus.discovery.curves import Result
from isthmus.discovery.decision import Decision, Readings, decide
from isthmus.discovery.ladder import Ladder
from isthmus.discovery.objective_curves import WHOLE, Curves, by_rank, has_gaps, objective_curves, reading_of
from isthmus.discovery.problem import Problem
from isthmus.discovery.ridge_path import next_ridge
from isthmus.discovery.settings import Settings
from isthmus.discovery.work import Unit, Workshop
from isthmus.errors import NotConverged
from isthmus.theory.curve_readings import scree_reading
from isthmus.training import FitEvent, Outcome

WIDENED_COST = 2.0  # a whole search over its starts and curves, in time, at equal widths
LONG_CURVE = 20  # about how many ranks of a curve with gaps are trained
OVERSHOOT = 2  # ranks above that of the trained network that the curves cover

Starts = dict[float, list[Result]]


@dataclass(slots=True)
class Findings:
    """Everything that was computed.

    Attributes:
        starts: results of the trained starts by ridge.
        curves: results of the truncated networks by ridge, then rank.
        scree: results of the refined halves by rank.
        ridge: the chosen ridge.
        readings: what the curves say.
        decision: what follows.
        shares: how often the decided rank was read, over starts and over resampled held-out rows.
        linear_error: held-out error of the reduced-rank linear baseline by rank, from 0.
        settings: with the widths that the networks had at last.
        warnings: what cut the search short.
    """

    ridge: float
    readings: Readings
    decision: Decision
    linear_error: list[float]
    shares: Shares
    starts: dict[float, list[Result]]
    curves: dict[float, dict[int, Result]]
    scree: dict[int, Result]
    settings: Settings
    warnings: list[str] = field(default_factory=list[str])

    def with_deep_rank(self, deep: int, *, local: float) -> "Findings":
        """The same, decided with the rank that the deepest networks have and the dimension that the rows fill."""
        readings = replace(self.readings, deep=deep, local=local)
        return replace(self, readings=readings, decision=decide(readings))


def planned_evaluations(settings: Settings, problem: Problem) -> int:
    """About how many gradient evaluations a search takes, for the estimate of time left."""
    most = _most_ranks(settings, problem)
    ranks = min(most, 6) if most <= WHOLE else LONG_CURVE
    path = len(settings.starts) * settings.start_evaluations
    curves = ranks * settings.polish_evaluations + settings.raise_evaluations
    return _planned_ridges(settings) * (path + curves) + ranks * settings.refine_evaluations


class Search:
    """Runs the stages in order; the key prefix keeps a control run apart from the main one in the same folder."""

    def __init__(self, problem: Problem, settings: Settings, workshop: Workshop, *, prefix: str = "") -> None:
        self.problem, self.settings, self.workshop, self.prefix = problem, settings, workshop, prefix
        self.stages = architecture_of(settings)
        self.label = "control: " if prefix else ""
        self.warnings: list[str] = []

    def run(self) -> Findings:
        """All stages."""
        began = time.monotonic()
        ridge, starts, ladders, curves = self._starts_and_curves()
        while self._is_full(curves[ridge]) and self._may_widen(time.monotonic() - began):
            self._widen()
            ridge, starts, ladders, curves = self._starts_and_curves()
        scree = self._scree_curve(curves[ridge])
        readings = self._read(ridge, starts, curves, scree)
        decision = decide(readings)
        asked: set[int] = set()
        # the Jacobian may be believed where it reads a rank in a gap
        while ranks := self._in_gap(decision.rank, ladders[0], curves[ridge]) - asked:
            asked |= ranks
            found = {r["rank"]: r for r in self._truncated([(ladders[0], r) for r in sorted(ranks, reverse=True)])}
            curves[ridge] = dict(sorted({**curves[ridge], **found}.items()))
            scree = dict(sorted({**scree, **self._scree_curve(found)}.items()))
            readings = self._read(ridge, starts, curves, scree)
            decision = decide(readings)
        self.workshop.tracker.rank = decision.rank
        linear = list(readings.linear_error)
        shares = self._shares(decision.rank, starts, curves, scree)
        return Findings(
            ridge, readings, decision, linear, shares, starts, curves, scree, self.settings, self.warnings
        )  # fmt: skip

    def _starts_and_curves(self) -> tuple[float, Starts, list[Ladder], Curves]:
        """The ridge of least held-out error, the starts along all, and the objective curves there and beside it."""
        starts = self._ridge_path()
        ridge = min(starts, key=lambda r: _least(starts[r])["heldout_error"])
        around = self._neighbourhood(starts, ridge)
        self._try_higher_ranks(starts, around)
        ladders = [self._ladder(_least(starts[r])) for r in around]
        curves = objective_curves(ladders, self._truncated, constant=self.problem.constant_loss())
        return ridge, starts, ladders, curves

    def _is_full(self, curve: dict[int, Result]) -> bool:
        """Whether the objective asks for as many dimensions as the linear layers have, and the task may have more.

        What a start uses says less: noise fills all layers of a network whose objective reads 8.
        """
        read = reading_of(curve, self.problem.constant_loss()).rank
        width = self.settings.linear_width
        return read >= width and width < min(self._largest(), self.settings.widest)

    def _may_widen(self, spent: float) -> bool:
        """Whether the time limit, if there is one, leaves room for wider starts and their curves."""
        left = self.workshop.seconds_left()
        growth = self.settings.wider(self._largest()).width / self.settings.width
        return left is None or left > WIDENED_COST * growth**2 * spent

    def _widen(self) -> None:
        """Wider layers from here on: a narrow network would say its own width where the task needs more."""
        self.settings = self.settings.wider(self._largest())
        self.prefix += f"wide-{self.settings.linear_width}-"
        self.workshop.tracker.skip(-planned_evaluations(self.settings, self.problem))

    def _shares(
        self, rank: int, starts: dict[float, list[Result]], curves: dict[float, dict[int, Result]],
        scree: dict[int, Result],
    ) -> Shares:  # fmt: skip
        """How often the rank is read again."""
        found = {r: self.stages.refined_network(self.problem, self.settings, scree[r]) for r in sorted(scree)}
        losses = [row_losses(self.problem, None)]
        for below, r in pairwise([0, *found]):
            here = row_losses(self.problem, found[r])
            # ranks in a gap lie between their neighbours; those below all networks can do what the constant can
            for between in range(below + 1, r):
                share = (between - below) / (r - below) if below else 0.0
                losses.append((1 - share) * losses[below] + share * here)
            losses.append(here)
        weight = self.problem.weight_held
        of_rows = scree_share(
            np.stack(losses), rank, complete=len(losses) > self._largest(),
            weight=None if weight is None else weight.double().numpy(),
            ordered=self.settings.ordered, seed=self.settings.seed,
        ) if len(losses) > 1 else math.nan  # fmt: skip
        return Shares(of_rows, start_share(starts, list(curves), rank))

    def _ridge_path(self) -> dict[float, list[Result]]:
        """Cold starts at each ridge, from the middle of the path until the least held-out error is bracketed."""
        ridges, patience = self.settings.ridges, self.settings.patience
        found: dict[float, list[Result]] = {}
        errors: dict[int, float] = {}
        while (i := next_ridge(errors, len(ridges), patience=patience)) is not None:
            if found and self.workshop.out_of_time():
                self._say_out_of_time()
                break
            results = self._starts_at(ridges[i])
            errors[i] = _least(results)["heldout_error"] if results else math.inf
            if results:
                found[ridges[i]] = results
                self.workshop.tracker.rank = _least(results)["jacobian_rank"]
        spared = _planned_ridges(self.settings) - len(errors)  # below 0 where the best lay far from the middle
        self.workshop.tracker.skip(spared * len(self.settings.starts) * self.settings.start_evaluations)
        if not found:
            raise NotConverged("discover: every start diverged at every ridge; scale the data or give larger ridges.")
        return dict(sorted(found.items(), reverse=True))

    def _starts_at(self, ridge: float) -> list[Result]:
        """The starts that can be used."""
        numbers = range(len(self.settings.starts))
        units = [self._unit("start", self.stages.trained_start, ridge, n, number=n) for n in numbers]
        usable = [r for r in self.workshop.run(units) if r["usable"]]
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
        bases = [_least(starts[ridge]) for ridge in ridges]
        units = [self._unit("raise", raised_start, b["ridge"], b["start"], base=b, cost=cost) for b in bases]
        for base, result in zip(bases, self.workshop.run(units), strict=True):
            higher = result["usable"] and result["activation_rank"] > base["activation_rank"]
            if higher and result["objective"] < base["objective"]:
                starts[base["ridge"]].append(result)

    def _neighbourhood(self, starts: dict[float, list[Result]], ridge: float) -> list[float]:
        """The chosen ridge and its neighbours on the path."""
        path = list(starts)
        i = path.index(ridge)
        return [ridge, *(path[j] for j in (i - 1, i + 1) if 0 <= j < len(path))]

    def _in_gap(self, rank: int, ladder: Ladder, curve: dict[int, Result]) -> set[int]:
        """The rank and those beside it, as far as a curve with gaps leaves them out."""
        if not has_gaps(ladder, min(curve, default=1)):
            return set()
        return {r for r in (rank - 1, rank, rank + 1) if 0 < r <= ladder.spare and r not in curve}

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

    def _scree_curve(self, curve: dict[int, Result]) -> dict[int, Result]:
        """Refined halves through each rank; what is one network on the objective curve is one here."""
        cost = self.settings.refine_evaluations
        networks = {result["rank"]: result for result in curve.values()}
        units = [
            self._unit("scree", self.stages.refined_halves, base["ridge"], rank, base=base, rank=rank, cost=cost)
            for rank, base in sorted(networks.items(), reverse=True)
        ]
        refined = {r["rank"]: r for r in reversed(self._run(units))}
        return {rank: refined[r["rank"]] for rank, r in sorted(curve.items()) if r["rank"] in refined}

    def _ladder(self, base: Result) -> Ladder:
        most = self._widest(base)
        spare = self.stages.spare_rank
        return Ladder(base, most if spare is None else spare(self.problem, self.settings, base, most), most)

    def _widest(self, base: Result) -> int:
        return min(base["activation_rank"] + OVERSHOOT, _most_ranks(self.settings, self.problem))

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
        words = {"start": "training", "raise": "higher ranks", "truncate": "objective curve", "scree": "scree curve"}[
            stage
        ]
        return Unit(
            key=f"{self.prefix}{stage}-{ridge:g}-{index}",
            compute=run,
            cost=cost or self.settings.start_evaluations,
            stage=self.label + words,
            ridge=ridge,
            start=index,
        )

    def _read(
        self,
        ridge: float,
        starts: dict[float, list[Result]],
        curves: dict[float, dict[int, Result]],
        scree: dict[int, Result],
    ) -> Readings:
        # the theory speaks of the least minimum, which may be a truncated and polished one
        best = _least([*starts[ridge], *curves[ridge].values()])
        constant = self.problem.constant_loss()
        linear = linear_errors(self.problem, most=_most_ranks(self.settings, self.problem))
        # through no dimension: the best constant of the training rows, on the held-out rows
        errors = by_rank(scree, "heldout_error", constant=linear[0])
        return Readings(
            ridge=ridge,
            objective=reading_of(curves[ridge], constant),
            neighbours=tuple((r, reading_of(c, constant)) for r, c in curves.items() if r != ridge),
            scree=scree_reading(errors, complete=len(errors) > self._largest()),
            jacobian_rank=best["jacobian_rank"],
            widest=max(curves[ridge]),
            heldout_error=tuple(errors),
            linear_error=tuple(linear),
            most=self._largest(),
            columns=self.problem.d_in if self.problem.autoencoding else None,
            complaints=tuple(self.warnings),
        )

    def _largest(self) -> int:
        """The rank that no map of these inputs to these targets exceeds."""
        return min(self.problem.d_in, self.problem.d_out)


def _least(results: Sequence[Result]) -> Result:
    """The start with the least objective: the theory speaks of the global minimum, so ranks are never averaged."""
    return min(results, key=lambda r: r["objective"])


def _planned_ridges(settings: Settings) -> int:
    """Ridges that are trained where the best is the first or beside it: it and its neighbours."""
    return min(2 * settings.patience + 1, len(settings.ridges))


def _most_ranks(settings: Settings, problem: Problem) -> int:
    return min(settings.linear_width, problem.d_in, problem.d_out)
