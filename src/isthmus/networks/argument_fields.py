"""What an argument may be that is written in a plan: its range in words, and the canonical value of what was given.

How a plan is read: `sweeps`. The arguments of networks: `kinds`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

REQUIRED = object()


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a plan.

    Attributes:
        needs: what its value must be, in words.
        read: the canonical value of what was given, or ValueError; equal settings give equal values.
        default: taken where the key is missing; `REQUIRED` has none.
    """

    needs: str
    read: Callable[[object], object]
    default: object = REQUIRED


def whole(least: int, *, default: object = REQUIRED, most: int = 2**63 - 1) -> Field:
    """A whole number in a range."""
    limit = f">= {least} and < 2^63" if most == 2**63 - 1 else f"from {least} to {most}"

    def read(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError
        return value

    return Field(f"a whole number {limit}", read, default)


def real(needs: str, accepts: Callable[[float], bool], *, default: object = REQUIRED) -> Field:
    """A finite number; whole ones become floats, so that 1 and 1.0 are one setting."""

    def read(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError
        number = float(value) + 0.0  # -0.0 becomes 0.0
        if not (math.isfinite(number) and accepts(number)):
            raise ValueError
        return number

    return Field(needs, read, default)


def switch(*, default: bool) -> Field:
    """True or false."""

    def read(value: object) -> object:
        if not isinstance(value, bool):
            raise ValueError
        return value

    return Field("true or false", read, default)


def choice(*options: str, default: object = REQUIRED) -> Field:
    """One of several words."""

    def read(value: object) -> object:
        if value not in options:
            raise ValueError
        return value

    return Field(f"one of {', '.join(repr(option) for option in options)}", read, default)


def optional(field: Field) -> Field:
    """The same, or nothing at all."""
    return Field(f"{field.needs}, or left out", lambda value: None if value is None else field.read(value), None)


def listed(field: Field, *, also_single: bool = False, default: object = REQUIRED) -> Field:
    """A list of such values; with `also_single` one of them may stand alone."""

    def read(value: object) -> object:
        if also_single and not isinstance(value, list | tuple):
            return field.read(value)
        if not isinstance(value, list | tuple):
            raise ValueError
        return [field.read(item) for item in value]

    alone = f"{field.needs}, or " if also_single else ""
    return Field(f"{alone}a list, each {field.needs}", read, default)


def words(*, default: object = REQUIRED) -> Field:
    """A text."""

    def read(value: object) -> object:
        if not isinstance(value, str) or not value:
            raise ValueError
        return value

    return Field("a text", read, default)
