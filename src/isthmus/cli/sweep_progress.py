"""A live table of a running sweep on a terminal, elsewhere a plain line every ten seconds and at the end; on stderr.

What is told: `sweeps.progress`. The bar of a discovery: `progress_bar`.
"""

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from isthmus.cli.progress_bar import PlainLines, seconds_as_text
from isthmus.sweeps.progress import Running, SweepListener, SweepProgress

MOST_ROWS = 16  # a screen holds no more; the rest is counted


@contextmanager
def shown_sweep(console: Console) -> Generator[SweepListener]:
    """A listener that shows events on `console` while the block runs."""
    if not console.is_terminal:
        lines = PlainLines(
            lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True), words=line_of_sweep
        )
        yield lines
        lines.say_last()
        return
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield lambda event: live.update(table_of(event))


def head(event: SweepProgress) -> str:
    """Runs done, running, failed and waiting, and the time left."""
    waiting = event.total - event.done - event.failed - len(event.running)
    counts = f"{event.done}/{event.total} done, {len(event.running)} running, {event.failed} failed, {waiting} waiting"
    left = seconds_as_text(event.seconds_left)
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
