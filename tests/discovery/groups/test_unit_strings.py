import builtins
import sys
from fractions import Fraction

import pytest

from isthmus.discovery.groups import unit_strings
from isthmus.discovery.groups.unit_strings import base_units, checked_exponent, parsed_unit
from isthmus.errors import DataError

HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("text", "exponents"),
    [
        ("kg/m^3", {"kg": 1, "m": -3}),
        ("m**2 s**-1", {"m": 2, "s": -1}),
        ("kg m-1 s-2", {"kg": 1, "m": -1, "s": -2}),
        ("m3/s", {"m": 3, "s": -1}),
        ("kg/(m s)", {"kg": 1, "m": -1, "s": -1}),
        ("kg/m/s", {"kg": 1, "m": -1, "s": -1}),
        ("kg/m*s", {"kg": 1, "m": -1, "s": 1}),
        ("kg m/s", {"kg": 1, "m": 1, "s": -1}),
        ("(m/s)^2/m", {"m": 1, "s": -2}),
        ("m^(1/2)", {"m": HALF}),
        ("m^0.5", {"m": HALF}),
        ("m ^ ( -3 / 2 )", {"m": Fraction(-3, 2)}),
        ("1/s", {"s": -1}),
        ("m²·s⁻¹", {"m": 2, "s": -1}),
        ("m/m", {}),
        ("1", {}),
        ("%", {}),
        (" rad ", {}),
        ("(((K)))", {"K": 1}),
    ],
)
def test_units_are_read_as_exact_exponents(text: str, exponents: dict[str, Fraction]) -> None:
    assert parsed_unit(text, "here") == exponents


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("kg/m s", "a space behind '/'"),
        ("kg/m (s)", "a space behind '/'"),
        ("kg/", "a factor is missing"),
        ("/s", "nothing before it"),
        ("m**", "an exponent is a number"),
        ("m^(1/0)", "an exponent is a number"),
        ("m^x", "an exponent is a number"),
        ("(m", "not closed"),
        ("m)", "cannot go on at"),
        ("m^2^3", "cannot go on at"),
        ("100 m", "only dimensions count"),
        ("m2.5", "only dimensions count"),
        ("m^101", "an exponent beyond"),
        ("m-s", "cannot go on at"),
        ("m;import os", "cannot go on at"),
        ("__import__('os')", "cannot go on at|a factor is missing"),
        ("lambda: 0", "unknown unit|pint|cannot go on"),
        ("m\x00", "cannot go on at"),
        ("m" * 500, "longer than"),
        ("(" * 150 + "m" + ")" * 20, "not closed"),
        ("9" * 60, "cannot go on|a factor is missing|only dimensions"),
    ],
)
def test_what_is_no_unit_is_refused_in_one_line(text: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason) as refusal:
        parsed_unit(text, "file.toml, column 'U'")
    assert str(refusal.value).startswith("file.toml, column 'U': ")
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


def test_powers_of_powers_do_not_run_away() -> None:
    with pytest.raises(DataError, match="up to 100"):
        parsed_unit("(((m^99)^99)^99)^99", "here")


@pytest.mark.parametrize("name", ["degC", "°C", "celsius", "degF"])
def test_units_with_an_offset_are_refused_by_name(name: str) -> None:
    with pytest.raises(DataError, match=f"'{name}' has its zero elsewhere. Turn the column into K"):
        parsed_unit(name, "T")


@pytest.mark.parametrize("name", ["dB", "dBm", "Np", "pH"])
def test_logarithmic_units_are_refused_by_name(name: str) -> None:
    with pytest.raises(DataError, match=f"'{name}' is a logarithm"):
        parsed_unit(name, "L")


def test_without_pint_base_units_are_read_and_others_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pint", None)
    unit_strings.base_units("kg", "here")
    forget()
    with pytest.raises(DataError, match=r"here: the unit 'N' needs the package pint. .*pip install 'isthmus\[units\]'"):
        parsed_unit("N/m", "here")
    assert parsed_unit("kg/s^2", "here") == {"kg": 1, "s": -2}
    forget()


def forget() -> None:
    unit_strings._known_to_pint.cache_clear()  # pyright: ignore[reportPrivateUsage]
    unit_strings._registry.cache_clear()  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("text", "exponents"),
    [
        ("N", {"kg": 1, "m": 1, "s": -2}),
        ("kPa s", {"kg": 1, "m": -1, "s": -1}),
        ("W m-2 K-1", {"kg": 1, "s": -3, "K": -1}),
        ("km/h", {"m": 1, "s": -1}),
        ("delta_degC", {"K": 1}),
        ("ohm", {"kg": 1, "m": 2, "s": -3, "A": -2}),
        ("µm", {"m": 1}),
        ("statC", {"kg": HALF, "m": Fraction(3, 2), "s": -1}),
        ("lm/mol", {"cd": 1, "mol": -1}),
        ("ppm", {}),
    ],
)
def test_pint_knows_the_other_units(text: str, exponents: dict[str, Fraction]) -> None:
    pytest.importorskip("pint", reason="pint is an extra")
    assert parsed_unit(text, "here") == exponents


@pytest.mark.parametrize(
    ("name", "reason"), [("EUR", "unknown unit 'EUR'"), ("degRe", "has an offset"), ("decade", "is a logarithm")]
)
def test_what_pint_cannot_take_is_refused(name: str, reason: str) -> None:
    pytest.importorskip("pint", reason="pint is an extra")
    with pytest.raises(DataError, match=reason):
        parsed_unit(name, "here")


def test_names_reach_pint_as_names_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise AssertionError("evaluated")

    parsed_unit("m", "here")  # pint may evaluate while it is loaded, then no name is known to it yet
    monkeypatch.setattr(builtins, "eval", refuse)
    monkeypatch.setattr(builtins, "exec", refuse)
    for text in ("__class__", "os.system", "m if m else s", "[m]", "f(m)"):
        with pytest.raises(DataError):
            parsed_unit(text, "here")


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (2, Fraction(2)),
        (-0.5, -HALF),
        (1 / 3, Fraction(1, 3)),
        ("1/2", HALF),
        (" -3 / 2 ", Fraction(-3, 2)),
        ("0.25", Fraction(1, 4)),
    ],
)
def test_exponents_are_exact(value: object, exact: Fraction) -> None:
    assert checked_exponent(value, "here", "m") == exact


@pytest.mark.parametrize(
    "value",
    [
        True,
        None,
        [],
        {},
        float("nan"),
        float("inf"),
        0.3333,
        101,
        -101,
        "1/0",
        "1e9",
        "",
        "a",
        "nan",
        10**400,
        "9" * 5000,
    ],
)
def test_what_is_no_exponent_is_refused(value: object) -> None:
    with pytest.raises(DataError, match="here: the exponent of 'm' is .*Correct it"):
        checked_exponent(value, "here", "m")


def test_base_units_are_themselves() -> None:
    assert [base_units(name, "") for name in ("kg", "K")] == [{"kg": 1}, {"K": 1}]
