"""How a command ends: its exit code, SIGTERM and SIGHUP like Ctrl-C; warnings are one line each on stderr.

What is saved on a stop: `discovery` and `training`. How to go on: the commands print it. Nothing heavy is imported
here, so that the handlers are there before anything is.
"""

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from enum import IntEnum
from types import FrameType
from typing import Any, TypeVar

from isthmus.errors import DataWarning, ExposureWarning, NumericalWarning
from isthmus.writing.shown import harmless

T = TypeVar("T")
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_ONE_STOP = 0.1  # seconds; a terminal that closes sends its signal twice, systemd sends two kinds: that is one wish
Handler = Callable[[int, FrameType | None], None]
_interrupted = threading.Event()  # in this process: what is finalised afterwards may be half made


class ExitCode(IntEnum):
    """How a command ended, for whoever called it."""

    DONE = 0  # also "no sharp rank", and claims that do not hold: those are answers
    BUG = 1  # an error that isthmus did not foresee
    BAD_INPUT = 2  # or a refused resource: one line says what, where and what to do
    DOUBTFUL = 3  # finished, but doubtful, not converged, refuted, or with runs that failed
    INTERRUPTED = 130  # the state was saved
    UNREAD = 141  # the reader of stdout left before everything was said, as `| head` does


def leave_on_signals() -> None:
    """A signal ends the process at once from here on: for the time in which nothing is there to be saved."""
    _set(lambda _number, _frame: _leave(say_interrupted))
    sys.unraisablehook = _unless_interrupted(sys.unraisablehook)


def ignore_signals() -> None:
    """No signal is heard any more: for the last moments of a process."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def terminate_like_interrupt() -> Generator[Callable[[], None]]:
    """SIGTERM, SIGHUP and Ctrl-C raise `KeyboardInterrupt` inside the block; the second ends the process at once.

    Python drops what is raised while an object is finalised, so an interrupt can be lost. Libraries turn it into
    errors of their own, in the middle of an import for example: whatever is raised after it is an interrupt.

    Yields:
        Raises `KeyboardInterrupt` if one has come: for work that goes on although it was interrupted.
    """
    came: list[float] = []

    def stop(_number: int, _frame: FrameType | None) -> None:
        _interrupted.set()
        if not came:
            came.append(time.monotonic())
            raise KeyboardInterrupt
        if time.monotonic() - came[0] > _ONE_STOP:
            _leave()

    def stop_again() -> None:
        if came:
            raise KeyboardInterrupt

    with _handled_by(stop):
        try:
            yield stop_again
        except Exception as error:
            if came:
                raise KeyboardInterrupt from error
            raise


def _set(handler: Handler) -> dict[int, Any]:
    """Handle the signals; returns the handlers before. What the caller ignores (as `nohup` does) stays ignored."""
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # only the main thread may set handlers
        for number in SIGNALS:
            if signal.getsignal(number) not in {signal.SIG_IGN, None}:
                before[number] = signal.signal(number, handler)
    return before


@contextmanager
def _handled_by(handler: Handler) -> Generator[None]:
    before = _set(handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def say_interrupted() -> None:
    """The word for it, also where stderr is closed or full."""
    with suppress(OSError):
        os.write(2, b"isthmus: interrupted.\n")


def _leave(say: Callable[[], None] = lambda: None) -> None:
    """End the process here and now: no destructor, no traceback."""
    say()
    os._exit(ExitCode.INTERRUPTED)


def _unless_interrupted(show: Callable[[Any], object]) -> Callable[[Any], None]:
    """Without tracebacks of what an interrupt leaves behind: `terminate_like_interrupt` knows that it came.

    It comes while an object is finalised, or inside of a constructor, and what that one left half made cannot be
    finalised (`zipfile.ZipFile` for one).
    """

    def quiet(event: Any) -> None:
        if not _interrupted.is_set() and not issubclass(event.exc_type, KeyboardInterrupt):
            show(event)

    return quiet


def heard_again(listener: Callable[[T], None], stop_again: Callable[[], None]) -> Callable[[T], None]:
    """A listener that also stops work whose interrupt was lost, at its next event."""

    def hear(event: T) -> None:
        stop_again()
        listener(event)

    return hear


@contextmanager
def noted_interrupts(*, patient: bool = False) -> Generator[Callable[[], bool]]:
    """The first signal is only noted inside the block, for work that must stop between two of its steps.

    Args:
        patient: so are those after it, where somebody else repeats them; otherwise the second ends the process at once.

    Yields:
        Whether one of them has come.
    """
    came: list[float] = []

    def note(_number: int, _frame: FrameType | None) -> None:
        came.append(time.monotonic())
        if not patient and came[-1] - came[0] > _ONE_STOP:
            _leave()

    with _handled_by(note):
        yield lambda: bool(came)


@contextmanager
def warnings_as_lines(say: Callable[[str], None]) -> Generator[None]:
    """Warnings of ours inside the block go to `say` as sentences, each once; others are left as they are."""
    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *rest: object) -> None:
        text = " ".join(str(message).split())
        if not issubclass(category, DataWarning | NumericalWarning | ExposureWarning):
            print(harmless(f"{category.__name__}: {text}"), file=sys.stderr)
        elif text not in said:
            said.add(text)
            say(text)

    with warnings.catch_warnings():
        for category in (DataWarning, NumericalWarning, ExposureWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = show  # pyright: ignore[reportAttributeAccessIssue] - catch_warnings puts it back
        yield
