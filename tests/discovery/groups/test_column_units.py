from fractions import Fraction

import pytest

from isthmus.discovery.groups.column_units import MOST_BASES, ColumnUnits, units_of_mapping
from isthmus.errors import DataError


def test_units_come_from_tables_texts_and_the_number_one() -> None:
    units = units_of_mapping(
        {"U": {"s": -1, "m": 1.0}, "rho": "kg/m^3", "C": 1, "a": {}, "price": {"EUR": "1/2"}}, "here"
    )
    assert units.bases == ("kg", "m", "s", "EUR")
    assert units.exponents["U"] == (0, 1, -1, 0)
    assert units.exponents["price"] == (0, 0, 0, Fraction(1, 2))
    assert units.matrix(["rho", "U"]) == ((1, 0), (-3, 1), (0, -1), (0, 0))
    assert [units.is_pure(name) for name in ("C", "a", "U")] == [True, True, False]
    assert [units.in_words(name) for name in ("rho", "C", "price")] == ["kg m^-3", "1", "EUR^(1/2)"]


def test_a_record_checks_itself() -> None:
    with pytest.raises(ValueError, match="needs 1 exponents of column 'U'"):
        ColumnUnits(("m",), {"U": (Fraction(1), Fraction(0))})


@pytest.mark.parametrize(
    ("mapping", "line"),
    [
        ({}, "here: holds no columns"),
        ({"U": None}, "here, column 'U': needs exponents as {m = 1, s = -1} or a unit as \"m/s\", got NoneType"),
        ({"U": 2}, "got int '2'"),
        ({"U": True}, "got bool"),
        ({"U": [1, -1]}, "got list"),
        ({"U": float("nan")}, "got float"),
        ({"U": {"m": [1]}}, "the exponent of 'm' is"),
        ({"U": {" ": 1}}, "here, column 'U': a base unit has no name"),
        ({"U": {"m\x01": 1}}, "holds U\\+0001"),
        ({"U\x00": "m"}, "holds U\\+0000"),
        ({"U": {f"b{i}": 1 for i in range(MOST_BASES + 1)}}, f"at most {MOST_BASES} can be"),
    ],
)
def test_what_is_no_unit_of_a_column_is_refused(mapping: dict[str, object], line: str) -> None:
    with pytest.raises(DataError, match=line) as refusal:
        units_of_mapping(mapping, "here")
    assert "\n" not in str(refusal.value)


def test_columns_and_units_must_fit() -> None:
    units = units_of_mapping({"speed": "m/s", "length": "m"}, "units.toml")
    units.check_columns(["speed"], ["length"], "units.toml")
    with pytest.raises(
        DataError, match="units.toml: the data: has no column 'length'. Did you mean 'lengths'"
    ):  # what has a unit and is no column
        units.check_columns(["speed", "lengths"], [], "units.toml")
    with pytest.raises(DataError, match="units.toml: has no units for column 'mass'. Add them, with the unit 1"):
        units.check_columns(["speed", "length"], ["mass"], "units.toml")
