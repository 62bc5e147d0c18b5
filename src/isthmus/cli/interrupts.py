"""Signals and warnings on the command line: SIGTERM stops like Ctrl-C, warnings are one line each on stderr.

What is saved on a stop: `discovery` and `training`. How to go on: `discover` prints it.
"""

import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from isthmus.errors import DataWarning, ExposureWarning, NumericalWarning

T = TypeVar("T")


@contextmanager
def terminate_like_interrupt() -> Generator[Callable[[], None]]:
    """SIGTERM raises `KeyboardInterrupt` inside the block, as Ctrl-C does.

    Python drops what is raised while an object is finalised, so an interrupt can be lost.

    Yields:
        Raises `KeyboardInterrupt` if one has come: for work that goes on although it was interrupted.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield lambda: None
        return

    def stop(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    def stop_again() -> None:
        if came:
            raise KeyboardInterrupt

    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, stop)}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where the caller ignores it
        before[signal.SIGINT] = signal.signal(signal.SIGINT, stop)
    try:
        yield stop_again
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def heard_again(listener: Callable[[T], None], stop_again: Callable[[], None]) -> Callable[[T], None]:
    """A listener that also stops work whose interrupt was lost, at its next event."""

    def hear(event: T) -> None:
        stop_again()
        listener(event)

    return hear


@contextmanager
def noted_interrupts() -> Generator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM are only noted inside the block, for work that must stop between two of its steps.

    Yields:
        Whether one of them has come.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield lambda: False
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda number, _frame: came.append(number)) for number in numbers]
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def warnings_as_lines(say: Callable[[str], None]) -> Generator[None]:
    """Warnings of ours inside the block go to `say` as sentences, each once; others are left as they are."""
    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *rest: object) -> None:
        text = " ".join(str(message).split())
        if not issubclass(category, DataWarning | NumericalWarning | ExposureWarning):
            print(f"{category.__name__}: {text}", file=sys.stderr)
        elif text not in said:
            said.add(text)
            say(text)

    with warnings.catch_warnings():
        for category in (DataWarning, NumericalWarning, ExposureWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = show  # pyright: ignore[reportAttributeAccessIssue] - catch_warnings puts it back
        yield
