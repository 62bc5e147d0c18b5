"""Where a fit keeps its state while it runs, and its end until whoever asked for it has its result safely on disk.

The same call finds the end and returns the same result at once, bit for bit: what counts as the same call stands here.
The loop that writes and reads: `fitting`. How a file is written: `checkpoint`; a file for each process:
`sharded.checkpoint_parts`.
"""

import hashlib
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypedDict, runtime_checkable

import torch
from torch import Tensor

from isthmus.errors import CheckpointError
from isthmus.training.checkpoint import State, load_state, save_state
from isthmus.training.limits import Limits
from isthmus.training.sharded.team import Team
from isthmus.training.sharded.vector import SplitVector, plain
from isthmus.training.solvers.schedule import Schedule


@runtime_checkable
class FitCheckpoint(Protocol):
    """Where the processes of a fit, which call all of this together, keep its state."""

    @property
    def path(self) -> Path:
        """The file that is there as soon as something is kept."""
        ...

    def head(self) -> State | None:
        """What says whose state is kept there, "stamp" and perhaps "ended" among it; None where nothing is."""
        ...

    def rest(self, head: State, start: str) -> State:
        """What is kept besides, once the head was found to be of this fit, whose first parameters have this digest.

        Raises:
            CheckpointError: it is another's all the same, or damaged.
        """
        ...

    def write(self, state: State) -> None:
        """Keep a state in the place of what is there."""


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """One file, which the first process of a team writes, and reads for the others."""

    path: Path
    team: Team

    def head(self) -> State | None:
        """All that the file holds."""
        return self.team.told_by_first(lambda: load_state(self.path, renamed=True))

    def rest(self, head: State, start: str) -> State:
        """Nothing more; another start is gone on from all the same, but not from a file that was another's."""
        name = head.get("file", self.path.name)
        if "run" in head and name != self.path.name and digest_of_start(head["run"]["initial"]) != start:
            raise CheckpointError(
                f"checkpoint {self.path}: belongs to another fit, from another start, and was written as {name}; "
                "put it back, or give another file."
            )
        return {}

    def write(self, state: State) -> None:
        """Write the file, after all processes were seen to hold the same parameters."""
        self.team.check_in_step(state["theta"])
        self.team.told_by_first(lambda: save_state(self.path, state))


class Ended(TypedDict):
    """What `ending.finish` needs besides the parameters, and of which call it is the end."""

    call: str
    starts: list[str]
    reason: str
    evaluations: int
    steps: int
    seconds: float
    history: list[tuple[int, float]]


def is_end_of(saved: State, *, stamp: str, call: str, start: str) -> bool:
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
