"""The lines of a text file, packed or not: its encoding, its comments left out, its cells. What they mean: `dialects`.

Whether it is text, and has a place in memory, is seen before anything is kept of it.
"""

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from isthmus.errors import DataError
from isthmus.tasks.memory import check_memory

BLANKS = " "  # as a separator: any number of blanks and tabs
PACKED = ".gz"
_SAMPLE = 2**20
_SIGNS = (b",", b"\t", b"\n", b";")  # that begin another cell
_BLANKS = re.compile(r"[ \t]+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
Numbered = Iterable[tuple[int, str]]  # lines with their numbers in the file, from 1


@dataclass(frozen=True, slots=True)
class TextLines:
    """The lines of a file that are read, in the way that they are.

    Attributes:
        path: the file, packed by gzip where its name ends so.
        encoding: as Python calls it.
        separator: of cells.
        comment: lines that begin with it are left out; "" for none.
        width: cells of a row; below the first row a line of so many is one, whatever it begins with. 0: none is.
        names: number of the line that loses its sign of a comment, 0 for none.
        left_out: numbers of other lines that are left out.
    """

    path: Path
    encoding: str
    separator: str = ","
    comment: str = ""
    width: int = 0
    names: int = 0
    left_out: frozenset[int] = frozenset()

    def __iter__(self) -> Iterator[tuple[int, str]]:
        with _opened(self.path) as packed, io.TextIOWrapper(packed, encoding=self.encoding, newline="") as stream:
            lines = ((number, line) for number, line in enumerate(stream, start=1) if number not in self.left_out)
            for number, line in without_comments(lines, self.comment, self.separator, self.width, names=self.names):
                yield number, _with_single_blanks(line) if self.separator == BLANKS else line

    @property
    def num_comments(self) -> int:
        """How many lines are left out as comments."""
        with _opened(self.path) as packed, io.TextIOWrapper(packed, encoding=self.encoding, newline="") as stream:
            return sum(1 for _ in stream) - len(self.left_out) - sum(1 for _ in self)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The number of the line on which each row begins, and its cells."""
        return rows_of(self, self.separator)

    def open(self) -> io.StringIO | io.TextIOWrapper:
        """The text of these lines, for a reader of tables."""
        if self.comment or self.left_out or self.separator == BLANKS:
            return io.StringIO("".join(line for _, line in self), newline="")
        return io.TextIOWrapper(_opened(self.path), encoding=self.encoding, newline="")


def rows_of(lines: Numbered, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The number of the line on which each row of a table begins, and its cells, without blank lines."""
    begun: list[int] = []

    def noted() -> Iterator[str]:
        for number, line in lines:
            begun.append(number)
            yield line

    for cells in csv.reader(noted(), delimiter=separator, skipinitialspace=True):
        if cells and (len(cells) > 1 or cells[0].strip()):
            yield begun[0], cells
        begun.clear()


def without_comments(
    lines: Numbered, comment: str, separator: str, width: int = 0, *, names: int = 0
) -> Iterator[tuple[int, str]]:
    """The lines that are none; that with the names of columns loses its sign.

    Args:
        lines: with their numbers.
        comment: with which they begin; "" for none.
        separator: of cells.
        width: cells of a row: below the first row a line of so many is no comment; 0: whatever begins so is one.
        names: the number of the line with names, 0 for none.
    """
    inside, is_below = False, False  # a cell in quotes that goes on from line to line; the first row
    for number, line in lines if comment else ():
        is_marked = not inside and line.lstrip().startswith(comment)
        if number == names:
            is_below = True
            yield number, line.lstrip()[len(comment) :].lstrip()
        elif not is_marked or (is_below and width and _num_cells(line, separator) == width):
            inside = _ends_inside(line, separator, inside)
            is_below |= bool(line.strip())
            yield number, line
    if not comment:
        yield from lines


def _num_cells(line: str, separator: str) -> int:
    written = _with_single_blanks(line) if separator == BLANKS else line
    return len(next(csv.reader([written], delimiter=separator, skipinitialspace=True), []))


def _ends_inside(line: str, separator: str, inside: bool) -> bool:
    """Whether a cell in quotes goes on behind this line: quotes within other cells are signs as any."""
    place = 0
    while '"' in line[place:]:
        if not inside:
            start = line[place:].lstrip(" ")
            inside = start.startswith('"')
            place = len(line) - len(start) + inside
        if inside:
            place = line.find('"', place) + 1
            if not place:
                return True
            if line[place : place + 1] == '"':  # a pair of them stands for one
                place += 1
                continue
            inside = False
        place = line.find(separator, place) + 1
        if not place:
            return False
    return inside


def _with_single_blanks(line: str) -> str:
    return _BLANKS.sub(BLANKS, line.strip()) + "\n"


def _opened(path: Path) -> io.BufferedReader | gzip.GzipFile:
    return gzip.open(path, "rb") if path.suffix.lower() == PACKED else path.open("rb")


def checked_encoding(path: Path, said: str | None) -> tuple[str, str]:
    """The encoding of a file, and what is said of it: UTF-8 unless it begins with the mark of another, or is none.

    Raises:
        DataError: it is no text of that encoding, or its cells have no place in memory.
    """
    _check_size(path)
    with _opened(path) as stream:
        start = stream.read(4)
    marked = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
    if said is None and marked == "utf-16":
        return _checked(path, "utf-16"), "is UTF-16"
    if said is not None:
        name = codecs.lookup(said).name
        return _checked(path, "utf-8-sig" if name == "utf-8" else name), ""
    try:
        return _checked(path, "utf-8-sig"), ""
    except UnicodeDecodeError:
        pass
    try:
        return _checked(path, "cp1252"), "is not UTF-8, and was read as Windows-1252"
    except UnicodeDecodeError:
        raise DataError(
            f"{path}: cannot be read as text (it is neither UTF-8 nor Windows-1252). Say its encoding, or save it as "
            "UTF-8."
        ) from None


def _checked(path: Path, encoding: str) -> str:
    """The encoding, after a look at all of the file."""
    decoder, place = codecs.getincrementaldecoder(encoding)(), 0
    with _opened(path) as stream:
        while block := stream.read(_SAMPLE):
            wide = encoding.startswith(("utf-16", "utf-32"))
            # pandas would end a cell at a NUL, and change its number
            if not wide and (nul := block.find(b"\0")) >= 0:
                raise DataError(f"{path}: holds a NUL byte at byte {place + nul + 1}: is no text. Save it as UTF-8.")
            text = decoder.decode(block)
            if wide and "\0" in text:
                raise DataError(f"{path}: holds a NUL character: is no text. Save it as UTF-8.")
            if encoding == "cp1252" and _CONTROL.search(text):
                raise UnicodeDecodeError(encoding, block[:1], 0, 1, "a control character")
            place += len(block)
    decoder.decode(b"", final=True)
    return encoding


def _check_size(path: Path) -> None:
    """Refuse more cells than memory has room for: judged by three samples, counted where the file is packed."""
    size = path.stat().st_size
    if path.suffix.lower() != PACKED:
        places = sorted({0, max(0, size // 2 - _SAMPLE), max(0, size - _SAMPLE)})
        with path.open("rb") as stream:
            cells = 0.0
            for place in places:
                stream.seek(place)
                sample = stream.read(_SAMPLE)
                cells = max(cells, size * (sum(map(sample.count, _SIGNS)) + 1) / max(1, len(sample)))
        check_memory(size + 16 * cells, str(path))
        return
    size, cells = 0, 0
    with _opened(path) as stream:
        while block := stream.read(_SAMPLE):
            size, cells = size + len(block), cells + sum(map(block.count, _SIGNS))
            check_memory(size + 16 * cells, str(path))
