"""What a plan may say: every key of a network, of its training and of the record, with its range and default.

How a plan is read and expanded: `plan`. Which arguments a task takes: `task_fields`, a network: `networks.kinds`.
"""

import difflib
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from isthmus.errors import PlanError
from isthmus.networks.argument_fields import REQUIRED, Field, choice, optional, real, switch, whole
from isthmus.networks.kinds import kind_named, kinds
from isthmus.training.losses import SQUARED, known, loss_argument

MOST_SHOWN = 80
Settings = dict[str, object]  # values as JSON has them


def network_fields(kind: str) -> Mapping[str, Field]:
    """The keys of a network of this kind, `kind` first."""
    return {"kind": kind_field(), **kind_named(kind).arguments}


def kind_field() -> Field:
    """The key that says which kind of network."""
    return choice(*(kind.name for kind in kinds()), default="fully_connected")


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


def plain(value: object) -> object:
    """A value of a plan as TOML would have it: numbers and arrays of numpy, torch and pandas, ranges, paths."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if not isinstance(value, str) and callable(as_list := getattr(value, "tolist", None)):
        return plain(as_list())
    return [plain(item) for item in value] if isinstance(value, list | tuple | range) else value


def path_of(value: object, where: str, *, needs: str) -> Path:
    """A path, of text or of what has one.

    Raises:
        PlanError: it is none, or empty; says what it `needs`.
    """
    if not isinstance(value, str | os.PathLike) or not str(value):
        raise PlanError(f"{where} is {shown(value)}; needs {needs}.")
    return Path(value)


def table(value: object, where: str, *, needs: str) -> dict[str, object]:
    """A mapping from text, with plain values.

    Raises:
        PlanError: it is none; says what it `needs`.
    """
    if not isinstance(value, Mapping):
        raise PlanError(f"{where} is {shown(value)}; needs {needs}.")
    if odd := [key for key in value if not isinstance(key, str)]:
        raise PlanError(f"{where} has the key {shown(odd[0])}; needs text.")
    return {key: plain(item) for key, item in value.items()}


def unknown(key: str, known: Collection[str], where: str) -> PlanError:
    """The refusal of a key that is not known, with that of another section, the nearest, or one with its word."""
    near = [other for other in known if other.endswith(f".{key}")] or difflib.get_close_matches(key, known, n=1)
    near = near or [other for other in known if key in other.split("_")]
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
