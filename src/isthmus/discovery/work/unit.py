"""Units of work as plain values: what they compute, what they know of where they run, and what is told of them.

What they compute is a `partial` of a function or method of a module, so that another process can be handed it. Where
they run: `runner`. What is told is printed by nobody here; the live bar of the command line is `cli.progress_bar`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

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


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands.

    Attributes:
        stage: what is being done, in words that a user understands ("training", "truncating", "scree curve").
        fraction: share of the work that is done, 0 to 1: of that for a first answer, then of that for each `part`.
        ridge: coefficient of the penalty of the current start.
        start: number of the current start, from 0.
        step: number of the current step within the stage.
        total_steps: steps of the stage, None where it is not known beforehand.
        objective: least objective of the current start so far (data loss + ridge * penalty).
        rank: the current reading of the rank.
        seconds_left: estimated seconds until that ends; None in the first seconds.
        part: what this work is for that came besides the first: a remedy of a doubt, a wider network; "" before.
    """

    stage: str
    fraction: float
    ridge: float | None = None
    start: int | None = None
    step: int = 0
    total_steps: int | None = None
    objective: float | None = None
    rank: int | None = None
    seconds_left: float | None = None
    part: str = ""

    def __post_init__(self) -> None:
        if not 0.0 <= self.fraction <= 1.0:
            raise ValueError(f"Progress(fraction={self.fraction}): needs a share of the work, 0 to 1.")


ProgressListener: TypeAlias = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Hears every event and does nothing: the default listener."""


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
