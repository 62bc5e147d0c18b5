"""Rows of exact fractions: echelon form, null space, the simplest basis of their span. No floating point.

Rows with a meaning: `dimensional_analysis`; rows near to directions that were measured: `group_search`.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations

Row = tuple[Fraction, ...]
Rows = tuple[Row, ...]
MOST_SUBSETS = 3000  # of columns that are set to zero, one after the other, in search of the simplest rows


def as_row(entries: Iterable[int | Fraction]) -> Row:
    """Whole numbers or fractions as a row."""
    return tuple(Fraction(entry) for entry in entries)


def reduced(rows: Sequence[Row], *, order: Sequence[int] | None = None) -> tuple[Rows, tuple[int, ...]]:
    """Reduced row echelon form of the span, *exact*.

    Args:
        rows: of one length, in any number; dependent ones vanish.
        order: the columns in the order in which they become pivots; default from left to right.

    Returns:
        As many rows as the rank, each 1 at its pivot where the others are 0, and the pivots.
    """
    left = [list(row) for row in rows]
    pivots: list[int] = []
    for column in range(len(left[0]) if left else 0) if order is None else order:
        place = len(pivots)
        found = next((i for i in range(place, len(left)) if left[i][column]), None)
        if found is None:
            continue
        left[place], left[found] = left[found], left[place]
        head = left[place][column]
        left[place] = [entry / head for entry in left[place]]
        for i, row in enumerate(left):
            if i != place and row[column]:
                factor = row[column]
                left[i] = [a - factor * b for a, b in zip(row, left[place], strict=True)]
        pivots.append(column)
        if len(pivots) == len(left):
            break
    return tuple(tuple(row) for row in left[: len(pivots)]), tuple(pivots)


def rational_rank(rows: Sequence[Row]) -> int:
    """Number of independent rows, *exact*."""
    return len(reduced(rows)[1])


def null_space(rows: Sequence[Row], width: int) -> Rows:
    """A basis of all a with `rows` a = 0, *exact*: width - rank rows of whole numbers without a common divisor.

    Args:
        rows: of length `width`; none: nothing is asked of a.
        width: number of columns.
    """
    echelon, pivots = reduced(rows)
    free = [column for column in range(width) if column not in pivots]
    found: list[Row] = []
    for column in free:
        row = [Fraction(int(place == column)) for place in range(width)]
        for pivot, line in zip(pivots, echelon, strict=True):
            row[pivot] = -line[column]
        found.append(primitive(row))
    return tuple(found)


def same_space(some: Sequence[Row], others: Sequence[Row]) -> bool:
    """Whether two sets of exponents make the same groups up to powers and products: equal spans, *exact*."""
    return reduced(some)[0] == reduced(others)[0]


def primitive(row: Sequence[Fraction]) -> Row:
    """The row as whole numbers without a common divisor, signed so that their sum, else the first, is positive.

    A group is determined up to a power; this is the power that is shown.
    """
    scale = math.lcm(*(entry.denominator for entry in row))
    whole = [int(entry * scale) for entry in row]
    divisor = math.gcd(*whole) or 1
    leading = sum(whole) or next((entry for entry in whole if entry), 1)
    return tuple(Fraction(entry // divisor if leading > 0 else -entry // divisor) for entry in whole)


def description_length(row: Sequence[Fraction]) -> float:
    """Bits to tell a row, up to its scale: 2 + 2 log2 |n| for each n != 0 of its whole numbers.

    *Heuristic* measure of simplicity: about N^2 fractions have numerator and denominator up to N, so that to name one
    of them takes 2 log2 N bits; the other 2 tell that the column takes part.
    """
    return math.fsum(2 + 2 * math.log2(abs(entry)) for entry in primitive(row) if entry)


def simplest_basis(rows: Sequence[Row]) -> Rows:
    """The basis of the span with the shortest description, among rows with as many zeros as can be.

    Every row of the span that has no other with its zeros and one more (an elementary vector) vanishes on rank - 1
    columns; all of them are formed, and taken by length as long as they are independent, which is the best choice for
    a matroid. Beyond `MOST_SUBSETS` sets of columns the echelon form stands for it.

    Returns:
        Whole numbers, shortest first; of equal length the one that uses earlier columns.
    """
    echelon, _ = reduced(rows)
    rank, width = len(echelon), len(echelon[0]) if echelon else 0
    if rank == 0 or math.comb(width, rank - 1) > MOST_SUBSETS:
        return tuple(sorted((primitive(row) for row in echelon), key=_simplicity))
    found: set[Row] = set()
    for zeros in combinations(range(width), rank - 1):
        factors = null_space([as_row(row[column] for row in echelon) for column in zeros], rank)
        if len(factors) == 1:
            row = [sum((f * entry for f, entry in zip(factors[0], column, strict=True)), Fraction(0))
                   for column in zip(*echelon, strict=True)]  # fmt: skip
            found.add(primitive(row))
    chosen: list[Row] = []
    for row in sorted(found, key=_simplicity):
        if rational_rank([*chosen, row]) > len(chosen):
            chosen.append(row)
        if len(chosen) == rank:
            break
    return tuple(chosen)


def _simplicity(row: Row) -> tuple[float, tuple[int, ...], Row]:
    places = tuple(place for place, entry in enumerate(row) if entry)
    return round(description_length(row), 9), places, tuple(-entry for entry in row)
