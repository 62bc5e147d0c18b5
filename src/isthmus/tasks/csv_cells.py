"""Text in .csv tables: cells that a spreadsheet would take for a formula go out quoted, and come back as they were.

A cell or a heading that begins with = + - @, a tab, a carriage return or a line feed gets an apostrophe before it, as
OWASP advises; numbers stay numbers. Reading takes that apostrophe off. Every .csv of ours is written here.
"""

import csv
import re
from collections.abc import Callable, Iterator
from typing import cast

import pandas as pd

from isthmus.errors import DataError
from isthmus.tasks.names import quoted

_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")  # full-width signs are signs to some  # noqa: RUF001
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def guarded(cell: object) -> object:
    """Text that cannot be a formula; whatever is no text stays."""
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def unguarded(cell: object) -> object:
    """What `guarded` was given."""
    if isinstance(cell, str) and cell.startswith("'") and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return cell[1:]
    return cell


def csv_text(table: pd.DataFrame) -> str:
    """A table with its headings as text, without row numbers."""
    found = _mapped(table, guarded)
    texts = [*map(str, found.columns), *(cell for column in _texts(found) for cell in column)]
    # Python before 3.13 leaves a lone carriage return unquoted, at which readers begin another row
    quoting = (
        csv.QUOTE_NONNUMERIC if any(isinstance(cell, str) and "\r" in cell for cell in texts) else csv.QUOTE_MINIMAL
    )
    return found.to_csv(index=False, quoting=quoting)


def _texts(table: pd.DataFrame) -> Iterator[pd.Series]:
    """The columns that may hold text."""
    for place, kind in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            yield cast(pd.Series, table.iloc[:, place])


def as_written(table: pd.DataFrame, where: str = "") -> pd.DataFrame:
    """A table that was read from such text, with its headings and cells as they were given.

    Raises:
        DataError: two texts of a column would become one.
    """
    for column in _texts(table):
        texts = {cell for cell in column.unique() if isinstance(cell, str)}
        if both := sorted(text for text in texts if unguarded(text) != text and unguarded(text) in texts):
            raise DataError(
                f"{where}: column {quoted(column.name)} holds {quoted(both[0])} and {quoted(unguarded(both[0]))}, "
                "which are one text to a spreadsheet. Write it in one way."
            )
    return _mapped(table, unguarded)


def _mapped(table: pd.DataFrame, each: Callable[[object], object]) -> pd.DataFrame:
    found = table.copy(deep=False)
    for place, kind in enumerate(found.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            column = cast(pd.Series, found.iloc[:, place])
            found.isetitem(place, column.map(each, na_action="ignore"))
    found.columns = [each(name) for name in found.columns]
    return found
