"""The search of a discovery, from the first start to the decision: what is trained, in which order, why it stops.

1. Starts at one ridge after the other, from the middle of the path, until the least held-out error is bracketed.
2. At that ridge and its neighbours the best start, tried with one rank more, is truncated to every rank and polished:
   the objective curves. Where the objective asks for all dimensions of the networks, wider ones are trained instead.
3. At the chosen ridge the halves of each truncation are refined: the scree curve.
4. The curves are read, the readings compared. Where one lies on a rank that was not trained, that is trained first.

What is decided by which threshold: `choices`, `decision`. How networks of a kind are trained: `kinds`. Every training
is a unit of work that can be resumed: `work`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from isthmus.discovery.choices import CLOSE, HALVES, MANY, OVERSHOOT, choose_ridge, is_full, leaves_room, next_ridge
from isthmus.discovery.data.problem import Problem
from isthmus.discovery.decision import Decision, Readings, decide
from isthmus.discovery.depth.between_rows import near_dimension
from isthmus.discovery.depth.path import DepthPath
from isthmus.discovery.evidence.baseline import linear_errors
from isthmus.discovery.evidence.confidence import Array, Read, Shares, bends, row_losses, scree_share, start_share
from isthmus.discovery.findings import Findings, SizeFindings, Starts
from isthmus.discovery.halves import INDEX, RANK
from isthmus.discovery.kinds import family_of
from isthmus.discovery.kinds.family import Foresight
from isthmus.discovery.minimum import Minimum, least
from isthmus.discovery.objective_curves import (
    Curve,
    Curves,
    Ladder,
    Wanted,
    objective_curves,
    objectives_of,
    reading_of,
)
from isthmus.discovery.over_depth import OverDepth, decide_over_depth, held_against, held_against_rows
from isthmus.discovery.settings import Settings
from isthmus.discovery.work.runner import Phase, Session, Unit, UnitRunner
from isthmus.errors import NotConverged
from isthmus.theory.curve_readings import (
    CurveReading,
    Gain,
    gain_beyond,
    plateau_reading,
    running_minimum,
    scree_reading,
    with_gaps_filled,
)
from isthmus.training import Outcome

START = Phase("start", "training")
RAISE = Phase("raise", "higher ranks")
TRUNCATE = Phase("truncate", "objective curve")
HAND_ON = Phase("hand-on", "objective curve")
REFINE = Phase("scree", "scree curve")
LONGER_TRAINED = Phase("longer", "training on")
HALVE = Phase("half", "halves of the rows")
ALL_ROWS = Phase("whole", "all rows")


@dataclass(frozen=True, slots=True, eq=False)
class SearchState:
    """What a search believes at one moment."""

    size: "OneSize"
    trained: SizeFindings
    scree: Curve
    readings: Readings
    decision: Decision


class Search:
    """One discovery's search; a name keeps what is searched beside it apart, in the same folder."""

    trained: SizeFindings  # with `scree`, `readings` and `decision` known from `run` on
    scree: Curve
    readings: Readings
    decision: Decision
    in_doubt = False  # whether the first answer was
    over_depth: OverDepth | None = None  # what several depths said, once they were asked

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
        self.readings = self._read(self.trained, self.scree)
        decision = decide(self.readings)
        if self.over_depth is not None:
            decision = held_against(decision, self.readings, self.over_depth)
        elif self.in_doubt and self.problem.autoencoding:
            decision = held_against_rows(decision, near_dimension(self.problem))
        self.decision = decision
        self.runner.tracker.rank = self.decision.rank

    def findings(self) -> Findings:
        """What was found, with how sure its directions are."""
        rank, trained = self.decision.rank, self.trained
        return Findings(
            family=self.size.family, ridge=trained.ridge, readings=self.readings, decision=self.decision,
            shares=self._shares(rank, trained, self.scree), starts=trained.starts, curves=trained.curves,
            scree=self.scree, warnings=self.size.warnings, halved=self._halved(rank, self.scree), 
            deep=self.deepest.get(rank) if self.over_depth and self.over_depth.rank == rank else None,
            whole=self._whole(rank, trained, self.scree),
        )  # fmt: skip

    def _halved(self, rank: int, scree: Curve) -> list[Minimum]:
        """Of a linear encoder, the halves of the rank trained on with halves of the rows: how sure its rows are."""
        if self.size.settings.rank_kind is not INDEX or rank not in scree or len(self.problem.x) < MANY:
            return []
        return self.size.on_halves(scree[rank])

    def _whole(self, rank: int, trained: SizeFindings, scree: Curve) -> Minimum | None:
        """Of a linear encoder, the halves of the rank trained on with all rows, whose directions are nearer."""
        if self.size.settings.rank_kind is not INDEX or rank not in scree:
            return None
        return self.size.on_all_rows(scree[rank], trained.curve[rank])

    def _wide_enough(self) -> SizeFindings:
        """The starts and curves of the first networks with room to spare, or of the widest that the time allows."""
        tracker = self.runner.tracker
        afterwards = max(tracker.left() - self.size.foresight.all, 0)  # control, depth path
        trained = self.size.trained()
        while self._is_full(trained) and self._has_time(trained.seconds / self.runner.workers):
            narrow, wider = self.size, self.size.settings.wider(self.size.family.most_rank)
            self.size = self._of_size(wider, f"{narrow.prefix}wide-{wider.linear_width}-")
            tracker.foresee(self.size.foresight.all + afterwards)
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

    def _of_size(self, settings: Settings, prefix: str) -> "OneSize":
        label = f"{self.name}: " if self.name else ""
        return OneSize(self.problem, settings, self.runner, prefix=prefix, label=label)

    def _is_full(self, trained: SizeFindings) -> bool:
        read = self.size.reading(trained.curve).rank
        widest = self.size.settings.widest
        return is_full(read, self.size.family.room, most=self.size.family.most_rank, widest=widest)

    def _has_time(self, spent: float) -> bool:
        growth = self.size.settings.wider(self.size.family.most_rank).width / self.size.settings.width
        return not self.runner.out_of_time() and leaves_room(self.runner.seconds_left(), spent, growth=growth)

    @property
    def state(self) -> SearchState:
        """What is believed, to go back to it."""
        return SearchState(self.size, self.trained, self.scree, self.readings, self.decision)

    @state.setter
    def state(self, state: SearchState) -> None:
        self.size, self.trained, self.scree = state.size, state.trained, state.scree
        self.readings, self.decision = state.readings, state.decision

    def replace_curves(self, curves: Curves) -> None:
        """Go on with these; halves are refined anew where the curve at the chosen ridge changed."""
        before = {id(minimum) for minimum in self.trained.curve.values()}
        self.trained = replace(self.trained, curves=curves)
        changed = {rank: m for rank, m in self.trained.curve.items() if id(m) not in before}
        if changed:
            again = self.size.scree_curve(changed)
            # what trained longer may still predict worse: the halves of a rank are those of least held-out error
            better = {r: m for r, m in again.items() if m.heldout_error < self.scree[r].heldout_error} if again else {}
            self.scree = dict(sorted({**self.scree, **better}.items()))
        self.settle()

    def train_on(self, times: int) -> None:
        """Train the starts around the chosen ridge on, so many times as long as before, and read their curves anew."""
        before = self.size
        self.size = self._of_size(before.settings.longer(times), f"{before.prefix}longer-{times}-")
        self.size.tried |= before.tried
        around = {ridge: self.trained.starts[ridge] for ridge in self.trained.curves}
        starts = {**self.trained.starts, **self.size.trained_on(around)}
        self.trained = self.size.at(dict(sorted(starts.items(), reverse=True)), self.trained.ridge)
        self.scree = self._with_deep(self.size.scree_curve(self.trained.curve))
        self.settle()

    def around(self, ridge: float) -> None:
        """Read the curves at another ridge of the path and beside it."""
        self.trained = self.size.at(self.trained.starts, ridge)
        self.scree = self._with_deep(self.size.scree_curve(self.trained.curve))
        self.settle()

    def _with_deep(self, scree: Curve) -> Curve:
        """The scree curve with the halves of the deepest networks where they lose less."""
        deep = {r: m for r, m in self.deep_scree.items() if r not in scree or m.heldout_error < scree[r].heldout_error}
        return dict(sorted({**scree, **deep}.items()))

    def believe(self, path: DepthPath, deepest: Curve, *, around: float, name: str) -> None:
        """Decide by what networks of several depths keep, and cut the deepest in two."""
        self.deep_scree = self.size.scree_curve(deepest, name=f"{name}-")
        self.scree = self._with_deep(self.scree)
        rank = path.deep_rank
        self.readings = replace(self.readings, heldout_error=tuple(self._heldout_errors()))
        if rank not in deepest or rank not in self.scree:
            return
        linear = self.readings.linear_error
        deep = OverDepth(
            rank=rank, before=path.reading.winners[-2], sure=path.is_sure, rise=path.rise,
            error=self.scree[rank].heldout_error, linear=linear[min(rank, len(linear) - 1)], around=around,
            columns=self.problem.d_in,
        )  # fmt: skip
        self.over_depth, self.deepest, self.decision = deep, deepest, decide_over_depth(self.readings, deep)
        self.runner.tracker.rank = rank

    def _untrained(self) -> set[int]:
        """The ranks in gaps that are read, or lie beside one that is."""
        read = {self.decision.rank, self.readings.objective.rank, self.readings.scree.rank}
        return set().union(*(self.size.in_gap(rank, self.trained) for rank in read))

    def _read(self, trained: SizeFindings, scree: Curve) -> Readings:
        ridge, curves, problem = trained.ridge, trained.curves, self.problem
        # the theory speaks of the least minimum, which may be a truncated and polished one
        best = least([*trained.starts[ridge], *trained.curve.values()])
        constant, compared = problem.constant_loss(), problem.loss.compared
        linear = linear_errors(problem, most=self.size.foresight.most_ranks)
        errors = self._heldout_errors(linear[0])
        return Readings(
            ridge=ridge,
            objective=self.size.reading(curves[ridge]),
            neighbours=tuple((r, self.size.reading(c)) for r, c in curves.items() if r != ridge),
            scree=self._heldout_reading(scree, errors) if scree else CurveReading(0, 0.0),
            jacobian_rank=best.jacobian_rank,
            widest=max(curves[ridge]),
            heldout_error=tuple(errors),
            linear_error=tuple(linear),
            most=self.size.family.most_rank,
            columns=problem.d_in if problem.autoencoding else None,
            straight=self.size.settings.rank_kind is not RANK,
            kind=self.size.settings.rank_kind,
            useless=tuple(self._useless_neighbours(trained)),
            complaints=tuple(self.size.warnings),
            objectives=tuple(running_minimum(objectives_of(curves[ridge], constant, compared))),
            spread=compared.rise(least(trained.starts[ridge]).objective, best.objective),
            classes=problem.classes,
            rows=len(problem.x),
            compared=compared,
            errors_compared=problem.errors_compared,
            gains=self._gains(trained, scree) if self.size.settings.rank_kind.plateau else {},
        )

    def _gains(self, trained: SizeFindings, scree: Curve) -> dict[int, Gain]:
        """What more dimensions save, those of networks at other ridges too: a large one may hide a weak direction."""
        losses = dict(zip([0, *sorted(scree)], self._row_losses(scree), strict=True))
        beside = [m for ridge, curve in trained.curves.items() if ridge != trained.ridge for m in curve.values()]
        others = [(m.dimensions, row_losses(self.problem, self.size.family.network_of(m))) for m in beside]
        found = dict[int, Gain]()
        for rank, mine in losses.items():
            larger = [(more, theirs) for more, theirs in (*losses.items(), *others) if more > rank]
            if larger:
                found[rank] = gain_beyond(mine, larger, weight=self._held_weight)
        return found

    def _heldout_errors(self, constant: float | None = None) -> list[float]:
        """By rank; through no dimension: the best constant of the training rows, on the held-out rows."""
        first = self.readings.heldout_error[0] if constant is None else constant
        known = {0: first} | {rank: m.heldout_error for rank, m in self.scree.items()}
        return with_gaps_filled(known, self.problem.errors_compared)

    def _useless_neighbours(self, trained: SizeFindings) -> list[float]:
        """The ridges beside the chosen one where what was trained predicts clearly worse."""
        errors = {ridge: least(minima).heldout_error for ridge, minima in trained.starts.items()}
        worse = self.problem.errors_compared.raised(errors[trained.ridge], CLOSE)
        return [ridge for ridge in trained.curves if errors[ridge] > worse]

    def _heldout_reading(self, scree: Curve, errors: Sequence[float]) -> CurveReading:
        """By where it becomes flat, or by its largest bend."""
        family, compared = self.size.family, self.problem.errors_compared
        if family.settings.rank_kind.plateau:
            return self._reader(scree)(self._row_losses(scree), weight=self._held_weight)
        return scree_reading(errors, complete=len(errors) > family.most_rank, measured=scree, compared=compared)

    def _reader(self, scree: Curve) -> Read:
        """How the losses of rows are read."""
        family, ranks, compared = self.size.family, [0, *sorted(scree)], self.problem.errors_compared
        if family.settings.rank_kind.plateau:
            return partial(plateau_reading, ranks=ranks, compared=compared)
        return partial(bends, ranks=ranks, complete=ranks[-1] >= family.most_rank, compared=compared)

    def _row_losses(self, scree: Curve) -> Array:
        """Of the held-out rows through 0 and through each of the ranks."""
        networks = [self.size.family.network_of(scree[r]) for r in sorted(scree)]
        return np.stack([row_losses(self.problem, network) for network in (None, *networks)])

    @property
    def _held_weight(self) -> Array | None:
        weight = self.problem.weight_held
        return None if weight is None else weight.double().numpy()

    def _shares(self, rank: int, trained: SizeFindings, scree: Curve) -> Shares:
        """How often the rank is read again."""
        settings = self.size.settings
        of_rows = scree_share(
            self._row_losses(scree), rank, read=self._reader(scree), weight=self._held_weight,
            ordered=settings.ordered, seed=settings.seed,
        ) if scree else math.nan  # fmt: skip
        return Shares(of_rows, start_share(trained.starts, list(trained.curves), rank))


class OneSize:
    """The part of a search that trains networks of one size; what cut it short, or was left out, is in `warnings`."""

    def __init__(self, problem: Problem, settings: Settings, runner: UnitRunner, *, prefix: str, label: str) -> None:
        self.problem, self.settings, self.runner = problem, settings, runner
        self.prefix, self.label = prefix, label
        self.family = family_of(problem, settings)
        self.foresight = Foresight.of(self.family)
        self.warnings: list[str] = []
        self.tried: set[float] = set()

    def trained(self) -> SizeFindings:
        """The starts along the ridges, the chosen ridge, and the objective curves there and beside it."""
        starts = self._ridge_path()
        return self.at(starts, self._choose(starts))

    def at(self, starts: Starts, ridge: float) -> SizeFindings:
        """The objective curves at this ridge and beside it."""
        starts = self._with_neighbours(starts, ridge)
        around = self._neighbourhood(starts, ridge)
        self._try_higher_ranks(starts, around)
        ladders = [self._ladder(least(starts[r])) for r in around]
        curves = objective_curves(ladders, self._truncated, constant=self.problem.constant_loss())
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
            for minimum in self._handed_on([(bases[i], rank) for i, rank in wanted], ladder.ridge):
                rank = minimum.dimensions
                if rank not in curve or minimum.objective < curve[rank].objective:
                    curve[rank] = minimum
            curves[ladder.ridge] = curve = dict(sorted(curve.items()))

    def _handed_on(self, wanted: Sequence[tuple[Minimum, int]], ridge: float) -> list[Minimum]:
        cost = self.settings.polish_evaluations
        units = list[Unit]()
        for base, rank in wanted:
            phase = Phase(f"{HAND_ON.key}-{base.ridge:g}-{base.start}-{base.kind}", HAND_ON.words)
            compute = partial(self.family.truncated, base=replace(base, ridge=ridge), rank=rank)
            units.append(self._unit(phase, compute, ridge, rank, cost=cost))
        self.runner.tracker.foresee(self.runner.tracker.left() + cost * len(units))
        return self._run(units)

    def _ridge_path(self) -> Starts:
        """Cold starts at each ridge, from the middle of the path until the least held-out error is bracketed."""
        ridges, patience = self.settings.ridges, self.settings.patience
        found: Starts = {}
        errors: dict[int, float] = {}
        useless = self.problem.heldout_error_of_constant()
        while (i := next_ridge(errors, len(ridges), patience=patience, useless=useless)) is not None:
            if found and self.runner.out_of_time():
                self._say_out_of_time()
                break
            usable = self._starts_at(ridges[i])
            errors[i] = least(usable).heldout_error if usable else math.inf
            if usable:
                found[ridges[i]] = usable
                self.runner.tracker.rank = least(usable).jacobian_rank
        spared = self.foresight.ridges - len(errors)  # below 0 where the best lay far from the middle
        self.runner.tracker.skip(spared * len(self.settings.starts) * self.settings.start_evaluations)
        if not found:
            raise NotConverged("discover: every start diverged at every ridge; scale the data or give larger ridges.")
        return dict(sorted(found.items(), reverse=True))

    def _starts_at(self, ridge: float) -> list[Minimum]:
        """The starts that can be used."""
        self.tried.add(ridge)
        cost, count = self.settings.start_evaluations, len(self.settings.starts)
        usable = self._run([
            self._unit(START, partial(self.family.started, ridge=ridge, number=n), ridge, n, cost=cost)
            for n in range(count)
        ])  # fmt: skip
        if not usable:
            self.warnings.append(f"Every start diverged at ridge {ridge:g}; it is left out.")
        return usable

    def _choose(self, starts: Starts) -> float:
        best = {ridge: least(minima) for ridge, minima in starts.items()}
        return choose_ridge(
            {ridge: minimum.heldout_error for ridge, minimum in best.items()},
            {ridge: minimum.objective for ridge, minimum in best.items()},
            constant_error=self.problem.heldout_error_of_constant(),
            constant_objective=self.problem.constant_loss(),
            compared=self.problem.errors_compared,
        )

    def _with_neighbours(self, starts: Starts, ridge: float) -> Starts:
        """The chosen ridge is not always that of least error, whose neighbours alone were trained."""
        i = self.settings.ridges.index(ridge)
        beside = [r for r in self.settings.ridges[max(i - 1, 0) : i + 2] if r not in self.tried]
        if beside and not self.runner.out_of_time():
            starts = starts | {r: found for r in beside if (found := self._starts_at(r))}
        return dict(sorted(starts.items(), reverse=True))

    def _neighbourhood(self, starts: Starts, ridge: float) -> list[float]:
        """The chosen ridge and its neighbours on the path."""
        path = list(starts)
        i = path.index(ridge)
        return [ridge, *(path[j] for j in (i - 1, i + 1) if 0 <= j < len(path))]

    def _try_higher_ranks(self, starts: Starts, ridges: list[float]) -> None:
        """Add the best start of each ridge once more with a rank more, where that lowers its objective."""
        if not self.family.raises_ranks:
            return
        bases = {ridge: least(starts[ridge]) for ridge in ridges}
        cost = self.settings.raise_evaluations
        raised = self._run([
            self._unit(RAISE, partial(self.family.raised, base=b), ridge, b.start or 0, cost=cost)
            for ridge, b in bases.items()
        ])  # fmt: skip
        for minimum in raised:
            base = bases[minimum.ridge]
            if minimum.activation_rank > base.activation_rank and minimum.objective < base.objective:
                starts[base.ridge].append(minimum)

    def _ladder(self, base: Minimum) -> Ladder:
        most = min(base.activation_rank + OVERSHOOT, self.foresight.most_ranks)
        return Ladder(base, self.family.spare_rank(base, most), most, self.problem.loss.compared)

    def _truncated(self, wanted: Wanted) -> list[Minimum]:
        cost = self.settings.polish_evaluations
        units = [
            self._unit(TRUNCATE, partial(self.family.truncated, base=l.base, rank=rank), l.ridge, rank, cost=cost)
            for l, rank in wanted
        ]
        if self.runner.out_of_time():
            self._say_out_of_time()
        return self._run(units)

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
            self._unit(
                Phase(name + REFINE.key, REFINE.words),
                partial(self.family.refined, base=base),
                base.ridge,
                rank,
                cost=cost,
            )
            for rank, base in sorted(networks.items(), reverse=True)
        ]
        # fmt: skip
        refined = {m.dimensions: m for m in reversed(self._run(units))}
        return {rank: refined[m.dimensions] for rank, m in sorted(curve.items()) if m.dimensions in refined}

    def trained_on(self, starts: Starts) -> Starts:
        """The starts, each trained for as many evaluations more as L-BFGS has in one."""
        cost = self.settings.lbfgs_evaluations
        units = [
            self._unit(LONGER_TRAINED, partial(self.family.trained_on, base=m), ridge, i, cost=cost)
            for ridge, minima in starts.items() for i, m in enumerate(minima)
        ]  # fmt: skip
        found = self._run(units)
        return {ridge: at for ridge in starts if (at := [m for m in found if m.ridge == ridge])}

    def with_starts(self, trained: SizeFindings, ranks: Sequence[int], numbers: Sequence[int]) -> Curves:
        """The curves, with what more random starts end at when they are led through these ranks."""
        ridges, settings = list(trained.curves), self.settings
        starts = self._run([
            self._unit(START, partial(self.family.started, ridge=r, number=n), r, n, cost=settings.start_evaluations)
            for r in ridges for n in numbers
        ])  # fmt: skip
        units = [
            self._unit(
                Phase(f"{TRUNCATE.key}-{base.start}", TRUNCATE.words),
                partial(self.family.truncated, base=base, rank=rank), base.ridge, rank, cost=settings.polish_evaluations
            )
            for base in starts for rank in ranks
        ]  # fmt: skip
        return _improved(trained.curves, self._run(units))

    def on_halves(self, base: Minimum) -> list[Minimum]:
        """A minimum trained on with each of some halves of the rows, drawn by the seed."""
        cost = self.settings.refine_evaluations // 2
        self.runner.tracker.foresee(self.runner.tracker.left() + HALVES * cost)
        return self._run([
            self._unit(HALVE, partial(self.family.on_half, base=base, number=n), base.ridge, n, cost=cost)
            for n in range(HALVES)
        ])  # fmt: skip

    def on_all_rows(self, base: Minimum, cut: Minimum) -> Minimum | None:
        """A refined minimum trained on with the held-out rows too, if that ended well."""
        cost = self.settings.refine_evaluations
        self.runner.tracker.foresee(self.runner.tracker.left() + cost)
        compute = partial(self.family.on_all_rows, base=base, cut=cut)
        return next(iter(self._run([self._unit(ALL_ROWS, compute, base.ridge, base.dimensions, cost=cost)])), None)

    def _run(self, units: Sequence[Unit]) -> list[Minimum]:
        """The minima that can be used."""
        minima = self.runner.run(units)
        if any(minimum.outcome is Outcome.TIME_LIMIT for minimum in minima):
            self._say_out_of_time()
        return [minimum for minimum in minima if minimum.usable]

    def _say_out_of_time(self) -> None:
        text = "The time limit cut the search short; give more seconds for a sharper answer."
        if text not in self.warnings:
            self.warnings.append(text)

    def _unit(
        self, phase: Phase, compute: Callable[[Session], Minimum], ridge: float, index: int, *, cost: int
    ) -> Unit:
        key = f"{self.prefix}{phase.key}-{ridge:g}-{index}"
        return Unit(key=key, compute=compute, cost=cost, stage=self.label + phase.words, ridge=ridge, start=index)


def _improved(curves: Curves, found: Sequence[Minimum]) -> Curves:
    """The curves, with each minimum in the place of one of its rank and ridge that lies higher, wherever that stands.

    A network of one rank stands for those above it too, where these gain nothing.
    """
    better = {ridge: dict(curve) for ridge, curve in curves.items()}
    for minimum in found:
        curve, rank = better[minimum.ridge], minimum.dimensions
        for at, here in list(curve.items()):
            if at >= rank and here.dimensions <= rank and minimum.objective < here.objective:
                curve[at] = minimum
        if rank not in curve:
            curve[rank] = minimum
    return {ridge: dict(sorted(curve.items())) for ridge, curve in better.items()}
