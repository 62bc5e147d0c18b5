"""How far a sweep is, as plain data that a driver tells a listener. How it looks: `cli`."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from isthmus.sweeps.telling import Telling


@dataclass(frozen=True, slots=True)
class Running:
    """One run at work.

    Attributes:
        label: its axes in one line.
        telling: how far it is; None until it has said.
    """

    label: str
    telling: Telling | None


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """Where a sweep stands.

    Attributes:
        total: runs of the plan.
        done: finished, in whatever sitting.
        failed: of this sitting.
        running: those at work.
        seconds_left: at the pace of this sitting; None before the first run ended.
    """

    total: int
    done: int
    failed: int
    running: tuple[Running, ...]
    seconds_left: float | None


SweepListener = Callable[[SweepProgress], None]


@dataclass(slots=True)
class Pace:
    """Runs per second of this sitting."""

    ended: int = 0
    _began: float = field(default_factory=time.monotonic)

    def seconds_left(self, runs: int) -> float | None:
        """For so many more runs."""
        if self.ended == 0:
            return None
        return runs * (time.monotonic() - self._began) / self.ended
