"""A discovery of one set of data: passes over networks of growing width, what their curves say, and what follows.

What a pass computes: `search_pass`. When a wider one follows: `widening`. What readings decide: `decision`.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from isthmus.discovery.baseline import linear_errors
from isthmus.discovery.confidence import Shares, row_losses, scree_share, start_share
from isthmus.discovery.curves import Result
from isthmus.discovery.decision import Decision, Readings, decide
from isthmus.discovery.objective_curves import Curves, by_rank, reading_of
from isthmus.discovery.problem import Problem
from isthmus.discovery.search_pass import (
    SearchPass,
    Starts,
    Trained,
    least,
    most_ranks,
    planned_evaluations,
    planned_scree,
)
from isthmus.discovery.settings import Settings
from isthmus.discovery.widening import fell_short, is_full, leaves_room
from isthmus.discovery.work import Workshop
from isthmus.errors import NotConverged
from isthmus.theory.curve_readings import CurveReading, running_minimum, scree_reading


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
    starts: Starts
    curves: Curves
    scree: dict[int, Result]
    settings: Settings
    warnings: list[str] = field(default_factory=list[str])

    def with_deep_rank(self, deep: int, *, sure: bool, local: float) -> "Findings":
        """The same, decided with the rank that the deepest networks have and the dimension that the rows fill."""
        readings = replace(self.readings, deep=deep, deep_sure=sure, local=local)
        return replace(self, readings=readings, decision=decide(readings))


class Search:
    """Passes until the networks are wide enough; the key prefix keeps a control run apart in the same folder."""

    def __init__(self, problem: Problem, settings: Settings, workshop: Workshop, *, prefix: str = "") -> None:
        self.problem, self.workshop, self.prefix = problem, workshop, prefix
        self.current = self._pass(settings, prefix)

    @property
    def settings(self) -> Settings:
        """With the widths that the networks have by now."""
        return self.current.settings

    def run(self) -> Findings:
        """All stages."""
        trained = self._wide_enough()
        scree = self.current.scree_curve(trained.curve)
        readings = self._read(trained, scree)
        decision = decide(readings)
        asked: set[int] = set()
        # any of the readings may be believed, so none may stand on ranks that were not trained
        while ranks := self._untrained(decision, readings, trained) - asked:
            asked |= ranks
            found = self.current.at_ranks(ranks, trained)
            trained = trained.with_ranks(found)
            scree = dict(sorted({**scree, **self.current.scree_curve(found)}.items()))
            readings = self._read(trained, scree)
            decision = decide(readings)
        self.workshop.tracker.rank = decision.rank
        linear = list(readings.linear_error)
        shares = self._shares(decision.rank, trained.starts, trained.curves, scree)
        return Findings(
            trained.ridge, readings, decision, linear, shares, trained.starts, trained.curves, scree, self.settings,
            self.current.warnings,
        )  # fmt: skip

    def _untrained(self, decision: Decision, readings: Readings, trained: Trained) -> set[int]:
        """The ranks in gaps that are read, or lie beside one that is."""
        read = {decision.rank, readings.objective.rank, readings.scree.rank}
        return set().union(*(self.current.in_gap(rank, trained) for rank in read))

    def _wide_enough(self) -> Trained:
        """The starts and curves of the first networks with room to spare, or of the widest that the time allows."""
        tracker = self.workshop.tracker
        afterwards = max(tracker.left() - planned_evaluations(self.settings, self.problem), 0)  # control, depth path
        trained = self.current.run()
        while self._wants_more(trained) and self._has_time(trained.seconds / self.workshop.workers):
            narrow, wider = self.current, self.settings.wider(self.problem.most_rank)
            self.current = self._pass(wider, f"{narrow.prefix}wide-{wider.linear_width}-")
            tracker.foresee(planned_evaluations(wider, self.problem) + afterwards)
            try:
                before, trained = trained, self.current.run()
            except NotConverged:
                narrow.warnings.append(f"Networks with {wider.linear_width} neurons in the middle diverged.")
                self.current = narrow
                tracker.foresee(planned_scree(self.settings, self.problem) + afterwards)
                break
            if text := fell_short(before, trained):
                self.current.warnings.append(text)
        return trained

    def _pass(self, settings: Settings, prefix: str) -> SearchPass:
        label = "control: " if self.prefix else ""
        return SearchPass(self.problem, settings, self.workshop, prefix=prefix, label=label)

    def _wants_more(self, trained: Trained) -> bool:
        return is_full(trained.curve, self.problem.constant_loss(), self.settings, most=self.problem.most_rank)

    def _has_time(self, spent: float) -> bool:
        left = self.workshop.seconds_left()
        return not self.workshop.out_of_time() and leaves_room(left, spent, self.settings, most=self.problem.most_rank)

    def _shares(self, rank: int, starts: Starts, curves: Curves, scree: dict[int, Result]) -> Shares:
        """How often the rank is read again."""
        networks = [self.current.stages.refined_network(self.problem, self.settings, scree[r]) for r in sorted(scree)]
        losses = [row_losses(self.problem, network) for network in (None, *networks)]
        weight = self.problem.weight_held
        of_rows = scree_share(
            np.stack(losses), rank, ranks=[0, *sorted(scree)], complete=max(scree) >= self.problem.most_rank,
            weight=None if weight is None else weight.double().numpy(),
            ordered=self.settings.ordered, seed=self.settings.seed,
        ) if scree else math.nan  # fmt: skip
        return Shares(of_rows, start_share(starts, list(curves), rank))

    def _read(self, trained: Trained, scree: dict[int, Result]) -> Readings:
        ridge, curves = trained.ridge, trained.curves
        # the theory speaks of the least minimum, which may be a truncated and polished one
        best = least([*trained.starts[ridge], *trained.curve.values()])
        constant = self.problem.constant_loss()
        linear = linear_errors(self.problem, most=most_ranks(self.settings, self.problem))
        # through no dimension: the best constant of the training rows, on the held-out rows
        errors = by_rank(scree, "heldout_error", constant=linear[0])
        return Readings(
            ridge=ridge,
            objective=reading_of(curves[ridge], constant),
            neighbours=tuple((r, reading_of(c, constant)) for r, c in curves.items() if r != ridge),
            scree=scree_reading(errors, complete=len(errors) > self.problem.most_rank, measured=scree)
            if scree
            else CurveReading(0, 0.0),
            jacobian_rank=best["jacobian_rank"],
            widest=max(curves[ridge]),
            heldout_error=tuple(errors),
            linear_error=tuple(linear),
            most=self.problem.most_rank,
            columns=self.problem.d_in if self.problem.autoencoding else None,
            complaints=tuple(self.current.warnings),
            objectives=tuple(running_minimum(by_rank(curves[ridge], "objective", constant=constant))),
            spread=math.log(least(trained.starts[ridge])["objective"] / best["objective"]),
            classes=self.problem.classes,
        )
