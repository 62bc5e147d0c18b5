"""Which ranks of which starts are trained for the objective curves, in which order; the training itself is given.

The ranks of one start: `ladder`. What is read off a curve: `theory.curve_readings`. The other stages: `search`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from isthmus.discovery.ladder import Ladder
from isthmus.theory.curve_readings import CurveReading, objective_reading

Result = dict[str, Any]
Curves = dict[float, dict[int, Result]]
Train = Callable[[Sequence[tuple[Ladder, int]]], list[Result]]
BELOW = 2  # ranks below a reading from which a neighbouring curve begins, and by which it goes on


def objective_curves(ladders: Sequence[Ladder], train: Train, *, constant: float) -> Curves:
    """The whole curve of the first start, and of the others the ranks that say where they read.

    Of another curve first the ranks next to the first reading are trained, and its largest. Where these read otherwise,
    it begins a little below the first reading, and goes on downwards while it reads its least rank: ranks far below
    would only say again that they are too low.

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
    read = reading_of(curves[chosen.ridge], constant).rank
    curves |= {l.ridge: {} for l in beside}
    _add(curves, [(l, rank) for l in beside for rank in _next_to(read, l)], train)
    others = [l for l in beside if reading_of(curves[l.ridge], constant).rank != read]
    ends = [(l, max(min(read, l.spare) - BELOW, 1)) for l in others]
    _climb(curves, ends, train)
    while ends := [(l, low) for l, low in ends if 1 < low >= reading_of(curves[l.ridge], constant).rank]:
        _add(curves, [(l, rank) for l, low in ends for rank in range(max(low - BELOW, 1), low)], train)
        ends = [(l, max(low - BELOW, 1)) for l, low in ends]
    return {ridge: dict(sorted(curve.items())) for ridge, curve in curves.items()}


def reading_of(curve: Mapping[int, Result], constant: float) -> CurveReading:
    """The rank that a curve reads."""
    return objective_reading(by_rank(curve, "objective", constant=constant))


def by_rank(results: Mapping[int, Result], name: str, *, constant: float) -> list[float]:
    """The values of a curve at ranks 0, 1, 2, ...; a rank whose run diverged can do what the one below can."""
    values = [constant]
    for rank in range(1, max(results, default=0) + 1):
        values.append(results[rank][name] if rank in results else values[-1])
    return values


def _climb(curves: Curves, ends: Sequence[tuple[Ladder, int]], train: Train) -> None:
    """Add the ranks from these least ones on; above the spare rank only where the largest rank gains something."""
    for ladder, _ in ends:
        curves.setdefault(ladder.ridge, {})
    _add(curves, [(l, r) for l, low in ends for r in sorted({*range(low, l.spare + 1), l.most}, reverse=True)], train)
    gaining = [l for l, _ in ends if l.gains(curves[l.ridge])]
    _add(curves, [(l, rank) for l in gaining for rank in range(l.most - 1, l.spare, -1)], train)
    curves |= {l.ridge: l.filled(curves[l.ridge]) for l, _ in ends if l not in gaining}


def _next_to(read: int, ladder: Ladder) -> list[int]:
    """The ranks that say whether a curve reads this one; above the spare rank its network stands for all."""
    near = {min(rank, ladder.spare) for rank in (read - 1, read, read + 1)}
    return sorted((near - {0, -1}) | {ladder.most}, reverse=True)


def _add(curves: Curves, wanted: Sequence[tuple[Ladder, int]], train: Train) -> None:
    """Train what is not there yet."""
    missing = [(ladder, rank) for ladder, rank in wanted if rank not in curves[ladder.ridge]]
    for result in train(missing) if missing else []:
        curves[result["ridge"]][result["rank"]] = result
