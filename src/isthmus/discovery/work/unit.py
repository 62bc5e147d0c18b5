"""Units of work as plain values: what they compute, and what they know of where they run. Where that is: `runner`.

What they compute is a `partial` of a function or method of a module, so that another process can be handed it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from isthmus.discovery.minimum import Minimum
from isthmus.errors import CheckpointError
from isthmus.networks.devices import CPU
from isthmus.training import FitEvent
from isthmus.training.checkpoint import set_aside


class Stopped(Exception):  # noqa: N818 - not an error: the run was asked to stop
    """Raised inside a unit when the run is being interrupted; its state is saved."""


def _unheard(_event: FitEvent) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Session:
    """What a training inside of a unit knows of where it runs.

    Attributes:
        hear: the callback of `fit`.
        checkpoint: the file of its state, or None.
        seconds: it may take, or None.
        device: where networks lie while they are trained.
    """

    hear: Callable[[FitEvent], bool] = _unheard
    checkpoint: Path | None = None
    seconds: float | None = None
    device: torch.device = CPU


@dataclass(frozen=True, slots=True)
class Phase:
    """One kind of unit: what its files are called, and what a progress bar says of it."""

    key: str
    words: str


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of work.

    Attributes:
        key: its name, also of its file.
        compute: trains in the session that it is given.
        cost: gradient evaluations that it takes, for the estimate of time left.
        stage: what it does, in words.
        ridge: its ridge.
        start: its number within the stage.
    """

    key: str
    compute: Callable[[Session], Minimum]
    cost: int
    stage: str
    ridge: float | None = None
    start: int | None = None


def computed(unit: Unit, session: Session) -> Minimum:
    """The result of a unit, from its checkpoint on; from the start where that cannot be used."""
    with torch.no_grad():
        try:
            return unit.compute(session)
        except CheckpointError as error:
            partial = session.checkpoint
            if partial is None or not partial.exists():
                raise
            set_aside(partial, error)
            return unit.compute(session)
