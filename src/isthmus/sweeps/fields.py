"""What a plan may say: every key of a network, of its training and of the record, with its range and default.

How a plan is read and expanded: `plan`. Which arguments a task takes: `task_fields`.
"""

import difflib
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from isthmus.errors import PlanError
from isthmus.training.losses import SQUARED, known, loss_argument

REQUIRED = object()
MOST_LAYERS = 100_000  # each is an object of its own: a hundred million would be hours before anything is said
MOST_SHOWN = 80
Settings = dict[str, object]  # values as JSON has them


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


_POSITIVE = real("a number > 0", lambda v: v > 0)
_SHAPE = {"width": whole(1), "depth": whole(1, most=MOST_LAYERS), "seed": whole(0, default=0)}
NETWORKS: Mapping[str, Mapping[str, Field]] = MappingProxyType(
    {
        "fully_connected": _SHAPE
        | {
            "width": listed(whole(1), also_single=True),
            "negative_slope": real("a number between -1 and 1", lambda v: -1 < v < 1, default=0.0),
            "linear": listed(whole(1), default=[]),
            "bias": switch(default=True),
        },
        "leaky": _SHAPE
        | {
            "effective_depth": _POSITIVE,
            "steps": choice("equidistant", "irregular", "adaptive", default="equidistant"),
            "maps": choice("fixed", "learned", default="fixed"),
            "bias": switch(default=True),
            "scheme": choice("euler", "exponential", default="euler"),
        },
        "resnet": _SHAPE
        | {
            "block_depth": whole(1, most=2),
            "residual_weight": real("a number > 0", lambda v: v > 0, default=1.0),
            "linear": switch(default=False),
        },
    }
)
KIND = choice(*NETWORKS, default="fully_connected")
TRAINING: Mapping[str, Field] = MappingProxyType(
    {
        "ridge": real("a number >= 0", lambda v: v >= 0),
        "loss": Field(f"one of {known()}", lambda value: loss_argument(str(value), "loss").name, SQUARED.name),
        "solver": choice("default", "preconditioned", default="default"),
        "evaluations": optional(whole(1)),
        "dtype": choice("float32", "float64", default="float32"),
        "scaling": choice("none", "column", "global", default="column"),
    }
)
RECORD: Mapping[str, Field] = MappingProxyType(
    {"ranks": switch(default=True), "weights": switch(default=True), "history": switch(default=True)}
)


def shown(value: object) -> str:
    """A value of a plan as a refusal quotes it: short, and whatever it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers beyond 4,300 digits, tables within tables
        return f"a {type(value).__name__} that is too long to show"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def unknown(key: str, known: Collection[str], where: str) -> PlanError:
    """The refusal of a key that is not known, with the nearest that is."""
    near = difflib.get_close_matches(key, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return PlanError(f"{where}: unknown key {shown(key)}.{hint} Known are {', '.join(known)}.")


def canonical(given: Mapping[str, object], fields: Mapping[str, Field], *, section: str, where: str) -> Settings:
    """Every key of `fields` with its value, canonical, defaults filled in.

    Raises:
        PlanError: an unknown key, a missing one, or a value out of its range; says `where` and which key.
    """
    for key in given:
        if key not in fields:
            raise unknown(key, list(fields), f"{where}, [{section}]")
    found: Settings = {}
    for key, field in fields.items():
        value = given.get(key, field.default)
        if value is REQUIRED:
            raise PlanError(f"{where}: {section}.{key} is missing; needs {field.needs}.")
        try:
            found[key] = field.read(value)
        except (ValueError, OverflowError, RecursionError):
            raise PlanError(f"{where}: {section}.{key} is {shown(value)}; needs {field.needs}.") from None
    return found
