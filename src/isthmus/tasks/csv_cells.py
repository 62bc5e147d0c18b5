"""Text in .csv tables: cells that a spreadsheet would take for a formula go out quoted, and come back as they were.

A cell or a heading that begins with = + - @, a tab, a carriage return or a line feed gets an apostrophe before it, as
OWASP advises; numbers stay numbers. Reading takes that apostrophe off. Every .csv of ours is written here.
"""

import re
from collections.abc import Callable
from typing import cast

import pandas as pd

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
    return _mapped(table, guarded).to_csv(index=False)


def as_written(table: pd.DataFrame) -> pd.DataFrame:
    """A table that was read from such text, with its headings and cells as they were given."""
    return _mapped(table, unguarded)


def _mapped(table: pd.DataFrame, each: Callable[[object], object]) -> pd.DataFrame:
    found = table.copy(deep=False)
    for place, kind in enumerate(found.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            column = cast(pd.Series, found.iloc[:, place])
            found.isetitem(place, column.map(each, na_action="ignore"))
    found.columns = [each(name) for name in found.columns]
    return found
