"""Text that is quantities as people write them: percent, money, dates. It is refused where categories would be made.

Numbers in other ways of writing, which are read: `written_numbers`.
"""

import re
from collections import Counter

import pandas as pd

from isthmus.tasks.arrays import listing
from isthmus.tasks.cells import BOUND, BOUNDED, TURN, CellProblem
from isthmus.tasks.names import quoted
from isthmus.tasks.written_numbers import is_number

_AMOUNT = r"[+\-\u2212]?[\d.,][\d.,' \u2019\u00a0\u202f\u2009]*"
_SIGNS = "[$€£¥₹₽₩₺₪฿¢]|EUR|USD|GBP|CHF|JPY|CNY"
_DATE = r"[12]\d{3}(?P<by>[-/.])(0?[1-9]|1[0-2])((?P=by)[0-3]?\d)?|[0-3]?\d(?P<of>[-/.])[0-3]?\d(?P=of)(\d\d|[12]\d{3})"
_TIME = r"\d{1,4}:[0-5]\d(:[0-5]\d([.,]\d*)?)?(\s*[AaPp]\.?[Mm]\.?)?"
_PLAIN = "Write plain numbers."
_NUMBERS = "numbers in several ways of writing"
# what they are called -> how a cell of them is written, and what to do
_KINDS = {
    "numbers with a percent sign": (rf"{_AMOUNT}\s*[%‰]", "Write plain numbers, 0.05 or 5 for 5%."),
    "amounts of money": (rf"[+\-\u2212]?({_SIGNS})\s*{_AMOUNT}|{_AMOUNT}\s*({_SIGNS})", _PLAIN),
    "angles, temperatures or lengths": (rf"{_AMOUNT}\s*([°º]\s*[CFKNSEW]?|[\"'′″])", _PLAIN),
    "dates": (rf"({_DATE})([T ]+\d.*)?", TURN),
    "times": (_TIME, TURN),
}
_MEASURED = 3  # different plain numbers, of which bounds beside are no ranges: 0, 1-4, >4
_WRITTEN = {kind: re.compile(pattern) for kind, (pattern, _) in _KINDS.items()}


def quantities_in(column: pd.Series) -> CellProblem | None:
    """What is wrong with a column of text most cells of which are quantities; None where it may be categories.

    Args:
        column: of text.

    Returns:
        What they are, for the kind that most of these cells are of, the first of them and what to do. Plain numbers
        among other quantities count as such: text among numbers is told by `cells`.
    """
    texts = [(row, cell.strip()) for row, cell in enumerate(column.tolist()) if isinstance(cell, str)]
    kinds = [(row, cell, kind) for row, cell in texts if (kind := _kind_of(cell))]
    bounds = [(row, cell) for row, cell in texts if BOUND.fullmatch(cell)]
    plain = [cell for _, cell, kind in kinds if kind == _NUMBERS]
    if len(set(plain)) >= _MEASURED and bounds and 2 * len([*bounds, *plain]) > len(texts):
        return CellProblem(
            f"column {quoted(column.name)} holds bounds of numbers in {listing([row + 1 for row, _ in bounds], 'row')} "
            f"({bounds[0][1][:40]!r})",
            BOUNDED,
            (bounds[0][0],),
        )
    if 2 * len(kinds) <= len(texts):
        return None
    counts = Counter(kind for _, _, kind in kinds if kind != _NUMBERS)
    most = counts.most_common(1)[0][0] if counts else _NUMBERS
    alike = [(row, cell) for row, cell, kind in kinds if kind == most]
    remedy = _KINDS[most][1] if counts else _PLAIN
    return CellProblem(
        f"column {quoted(column.name)} holds {most} in {listing([row + 1 for row, _ in alike], 'row')} "
        f"({alike[0][1][:40]!r})",
        remedy,
        (alike[0][0],),
    )


def _kind_of(cell: str) -> str:
    """What a cell is called; empty where it is no quantity."""
    found = next((kind for kind, pattern in _WRITTEN.items() if pattern.fullmatch(cell)), "")
    return found or (_NUMBERS if is_number(cell) else "")
