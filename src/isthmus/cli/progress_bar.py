"""How far a discovery or a sweep is, on stderr: live on a terminal, elsewhere a plain line every ten seconds.

What is told: `discovery.work.unit`, `sweeps.sweep_progress`.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Generic, TypeVar

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column, Table

from isthmus.discovery.work.unit import Progress, ProgressListener
from isthmus.sweeps.sweep_progress import Running, SweepListener, SweepProgress

Event = TypeVar("Event")
SECONDS_BETWEEN_LINES = 10.0
MOST_ROWS = 16  # of a sweep: a screen holds no more; the rest is counted


@contextmanager
def shown_progress(console: Console) -> Generator[ProgressListener]:
    """A listener that shows events on `console` while the block runs."""
    if console.quiet or not console.is_terminal:
        yield PlainLines(lambda text: console.print(text, soft_wrap=True), words=line_of)
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
            bar.update(task, completed=event.fraction, description=described(event), left=time_left(event.seconds_left))

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
    parts = [f"{100 * event.fraction:.0f} %", time_left(event.seconds_left), described(event)]
    return "  ".join(part for part in parts if part)


def described(event: Progress) -> str:
    """Stage, ridge, start, step, objective and rank, as far as they are known; the stage first."""
    is_said = event.stage.startswith(event.part)  # "control: training"
    parts = [event.stage if is_said else f"{event.part}: {event.stage}"]
    if event.rank is not None:
        parts.append(f"rank {event.rank}")
    if event.ridge is not None:
        parts.append(f"ridge {event.ridge:.3g}")
    if event.start is not None:
        parts.append(f"start {event.start}")
    total = event.total_steps
    # the last line search goes on beyond the budget of gradients
    parts.append(f"step {event.step}" if total is None else f"step {min(event.step, total)}/{total}")
    if event.objective is not None:
        parts.append(f"objective {event.objective:.4g}")
    return "  ".join(parts)


def time_left(seconds_left: float | None) -> str:
    """Time left as "1:05 left", or nothing where it is not known."""
    if seconds_left is None:
        return ""
    minutes, seconds = divmod(round(max(seconds_left, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02} left" if hours else f"{minutes}:{seconds:02} left"


@contextmanager
def shown_sweep(console: Console) -> Generator[SweepListener]:
    """A listener that shows events on `console` while the block runs."""
    if console.quiet or not console.is_terminal:
        lines = PlainLines(lambda text: console.print(text, soft_wrap=True), words=line_of_sweep)
        yield lines
        lines.say_last()
        return
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield lambda event: live.update(table_of(event))


def head(event: SweepProgress) -> str:
    """Runs done, running, failed and waiting, and the time left."""
    waiting = event.total - event.done - event.failed - len(event.running)
    counts = f"{event.done}/{event.total} done, {len(event.running)} running, {event.failed} failed, {waiting} waiting"
    left = time_left(event.seconds_left)
    return f"{counts}, {left}" if left else counts


def line_of_sweep(event: SweepProgress) -> str:
    """All of it in one line, for a log."""
    return "; ".join([head(event), *(f"{run.label}: {_words(run)}" for run in event.running[:MOST_ROWS])])


def table_of(event: SweepProgress) -> Table:
    """All of it as a table."""
    table = Table(title=head(event), title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name in ("run", "step", "objective", "rank"):
        table.add_column(name, justify="left" if name == "run" else "right", overflow="fold")
    for run in event.running[:MOST_ROWS]:
        table.add_row(run.label, *_cells(run))
    if len(event.running) > MOST_ROWS:
        table.add_row(f"and {len(event.running) - MOST_ROWS} more")
    return table


def _cells(run: Running) -> tuple[str, str, str]:
    told = run.telling
    if told is None:
        return ("starting", "", "")
    rank = "" if told.rank is None else str(told.rank)
    return (f"{told.evaluations}/{told.total}", f"{told.objective:.4g}", rank)


def _words(run: Running) -> str:
    step, objective, rank = _cells(run)
    parts = [step if run.telling is None else f"step {step}"]
    parts += [f"objective {objective}"] if objective else []
    return ", ".join(parts + ([f"rank {rank}"] if rank else []))
