"""What stands in the folder of a sweep, on the terminal: status and table, before torch or pandas would be imported.

The table itself: `sweeps.table`. As a file, and a new index: `sweep_files`. The picture: `sweep_picture`.
"""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import typer

from isthmus.errors import SweepError
from isthmus.sweeps.folder import FAILED, SweepFolder
from isthmus.sweeps.index import Row, Status
from isthmus.sweeps.table import run_columns

_SHOWN = ("outcome", "objective", "data_loss", "penalty", "rank", "rank_estimate", "seconds", "error")
_MOST_FAILURES = 10


def rows_of(folder: SweepFolder) -> list[Row]:
    """The runs of a folder.

    Raises:
        SweepError: there are none, or no index.
    """
    with closing(folder.reader()) as index:
        rows = index.rows()
    if not rows:
        raise SweepError(f"{folder.path}: holds no runs yet. Start a sweep with --out {folder.path}.")
    return rows


def print_status(path: Path) -> int:
    """Counts, whether a driver is at work, and the failures; exit code 0."""
    folder = SweepFolder(path)
    rows, driven = rows_of(folder), folder.is_driven()
    counts = {status: sum(row.status is status for row in rows) for status in Status}
    if not driven:  # a driver that was killed cannot say that its runs no longer run
        counts[Status.WAITING] += counts.pop(Status.RUNNING)
    told = ", ".join(f"{count} {status.value}" for status, count in counts.items() if count)
    typer.echo(f"{path}: {told}; {'a sweep is at work' if driven else 'no sweep is at work'}")
    failed = [row for row in rows if row.status is Status.FAILED]
    for row in failed[:_MOST_FAILURES]:
        typer.echo(f"failed {_cell(row.id)}: {_cell((row.error.strip().splitlines() or [''])[-1])}")
    if len(failed) > _MOST_FAILURES:
        typer.echo(f"and {len(failed) - _MOST_FAILURES} more; all tracebacks are in {path / FAILED}")
    return 0


def print_table(path: Path) -> int:
    """The table as text, the columns that say something; exit code 0."""
    columns = run_columns(rows_of(SweepFolder(path)))
    settings = [name for name in columns if "." in name]
    said = [name for name in _SHOWN if any(value not in {None, ""} for value in columns[name])]
    typer.echo(as_text({name: columns[name] for name in ("id", "status", *settings, *said)}))
    return 0


def as_text(columns: dict[str, list[object]]) -> str:
    """Columns side by side under their names, aligned to the right; floats to six digits, nothing for None."""
    texts = [_aligned([name, *map(_cell, values)]) for name, values in columns.items()]
    return "\n".join(" ".join(line) for line in zip(*texts, strict=True))


def _aligned(texts: Sequence[str]) -> list[str]:
    width = max(map(len, texts))
    return [text.rjust(width) for text in texts]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    # a folder of somebody else must not write to the terminal what the terminal obeys
    return "".join(letter if letter.isprintable() else "?" for letter in str(value))
