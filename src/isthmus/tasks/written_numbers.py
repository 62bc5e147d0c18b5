"""Numbers as people write them: decimal commas, separated thousands. Which of them a file means: `dialects`."""

import re
from collections.abc import Iterable
from functools import cache

import numpy as np
import pandas as pd

_EXPONENT = r"([eE][+-]?\d+)?"
_BLANKS = " '\u2019\u00a0\u202f\u2009"  # between thousands, whatever the decimal sign: Swiss, French, SI
_OTHER = {".": ",", ",": "."}
_MINUS = "\u2212"  # as it is typeset
_APART = re.compile(rf"\s*[+-]?[1-9]\d{{0,2}}(?P<sign>[{_BLANKS}])\d{{3}}(?:(?P=sign)\d{{3}})*\s*")
_THOUSAND = 1000
_GROUPED = re.compile(r"\s*[+-]?[1-9]\d{0,2}(\.\d{3})+\s*")
_BELOW_THOUSAND = re.compile(r"\s*[+-]?(0|[1-9]\d{0,2})\s*")
_NO_NUMBER = re.compile(r"\s*[+-]?(nan|inf|infinity)\s*", re.IGNORECASE)


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
    text = cell.replace(_MINUS, "-")
    return _is_plain(text) or any(pattern.fullmatch(text) for sign in _OTHER for pattern in _written(sign))


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
    proven = {s for cell in cells if ("," in cell or "." in cell) for s in _proofs(cell.replace(_MINUS, "-"))}
    return proven.pop() if len(proven) == 1 else None


def _proofs(cell: str) -> Iterable[str]:
    for sign, other in _OTHER.items():
        fraction, whole = _written(sign)
        is_fraction = fraction.fullmatch(cell) and not _written(other)[1].fullmatch(cell)
        if is_fraction or (cell.count(other) > 1 and whole.fullmatch(cell)):
            yield sign


class MaybeThousands:
    """Whether points in the cells of one column, as they are written, could stand between thousands as well.

    So it is where every cell with a point ends in groups of three digits, "1.234", and all others are whole numbers
    below 1,000: what is written of numbers with decimals has other lengths, a zero before the point, or a point in all.
    """

    def __init__(self) -> None:
        self._seen = {"grouped": False, "whole": False}
        self.is_ruled_out = False

    def look(self, cell: str) -> None:
        """Take one more cell into account; what is no number tells nothing."""
        kind = "grouped" if _GROUPED.fullmatch(cell) else "whole" if _BELOW_THOUSAND.fullmatch(cell) else ""
        if kind:
            self._seen[kind] = True
        elif is_number(cell) and not _NO_NUMBER.fullmatch(cell):
            self.is_ruled_out = True

    @property
    def holds(self) -> bool:
        """Of the cells so far."""
        return not self.is_ruled_out and all(self._seen.values())


def maybe_thousands(values: np.ndarray) -> bool:
    """Whether numbers that were read with decimal points could have been written so, as far as their values tell."""
    found = np.abs(values[~np.isnan(values)])
    if not ((found < _THOUSAND) & ((found >= 1) | (found == 0))).all():
        return False
    return bool((np.round(found * _THOUSAND) / _THOUSAND == found).all())


def is_grouped(cell: str) -> bool:
    """Whether a cell is a whole number with points between thousands, or one with three decimals."""
    return _GROUPED.fullmatch(cell) is not None


def plain_numbers(column: pd.Series, decimal: str | None) -> pd.Series:
    """A column of text in which numbers of this way of writing are written as Python does; all else as it is.

    None: no sign is proven, and only blanks or apostrophes between thousands and a typeset minus are taken away.
    """
    return column.map(lambda cell: plain_number(cell, decimal), na_action="ignore")


def plain_number(cell: object, decimal: str | None) -> object:
    """One such cell."""
    if not isinstance(cell, str):
        return cell
    text = cell.replace(_MINUS, "-")
    if text != cell and _is_plain(text) and not (decimal == "," and "." in text):
        return text.strip()
    found = next(filter(None, (p.fullmatch(text) for p in (_written(decimal) if decimal else (_APART,)))), None)
    if found is None:
        return cell
    return text.replace(found["sign"] or "\0", "").replace(decimal or ".", ".").strip()
