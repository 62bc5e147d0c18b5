"""Units as they are written, `kg/m^3`, `m s-1`, as exponents of base units. Tables of exponents: `unit_files`.

The text is taken apart here and never evaluated; `pint` is asked for one name at a time, and for names other than those
of the base units alone. Only dimensions count, so that km and m are the same.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from importlib import import_module

from isthmus.errors import DataError
from isthmus.tasks.door import in_one_line
from isthmus.tasks.names import quoted

SI = ("kg", "m", "s", "A", "K", "mol", "cd")
LARGEST_EXPONENT = 100
_LONGEST = 200
_DIMENSIONS = {
    "[mass]": "kg", "[length]": "m", "[time]": "s", "[current]": "A", "[temperature]": "K", "[substance]": "mol",
    "[luminosity]": "cd",
}  # fmt: skip
_PURE = {"1", "%", "rad"}
# pint reads pH as picohenry; a column of that name holds a logarithm
_OFFSET = {"degC", "degF", "°C", "°F", "℃", "℉", "celsius", "Celsius", "fahrenheit", "Fahrenheit", "degree_Celsius"}  # noqa: RUF001
_LOGARITHMIC = {"dB", "dBm", "dBu", "decibel", "bel", "Np", "neper", "octave", "decade", "pH"}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUPERSCRIPT = re.compile("[⁻⁰¹²³⁴-⁹]+")
_TOKEN = re.compile(
    r"\s*(?:(?P<power>\*\*|\^)|(?P<times>[*·×⋅])|(?P<over>/)|(?P<open>\()|(?P<close>\))"  # noqa: RUF001
    r"|(?P<name>%|[^\W\d_]+(?:_[^\W\d_]+)*|°[A-Za-z]+)(?P<raised>[+-]?\d{1,4}(?![\d.]))?"
    r"|(?P<number>[+-]?\d{1,6}(?:\.\d{1,6})?))"
)
_FRACTION = re.compile(r"\s*([+-]?\d{1,4}(?:\.\d{1,6})?)\s*(?:/\s*(0*[1-9]\d{0,3})\s*)?")
_EXPONENT = re.compile(
    r"\s*(?:([+-]?\d{1,4}(?:\.\d{1,6})?)|\(\s*([+-]?\d{1,4}(?:\.\d{1,6})?)\s*(?:/\s*(\d{1,4})\s*)?\))"
)


def parsed_unit(text: str, where: str) -> dict[str, Fraction]:
    """Exponents of the base units in a text.

    `kg/m^3`, `m**2 s**-1`, `W m-2 K-1`, `m^(1/2)`, `1`. A product by a space behind a division is refused, since some
    read `J/kg K` as J K / kg.

    Args:
        text: names of units with exponents, `*`, `/`, spaces and parentheses; no numbers but 1.
        where: what an error calls its place, with the column.

    Returns:
        Base unit -> exponent, without zeros; empty for a pure number.

    Raises:
        DataError: it cannot be read, no such unit, a unit with an offset or a logarithm, or pint is missing for a name
            that is no base unit.
    """
    if len(text) > _LONGEST:
        raise DataError(f"{where}: the unit {quoted(text)} is longer than {_LONGEST} characters. Write it shorter.")
    reader = _Reader(_SUPERSCRIPT.sub(lambda found: "^" + found.group().translate(_SUPERSCRIPTS), text), text, where)
    found = reader.product(1)
    if reader.rest.strip():
        raise reader.refusal(f"cannot go on at {quoted(reader.rest.strip()[:20])}")
    return {name: checked_exponent(exponent, where, name) for name, exponent in found.items() if exponent}


def checked_exponent(value: object, where: str, base: str) -> Fraction:
    """An exponent as an exact fraction: a whole number, a fraction as text (`"1/2"`), or a float that is a simple one.

    Raises:
        DataError: anything else, or beyond `LARGEST_EXPONENT` above or below the line.
    """
    found: Fraction | None = None
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        found = Fraction(value)
    elif isinstance(value, float) and math.isfinite(value):
        found = Fraction(value).limit_denominator(12)
        found = found if float(found) == value else None
    elif isinstance(value, str) and (match := _FRACTION.fullmatch(value)):
        found = Fraction(match.group(1)) / int(match.group(2) or 1)
    if found is None or max(abs(found.numerator), found.denominator) > LARGEST_EXPONENT:
        raise DataError(
            f"{where}: the exponent of {quoted(base)} is {quoted(value)}; it needs a whole number or a fraction "
            f'such as "1/2", up to {LARGEST_EXPONENT}. Correct it.'
        )
    return found


class _Reader:
    """A text of units from left to right; `rest` is what has not been read."""

    def __init__(self, rest: str, text: str, where: str) -> None:
        self.rest, self.text, self.where = rest, text, where

    def refusal(self, reason: str) -> DataError:
        return DataError(
            f"{self.where}: cannot read the unit {quoted(self.text)} ({reason}). Write it as kg/m^3 or m^2 s^-1."
        )

    def product(self, sign: int) -> dict[str, Fraction]:
        """Factors up to the end or a closing parenthesis, each to the power `sign`, or its negative behind a `/`."""
        found: defaultdict[str, Fraction] = defaultdict(Fraction)
        side, is_divided, needs_factor = sign, False, True
        while match := _TOKEN.match(self.rest):
            kind = match.lastgroup if match.lastgroup != "raised" else "name"
            if kind in {"close", "power"}:
                break
            if kind in {"times", "over"}:
                if needs_factor:
                    raise self.refusal(f"{match.group().strip()!r} with nothing before it")
                self.rest = self.rest[match.end() :]
                side = -sign if kind == "over" else sign
                is_divided, needs_factor = is_divided or kind == "over", True
                continue
            if not needs_factor and is_divided:
                raise self.refusal("a space behind '/' may mean either: write parentheses or '*'")
            for name, exponent in self.factor(match, str(kind), side).items():
                found[name] += exponent
            needs_factor = False
        if needs_factor:
            raise self.refusal("a factor is missing" if self.text.strip() else "empty; write 1 for a pure number")
        return dict(found)

    def factor(self, match: re.Match[str], kind: str, sign: int) -> dict[str, Fraction]:
        self.rest = self.rest[match.end() :]
        raised = match.group("raised")
        if kind == "open":
            inner = self.product(sign)
            if not self.rest.lstrip().startswith(")"):
                raise self.refusal("a parenthesis is not closed")
            self.rest = self.rest.lstrip()[1:]
        elif kind == "number":
            if match.group("number") != "1":
                raise self.refusal(f"the number {match.group('number')}: only dimensions count")
            inner = {}
        else:
            inner = {name: sign * power for name, power in base_units(match.group("name"), self.where).items()}
        power = Fraction(int(raised)) if raised else self.exponent()
        if abs(power) > LARGEST_EXPONENT:
            raise self.refusal(f"an exponent beyond {LARGEST_EXPONENT}")
        return {name: exponent * power for name, exponent in inner.items()}

    def exponent(self) -> Fraction:
        match = _TOKEN.match(self.rest)
        if match is None or match.lastgroup != "power":
            return Fraction(1)
        number = _EXPONENT.match(self.rest, match.end())
        if number is None or number.group(3) in {"0", "00", "000", "0000"}:
            raise self.refusal("an exponent is a number or a fraction in parentheses")
        self.rest = self.rest[number.end() :]
        plain, above, below = number.groups()
        return Fraction(plain) if plain else Fraction(above) / int(below or 1)


def base_units(name: str, where: str) -> Mapping[str, Fraction]:
    """The exponents of the base units in one named unit.

    Raises:
        DataError: it has an offset (degC) or is a logarithm (dB), there is no such unit, or pint is missing.
    """
    if name in SI:
        return {name: Fraction(1)}
    if name in _PURE:
        return {}
    if name in _OFFSET:
        raise DataError(f"{where}: the unit {quoted(name)} has its zero elsewhere. Turn the column into K.")
    if name in _LOGARITHMIC:
        raise DataError(f"{where}: the unit {quoted(name)} is a logarithm. Turn the column into the quantity itself.")
    found = _known_to_pint(name)
    if isinstance(found, str):
        raise DataError(f"{where}: {found}")
    return found


@cache
def _known_to_pint(name: str) -> Mapping[str, Fraction] | str:
    """The exponents, or what is wrong with the name."""
    try:
        registry = _registry()
    except ImportError:
        return (
            f"the unit {quoted(name)} needs the package pint. Install it with: pip install 'isthmus[units]', "
            f"or write exponents of {', '.join(SI)}."
        )
    try:
        dimensions = dict(registry.get_dimensionality(name))
        zero = registry.Quantity(0.0, name).to_base_units().magnitude
    except Exception as reason:  # whatever pint throws, of its own types and others
        return f"unknown unit {quoted(name)} ({in_one_line(reason)}). Write it in {', '.join(SI)}."
    if zero != 0:
        return f"the unit {quoted(name)} has an offset or a logarithm. Turn the column into the quantity itself."
    return {
        _DIMENSIONS.get(str(dimension), str(dimension).strip("[]")): Fraction(exponent).limit_denominator(12)
        for dimension, exponent in dimensions.items()
    }


@cache
def _registry():  # noqa: ANN202 - pint is an extra, whose types are not there without it
    return import_module("pint").UnitRegistry()
