"""The search of a discovery, from the first start to the decision: what is trained, in which order, why it stops.

1. Starts at one ridge after the other, from the middle of the path, until the least held-out error is bracketed.
2. At that ridge and its neighbours the best start, tried with one rank more, is truncated to every rank and polished:
   the objective curves. Where the objective asks for all dimensions of the networks, wider ones are trained instead.
3. At the chosen ridge the halves of each truncation are refined: the scree curve.
4. The curves are read, the readings compared. Where one lies on a rank that was not trained, that is trained first.

What is trained with networks of one size: `one_size`. What is decided by which threshold: `choices`, `decision`. How
networks of a kind are trained: `kinds`. Every training is a unit of work that can be resumed: `work`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from isthmus.discovery.choices import (
    CLOSE,
    FEW_FOR_EACH,
    FILLED,
    HALVES,
    MANY,
    WHOLE,
    is_full,
    leaves_room,
)
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.data.sample import Sample
from isthmus.discovery.decision import decide, is_linear, told_by_linear_maps
from isthmus.discovery.depth.between_rows import local_dimension, near_dimension
from isthmus.discovery.depth.path import DepthPath
from isthmus.discovery.evidence.baseline import linear_errors, linear_network, linear_reading
from isthmus.discovery.evidence.confidence import HeldOutCurve, Shares, start_share
from isthmus.discovery.evidence.foretold import Foretold, held_against_leftovers
from isthmus.discovery.filled_dimensions import CurvedCoordinates
from isthmus.discovery.findings import Decision, Findings, LinearReading, OfAllRows, Readings, SizeFindings
from isthmus.discovery.halves import INDEX, RANK
from isthmus.discovery.minimum import Minimum, least
from isthmus.discovery.objective_curves import Curve, Curves, objectives_of
from isthmus.discovery.one_size import OneSize
from isthmus.discovery.over_depth import OverDepth, decide_over_depth, held_against
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.runner import UnitRunner
from isthmus.errors import NotConverged
from isthmus.networks import FullyConnected
from isthmus.theory import Verdict
from isthmus.theory.curve_readings import Gain, running_minimum


@dataclass(frozen=True, slots=True, eq=False)
class SearchState:
    """What a search believes at one moment."""

    size: OneSize
    warnings: tuple[str, ...]
    trained: SizeFindings
    scree: Curve
    readings: Readings
    decision: Decision
    scree_of_all: OfAllRows | None
    mapped: LinearReading | None
    over_depth: OverDepth | None
    left_over: Foretold | None
    deepest: Curve
    deep_scree: Curve


class Search:
    """One discovery's search; a name keeps what is searched beside it apart, in the same folder."""

    trained: SizeFindings  # with `scree`, `readings` and `decision` known from `run` on
    scree: Curve
    readings: Readings
    decision: Decision
    in_doubt = False  # whether the first answer was
    scree_of_all: OfAllRows | None = None  # what all rows, each held out once, say, where that was looked at
    mapped: LinearReading | None = None  # and what linear maps do, where they predict as well as networks
    over_depth: OverDepth | None = None  # what several depths said, once they were asked
    left_over: Foretold | None = None  # what a rank loses that was sure without this
    below = False  # whether smaller ridges were searched, in vain

    def __init__(self, problem: Problem, settings: Settings, runner: UnitRunner, *, name: str = "") -> None:
        self.problem, self.runner, self.name = problem, runner, name
        self.deepest: Curve = {}  # the deepest networks by rank,
        self.deep_scree: Curve = {}  # and their halves
        self.size = self._of_size(settings, f"{name}-" if name else "")

    def run(self) -> None:
        """Everything that is trained for a first answer."""
        self.trained = self._wide_enough()
        self.scree = self.size.scree_curve(self.trained.curve)
        self.settle()

    def settle(self) -> None:
        """Read the curves and decide; train what a reading lies on that was not trained."""
        asked: set[int] = set()
        self._decide()
        # any of the readings may be believed, so none may stand on ranks that were not trained
        while ranks := self._untrained() - asked:
            asked |= ranks
            found = self.size.at_ranks(ranks, self.trained)
            self.trained = self.trained.with_ranks(found)
            self.scree = dict(sorted({**self.scree, **self.size.scree_curve(found)}.items()))
            self._decide()

    def _decide(self) -> None:
        self._decide_by(self._read(self.trained, self.scree))

    def _decide_by(self, readings: Readings) -> None:
        decision, asked = decide(readings), self.over_depth is not None or readings.deep is not None
        self.readings = readings
        if self.over_depth is not None:
            decision = held_against(decision, readings, self.over_depth)
        if not (self.problem.autoencoding and self.over_depth is not None):
            linear = told_by_linear_maps(readings)
            decision = self.coordinates.holds(decision, asked=asked, closely=self.in_doubt, linear=linear)
        self.decision = self._held_against_leftovers(decision)
        self.runner.tracker.rank = decision.rank

    @property
    def coordinates(self) -> CurvedCoordinates:
        """Those of the halves of each rank."""
        return CurvedCoordinates(self.size.family, self.scree)

    def _held_against_leftovers(self, decision: Decision) -> Decision:
        """A rank that is sure without this, with what it loses asked whether that is a further dimension."""
        linear = is_linear(self.readings, decision.rank)
        asked = decision.verdict is Verdict.CONFIDENT
        self.left_over = self.coordinates.left_over(decision.rank, linear=linear) if asked else None
        return held_against_leftovers(decision, self.left_over, ridge=self.readings.ridge, asked=self.below)

    @property
    def decided_by_depth(self) -> bool:
        """Whether deeper networks decided of targets, which neither rows nor training of shallow ones change.

        A rank of 6 of 8 targets, read 8 by shallow networks of 10,000 rows, was 8 again of more; of 4 of 5 to train
        shallow ones four times as long changed nothing.
        """
        return self.over_depth is not None and not self.problem.autoencoding

    def findings(self) -> Findings:
        """What was found, with how sure its directions are."""
        rank, trained = self.decision.rank, self.trained
        linear = is_linear(self.readings, rank)
        return Findings(
            family=self.size.family, ridge=trained.ridge, readings=self.readings, decision=self.decision,
            shares=self._shares(rank, trained, self.scree), starts=trained.starts, curves=trained.curves,
            scree=self.scree, warnings=self.size.warnings, linear=linear, halved=self._halved(rank, linear=linear),
            deep=self.deepest.get(rank) if self.over_depth and self.over_depth.rank == rank else None,
            whole=self._whole(rank, linear=linear), foretold=self._foretold,
        )  # fmt: skip

    @property
    def _foretold(self) -> float | None:
        left = self.left_over
        if left is None or (self.problem.autoencoding and not left.counts):  # of noise some lies along one direction
            return None
        return left.more

    def _halved(self, rank: int, *, linear: bool) -> list[FullyConnected]:
        """Of a linear encoder, what halves of the rows give in place of `_whole`: how sure its rows are."""
        family = self.size.family
        if self.size.settings.rank_kind is not INDEX or rank not in self.scree or len(self.problem.x) < MANY:
            return []
        if linear:
            return [linear_network(self.problem.at_rows(family.half_of_rows(n)), rank) for n in range(HALVES)]
        return [family.written(family.network_of(minimum)) for minimum in self.size.on_halves(self.scree[rank])]

    def _whole(self, rank: int, *, linear: bool) -> FullyConnected | None:
        """Of a linear encoder, the halves of the rank fitted to all rows, whose directions are nearer.

        Where the task is linear, the linear map: of a linear encoder of all rows too, else of the rows that its error
        on the others is told by.
        """
        is_index, family = self.size.settings.rank_kind is INDEX, self.size.family
        if linear:
            return linear_network(self.problem.on_all_rows() if is_index else self.problem, rank)
        if not is_index or rank not in self.scree:
            return None
        found = self.size.on_all_rows(self.scree[rank])
        return None if found is None else family.written(family.network_of(found))

    def _wide_enough(self) -> SizeFindings:
        """The starts and curves of the first networks with room to spare, or of the widest that the time allows."""
        tracker = self.runner.tracker
        afterwards = max(tracker.left() - self.size.foresight.all, 0)  # control, depth path
        trained = self.size.trained()
        while self._is_full(trained) and self._has_time(trained.seconds / self.runner.workers):
            narrow, wider = self.size, self.size.settings.wider(self.size.family.most_rank)
            self.size = self._of_size(wider, f"{narrow.prefix}wide-{wider.linear_width}-")
            tracker.begin(f"{wider.linear_width} neurons wide", self.size.foresight.all + afterwards)
            try:
                before, trained = trained, self.size.trained()
            except NotConverged:
                narrow.warnings.append(f"Networks with {wider.linear_width} neurons in the middle diverged.")
                self.size = narrow
                tracker.foresee(narrow.foresight.scree + afterwards)
                break
            if text := trained.fell_short_of(before, self.size.settings.rank_kind):
                self.size.warnings.append(text)
        return trained

    def _of_size(self, settings: Settings, prefix: str) -> OneSize:
        label = f"{self.name}: " if self.name else ""
        return OneSize(self.problem, settings, self.runner, prefix=prefix, label=label)

    def _is_full(self, trained: SizeFindings) -> bool:
        read = {ridge: self.size.reading(curve).rank for ridge, curve in trained.curves.items()}
        most, widest = self.size.family.most_rank, self.size.settings.widest
        return is_full(read[trained.ridge], self.size.family.room, beside=read.values(), most=most, widest=widest)

    def _has_time(self, spent: float) -> bool:
        growth = self.size.settings.wider(self.size.family.most_rank).width / self.size.settings.width
        return not self.runner.out_of_time() and leaves_room(self.runner.seconds_left(), spent, growth=growth)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What cut short what is believed, or was left out of it."""
        return tuple(self.size.warnings)

    @warnings.setter
    def warnings(self, warnings: Sequence[str]) -> None:
        self.size.warnings[:] = warnings

    @property
    def state(self) -> SearchState:
        """What is believed, to go back to it."""
        return SearchState(**{one.name: getattr(self, one.name) for one in fields(SearchState)})

    @state.setter
    def state(self, state: SearchState) -> None:
        for one in fields(state):
            setattr(self, one.name, getattr(state, one.name))

    def replace_curves(self, curves: Curves, *, name: str) -> None:
        """Go on with these; halves are refined anew where the curve at the chosen ridge changed.

        A name keeps these halves apart from those of the networks that stood there before.
        """
        before, self.scree_of_all = {id(minimum) for minimum in self.trained.curve.values()}, None
        self.trained = replace(self.trained, curves=curves)
        changed = {rank: m for rank, m in self.trained.curve.items() if id(m) not in before}
        if changed:  # what has a lower objective may still predict worse
            self.scree = _with_better(self.scree, self.size.scree_curve(changed, name=f"{name}-"))
        self.settle()

    def train_on(self, times: int) -> None:
        """Train the starts around the chosen ridge on, so many times as long as before, and read their curves anew."""
        self._go_on_with(self.size.settings.longer(times), f"longer-{times}")
        around = {ridge: self.trained.starts[ridge] for ridge in self.trained.curves}
        starts = {**self.trained.starts, **self.size.trained_on(around)}
        self.trained = self.size.at(dict(sorted(starts.items(), reverse=True)), self.trained.ridge)
        self.scree = _with_better(self.size.scree_curve(self.trained.curve), self.deep_scree)
        self.settle()

    def _go_on_with(self, settings: Settings, name: str) -> None:
        """Keep what is trained from now on apart from what has the same ridge and rank; complaints stand."""
        before, self.scree_of_all = self.size, None
        self.size = self._of_size(settings, f"{before.prefix}{name}-")
        self.size.starts.tried |= before.starts.tried
        self.size.warnings += before.warnings

    def read_all_rows(self, found: OfAllRows, sample: Sample) -> None:
        """Believe what networks lose of all rows, and hold it against what linear maps do."""
        self.scree_of_all = found
        self.settle()
        self.read_linear_maps(sample)

    def read_linear_maps(self, sample: Sample) -> None:
        """Hold what was decided against linear maps of all rows, where no network tells targets clearly better.

        While there is time; not at the one ridge that was asked for, where the constant may be the answer.
        """
        problem, readings = self.problem, self.readings
        asked = problem.loss.is_quadratic and not problem.autoencoding and self.mapped is None
        asked = asked and len(problem.x) >= FEW_FOR_EACH * problem.d_in and len(self.size.settings.ridges) > 1
        asked = asked and not self.runner.out_of_time()
        mine = problem.errors_compared.raised(min(readings.heldout_error), CLOSE)
        if asked and (readings.errors_of_all or mine > min(readings.linear_error)):
            self.mapped = linear_reading(sample, self.size.settings, most=self._most_linear + 1)
            self.settle()

    def around(self, ridge: float) -> None:
        """Read the curves at another ridge of the path and beside it."""
        self._go_on_with(self.size.settings, f"around-{ridge:g}")
        self.trained = self.size.at(self.trained.starts, ridge)
        self.scree = _with_better(self.size.scree_curve(self.trained.curve), self.deep_scree)
        self.settle()

    def believe(self, path: DepthPath, deepest: Curve, *, name: str) -> bool:
        """Decide by what networks of several depths keep, if that is settled, and cut the deepest in two."""
        around = self.coordinates.around(self.decision.rank)
        self.deep_scree = self.size.scree_curve(deepest, name=f"{name}-")
        self.scree = _with_better(self.scree, self.deep_scree)
        rank, flat = path.deep_rank, self.decision.rank
        held = self._held_out(self.scree)
        errors = tuple(held.errors(self.readings.heldout_error[0]))
        self.readings = replace(
            self.readings, heldout_error=errors, train_error=held.train_errors(), medians=self._medians(held)
        )
        # what still moves says nothing yet, unless coordinates of regressions fill as many dimensions
        moves = path.moves and (self.problem.autoencoding or not abs(around - rank) < FILLED)
        if rank not in deepest or rank not in self.scree or moves:
            return False
        linear = self.readings.linear_error
        shallow = None if self.problem.autoencoding else (flat, errors[min(flat, len(errors) - 1)])
        deep = OverDepth(
            rank=rank, before=path.reading.winners[-2], sure=path.is_sure, rise=path.rise,
            error=self.scree[rank].heldout_error, linear=linear[min(rank, len(linear) - 1)], around=around,
            columns=self.problem.d_in, flat=shallow, torn=path.torn,
            filled=path.filled if self.problem.autoencoding else math.nan, lost=path.lost,
        )  # fmt: skip
        decision, self.over_depth, self.deepest = decide_over_depth(self.readings, deep), deep, deepest
        self.decision = self._held_against_leftovers(decision)
        self.runner.tracker.rank = rank
        return True

    def beside(self, path: DepthPath) -> None:
        """Decide again, knowing what networks of several depths keep that were only asked for; other doubts stand."""
        local = local_dimension(self.problem)
        self._decide_by(replace(self.readings, deep=path.deep_rank, deep_sure=path.is_sure, local=local))

    def _untrained(self) -> set[int]:
        """The ranks in gaps that are read, or lie beside one that is."""
        read = {self.decision.rank, self.readings.objective.rank, self.readings.scree.rank}
        return set().union(*(self.size.in_gap(rank, self.trained) for rank in read))

    def _read(self, trained: SizeFindings, scree: Curve) -> Readings:
        ridge, curves, problem = trained.ridge, trained.curves, self.problem
        # the theory speaks of the least minimum, which may be a truncated and polished one
        best = least([*trained.starts[ridge], *trained.curve.values()])
        constant, compared = problem.constant_loss(), problem.loss.compared
        linear = linear_errors(problem, most=self._most_linear)
        held = self._held_out(scree)
        errors, beside = held.errors(linear[0]), [m for r, c in curves.items() if r != ridge for m in c.values()]
        return Readings(
            ridge=ridge,
            objective=self.size.reading(curves[ridge]),
            neighbours=tuple((r, self.size.reading(c)) for r, c in curves.items() if r != ridge),
            scree=self.scree_of_all.scree if self.scree_of_all else held.reading(errors),
            jacobian_rank=best.jacobian_rank,
            widest=max(curves[ridge]),
            heldout_error=tuple(errors),
            linear_error=tuple(linear),
            train_error=held.train_errors(),
            start_ranks=tuple(start.jacobian_rank for ridge in curves for start in trained.starts[ridge]),
            most=self.size.family.most_rank,
            columns=problem.d_in if problem.autoencoding else None,
            straight=self.size.settings.rank_kind is not RANK,
            kind=self.size.settings.rank_kind,
            useless=tuple(self._useless_neighbours(trained)),
            complaints=self.warnings,
            objectives=tuple(running_minimum(objectives_of(curves[ridge], constant, compared))),
            spread=compared.rise(least(trained.starts[ridge]).objective, best.objective),
            classes=problem.classes,
            rows=len(problem.x),
            inputs=problem.d_in,
            compared=compared,
            errors_compared=problem.errors_compared,
            fills=near_dimension(problem) if min(linear) < min(errors) else math.nan,
            gains=self._gains(held, ridge, beside),
            medians=self._medians(held),
            beyond_chance=held.beyond_chance() if scree else {},
            mapped=self.mapped,
            errors_of_all=self.scree_of_all.errors if self.scree_of_all else (),
        )

    @property
    def _most_linear(self) -> int:
        """Dimensions of the linear baseline: of squares to predict more than networks have, as they cost nothing."""
        planned, problem = self.size.foresight.most_ranks, self.problem
        free = problem.loss.is_quadratic and not problem.autoencoding
        return max(planned, min(self.size.family.most_rank, WHOLE)) if free else planned

    def _gains(self, held: HeldOutCurve, ridge: float, beside: Sequence[Minimum]) -> Mapping[int, Gain]:
        if not self.size.settings.rank_kind.plateau:
            return {}
        return self.scree_of_all.gains if self.scree_of_all else held.gains(ridge, beside)

    def _medians(self, held: HeldOutCurve) -> Mapping[int, float]:
        return held.medians() if self.problem.autoencoding and self.size.settings.rank_kind is RANK else {}

    def _useless_neighbours(self, trained: SizeFindings) -> list[float]:
        """The ridges beside the chosen one where what was trained predicts clearly worse."""
        errors = {ridge: least(minima).heldout_error for ridge, minima in trained.starts.items()}
        worse = self.problem.errors_compared.raised(errors[trained.ridge], CLOSE)
        return [ridge for ridge in trained.curves if errors[ridge] > worse]

    def _held_out(self, scree: Curve) -> HeldOutCurve:
        return HeldOutCurve(self.size.family, scree)

    def _shares(self, rank: int, trained: SizeFindings, scree: Curve) -> Shares:
        """How often the rank is read again."""
        of_rows = self._held_out(scree).share(rank) if scree else math.nan
        return Shares(of_rows, start_share(trained.starts, list(trained.curves), rank))


def _with_better(scree: Curve, other: Curve) -> Curve:
    """The scree curve with other halves of a rank where they lose less of the held-out rows, or there are none."""
    better = {r: m for r, m in other.items() if r not in scree or m.heldout_error < scree[r].heldout_error}
    return dict(sorted({**scree, **better}.items()))
