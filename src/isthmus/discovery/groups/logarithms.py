"""Which columns get a logarithm, and what is said of it. What the logarithms are then made of: `log_coordinates`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from isthmus.discovery.groups.column_units import ColumnUnits
from isthmus.errors import DataError
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
