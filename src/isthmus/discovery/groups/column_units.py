"""Units of columns: a record of base units with exact exponents, made of mappings. Files: `unit_files`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from isthmus.discovery.groups.rational_rows import Row, Rows
from isthmus.discovery.groups.unit_strings import SI, checked_exponent, parsed_unit
from isthmus.errors import DataError
from isthmus.tasks.arrays import listing
from isthmus.tasks.columns import check_present
from isthmus.tasks.names import checked_names, quoted

MOST_BASES = 50


@dataclass(frozen=True, slots=True)
class ColumnUnits:
    """Units of columns, *exact*.

    Attributes:
        bases: names of the base units, those of the SI first.
        exponents: column -> its exponent of each base unit; all zero for a pure number.
    """

    bases: tuple[str, ...]
    exponents: Mapping[str, Row]

    def __post_init__(self) -> None:
        wrong = [name for name, row in self.exponents.items() if len(row) != len(self.bases)]
        if wrong:
            raise ValueError(f"ColumnUnits: needs {len(self.bases)} exponents of column {quoted(wrong[0])}.")

    def matrix(self, columns: Sequence[str]) -> Rows:
        """The unit matrix U: a row for each base unit, an exponent for each of these columns."""
        return tuple(tuple(self.exponents[name][place] for name in columns) for place in range(len(self.bases)))

    def is_pure(self, column: str) -> bool:
        """Whether the column is a pure number."""
        return not any(self.exponents[column])

    def in_words(self, column: str) -> str:
        """`kg m^-3`: the unit of a column; 1 for a pure number."""
        powers = zip(self.bases, self.exponents[column], strict=True)
        return " ".join(_power(base, exponent) for base, exponent in powers if exponent) or "1"

    def check_columns(self, inputs: Sequence[str], targets: Sequence[str], where: str) -> None:
        """Raise a DataError unless there are units for each of these columns, and for no others.

        Args:
            inputs: columns from which groups may be made.
            targets: columns that are to be made dimensionless too.
            where: what an error calls the units.
        """
        wanted = [*inputs, *targets]
        check_present(wanted, list(self.exponents), f"{where}: the data")
        missing = [name for name in wanted if name not in self.exponents]
        if missing:
            listed = listing([quoted(name) for name in missing], "column")
            raise DataError(
                f"{where}: has no units for {listed}. Add them, with the unit 1 for a pure number, "
                "or leave columns out of the data (--leave-out)."
            )


def _power(base: str, exponent: Fraction) -> str:
    if exponent == 1:
        return base
    return f"{base}^{exponent}" if exponent.denominator == 1 else f"{base}^({exponent})"


def units_of_mapping(columns: Mapping[object, object] | Mapping[str, object], where: str) -> ColumnUnits:
    """Units from `{"U": {"m": 1, "s": -1}, "D": "m", "C": 1}`.

    Args:
        columns: column -> a mapping of base unit to exponent, a text such as "m/s", or the number 1 for a pure number.
        where: what an error calls them.

    Raises:
        DataError: names that cannot be, values of other types, exponents that are no fractions, unknown units.
    """
    if not columns:
        raise DataError(f"{where}: holds no columns. Write one line for each column, as U = 'm/s'.")
    powers = {
        name: _powers(unit, f"{where}, column {quoted(name)}")
        for name, unit in zip(checked_names(columns, where), columns.values(), strict=True)
    }
    named = dict.fromkeys(base for row in powers.values() for base in row)
    if len(named) > MOST_BASES:
        raise DataError(f"{where}: has {len(named)} base units, {listing(named, 'unit')}; at most {MOST_BASES} can be.")
    bases = (*(base for base in SI if base in named), *(base for base in named if base not in SI))
    return ColumnUnits(bases, {name: tuple(row.get(b, Fraction(0)) for b in bases) for name, row in powers.items()})


def _powers(unit: object, where: str) -> dict[str, Fraction]:
    if isinstance(unit, str):
        return parsed_unit(unit, where)
    if isinstance(unit, Mapping):
        table = cast(Mapping[object, object], unit)
        bases = checked_names(table, where, what="unit")
        if any(not base.strip() for base in bases):
            raise DataError(f"{where}: a base unit has no name. Name it.")
        found = {base: checked_exponent(value, where, base) for base, value in zip(bases, table.values(), strict=True)}
        return {base: exponent for base, exponent in found.items() if exponent}
    if unit == 1 and isinstance(unit, int) and not isinstance(unit, bool):
        return {}
    raise DataError(
        f'{where}: needs exponents as {{m = 1, s = -1}} or a unit as "m/s", got {type(unit).__name__} '
        f"{quoted(unit)}. Correct it."
    )
