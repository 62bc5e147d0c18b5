"""Dimensional analysis: which powers of columns have no unit, and what takes the unit from a target. Exact fractions.

Units themselves: `column_units`; logarithms of the columns: `logarithms`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from jaxtyping import Float64

from isthmus.discovery.groups.column_units import ColumnUnits
from isthmus.discovery.groups.rational_rows import (
    Row,
    Rows,
    as_row,
    description_length,
    null_space,
    reduced,
    simplest_basis,
)
from isthmus.errors import DataError
from isthmus.tasks.arrays import listing
from isthmus.tasks.names import quoted

MOST_SOLUTIONS = 5000  # sets of columns that are tried to make the unit of a target


@dataclass(frozen=True, slots=True)
class DimensionlessSpace:
    """The exponents a of columns with U a = 0, *exact*.

        prod_j x_j^(a_j) is a pure number  <=>  U a = 0;  the dimension of all such a is columns - rank U (Buckingham)

    Attributes:
        columns: the names of the columns.
        basis: (groups, columns): whole numbers, the simplest basis of the null space.
    """

    columns: tuple[str, ...]
    basis: Rows

    @property
    def num_groups(self) -> int:
        """Number of independent groups, columns - rank U."""
        return len(self.basis)

    @property
    def idle(self) -> tuple[str, ...]:
        """Columns that take part in no group, since nothing else takes their unit away."""
        return tuple(name for place, name in enumerate(self.columns) if not any(row[place] for row in self.basis))

    @property
    def orthonormal(self) -> Float64[np.ndarray, "d_in groups"]:
        """An orthonormal basis N of the null space in its columns: inputs log(x) N, rows A' N^T of log(x)."""
        if not self.basis:
            return np.zeros((len(self.columns), 0))
        return np.linalg.qr(np.array(self.basis, dtype=np.float64).T)[0]


def dimensionless_space(units: ColumnUnits, columns: Sequence[str]) -> DimensionlessSpace:
    """The groups without dimensions that these columns can form, *exact*; there may be none.

    Args:
        units: of the columns.
        columns: the inputs whose logarithms are taken.

    Source: Buckingham 1914.
    """
    basis = simplest_basis(null_space(units.matrix(columns), len(columns)))
    return DimensionlessSpace(tuple(columns), basis)


def target_exponents(units: ColumnUnits, columns: Sequence[str], target: str) -> Row:
    """The simplest exponents a with the unit of the target, U a = u_y: y / prod_j x_j^(a_j) is a pure number. *Exact*.

    Of all solutions one with the fewest columns, then the smallest denominators, then the shortest description, then
    the earlier columns; beyond `MOST_SOLUTIONS` sets of columns that of the first columns that span the others.

    Args:
        units: of the columns and the target.
        columns: the inputs.
        target: the column that is predicted.

    Returns:
        An exponent for each column; all zero where the target is a pure number.

    Raises:
        DataError: no powers of the inputs have the unit of the target; the line names the base unit that is missing.
    """
    matrix, wanted = units.matrix(columns), units.exponents[target]
    everything = _solution(matrix, wanted, range(len(columns)), len(columns))
    if everything is None:
        raise DataError(_missing(units, columns, target))
    # of columns with one and the same unit the first serves
    first: dict[Row, int] = {}
    for place, unit in enumerate(zip(*matrix, strict=True)):
        if any(unit):
            first.setdefault(unit, place)
    tried = 0
    for size in range(len(reduced(matrix)[1]) + 1):
        solutions: list[Row] = []
        for places in combinations(first.values(), size):
            tried += 1
            if tried > MOST_SOLUTIONS:
                return everything
            found = _solution(matrix, wanted, places, len(columns))
            if found is not None:
                solutions.append(found)
        if solutions:
            return min(solutions, key=_simplicity)
    return everything


def _solution(matrix: Rows, wanted: Row, places: Sequence[int], width: int) -> Row | None:
    """Exponents of the columns at `places` with `matrix` a = `wanted`, None where there are none."""
    system = [(*(row[place] for place in places), right) for row, right in zip(matrix, wanted, strict=True)]
    echelon, pivots = reduced(system)
    if len(places) in pivots:
        return None
    found = [Fraction(0)] * width
    for pivot, row in zip(pivots, echelon, strict=True):
        found[places[pivot]] = row[-1]
    return tuple(found)


def _simplicity(row: Row) -> tuple[int, float, tuple[int, ...]]:
    places = tuple(place for place, entry in enumerate(row) if entry)
    return max((entry.denominator for entry in row), default=1), round(description_length(row), 9), places


def _missing(units: ColumnUnits, columns: Sequence[str], target: str) -> str:
    """Why no powers of the columns have the unit of the target."""
    matrix, wanted = units.matrix(columns), units.exponents[target]
    line = f"the target {quoted(target)} is in {units.in_words(target)}"
    absent = [base for base, row, need in zip(units.bases, matrix, wanted, strict=True) if need and not any(row)]
    if absent:
        return f"{line}, and no input has the {listing(absent, 'base unit')} in it. Add an input that does."
    # w with w U = 0 and w u_y != 0: units that the inputs hold in a fixed proportion, and the target in another
    proofs = simplest_basis(null_space(tuple(zip(*matrix, strict=True)), len(matrix)))
    proof = next(row for row in proofs if sum((w * u for w, u in zip(row, wanted, strict=True)), Fraction(0)))
    bound = [base for base, factor in zip(units.bases, proof, strict=True) if factor]
    return (
        f"{line}, and the inputs hold {' and '.join(bound)} in one fixed proportion only, which is another. "
        f"Add an input that is in {bound[-1]} alone."
    )


def unit_of_powers(units: ColumnUnits, exponents: Sequence[Fraction], columns: Sequence[str]) -> Row:
    """The exponents of the base units in prod_j x_j^(a_j): U a, *exact*; all zero for a group without dimensions."""
    row = as_row(exponents)
    return tuple(sum((u * a for u, a in zip(line, row, strict=True)), Fraction(0)) for line in units.matrix(columns))
