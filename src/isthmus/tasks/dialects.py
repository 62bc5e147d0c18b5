"""How a text table is written, guessed from its first lines where nobody says it. Reading it whole: `text_tables`.

A guess is made only where the lines prove it, and every one that differs from a plain .csv is said.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

from isthmus.tasks.first_rows import has_title, is_row_of_data, unit_row, units_in_words
from isthmus.tasks.names import quoted
from isthmus.tasks.table_options import TableOptions
from isthmus.tasks.text_lines import BLANKS, rows_of, without_comments
from isthmus.tasks.written_numbers import decimal_sign, is_number

_SEPARATORS = {".csv": ",;\t|", ".tsv": "\t;,|", ".txt": f"\t;,|{BLANKS}", ".dat": f"\t;,|{BLANKS}"}
_TABLES = {".csv", ".tsv"}
TEXT_EXTENSIONS = tuple(_SEPARATORS)
_COMMENTS = "#%"
_SEPARATOR_SAID = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # a first line for Excel
_CALLED = {"\t": "tabs", BLANKS: "blanks"}
Rows = Sequence[tuple[int, list[str]]]  # the line on which each begins, and its cells
Lines = Sequence[tuple[int, str]]  # with their numbers


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a text table is written.

    Attributes:
        separator: between cells; `BLANKS` for any number of them.
        decimal: the sign that is proven or said; None where neither is so, and a cell with a comma is no number.
        comment: lines that begin with it are left out; "" for none.
        width: cells of a row; below the first row a line of so many is no comment. 0: the comment was said.
        names: number of the comment line that holds the names of columns, 0 for none.
        left_out: numbers of other lines that are left out.
        units: cells of the row below the names, where it holds units.
        units_line: its number.
        told: what was guessed, in clauses.
    """

    separator: str
    decimal: str | None = None
    comment: str = ""
    width: int = 0
    names: int = 0
    left_out: frozenset[int] = frozenset()
    units: tuple[str, ...] = ()
    units_line: int = 0
    told: tuple[str, ...] = ()


def dialect_of(lines: Lines, extension: str, options: TableOptions) -> Dialect:
    """What these first lines of a file prove, where `options` does not say it.

    Args:
        lines: the first of the file, with their numbers.
        extension: of the file, which says what separates cells where several could.
        options: what is known.
    """
    left_out, sep = set[int](), options.separator
    if lines and (said := _SEPARATOR_SAID.fullmatch(lines[0][1])):
        left_out.add(lines[0][0])
        sep, lines = sep or said[1], lines[1:]
    candidates = sep or _SEPARATORS[extension]
    comment = _comment(lines, extension, candidates) if options.comment is None else options.comment
    separator = sep or _separator(_unmarked(lines, comment), candidates)
    rows = list(rows_of(without_comments(lines, comment, separator), separator))
    width = len(rows[0][1]) if rows and options.comment is None else 0
    names = _names(lines, rows, comment, separator)
    rows = list(rows_of(without_comments(lines, comment, separator, width), separator))
    told = {
        f"its columns are separated by {_CALLED.get(separator, quoted(separator))}": (
            options.sep is None and separator != _SEPARATORS[extension][0] and len(rows[:1]) and len(rows[0][1]) > 1
        ),
        f"line {names} begins with {quoted(comment)} and holds the names of the columns": names
        and options.comment is None,
    }
    while not names and has_title([cells for _, cells in rows]):
        left_out.add(rows[0][0])
        told[f"line {rows[0][0]} holds a title, {quoted(rows[0][1][0])}, and is left out"] = True
        del rows[0]
    cells = [cell for _, row in rows[not names :] for cell in row]
    decimal, said_of_decimal = _decimal(cells, separator, options)
    units = () if names else unit_row([cells for _, cells in rows], are_said=options.units)
    units_line = rows[1][0] if units else 0
    told |= said_of_decimal | {f"line {units_line} holds {units_in_words(units, are_used=options.units)}": bool(units)}
    clauses = tuple(clause for clause, holds in told.items() if holds)
    left_out |= {units_line} if units else set()
    return Dialect(separator, decimal, comment, width, names, frozenset(left_out), units, units_line, clauses)


def _decimal(cells: Sequence[str], separator: str, options: TableOptions) -> tuple[str | None, dict[str, bool]]:
    """The decimal sign that was said, that these cells prove, or that of earlier rows; and what is said of it."""
    proven, has_points = decimal_sign(cells), any("." in cell and is_number(cell) for cell in cells)
    usual = options.usual_decimal
    if usual == separator:  # what separates cells is no decimal sign beside them
        usual = "." if has_points else None
    decimal = options.decimal or proven or usual
    return decimal, {
        "its numbers have decimal commas": options.decimal is None and decimal == proven == ",",
        "its numbers do not tell their decimal sign: read with commas, as those of earlier rows": (
            options.decimal is None and proven is None and decimal == "," and has_points
        ),
    }


def _comment(lines: Lines, extension: str, candidates: str) -> str:
    """The sign with which the first lines begin, if others do not.

    Alone above rows of data such a line of a .csv is its header, and the sign part of a name.
    """
    filled = [(number, line.lstrip()) for number, line in lines if line.strip()]
    sign = filled[0][1][:1] if filled else ""
    others = _unmarked(filled, sign)
    if not sign or sign not in _COMMENTS or not others:
        return ""
    if extension in _TABLES and others[0] == filled[1]:
        separator = _separator(others, candidates)
        (_, header), *rows = rows_of([filled[0], *others], separator)
        if rows and len(header) == len(rows[0][1]) and is_row_of_data([cells for _, cells in rows]):
            return ""
    return sign


def _unmarked(lines: Lines, comment: str) -> Lines:
    return [(n, line) for n, line in lines if not (comment and line.lstrip().startswith(comment))]


def _separator(lines: Lines, candidates: str) -> str:
    """The candidate that makes rows of equal length, of numbers where it can; the first one where none does."""
    scores = {candidate: _score(lines, candidate) for candidate in candidates}
    best = max(candidates, key=lambda candidate: scores[candidate])  # the first of equals
    return best if scores[best] > 0 else candidates[0]


def _score(lines: Lines, separator: str) -> float:
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


def _as_split(lines: Lines, separator: str) -> Lines:
    return [(n, " ".join(line.split())) for n, line in lines] if separator == BLANKS else lines


def _names(lines: Lines, rows: Rows, comment: str, separator: str) -> int:
    """The number of the comment line right above rows of data that has as many cells as they have, or 0."""
    if not comment or not is_row_of_data([cells for _, cells in rows]):
        return 0
    above = [(n, line.lstrip()[len(comment) :].lstrip()) for n, line in lines if n < rows[0][0] and line.strip()]
    found = list(rows_of(_as_split(above[-1:], separator), separator))
    cells = found[0][1] if found else []
    is_header = len(cells) == len(rows[0][1]) and not any(map(is_number, cells)) and all(c.strip() for c in cells)
    return found[0][0] if is_header else 0
