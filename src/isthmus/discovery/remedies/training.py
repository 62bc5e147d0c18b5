"""Remedies that train more: the ranks in dispute for longer, more starts, at another ridge of the path."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from isthmus.discovery.choices import AS_READ, CLOSE, LONGER, MORE_STARTS, SHARP
from isthmus.discovery.findings import SizeFindings
from isthmus.discovery.halves import RANK
from isthmus.discovery.minimum import Minimum, least
from isthmus.discovery.objective_curves import Curves
from isthmus.discovery.one_size import TRUNCATE, OneSize
from isthmus.discovery.remedies.remedy import Case, Remedy, sureness
from isthmus.discovery.ridge_starts import START
from isthmus.discovery.search import Search
from isthmus.discovery.work.unit import Phase
from isthmus.tasks.arrays import counted
from isthmus.theory import Verdict


def in_dispute(search: Search) -> list[int]:
    """The ranks that are read, and those beside them, of the curve at the chosen ridge; its largest among them."""
    readings = search.readings
    read = {readings.objective.rank, readings.scree.rank, readings.jacobian_rank}
    read |= {reading.rank for _, reading in readings.counted_neighbours}
    near = {rank for one in read for rank in (one - 1, one, one + 1)}
    curve = search.trained.curve
    return sorted(near & set(curve) | {max(curve)})


def is_of_training(search: Search) -> bool:
    """Whether better minima may settle what is in doubt, and deeper networks have not decided."""
    readings = search.readings
    read = {readings.objective.rank, readings.scree.rank, readings.jacobian_rank}
    read |= {reading.rank for _, reading in readings.counted_neighbours}
    predicts = readings.heldout_error[min(search.decision.rank, len(readings.heldout_error) - 1)] < 1
    saves = search.decision.rank != readings.columns  # else fewer coordinates can only be curved ones
    unsettled = len(read) > 1 or not readings.is_sharp or bool(readings.complaints)
    return predicts and saves and unsettled and not search.decided_by_depth


def may_be_fewer(search: Search) -> bool:
    """Whether data that are autoencoded fill clearly fewer dimensions than are read of their columns."""
    able = search.problem.autoencoding and search.size.settings.rank_kind is RANK
    saves = search.decision.rank != search.readings.columns
    return able and saves and search.coordinates.fill_fewer(search.decision.rank)


def is_poor_below(search: Search) -> bool:
    """Whether networks through one dimension fewer than are read predict worse than through two fewer.

    Those can do what these do, so that they may have ended in poor minima, and the rank above be read for them.
    """
    readings, rank = search.readings, search.decision.rank
    errors, raised = readings.heldout_error, readings.errors_compared.raised
    return 1 < rank <= len(errors) and errors[rank - 1] > raised(errors[rank - 2], CLOSE)


def with_starts(size: OneSize, trained: SizeFindings, ranks: Sequence[int], numbers: Sequence[int]) -> Curves:
    """The curves, with what more random starts end at when they are led through these ranks."""
    ridges, settings = list(trained.curves), size.settings
    starts = size.run([
        size.unit(START, partial(size.family.started, ridge=r, number=n), r, n, cost=settings.start_evaluations)
        for r in ridges for n in numbers
    ])  # fmt: skip
    units = [
        size.unit(
            Phase(f"{TRUNCATE.key}-{base.start}", TRUNCATE.words),
            partial(size.family.truncated, base=base, rank=rank), base.ridge, rank, cost=settings.polish_evaluations
        )
        for base in starts for rank in ranks
    ]  # fmt: skip
    return _improved(trained.curves, size.run(units))


def descended(size: OneSize, trained: SizeFindings, high: int, low: int, *, name: str) -> Curves:
    """The curves, with what the one at the chosen ridge ends at when it gives up one dimension after the other.

    From rank `high` down to `low`, and further while the least is read; then those that ended lower than what was
    there are polished at the ridges beside.
    """
    ridge, curves, found = trained.ridge, trained.curves, list[Minimum]()
    cost = size.settings.linear_steps + size.settings.descent_evaluations
    above = trained.curve[min((rank for rank in trained.curve if rank > high), default=max(trained.curve))]
    for rank in range(high, 0, -1):
        if size.runner.out_of_time() or (rank < low and size.reading(curves[ridge]).rank > rank + 1):
            break
        compute = partial(size.family.descended, base=above, rank=rank)
        here = size.run([size.unit(Phase(name, "one dimension fewer"), compute, ridge, rank, cost=cost)])
        if not here:
            break
        [above] = here
        found, curves = [*found, above], _improved(curves, here)
    kept = [minimum for minimum in found if minimum is curves[ridge][minimum.dimensions]]
    beside = [(minimum, minimum.dimensions, other) for other in curves if other != ridge for minimum in kept]
    return _improved(curves, size.handed_on(beside, name=f"{name}-on"))


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


class LongerTraining(Remedy):
    """The starts at the chosen ridge and beside it are trained on, and led through fewer dimensions anew."""

    name: ClassVar[str] = "longer training"
    settles: ClassVar[float] = 0.1
    most: ClassVar[int] = 2

    def answers(self, case: Case) -> bool:
        """Where readings differ or are not sharp."""
        return is_of_training(case.search)

    def cost(self, case: Case) -> int:
        """Of the starts, of the curves, and of the halves."""
        search = case.search
        settings, trained = search.size.settings.longer(LONGER), search.trained
        starts = sum(len(trained.starts[ridge]) for ridge in trained.curves) * settings.lbfgs_evaluations
        beside = (len(trained.curves) - 1) * 4  # ranks of a neighbour's curve that say whether it reads the same
        ranks = len({id(m) for m in trained.curve.values()})
        curves = (ranks + beside) * settings.polish_evaluations + len(trained.curves) * settings.raise_evaluations
        return starts + curves + ranks * settings.refine_evaluations

    def apply(self, case: Case) -> str:
        """Train on."""
        case.search.train_on(LONGER)
        evaluations = case.search.size.settings.lbfgs_evaluations
        return f"trained every start around the chosen ridge for up to {evaluations} gradients more"


class MoreStarts(Remedy):
    """More random starts at the chosen ridge and beside it, led through the ranks in dispute."""

    name: ClassVar[str] = "more starts"
    settles: ClassVar[float] = 0.03
    most: ClassVar[int] = 2

    def answers(self, case: Case) -> bool:
        """Where readings differ or are not sharp."""
        return is_of_training(case.search)

    def cost(self, case: Case) -> int:
        """Of the starts, and of the ranks in dispute of each."""
        search, settings = case.search, case.search.size.settings
        each = settings.start_evaluations + len(in_dispute(search)) * settings.polish_evaluations
        return len(search.trained.curves) * MORE_STARTS * each

    def apply(self, case: Case) -> str:
        """Train them, and keep what ended lower."""
        search, ranks = case.search, in_dispute(case.search)
        first = len(search.size.settings.starts) + MORE_STARTS * case.times(self.name)
        numbers = range(first, first + MORE_STARTS)
        curves = with_starts(search.size, search.trained, ranks, numbers)
        search.replace_curves(curves, name=f"starts-{first}")
        return f"trained {MORE_STARTS} more starts at each of {counted(len(search.trained.curves), 'ridge')}"


class Descent(Remedy):
    """The best minimum at the chosen ridge gives up one dimension after the other, and trains long after each."""

    name: ClassVar[str] = "descent"
    settles: ClassVar[float] = 0.65

    def answers(self, case: Case) -> bool:
        """Where readings differ or are not sharp, or rows fill fewer dimensions than are read."""
        return is_of_training(case.search) or may_be_fewer(case.search)

    def cost(self, case: Case) -> int:
        """Of the ranks in dispute, there and at the ridges beside, and of their halves."""
        search, (high, low) = case.search, self._ends(case.search)
        settings = search.size.settings
        each = settings.linear_steps + settings.descent_evaluations + settings.refine_evaluations
        return (high - low + 1) * (each + (len(search.trained.curves) - 1) * settings.polish_evaluations)

    def apply(self, case: Case) -> str:
        """Train them, and keep what ended lower."""
        search, (high, low), name = case.search, self._ends(case.search), f"{self.name}-{case.times(self.name)}"
        search.replace_curves(descended(search.size, search.trained, high, low, name=name), name=name)
        return f"took dimensions away one by one, down from {high}, and trained long after each"

    def _ends(self, search: Search) -> tuple[int, int]:
        """One above what is read at the chosen ridge, and one below whatever is read."""
        readings = search.readings
        read = {readings.objective.rank, readings.scree.rank, readings.jacobian_rank}
        beside = {reading.rank for _, reading in readings.counted_neighbours}
        high = min(max(read) + 1, max(search.trained.curve))
        return high, max(min({*read, *beside}) - 1, 1)


class OneFewer(Descent):
    """A first answer without a doubt is held against one dimension fewer, both trained long.

    A plane of 3 in 12 columns, 250 rows, read 4 by all three readings; one fewer, trained on, did as well. Of waves of
    rank 8, 7 trained long do as well as 8 trained shortly, .0297 and .0303, and not as well as 8 trained long, .0257.
    Two squares of 50 columns, 2,000 rows, read 3 with confidence, of errors .124, .155 and .080 through 1, 2 and 3
    combinations; trained long, 2 lose .068.
    """

    name: ClassVar[str] = "one fewer"
    of_sure: ClassVar[bool] = True

    def answers(self, case: Case) -> bool:
        """Where rows fill fewer dimensions than are read, or one fewer predicts worse than two fewer."""
        search = case.search
        sure = search.decision.verdict is Verdict.CONFIDENT and not search.in_doubt
        return sure and search.decision.rank > 1 and (may_be_fewer(search) or is_poor_below(search))

    def apply(self, case: Case) -> str:
        """Train it."""
        rank, poor = case.search.decision.rank, is_poor_below(case.search)
        super().apply(case)
        why = f"{rank - 1} predicted worse than {rank - 2}" if poor else "rows fill fewer"
        return f"trained long through {rank} and {rank - 1} dimensions, as {why}"

    def _ends(self, search: Search) -> tuple[int, int]:
        return search.decision.rank, search.decision.rank - 1


class AnotherRidge(Remedy):
    """A neighbouring ridge that predicts nearly as well is looked at whole, and believed where less is in doubt.

    One that reads otherwise; or the same and sharply, where the chosen one is blunt or its other neighbour reads
    otherwise.
    """

    name: ClassVar[str] = "another ridge"
    settles: ClassVar[float] = 0.6

    def answers(self, case: Case) -> bool:
        """Where there is one."""
        return self._other(case) is not None

    def cost(self, case: Case) -> int:
        """Of starts at one more ridge, and of all curves."""
        foresight, settings = case.search.size.foresight, case.search.size.settings
        return foresight.all - (foresight.ridges - 1) * len(settings.starts) * settings.start_evaluations

    def apply(self, case: Case) -> str:
        """Search around it."""
        search, other = case.search, self._other(case)
        assert other is not None
        before, sure = search.state, sureness(search)
        search.around(other)
        if sureness(search) > sure:
            return f"read the curves around ridge {other:g} instead, which settled more"
        search.state = before
        return f"read the curves around ridge {other:g} too, which settled nothing"

    def _other(self, case: Case) -> float | None:
        trained, readings = case.search.trained, case.search.readings
        errors = {ridge: least(minima).heldout_error for ridge, minima in trained.starts.items()}
        raised = case.search.problem.errors_compared.raised
        chosen, beside = readings.objective, readings.counted_neighbours
        unsettled = not readings.is_sharp or any(reading.rank != chosen.rank for _, reading in beside)
        able: list[tuple[float, float]] = []
        for ridge, reading in beside:
            steadier = unsettled and reading.rank == chosen.rank and reading.sharpness >= SHARP
            close = AS_READ if steadier or reading.rank == readings.scree.rank else CLOSE
            if (steadier or reading.rank != chosen.rank) and errors[ridge] <= raised(errors[trained.ridge], close):
                able.append((errors[ridge], ridge))
        return min(able)[1] if able else None
