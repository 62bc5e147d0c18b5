"""How long a computation may take, and the clock that says when it is over."""

import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on a computation; None is no bound.

    Attributes:
        seconds: wall-clock seconds.
        evaluations: gradient evaluations (of each training run).
        memory: bytes of working memory.
    """

    seconds: float | None = None
    evaluations: int | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "evaluations", "memory"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"Limits({name}={value}): needs a positive number, or None for no bound.")


@dataclass(slots=True)
class Clock:
    """Wall-clock seconds since it was made, continued from `before` when a run resumes."""

    before: float = 0.0
    _start: float = field(default_factory=time.monotonic)

    def seconds(self) -> float:
        """Seconds spent, all sittings together."""
        return self.before + time.monotonic() - self._start
