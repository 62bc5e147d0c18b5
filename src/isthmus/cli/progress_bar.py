"""A live bar of a running discovery on a terminal, one plain line every ten seconds elsewhere; both on stderr.

What is told: `discovery.progress`. The verdict at the end: `outcome`.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Generic, TypeVar

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column

from isthmus.discovery.progress import Progress, ProgressListener

Event = TypeVar("Event")
SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def shown_progress(console: Console) -> Generator[ProgressListener]:
    """A listener that shows events on `console` while the block runs."""
    if not console.is_terminal:
        yield PlainLines(lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True), words=line_of)
        return
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    columns = (
        TextColumn("{task.percentage:>3.0f} %"),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.description}", table_column=rest, markup=False),
    )
    with Bar(*columns, console=console, expand=True, transient=True) as bar:
        task = bar.add_task("starting", total=1.0, left="")

        def show(event: Progress) -> None:
            bar.update(task, completed=event.fraction, description=described(event), left=time_left(event))

        yield show


class PlainLines(Generic[Event]):
    """A listener that says one line at the first event and then at most every ten seconds."""

    def __init__(
        self,
        say: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
        *,
        words: Callable[[Event], str],
    ) -> None:
        self._say, self._clock, self._words = say, clock, words
        self._next = clock()
        self._unsaid: Event | None = None

    def __call__(self, event: Event) -> None:
        """Say where the run stands, if it is time to."""
        now = self._clock()
        self._unsaid = event
        if now >= self._next:
            self._next = now + SECONDS_BETWEEN_LINES
            self.say_last()

    def say_last(self) -> None:
        """Say what was heard last, unless it was said: how a run ended."""
        if self._unsaid is not None:
            self._say(self._words(self._unsaid))
            self._unsaid = None


def line_of(event: Progress) -> str:
    """How far a discovery is, in one line for a log."""
    parts = [f"{100 * event.fraction:.0f} %", time_left(event), described(event)]
    return "  ".join(part for part in parts if part)


def described(event: Progress) -> str:
    """Stage, ridge, start, step, objective and rank, as far as they are known; the stage first."""
    parts = [event.stage]
    if event.rank is not None:
        parts.append(f"rank {event.rank}")
    if event.ridge is not None:
        parts.append(f"ridge {event.ridge:.3g}")
    if event.start is not None:
        parts.append(f"start {event.start}")
    parts.append(f"step {event.step}" + (f"/{event.total_steps}" if event.total_steps is not None else ""))
    if event.objective is not None:
        parts.append(f"objective {event.objective:.4g}")
    return "  ".join(parts)


def time_left(event: Progress) -> str:
    """Time left as "1:05 left", or nothing where it is not known."""
    return seconds_as_text(event.seconds_left)


def seconds_as_text(seconds_left: float | None) -> str:
    """Seconds as "1:05 left", or nothing for None."""
    if seconds_left is None:
        return ""
    minutes, seconds = divmod(round(max(seconds_left, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02} left" if hours else f"{minutes}:{seconds:02} left"
