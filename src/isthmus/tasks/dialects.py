"""How a text table is written, guessed from its first lines where nobody says it. Reading it whole: `text_tables`.

A guess is made only where the lines prove it, and every one that differs from a plain .csv is said.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from isthmus.tasks.names import quoted
from isthmus.tasks.table_options import TableOptions
from isthmus.tasks.text_lines import BLANKS, rows_of
from isthmus.tasks.written_numbers import decimal_sign, is_number

_SEPARATORS = {".csv": ",;\t|", ".tsv": "\t;,|", ".txt": f"\t;,|{BLANKS}", ".dat": f"\t;,|{BLANKS}"}
_TABLES = {".csv", ".tsv"}
TEXT_EXTENSIONS = tuple(_SEPARATORS)
_COMMENTS = "#%"
_CALLED = {"\t": "tabs", BLANKS: "blanks"}
_PURE_NUMBER = "1"
_NO_VALUE = {"", "-", "?", "na", "n/a", "nan", "null", "none", "<na>", "#n/a"}
Rows = Sequence[tuple[int, list[str]]]  # the line on which each begins, and its cells


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a text table is written.

    Attributes:
        separator: between cells; `BLANKS` for any number of them.
        decimal: the sign that is proven or said; None where neither is so, and a cell with a comma is no number.
        comment: lines that begin with it are left out; "" for none.
        names: number of the comment line that holds the names of columns, 0 for none.
        left_out: numbers of other lines that are left out.
        units: cells of the row below the names, where it holds units.
        told: what was guessed, in clauses.
    """

    separator: str
    decimal: str | None = None
    comment: str = ""
    names: int = 0
    left_out: frozenset[int] = frozenset()
    units: tuple[str, ...] = ()
    told: tuple[str, ...] = ()


def dialect_of(lines: Sequence[tuple[int, str]], extension: str, options: TableOptions) -> Dialect:
    """What these first lines of a file prove, where `options` does not say it.

    Args:
        lines: the first of the file, with their numbers.
        extension: of the file, which says what separates cells where several could.
        options: what is known.
    """
    comment = _comment(lines, extension) if options.comment is None else options.comment
    content = [(n, line) for n, line in lines if not (comment and line.lstrip().startswith(comment))]
    separator = options.separator or _separator(content, _SEPARATORS[extension])
    rows = list(rows_of(content, separator))
    names = _names(lines, rows, comment, separator)
    first = 0 if names else 1
    decimal = options.decimal or decimal_sign(cell for _, cells in rows[first:] for cell in cells)
    units = () if names else unit_row([cells for _, cells in rows], are_said=options.units)
    left_out = frozenset({rows[1][0]}) if units else frozenset[int]()
    told = {
        f"its columns are separated by {_CALLED.get(separator, quoted(separator))}": (
            options.sep is None and separator != _SEPARATORS[extension][0] and len(rows[:1]) and len(rows[0][1]) > 1
        ),
        f"line {names} begins with {quoted(comment)} and holds the names of the columns": names
        and options.comment is None,
        f"lines that begin with {quoted(comment)} are comments": (
            options.comment is None and len(lines) - len(content) > bool(names)
        ),
        "its numbers have decimal commas": options.decimal is None and decimal == ",",
        f"line {min(left_out, default=0)} holds {units_in_words(units, are_used=options.units)}": units,
    }
    return Dialect(
        separator, decimal, comment, names, left_out, units, tuple(clause for clause, holds in told.items() if holds)
    )


def _comment(lines: Sequence[tuple[int, str]], extension: str) -> str:
    """The sign with which the first lines begin, if others do not.

    Alone above numbers such a line of a .csv is its header, and the sign part of a name.
    """
    filled = [(number, line.lstrip()) for number, line in lines if line.strip()]
    sign = filled[0][1][:1] if filled else ""
    if not sign or sign not in _COMMENTS or all(line.startswith(sign) for _, line in filled):
        return ""
    if extension in _TABLES and not filled[1][1].startswith(sign):
        (_, header), *rows = rows_of(filled[:2], _SEPARATORS[extension][0])
        if rows and len(header) == len(rows[0][1]) and any(map(is_number, rows[0][1])):
            return ""
    return sign


def _separator(lines: Sequence[tuple[int, str]], candidates: str) -> str:
    """The candidate that makes rows of equal length, of numbers where it can; the first one where none does."""
    scores = {candidate: _score(lines, candidate) for candidate in candidates}
    best = max(candidates, key=lambda candidate: scores[candidate])  # the first of equals
    return best if scores[best] > 0 else candidates[0]


def _score(lines: Sequence[tuple[int, str]], separator: str) -> float:
    try:
        rows = [cells for _, cells in rows_of(_as_split(lines, separator), separator)]
    except csv.Error:
        return 0.0
    if not rows or len(rows[0]) < 2:
        return 0.0
    others = rows[1:]
    alike = sum(len(cells) == len(rows[0]) for cells in others) / len(others) if others else 1.0
    filled = [cell for cells in others for cell in cells if cell.strip()]
    numbers = sum(map(is_number, filled)) / len(filled) if filled else 0.0
    return alike * (1 + numbers) if alike >= 0.5 else 0.0


def _as_split(lines: Sequence[tuple[int, str]], separator: str) -> Sequence[tuple[int, str]]:
    return [(n, " ".join(line.split())) for n, line in lines] if separator == BLANKS else lines


def _names(lines: Sequence[tuple[int, str]], rows: Rows, comment: str, separator: str) -> int:
    """The number of the comment line right above rows of numbers that has as many cells as they have, or 0."""
    if not comment or not rows or not all(map(is_number, rows[0][1])):
        return 0
    above = [(n, line.lstrip()[len(comment) :].lstrip()) for n, line in lines if n < rows[0][0] and line.strip()]
    found = list(rows_of(_as_split(above[-1:], separator), separator))
    cells = found[0][1] if found else []
    is_header = len(cells) == len(rows[0][1]) and not any(map(is_number, cells)) and all(c.strip() for c in cells)
    return found[0][0] if is_header else 0


def unit_row(rows: Sequence[Sequence[str]], *, are_said: bool = False) -> tuple[str, ...]:
    """The cells of a second row that is text above numbers; none where it is not so.

    A 1 among them is the unit of a pure number; any other number is a value.

    Args:
        rows: cells of the first rows, the names on top.
        are_said: the table is known to hold units, so that text in one column is enough; else in half of them.
    """
    if len(rows) < (3 if are_said else 4) or len(rows[1]) != len(rows[0]):
        return ()
    if any(is_number(cell) and cell.strip() != _PURE_NUMBER for cell in rows[1]):
        return ()
    above = 0
    for place, unit in enumerate(rows[1]):
        below = [
            cells[place] for cells in rows[2:] if place < len(cells) and cells[place].strip().lower() not in _NO_VALUE
        ]
        if below and all(map(is_number, below)):
            above += unit.strip().lower() not in {*_NO_VALUE, _PURE_NUMBER}
    return tuple(rows[1]) if (above if are_said else 2 * above >= len(rows[1])) else ()


def units_in_words(units: Sequence[str], *, are_used: bool) -> str:
    """What is said of such a row."""
    listed = ", ".join(repr(cell[:20]) for cell in units[:5]) + (", ..." if are_used and len(units) > 5 else "")
    if are_used:
        return f"the units of the columns ({listed})"
    return f"text above numbers ({listed}), units perhaps, and is left out"
