"""How long a computation may take, the clock that says when it is over, and how long it still will."""

import math
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from numbers import Real

BOUNDS = ("seconds", "evaluations", "memory", "rows")
FIRST_SECONDS = 2.0  # before which nothing is foretold


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on a computation; None is no bound, nor is infinity.

    Attributes:
        seconds: wall-clock seconds.
        evaluations: gradient evaluations of each training run, which ends with the iteration that reaches them: a line
            search may take some more.
        memory: bytes of working memory; at their first use in a process libraries take some 40 MiB besides, once.
        rows: of the data of a diagnosis, the first so many.

    >>> isthmus.Limits(seconds=60, evaluations=500).evaluations
    500
    """

    seconds: float | None = None
    evaluations: int | None = None
    memory: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        for name in BOUNDS:
            value = getattr(self, name)
            if value is None:
                continue
            if value == math.inf:
                object.__setattr__(self, name, None)
                continue
            if isinstance(value, bool) or not isinstance(value, Real) or not value > 0:  # pyright: ignore[reportOperatorIssue]
                raise ValueError(f"Limits({name}={value}): needs a positive number, or None for no bound.")


def limits_argument(limits: object, call: str, *, heeds: Collection[str]) -> Limits:
    """The limits themselves, or none.

    Args:
        limits: what was given.
        call: whose.
        heeds: the bounds that it keeps to.

    Raises:
        TypeError: something else, such as a number of seconds.
        ValueError: a bound that the call would not keep to.
    """
    if limits is not None and not isinstance(limits, Limits):
        raise TypeError(f"{call}(limits=...): needs isthmus.Limits(seconds=...), got {type(limits).__name__}.")
    limits = limits or Limits()
    for name in BOUNDS:
        if getattr(limits, name) is not None and name not in heeds:
            *others, last = [bound for bound in BOUNDS if bound in heeds]
            listed = f"{', '.join(others)} and {last}"
            raise ValueError(f"{call}(limits=Limits({name}=...)): it keeps to {listed} alone; leave out {name}.")
    return limits


@dataclass(slots=True)
class Clock:
    """Wall-clock seconds since it was made, continued from `before` when a run resumes."""

    before: float = 0.0
    _start: float = field(default_factory=time.monotonic)

    def seconds(self) -> float:
        """Seconds spent, all sittings together."""
        return self.before + time.monotonic() - self._start


def seconds_left(spent: float, *, done: int, total: int, limit: float | None = None) -> float | None:
    """Seconds that a fit will still take at the pace it had so far (*estimate*); None in its first seconds.

        min((total - done) spent / done,  limit - spent)

    It stops earlier where it converges before its gradients are used up.

    Args:
        spent: seconds so far.
        done: gradient evaluations so far.
        total: about how many there will be.
        limit: seconds after which it is stopped.
    """
    if spent < FIRST_SECONDS or not done:
        return None
    left = max(total - done, 0) * spent / done
    return left if limit is None else min(left, max(limit - spent, 0.0))
