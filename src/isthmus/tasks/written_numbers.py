"""Numbers as people write them: decimal commas, separated thousands. Which of them a file means: `dialects`."""

import re
from collections.abc import Iterable
from functools import cache

import pandas as pd

_EXPONENT = r"([eE][+-]?\d+)?"
_BLANKS = " '\u2019\u00a0\u202f\u2009"  # between thousands, whatever the decimal sign: Swiss, French, SI
_OTHER = {".": ",", ",": "."}


@cache
def _written(decimal: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Numbers with this decimal sign in them, and whole ones whose thousands are separated by the other."""
    point, thousands = re.escape(decimal), f"[{re.escape(_OTHER[decimal] + _BLANKS)}]"
    grouped = rf"[1-9]\d{{0,2}}(?P<sign>{thousands})\d{{3}}(?:(?P=sign)\d{{3}})*"
    fraction = rf"\s*[+-]?(?=[^\d]?\d)(?:{grouped}|\d*){point}\d*{_EXPONENT}\s*"
    whole = rf"\s*[+-]?{grouped}\s*"
    return re.compile(fraction), re.compile(whole)


def is_number(cell: str) -> bool:
    """Whether a cell is a number in either way of writing."""
    return _is_plain(cell) or any(pattern.fullmatch(cell) for sign in _OTHER for pattern in _written(sign))


def _is_plain(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def decimal_sign(cells: Iterable[str]) -> str | None:
    """The decimal sign that these cells prove; None where they prove none, or both.

    "0,5" and "1.234,5" prove a comma; "1,234" could be either, and proves nothing; "1,234,567" proves that the comma
    stands between thousands. A point with three digits behind it proves nothing beside commas.
    """
    proven = {sign for cell in cells if ("," in cell or "." in cell) for sign in _proofs(cell)}
    return proven.pop() if len(proven) == 1 else None


def _proofs(cell: str) -> Iterable[str]:
    for sign, other in _OTHER.items():
        fraction, whole = _written(sign)
        is_fraction = fraction.fullmatch(cell) and not _written(other)[1].fullmatch(cell)
        if is_fraction or (cell.count(other) > 1 and whole.fullmatch(cell)):
            yield sign


def plain_numbers(column: pd.Series, decimal: str) -> pd.Series:
    """A column of text in which numbers of this way of writing are written as Python does; all else as it is."""
    return column.map(lambda cell: _plain(cell, decimal), na_action="ignore")


def _plain(cell: object, decimal: str) -> object:
    if not isinstance(cell, str):
        return cell
    fraction, whole = _written(decimal)
    found = fraction.fullmatch(cell) or whole.fullmatch(cell)
    if found is None:
        return cell
    return cell.replace(found["sign"] or "\0", "").replace(decimal, ".").strip()
