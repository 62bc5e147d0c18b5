"""Which ranks of which starts are trained for the objective curves, in which order; the training itself is given.

What is read off a curve: `theory.curve_readings`. The other stages: `search`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from isthmus.discovery.choices import BELOW, GAIN, SLACK, WHOLE, steps_downwards, steps_upwards
from isthmus.discovery.minimum import Minimum
from isthmus.theory.comparison import Comparison, by_ratio
from isthmus.theory.curve_readings import CurveReading, objective_reading, with_gaps_filled

Curve = dict[int, Minimum]
Curves = dict[float, Curve]


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """The ranks that one trained start is truncated to.

    Attributes:
        base: the start.
        spare: rank above which every truncation is the same network, unless the largest gains by its training.
        most: largest rank of its curve.
        compared: how objectives are compared.
        brief: beside the chosen ridge, its largest rank is not trained where its spare one is.
    """

    base: Minimum
    spare: int
    most: int
    compared: Comparison = by_ratio
    brief: bool = False

    @property
    def ridge(self) -> float:
        """Of the start."""
        return self.base.ridge

    @property
    def has_gaps(self) -> bool:
        """Whether its curve is too long for all its ranks to be trained."""
        return self.most > WHOLE

    def gains(self, curve: Mapping[int, Minimum]) -> bool:
        """Whether training lowered the objective of the largest rank below that of the spare one.

        Directions that cost nothing to cut may still grow: on data without a rank they do.
        """
        if self.most not in curve or self.spare not in curve:
            return False
        return curve[self.most].objective < self.compared.raised(curve[self.spare].objective, 1 - GAIN)

    def filled(self, curve: Mapping[int, Minimum]) -> Curve:
        """The curve, in the order of the ranks, with the network of the spare rank at all that are larger.

        It is a network of at most that rank, as those of all smaller ranks are: the classes are nested.
        """
        above = {rank: curve[self.spare] for rank in range(self.spare, self.most + 1) if self.spare in curve}
        return dict(sorted({**curve, **above}.items()))

    def next_to(self, read: int) -> list[int]:
        """The ranks that say whether its curve reads this one; above the spare rank its network stands for all.

        What the largest rank gains is left to the curve of the chosen ridge by a brief one: beside those of nine
        teachers it was at most .2 %.
        """
        near = {min(rank, self.spare) for rank in (read - 1, read, read + 1)} - {0, -1}
        return sorted(near if self.brief and self.spare in near else near | {self.most}, reverse=True)


Wanted = Sequence[tuple[Ladder, int]]
Train = Callable[[Wanted], list[Minimum]]


def objective_curves(ladders: Sequence[Ladder], train: Train, *, constant: float) -> Curves:
    """The whole curve of the first start, up to 24 ranks, and of the others the ranks that say where they read.

    Of another curve first the ranks next to the first reading are trained, and its largest. Where these read otherwise,
    it begins a little below the first reading, and goes on downwards while it reads its least rank: ranks far below
    would only say again that they are too low. For the same reason a curve over more than 24 ranks has gaps far from
    its reading, the wider the larger the rank.

    Args:
        ladders: that of the chosen ridge, then those of its neighbours.
        train: truncates starts to ranks, all at once; gives the minima that can be used.
        constant: objective of the best constant.

    Returns:
        Minima by ridge, then rank, in ascending order of the ranks.
    """
    chosen, *beside = ladders

    def read_rank(ladder: Ladder) -> int:
        return reading_of(curves[ladder.ridge], constant, ladder.compared).rank

    curves: Curves = {}
    _climb(curves, [(chosen, 1)], train)
    _settle(curves, [chosen], train, constant)
    read = read_rank(chosen)
    curves |= {l.ridge: {} for l in beside}
    _add(curves, [(l, rank) for l in beside for rank in l.next_to(read)], train)
    # what lies between two trained ranks is made up: to read the same there says nothing
    others = [l for l in beside if read_rank(l) != read or read not in {0, *curves[l.ridge]}]
    ends = [(l, max(min(read, l.spare) - BELOW, 1)) for l in others]
    _climb(curves, ends, train)
    while ends := [(l, low) for l, low in ends if 1 < low >= read_rank(l)]:
        further = [(l, steps_downwards(low, gaps=l.has_gaps)) for l, low in ends]
        _add(curves, [(l, rank) for l, ranks in further for rank in ranks], train)
        ends = [(l, ranks[0]) for l, ranks in further]
    _settle(curves, others, train, constant)
    return {ridge: dict(sorted(curve.items())) for ridge, curve in curves.items()}


def likely_next(ladders: Sequence[Ladder]) -> list[tuple[Ladder, int]]:
    """What is asked for after the curve of the first ladder, if that reads its spare rank; then the rest of each curve.

    The largest rank of each other curve is asked for in any case, if it is not brief.
    """
    chosen, *beside = ladders
    near = [l.next_to(chosen.spare) for l in beside]
    first = [(l, ranks[i]) for i in range(4) for l, ranks in zip(beside, near, strict=True) if i < len(ranks)]
    return [*first, *((l, rank) for l in ladders for rank in steps_upwards(1, l.spare, gaps=l.has_gaps)[::-1])]


def reading_of(curve: Mapping[int, Minimum], constant: float, compared: Comparison = by_ratio) -> CurveReading:
    """The rank that a curve reads; 0, not sharp, where no network of any rank could be used."""
    if not curve:
        return CurveReading(0, 0.0)
    return objective_reading(objectives_of(curve, constant, compared), slack=1 + SLACK, compared=compared)


def objectives_of(curve: Mapping[int, Minimum], constant: float, compared: Comparison = by_ratio) -> list[float]:
    """Objectives at ranks 0, 1, 2, ... of a curve, that of the best constant first; gaps are filled in."""
    return with_gaps_filled({0: constant} | {rank: minimum.objective for rank, minimum in curve.items()}, compared)


def _climb(curves: Curves, ends: Wanted, train: Train) -> None:
    """Add the ranks from these least ones on; above the spare rank only where the largest rank gains something."""
    for ladder, _ in ends:
        curves.setdefault(ladder.ridge, {})
    first = [
        (l, sorted({*steps_upwards(low, l.spare, gaps=l.has_gaps), l.most}, reverse=True)) for l, low in ends
    ]  # fmt: skip
    _add(curves, [(l, rank) for l, ranks in first for rank in ranks], train)
    gaining = [l for l, _ in ends if l.gains(curves[l.ridge])]
    above = [(l, rank) for l in gaining for rank in steps_upwards(l.spare, l.most, gaps=l.has_gaps)[::-1]]
    _add(curves, above, train)
    curves |= {l.ridge: l.filled(curves[l.ridge]) for l, _ in ends if l not in gaining}


def _settle(curves: Curves, ladders: Sequence[Ladder], train: Train, constant: float) -> None:
    """Train the ranks around each reading until it does not lie in a gap of its curve."""
    asked: set[tuple[float, int]] = set()
    while True:
        around: list[tuple[Ladder, int]] = []
        for ladder in ladders:
            if not ladder.has_gaps:
                continue
            curve = curves[ladder.ridge]
            least, read = min(curve, default=1), reading_of(curve, constant, ladder.compared).rank
            near = range(max(read - BELOW, least), min(read + BELOW, ladder.most) + 1)
            around += [(ladder, r) for r in near if r not in curve and (ladder.ridge, r) not in asked]
        if not around:
            return
        asked |= {(ladder.ridge, rank) for ladder, rank in around}
        _add(curves, around, train)


def _add(curves: Curves, wanted: Wanted, train: Train) -> None:
    """Train what is not there yet."""
    missing = [(ladder, rank) for ladder, rank in wanted if rank not in curves[ladder.ridge]]
    for minimum in train(missing) if missing else []:
        curves[minimum.ridge][minimum.dimensions] = minimum
