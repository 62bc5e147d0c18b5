import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.discovery.groups import dimensional_analysis
from isthmus.discovery.groups.column_units import ColumnUnits, units_of_mapping
from isthmus.discovery.groups.dimensional_analysis import dimensionless_space, target_exponents, unit_of_powers
from isthmus.discovery.groups.rational_rows import Row, as_row, rational_rank, same_space
from isthmus.errors import DataError
from tolerances import rounding

# columns of textbooks with their units, and the exponents of the groups that textbooks name
TEXTBOOK = {
    "Reynolds": ("rho U D mu", "kg/m^3 m/s m kg/(m*s)", ["1 1 1 -1"]),
    "Prandtl": ("cp mu k", "m^2*s^-2*K^-1 kg/(m*s) kg*m*s^-3*K^-1", ["1 1 -1"]),
    "Rayleigh": ("g beta dT L nu alpha", "m/s^2 1/K K m m^2/s m^2/s", ["1 1 1 3 -1 -1", "0 0 0 0 1 -1", "0 1 1 0 0 0"]),
    "Weber": ("rho U L sigma", "kg/m^3 m/s m kg/s^2", ["1 2 1 -1"]),
    "pendulum": ("T g l", "s m/s^2 m", ["2 1 -1"]),
    "Colebrook": ("rho U D mu k", "kg/m^3 m/s m kg/(m*s) m", ["1 1 1 -1 0", "0 0 -1 0 1"]),
    "Malkus wheel": ("r g nu", "1/s s^-2 s^-1", ["2 -1 0", "1 0 -1"]),
}  # fmt: skip


def case(name: str) -> tuple[ColumnUnits, list[str], list[Row]]:
    columns, units, groups = TEXTBOOK[name]
    named = units_of_mapping(dict(zip(columns.split(), units.split(), strict=True)), name)
    return named, columns.split(), [as_row(map(int, group.split())) for group in groups]


@pytest.mark.parametrize("name", TEXTBOOK)
def test_groups_are_those_of_textbooks_as_exact_numbers(name: str) -> None:
    units, columns, groups = case(name)
    space = dimensionless_space(units, columns)
    assert space.num_groups == len(groups) == len(columns) - rational_rank(units.matrix(columns))
    assert same_space(space.basis, groups)
    assert all(entry.denominator == 1 for row in space.basis for entry in row)
    assert not any(any(unit_of_powers(units, row, columns)) for row in space.basis)


@pytest.mark.parametrize("name", ["Reynolds", "Prandtl", "Weber", "Colebrook", "pendulum"])
def test_the_simplest_basis_is_the_one_of_the_textbook(name: str) -> None:
    units, columns, groups = case(name)
    found = dimensionless_space(units, columns).basis
    assert {tuple(map(abs, row)) for row in found} == {tuple(map(abs, row)) for row in groups}


def test_the_orthonormal_basis_spans_the_null_space() -> None:
    units, columns, groups = case("Rayleigh")
    found = dimensionless_space(units, columns).orthonormal
    assert found.shape == (6, 3)
    np.testing.assert_allclose(found.T @ found, np.eye(3), atol=rounding(size=6))
    rows = np.array(groups, dtype=float)
    np.testing.assert_allclose(rows @ found @ found.T, rows, atol=rounding(size=60))


invertible = st.lists(st.integers(-3, 3), min_size=9, max_size=9).filter(
    lambda entries: abs(np.linalg.det(np.array(entries).reshape(3, 3))) > 0.5
)


@given(invertible, st.sampled_from(["Reynolds", "Weber", "Colebrook", "pendulum"]))
@settings(max_examples=40)
def test_groups_do_not_change_with_the_base_units(entries: list[int], name: str) -> None:
    units, columns, _ = case(name)
    mixed: dict[str, object] = {}
    for column in columns:
        powers = [units.exponents[column][units.bases.index(b)] if b in units.bases else 0 for b in ("kg", "m", "s")]
        mixed[column] = {f"b{i}": sum(entries[3 * i + j] * powers[j] for j in range(3)) for i in range(3)}
    assert dimensionless_space(units_of_mapping(mixed, ""), columns).basis == dimensionless_space(units, columns).basis


def test_values_of_groups_do_not_change_when_data_are_in_other_units() -> None:
    units, columns, _ = case("Rayleigh")
    logs = np.random.default_rng(0).normal(size=(5, 6))
    shift = np.random.default_rng(1).normal(size=len(units.bases)) @ np.array(units.matrix(columns), dtype=float)
    N = dimensionless_space(units, columns).orthonormal
    np.testing.assert_allclose((logs + shift) @ N, logs @ N, atol=rounding(size=100))
    wrong = np.roll(N, 1, axis=0)  # control: exponents of the wrong columns
    assert np.abs((logs + shift) @ wrong - logs @ wrong).max() > 0.1


def test_a_column_that_nothing_balances_is_idle() -> None:
    units = units_of_mapping({"T": "s", "g": "m/s^2", "l": "m", "mass": "kg", "angle": "1"}, "")
    space = dimensionless_space(units, ["T", "g", "l", "mass", "angle"])
    assert space.idle == ("mass",)
    assert space.basis == (as_row([0, 0, 0, 0, 1]), as_row([2, 1, -1, 0, 0]))


def test_there_may_be_no_group_or_no_unit_at_all() -> None:
    lengths = dimensionless_space(units_of_mapping({"m": "kg", "t": "s"}, ""), ["m", "t"])
    assert (lengths.num_groups, lengths.idle, lengths.orthonormal.shape) == (0, ("m", "t"), (2, 0))
    pure = units_of_mapping({"a": "1", "b": 1}, "")
    assert dimensionless_space(pure, ["a", "b"]).basis == (as_row([1, 0]), as_row([0, 1]))
    assert target_exponents(pure, ["b"], "a") == as_row([0])


def test_the_target_gets_the_simplest_exponents() -> None:
    units = units_of_mapping(
        {"rho": "kg/m^3", "U": "m/s", "D": "m", "mu": "kg/(m s)", "k": "m", "F": "kg m/s^2", "f": "1", "T": "s",
         "g": "m/s^2", "tau": "kg m^-1 s^-2"}, ""
    )  # fmt: skip
    inputs = ["rho", "U", "D", "mu", "k"]
    assert target_exponents(units, inputs, "f") == as_row([0, 0, 0, 0, 0])
    # two columns do: mu^2 / rho
    assert target_exponents(units, inputs, "F") == as_row([-1, 0, 0, 2, 0])
    assert target_exponents(units, ["rho", "U", "D", "k"], "F") == as_row([1, 2, 2, 0])
    assert target_exponents(units, inputs, "tau") == as_row([1, 2, 0, 0, 0])
    assert target_exponents(units, ["g", "D", "k"], "T") == (Fraction(-1, 2), Fraction(1, 2), Fraction(0))
    for target in ("F", "tau"):
        assert unit_of_powers(units, target_exponents(units, inputs, target), inputs) == units.exponents[target]


def test_of_as_many_columns_whole_powers_are_taken() -> None:
    units = units_of_mapping({"D": "m", "A": "m^2", "k": "m"}, "")
    assert target_exponents(units, ["D", "A"], "k") == as_row([1, 0])
    assert target_exponents(units, ["A", "D"], "k") == as_row([0, 1])


def test_fewest_columns_first_is_checked_by_force() -> None:
    generator = np.random.default_rng(3)
    for _ in range(20):
        table = generator.integers(-2, 3, size=(3, 5))
        powers: dict[str, object] = {f"c{j}": {f"b{i}": int(table[i, j]) for i in range(3)} for j in range(5)}
        powers["y"] = {f"b{i}": int(v) for i, v in enumerate(table @ generator.integers(-2, 3, size=5))}
        units = units_of_mapping(powers, "")
        columns = [f"c{j}" for j in range(5)]
        found = target_exponents(units, columns, "y")
        assert unit_of_powers(units, found, columns) == units.exponents["y"]
        used = sum(map(bool, found))
        matrix, wanted = np.array(units.matrix(columns), dtype=float), np.array(units.exponents["y"], dtype=float)
        for places in itertools.combinations(range(5), used - 1) if used else ():
            sub = matrix[:, places]
            best = sub @ np.linalg.lstsq(sub, wanted, rcond=None)[0] if places else 0 * wanted
            assert np.abs(best - wanted).max() > 1e-9


def test_beyond_the_limit_some_solution_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dimensional_analysis, "MOST_SOLUTIONS", 1)
    units = units_of_mapping({"U": "m/s", "D": "m", "T": "s"}, "")
    assert target_exponents(units, ["U", "D"], "T") == as_row([-1, 1])


@pytest.mark.parametrize(
    ("inputs", "line"),
    [
        ({"g": "m/s^2", "l": "m"}, "the target 'y' is in kg m s\\^-2, and no input has the base unit kg in it"),
        ({"l": "m"}, "no input has the base units kg, s in it"),
        ({"U": "m/s", "V": "m^2/s^2", "M": "kg"},
         "the inputs hold m and s in one fixed proportion .* an input that is in s"),
        ({}, "no input has the base units kg, m, s in it"),
    ],
)  # fmt: skip
def test_a_target_that_cannot_be_made_names_the_base_unit(inputs: dict[str, object], line: str) -> None:
    units = units_of_mapping({**inputs, "y": "kg m/s^2"}, "")
    with pytest.raises(DataError, match=line):
        target_exponents(units, list(inputs), "y")
