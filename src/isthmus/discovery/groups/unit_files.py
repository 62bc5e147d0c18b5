"""Files of units, TOML and CSV, that somebody else wrote. What stands in a unit: `unit_strings`."""

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from isthmus.discovery.groups.column_units import ColumnUnits, units_of_mapping
from isthmus.errors import DataError
from isthmus.tasks.csv_cells import unguarded
from isthmus.tasks.door import MOST_BYTES, checked_file, read_toml, through_door
from isthmus.tasks.names import checked_names, quoted
from isthmus.tasks.written_units import WrittenUnits

MOST_LINES = 100_000
_STRING_HEADERS = {"unit", "units"}
_NEEDS = "a table of units ([columns], then U = {m = 1, s = -1} or U = 'm/s')"


def units_argument(
    units: object,
    *,
    inputs: Sequence[str],
    targets: Sequence[str] = (),
    where: str = "units",
) -> ColumnUnits:
    """The units of columns, from whatever a caller passes.

    Args:
        units: a `ColumnUnits`, a mapping (`units_of_mapping`), the units that a table tells itself, or the path of a
            file (`read_units`).
        inputs: the columns from which groups are made; each needs a unit.
        targets: columns that need one too.
        where: what an error calls them; a file is called by its path.

    Raises:
        DataError: the file cannot be read, a column has no unit, or a unit no column.
    """
    if isinstance(units, str | os.PathLike):
        found, where = read_units(units), str(Path(units))
    elif isinstance(units, ColumnUnits):
        found = units
    elif isinstance(units, WrittenUnits):
        found, where = units_of_mapping(units.texts, units.where), units.where
    elif isinstance(units, Mapping):
        found = units_of_mapping(cast(Mapping[object, object], units), where)
    else:
        raise DataError(f"{where}: needs a file or a mapping of columns, got {type(units).__name__}.")
    found.check_columns(inputs, targets, where)
    return found


def read_units(path: str | os.PathLike[str]) -> ColumnUnits:
    """The units in a file.

    A .toml file has one table, `[columns]`, with a line for each column: `U = {m = 1, s = -1}`, `U = "m/s"` or `C = 1`
    for a pure number. A .csv or .tsv file has the columns in its first column and either one more, headed `unit`, or
    one for each base unit, with exponents (`1/2`, empty for 0).

    Raises:
        DataError: the file cannot be read, is too long, or what stands in it is no unit; the line says where.
    """
    place = checked_file(path, hint="Check the path, or write the units in a .toml or .csv file.")
    extension = place.suffix.lower()
    if extension == ".toml":
        return units_of_mapping(_toml_columns(place), f"{place}, [columns]")
    if extension in {".csv", ".tsv"}:
        if place.stat().st_size > MOST_BYTES:
            raise DataError(f"{place}: is longer than {MOST_BYTES >> 20} MiB. Give a table of units.")
        return units_of_mapping(
            through_door(place, _csv_columns, kind=extension, remedy="Mend that place."), str(place)
        )
    raise DataError(f"{place}: unknown extension {extension[:20]!r} of units. Use .toml, .csv or .tsv.")


def _toml_columns(place: Path) -> dict[str, object]:
    content = read_toml(place, needs=_NEEDS)
    if odd := [key for key in content if key != "columns"]:
        raise DataError(f"{place}: has {quoted(odd[0])}, but takes [columns] alone. Give {_NEEDS}.")
    columns = content.get("columns")
    if not isinstance(columns, dict):
        raise DataError(f"{place}: has no table [columns]. Give {_NEEDS}.")
    return cast(dict[str, object], columns)


def _csv_columns(place: Path) -> dict[str, object]:
    with place.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter="\t" if place.suffix.lower() == ".tsv" else ",", skipinitialspace=True)
        lines = [(reader.line_num, [cell.strip() for cell in cells]) for cells in _some(reader, place) if any(cells)]
    if not lines or len(lines[0][1]) < 2:
        raise DataError(
            f"{place}: needs two columns or more: the names, then units or exponents. Write column,unit above them."
        )
    header = checked_names(lines[0][1], str(place))
    if not all(header[1:]):
        raise DataError(f"{place}: line 1 has an empty heading. Head the columns with base units, or one with unit.")
    found: dict[str, object] = {}
    for number, cells in lines[1:]:
        if len(cells) != len(header):
            raise DataError(f"{place}: line {number} has {len(cells)} cells, the first line {len(header)}. Mend it.")
        name = str(unguarded(cells[0]))
        if name in found:
            raise DataError(f"{place}: line {number}: column {quoted(name)} stands there twice. Remove one.")
        is_text = len(header) == 2 and header[1].lower() in _STRING_HEADERS
        unit = str(unguarded(cells[1])) if is_text else _exponents(header[1:], cells[1:])
        found[name] = unit
    return found


def _exponents(bases: Sequence[str], cells: Sequence[str]) -> dict[str, object]:
    return {base: cell for base, cell in zip(bases, cells, strict=True) if cell}


def _some(reader: Iterator[list[str]], place: Path) -> Iterator[list[str]]:
    for count, cells in enumerate(reader):
        if count > MOST_LINES:
            raise DataError(f"{place}: has more than {MOST_LINES} lines. Give a table of units.")
        yield cells
