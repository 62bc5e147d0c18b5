"""What a training says of itself once a second, in whatever process it is. Who puts it together: `sweep_progress`."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from isthmus.training import FitEvent
from isthmus.training.moves import rank_shown

TELL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Telling:
    """How far a running job is."""

    id: str
    evaluations: int
    total: int
    objective: float
    rank: int | None


def telling_callback(
    job: str, tell: Callable[[Telling], None], stop: Callable[[], bool] = lambda: False
) -> Callable[[FitEvent], bool]:
    """The callback of a training that tells how far this job is, and ends it where `stop` says so."""
    last = time.monotonic()

    def hear(event: FitEvent) -> bool:
        nonlocal last
        now = time.monotonic()
        if now - last >= TELL_SECONDS:
            last = now
            tell(Telling(job, event.evaluations, event.total, event.objective, rank_shown(event.network)))
        return stop()

    return hear
