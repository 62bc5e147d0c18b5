"""Units that a table tells itself: in the row below its header, or in brackets behind its names. Meaning: `discovery`.

Files of units: `discovery.groups.unit_files`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from isthmus.errors import DataError
from isthmus.tasks.input_columns import InputColumn, Made

_IN_BRACKETS = re.compile(r".*\S\s*\[([^\[\]]*)\]\s*|.*\S\s+\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*", re.DOTALL)
_AROUND = re.compile(r"\[(.*)\]|\((.*)\)", re.DOTALL)
_PURE = {"-", "–", "—", "1"}  # noqa: RUF001 - what is written for a pure number


@dataclass(frozen=True, slots=True)
class WrittenUnits:
    """Units as a table has them.

    Attributes:
        where: the file and the line, for errors.
        texts: column -> unit as it is written, `1` for a pure number; columns without one are not in it.
    """

    where: str
    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def of_columns(self, inputs: Sequence[InputColumn], targets: Iterable[str]) -> "WrittenUnits":
        """The units of what is trained on; the 0/1 columns of text are pure numbers."""
        pure = {column.name: "1" for column in inputs if column.made is not Made.NUMERIC}
        known = {**self.texts, **pure}
        wanted = [*(column.name for column in inputs), *targets]
        return WrittenUnits(self.where, {name: known[name] for name in wanted if name in known})


def units_below(names: Sequence[str], cells: Sequence[str], where: str) -> WrittenUnits:
    """The units in a row below the names, cell by cell; an empty cell is none."""
    units = dict(zip(names, map(_plain, cells), strict=True))
    return WrittenUnits(where, {name: unit for name, unit in units.items() if unit})


def units_in_names(names: Sequence[str], where: str) -> WrittenUnits:
    """The units in brackets at the end of names, `speed [m/s]` or `speed (m/s)`; the names stay as they are.

    Raises:
        DataError: no name has one.
    """
    found = {name: _plain(match[1] or match[2] or "") for name in names if (match := _IN_BRACKETS.fullmatch(name))}
    texts = {name: unit for name, unit in found.items() if unit}
    if not texts:
        raise DataError(
            f"{where}: has no units, neither text in the row below its header nor brackets in its names, as in "
            "speed [m/s]. Write them there, or give a file of units."
        )
    return WrittenUnits(f"{where}, names of its columns", texts)


def _plain(cell: str) -> str:
    text = cell.strip()
    if match := _AROUND.fullmatch(text):
        text = (match[1] or match[2] or "").strip()
    return "1" if text in _PURE else text
