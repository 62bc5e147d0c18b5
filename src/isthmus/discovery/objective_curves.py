"""Which ranks of which starts are trained for the objective curves, in which order; the training itself is given.

The ranks of one start: `ladder`. What is read off a curve: `theory.curve_readings`. The other stages: `search`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from isthmus.discovery.ladder import Ladder
from isthmus.theory.curve_readings import CurveReading, objective_reading, with_gaps_filled

Result = dict[str, Any]
Curves = dict[float, dict[int, Result]]
Train = Callable[[Sequence[tuple[Ladder, int]]], list[Result]]
BELOW = 2  # ranks below a reading from which a neighbouring curve begins, and by which it goes on
WHOLE = 24  # ranks that are all trained; of a longer curve those in steps of a quarter, and all around its reading


def objective_curves(ladders: Sequence[Ladder], train: Train, *, constant: float) -> Curves:
    """The whole curve of the first start, up to 24 ranks, and of the others the ranks that say where they read.

    Of another curve first the ranks next to the first reading are trained, and its largest. Where these read otherwise,
    it begins a little below the first reading, and goes on downwards while it reads its least rank: ranks far below
    would only say again that they are too low. For the same reason a curve over more than 24 ranks has gaps far from
    its reading, the wider the larger the rank.

    Args:
        ladders: that of the chosen ridge, then those of its neighbours.
        train: truncates starts to ranks, all at once; gives the results that can be used.
        constant: objective of the best constant.

    Returns:
        Results by ridge, then rank, in ascending order of the ranks.
    """
    chosen, *beside = ladders
    curves: Curves = {}
    _climb(curves, [(chosen, 1)], train)
    _settle(curves, [chosen], train, constant)
    read = reading_of(curves[chosen.ridge], constant).rank
    curves |= {l.ridge: {} for l in beside}
    _add(curves, [(l, rank) for l in beside for rank in _next_to(read, l)], train)
    # what lies between two trained ranks is made up: to read the same there says nothing
    others = [
        l for l in beside if reading_of(curves[l.ridge], constant).rank != read or read not in {0, *curves[l.ridge]}
    ]
    ends = [(l, max(min(read, l.spare) - BELOW, 1)) for l in others]
    _climb(curves, ends, train)
    while ends := [(l, low) for l, low in ends if 1 < low >= reading_of(curves[l.ridge], constant).rank]:
        further = [(l, _further_down(low, l)) for l, low in ends]
        _add(curves, [(l, rank) for l, ranks in further for rank in ranks], train)
        ends = [(l, ranks[0]) for l, ranks in further]
    _settle(curves, others, train, constant)
    return {ridge: dict(sorted(curve.items())) for ridge, curve in curves.items()}


def reading_of(curve: Mapping[int, Result], constant: float) -> CurveReading:
    """The rank that a curve reads; 0, not sharp, where no network of any rank could be used."""
    if not curve:
        return CurveReading(0, 0.0)
    return objective_reading(by_rank(curve, "objective", constant=constant))


def has_gaps(ladder: Ladder) -> bool:
    """Whether a curve is too long for all its ranks to be trained."""
    return ladder.most > WHOLE


def by_rank(results: Mapping[int, Result], name: str, *, constant: float) -> list[float]:
    """The values of a curve at ranks 0, 1, 2, ...

    A rank that was not trained, or diverged, lies on a line between its neighbours, in logarithms; below the least one
    that is there it can do what the constant can.
    """
    return with_gaps_filled({0: constant} | {rank: result[name] for rank, result in results.items()})


def _climb(curves: Curves, ends: Sequence[tuple[Ladder, int]], train: Train) -> None:
    """Add the ranks from these least ones on; above the spare rank only where the largest rank gains something."""
    for ladder, _ in ends:
        curves.setdefault(ladder.ridge, {})
    first = [(l, sorted({*_upwards(low, l.spare, l), l.most}, reverse=True)) for l, low in ends]
    _add(curves, [(l, rank) for l, ranks in first for rank in ranks], train)
    gaining = [l for l, _ in ends if l.gains(curves[l.ridge])]
    _add(curves, [(l, rank) for l in gaining for rank in _upwards(l.spare, l.most, l)[::-1]], train)
    curves |= {l.ridge: l.filled(curves[l.ridge]) for l, _ in ends if l not in gaining}


def _upwards(low: int, high: int, ladder: Ladder) -> list[int]:
    """Ranks from `low` to `high`: all if the curve is short, else in steps that grow with the rank."""
    if not has_gaps(ladder):
        return list(range(low, high + 1))
    ranks, rank = list[int](), low
    while rank < high:
        ranks.append(rank)
        rank += max(rank // 4, 1)
    return [*ranks, high]


def _further_down(low: int, ladder: Ladder) -> list[int]:
    """The next ranks below `low` that are trained: two, or one a quarter below where the curve is long."""
    if has_gaps(ladder):
        return [max(low - max(low // 4, BELOW), 1)]
    return list(range(max(low - BELOW, 1), low))


def _settle(curves: Curves, ladders: Sequence[Ladder], train: Train, constant: float) -> None:
    """Train the ranks around each reading until it does not lie in a gap of its curve."""
    asked: set[tuple[float, int]] = set()
    while True:
        around: list[tuple[Ladder, int]] = []
        for ladder in ladders:
            if not has_gaps(ladder):
                continue
            curve = curves[ladder.ridge]
            least, read = min(curve, default=1), reading_of(curve, constant).rank
            near = range(max(read - BELOW, least), min(read + BELOW, ladder.most) + 1)
            around += [(ladder, r) for r in near if r not in curve and (ladder.ridge, r) not in asked]
        if not around:
            return
        asked |= {(ladder.ridge, rank) for ladder, rank in around}
        _add(curves, around, train)


def _next_to(read: int, ladder: Ladder) -> list[int]:
    """The ranks that say whether a curve reads this one; above the spare rank its network stands for all."""
    near = {min(rank, ladder.spare) for rank in (read - 1, read, read + 1)}
    return sorted((near - {0, -1}) | {ladder.most}, reverse=True)


def _add(curves: Curves, wanted: Sequence[tuple[Ladder, int]], train: Train) -> None:
    """Train what is not there yet."""
    missing = [(ladder, rank) for ladder, rank in wanted if rank not in curves[ladder.ridge]]
    for result in train(missing) if missing else []:
        curves[result["ridge"]][result["rank"]] = result
