"""Which columns get a logarithm and what is said of it; inputs as a search sees them then, and directions back.

Which powers of them have no unit: `dimensional_analysis`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from isthmus.discovery.groups.column_units import ColumnUnits
from isthmus.discovery.groups.dimensional_analysis import DimensionlessSpace, dimensionless_space
from isthmus.errors import DataError, ShapeError
from isthmus.tasks.arrays import listing
from isthmus.tasks.columns import check_present
from isthmus.tasks.names import quoted

SPAN = 10.0  # largest over smallest value above which "all" takes a column: a power then differs from a straight line
ALL = "all"


@dataclass(frozen=True, slots=True)
class LogChoice:
    """Which columns get a logarithm.

    Attributes:
        columns: their names, in the order of the data.
        sentence: what is said of it; empty where none does.
    """

    columns: tuple[str, ...]
    sentence: str


def log_columns(
    x: Float64[np.ndarray, "n d_in"],
    names: Sequence[str],
    log: str | Sequence[str] | None,
    *,
    units: ColumnUnits | None = None,
    where: str = "x",
) -> LogChoice:
    """The columns that get a logarithm: "all" that are positive and span more than a decade, or those named.

    Args:
        x: the inputs, finite.
        names: of its columns.
        log: "all", names (a column called all: `["all"]`), or None.
        units: columns with a unit get one in any case, since only their powers can lose it; a constant one as well.
        where: what an error calls the data.

    Raises:
        DataError: a column that is named or has a unit is not positive (with the row, from 1, and the value); one that
            is named is constant or unknown; "all" finds none.
    """
    with_units = [name for name in names if units is not None and not units.is_pure(name)]
    named = _named(x, names, log, where) if log is not None and log != ALL else ()
    for name in (*with_units, *named):
        reason = f" (it is in {units.in_words(name)})" if units is not None and name in with_units else ""
        _check_positive(x[:, list(names).index(name)], name, where, reason)
    wide = [name for place, name in enumerate(names) if log == ALL and _spans_a_decade(x[:, place])]
    chosen = {*with_units, *named, *wide}
    if log == ALL and not chosen:
        raise DataError(f"{where}: no column is positive and spans more than a factor of {SPAN:g}. Name the columns.")
    columns = tuple(name for name in names if name in chosen)
    return LogChoice(columns, _sentence(columns, wide, with_units, is_all=len(columns) == len(names)))


def _named(
    x: Float64[np.ndarray, "n d_in"], names: Sequence[str], log: str | Sequence[str] | None, where: str
) -> tuple[str, ...]:
    wanted = (log,) if isinstance(log, str) else tuple(log or ())
    check_present(list(names), wanted, where)
    for name in wanted:
        values = x[:, list(names).index(name)]
        if bool((values == values[0]).all()):
            raise DataError(
                f"{where}: column {quoted(name)} is {values[0]:g} in every row. Take it out of the logarithms."
            )
    return wanted


def _check_positive(values: Float64[np.ndarray, " n"], name: str, where: str, reason: str) -> None:
    wrong = np.flatnonzero(values <= 0)
    if len(wrong):
        rows = listing((int(row) + 1 for row in wrong), "row")
        raise DataError(
            f"{where}: column {quoted(name)}{reason} holds {values[wrong[0]]:g} in {rows}; a logarithm needs numbers "
            "above 0. Leave the column or these rows out."
        )


def _spans_a_decade(values: Float64[np.ndarray, " n"]) -> bool:
    return bool(values.min() > 0 and values.max() > SPAN * values.min())


def _sentence(columns: Sequence[str], wide: Sequence[str], with_units: Sequence[str], *, is_all: bool) -> str:
    if not columns:
        return ""
    listed = "all input columns" if is_all else listing([quoted(name) for name in columns], "column", shown=20)
    reasons = [
        *(["they are positive and span more than a decade"] if set(wide) - set(with_units) else []),
        *(["they have units" if set(columns) == set(with_units) else "some have units"] if with_units else []),
    ]
    return f"Logarithms were taken of {listed}{': ' if reasons else ''}{', and '.join(reasons)}."


@dataclass(frozen=True, slots=True)
class LogCoordinates:
    """What inputs become: z = t(x) M, where t takes logarithms of some columns, and M drops what has a unit.

        M = N on columns with logarithms (the orthonormal basis of `DimensionlessSpace`; the identity without units),
        the identity on the others;  directions A' of z are the rows A' M^T of t(x)

    Attributes:
        columns: names of the inputs.
        logged: names of those that get a logarithm.
        space: their groups without dimensions; None without units.
    """

    columns: tuple[str, ...]
    logged: tuple[str, ...]
    space: DimensionlessSpace | None = None

    def __post_init__(self) -> None:
        if self.space is not None and self.space.columns != self.logged:
            raise ValueError("LogCoordinates: needs the space of the columns with logarithms, in their order.")

    @property
    def is_logged(self) -> tuple[bool, ...]:
        """For each column whether it gets a logarithm."""
        logged = set(self.logged)
        return tuple(name in logged for name in self.columns)

    @property
    def matrix(self) -> Float64[np.ndarray, "d_in coordinates"]:
        """M, with orthonormal columns: those of the groups first, then the columns without a logarithm."""
        identity, mask = np.eye(len(self.columns)), np.array(self.is_logged, dtype=bool)
        if self.space is None:
            return identity
        groups = np.zeros((len(self.columns), self.space.num_groups))
        groups[mask] = self.space.orthonormal
        return np.hstack([groups, identity[:, ~mask]])

    def transformed(self, x: Float64[np.ndarray, "n d_in"]) -> Float64[np.ndarray, "n d_in"]:
        """t(x): the same columns, some as natural logarithms.

        Raises:
            ShapeError: another number of columns.
            DataError: a column that gets a logarithm is not positive; the line names the row, from 1, and the value.
        """
        if x.ndim != 2 or x.shape[1] != len(self.columns):
            raise ShapeError(f"logarithms: need rows of {len(self.columns)} columns, got shape {x.shape}.")
        found = np.array(x, dtype=np.float64)
        for place in np.flatnonzero(self.is_logged):
            wrong = np.flatnonzero(~(found[:, place] > 0))
            if len(wrong):
                rows = listing((int(row) + 1 for row in wrong), "row")
                raise DataError(
                    f"x: column {quoted(self.columns[place])} holds {found[wrong[0], place]:g} in {rows}; its "
                    "logarithm was taken, which needs numbers above 0. Leave these rows out."
                )
            found[:, place] = np.log(found[:, place])
        return found

    def coordinates(self, x: Float64[np.ndarray, "n d_in"]) -> Float64[np.ndarray, "n coordinates"]:
        """New rows as z = t(x) M; errors as `transformed`."""
        return self.transformed(x) @ self.matrix

    def directions(self, rows: Float64[np.ndarray, "k coordinates"]) -> Float64[np.ndarray, "k d_in"]:
        """Directions of z as rows over t(x): A' M^T; orthonormal rows stay so."""
        return rows @ self.matrix.T


def log_coordinates(columns: Sequence[str], logged: Sequence[str], units: ColumnUnits | None = None) -> LogCoordinates:
    """The coordinates of a search.

    Args:
        columns: names of the inputs.
        logged: names of those that get a logarithm, in the same order (`logarithms.log_columns`).
        units: of all columns, or None.

    Raises:
        DataError: a column has a unit and gets no logarithm, or nothing without a unit can be made of the inputs.
    """
    if units is None:
        return LogCoordinates(tuple(columns), tuple(logged))
    taken = set(logged)
    left = [name for name in columns if name not in taken and not units.is_pure(name)]
    if left:
        raise DataError(
            f"units: column {quoted(left[0])} is in {units.in_words(left[0])} and gets no logarithm, so that its unit "
            "cannot be taken away. Take its logarithm too, or leave the column out."
        )
    found = LogCoordinates(tuple(columns), tuple(logged), dimensionless_space(units, logged))
    if found.matrix.shape[1] == 0:
        listed = listing([f"{quoted(name)} ({units.in_words(name)})" for name in logged], "column", shown=10)
        raise DataError(f"units: no powers of the {listed} are a pure number. Add an input that shares their units.")
    return found
