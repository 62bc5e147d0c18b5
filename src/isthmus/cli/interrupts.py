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

from isthmus.errors import DataWarning, NumericalWarning


@contextmanager
def terminate_like_interrupt() -> Generator[None]:
    """SIGTERM raises `KeyboardInterrupt` inside the block, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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
        if not issubclass(category, DataWarning | NumericalWarning):
            print(f"{category.__name__}: {text}", file=sys.stderr)
        elif text not in said:
            said.add(text)
            say(text)

    with warnings.catch_warnings():
        for category in (DataWarning, NumericalWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = show  # pyright: ignore[reportAttributeAccessIssue] - catch_warnings puts it back
        yield
