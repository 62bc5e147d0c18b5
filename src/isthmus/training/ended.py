"""The end of a fit as its checkpoint keeps it, until whoever asked for the fit has its result safely on disk.

The same call finds it and returns the same result at once, bit for bit. What counts as the same call stands here; the
loop that writes and reads it: `fitting`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, TypedDict

import torch
from torch import Tensor

from isthmus.training.limits import Limits
from isthmus.training.sharded.vector import SplitVector, plain
from isthmus.training.solvers.schedule import Schedule


class Ended(TypedDict):
    """What `ending.finish` needs besides the parameters, and of which call it is the end."""

    call: str
    starts: list[str]
    reason: str
    evaluations: int
    steps: int
    seconds: float
    history: list[tuple[int, float]]


def is_end_of(saved: Mapping[str, Any], *, stamp: str, call: str, start: str) -> bool:
    """Whether a checkpoint is the end of this very call.

    Args:
        saved: the state of a fit that has ended.
        stamp: of the data, the ridge and the kinds of the solvers.
        call: of `stamp_of_call`.
        start: of `digest_of_start`.
    """
    ended: Ended = saved["ended"]
    return saved["stamp"] == stamp and ended["call"] == call and start in ended["starts"]


def stamp_of_call(schedule: Schedule, limits: Limits) -> str:
    """A digest of the solvers with all their numbers, and of the limits that decide where a fit ends."""
    text = f"{_described(schedule)} {limits.evaluations} {limits.memory}"
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of_start(theta: Tensor) -> str:
    """A digest of parameters: of a split vector, by all its processes together, however many they are."""
    if not isinstance(theta, SplitVector):
        return _digest(theta)
    split = theta.split_by
    own = [_digest(piece) for piece in plain(theta).split(split.length)] if len(theta) else []
    return hashlib.sha256(" ".join(sum(split.team.together(lambda: own), [])).encode()).hexdigest()


def _digest(vector: Tensor) -> str:
    return hashlib.sha256(vector.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()


def _described(value: object) -> str:
    """A solver in words that are the same in every process; where there are none, in words that never come again."""
    if isinstance(value, tuple | list):
        return f"({', '.join(_described(item) for item in value)})"
    if isinstance(value, partial):
        return f"partial({_described((value.func, *value.args))}, {sorted(value.keywords.items())})"
    if is_dataclass(value) and not isinstance(value, type):
        numbers = ", ".join(f"{f.name}={_described(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__qualname__}({numbers})"
    name = getattr(value, "__qualname__", "<")
    # functions without a name of their own are told apart by their address alone, and so is what says no more of itself
    return repr(value) if "<" in name else f"{getattr(value, '__module__', '')}.{name}"
