"""What stands in the folder of a sweep, on the terminal or as a file: status, table, a new index.

The table itself: `sweeps.table`. The picture: `sweep_picture`.
"""

from contextlib import closing
from pathlib import Path
from typing import Any

import typer

from isthmus.errors import DataError, SweepError
from isthmus.sweeps.index import Row, Status
from isthmus.sweeps.store import Store
from isthmus.sweeps.table import run_table
from isthmus.training.atomic import atomic_path

_SHOWN = ("outcome", "objective", "data_loss", "penalty", "rank", "rank_estimate", "seconds", "error")
_MOST_FAILURES = 10


def rows_of(store: Store) -> list[Row]:
    """The runs of a folder.

    Raises:
        SweepError: there are none, or no index.
    """
    with closing(store.reader()) as index:
        rows = index.rows()
    if not rows:
        raise SweepError(f"{store.folder}: holds no runs yet. Start a sweep with --out {store.folder}.")
    return rows


def print_status(folder: Path) -> int:
    """Counts, whether a driver is at work, and the failures; exit code 0."""
    store = Store(folder)
    rows, driven = rows_of(store), store.is_driven()
    counts = {status: sum(row.status is status for row in rows) for status in Status}
    if not driven:  # a driver that was killed cannot say that its runs no longer run
        counts[Status.WAITING] += counts.pop(Status.RUNNING)
    told = ", ".join(f"{count} {status.value}" for status, count in counts.items() if count)
    typer.echo(f"{folder}: {told}; {'a sweep is at work' if driven else 'no sweep is at work'}")
    failed = [row for row in rows if row.status is Status.FAILED]
    for row in failed[:_MOST_FAILURES]:
        typer.echo(f"failed {row.id}: {row.error.strip().splitlines()[-1]}")
    if len(failed) > _MOST_FAILURES:
        typer.echo(f"and {len(failed) - _MOST_FAILURES} more; all tracebacks are in {folder / 'failed'}")
    return 0


def print_table(folder: Path) -> int:
    """The table as text, the columns that say something; exit code 0."""
    table: Any = run_table(rows_of(Store(folder)))
    settings = [name for name in table.columns if "." in name]
    said = [name for name in _SHOWN if table[name].notna().any() and (table[name] != "").any()]
    shown = table[["id", "status", *settings, *said]]
    typer.echo(shown.to_string(index=False, na_rep="", float_format=lambda value: f"{value:.6g}"))
    return 0


def write_table(folder: Path, path: Path) -> int:
    """The whole table as a file; exit code 0.

    Raises:
        DataError: an extension that is neither .csv nor .parquet, or pyarrow is missing.
    """
    if path.suffix.lower() not in {".csv", ".parquet"}:
        raise DataError(f"--out {path}: unknown extension {path.suffix!r}. Use .csv or .parquet.")
    table = run_table(rows_of(Store(folder)))
    with atomic_path(path) as temporary:
        if path.suffix.lower() == ".csv":
            table.to_csv(temporary, index=False)
        else:
            try:
                table.to_parquet(temporary, index=False, engine="pyarrow")
            except ImportError:
                raise DataError(f"--out {path}: needs pyarrow. Install isthmus[tables], or write a .csv.") from None
    typer.echo(f"{path}: {len(table)} runs")
    return 0


def reindex(folder: Path) -> int:
    """A new index from the folders; exit code 0.

    Raises:
        SweepError: no sweep is there, or a driver is at work.
    """
    store = Store(folder)
    with store.locked(), closing(store.rebuilt_index(lambda text: typer.echo(f"note: {text}", err=True))) as index:
        statuses = list(index.statuses().values())
    done = sum(status is Status.DONE for status in statuses)
    typer.echo(f"{folder}: {done} finished and {len(statuses) - done} failed runs in the index")
    return 0
