"""What stands in the folder of a sweep, on the terminal or as a file: status, table, picture, a new index.

The table itself: `sweeps.table`. The picture: `plots.sweeps`.
"""

import difflib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import typer
from matplotlib.figure import Figure

from isthmus import plots
from isthmus.errors import DataError, SweepError
from isthmus.plots.style import SIZE
from isthmus.sweeps.index import Row, Status
from isthmus.sweeps.store import Store
from isthmus.sweeps.table import NUMBERS, run_table
from isthmus.training.atomic import atomic_path

_SHOWN = ("outcome", "objective", "data_loss", "penalty", "rank", "rank_estimate", "seconds", "error")
_MOST_FAILURES = 10


def _rows(store: Store) -> list[Row]:
    with closing(store.reader()) as index:
        rows = index.rows()
    if not rows:
        raise SweepError(f"{store.folder}: holds no runs yet. Start a sweep with --out {store.folder}.")
    return rows


def print_status(folder: Path) -> int:
    """Counts, whether a driver is at work, and the failures; exit code 0."""
    store = Store(folder)
    rows, driven = _rows(store), store.is_driven()
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
    table: Any = run_table(_rows(Store(folder)))
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
    table = run_table(_rows(Store(folder)))
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


def draw(folder: Path, axis: str | None, by: str | None, quantities: Sequence[str], path: Path) -> int:
    """Numbers against a setting, one panel each, as a file; exit code 0.

    Raises:
        DataError: a name that is no setting or number of these runs, or an extension that is no picture.
    """
    if path.suffix.lower() not in {".png", ".svg"}:
        raise DataError(f"--out {path}: unknown extension {path.suffix!r}. Use .png or .svg.")
    table = run_table(_rows(Store(folder)))
    numeric = [name for name in table.columns if "." in name and pd.api.types.is_numeric_dtype(table[name])]
    if not numeric:
        raise DataError(f"{folder}: no setting differs between its runs. Sweep over one to draw it.")
    many_first = sorted(
        (name for name in numeric if name.rpartition(".")[2] != "seed"), key=lambda n: -table[n].nunique()
    )
    along = _column(axis, numeric, "--axis") if axis else (many_first or numeric)[0]
    settings = [name for name in table.columns if "." in name]
    others = [name for name in many_first if name != along]
    lines = _column(by, settings, "--by") if by else (others[0] if others else None)
    names = [_column(name, NUMBERS, "--quantity") for name in quantities]
    figure = Figure(figsize=(SIZE[0] * len(names), SIZE[1]), layout="constrained")
    for number, name in enumerate(names, 1):
        plots.sweep_lines(table, figure.add_subplot(1, len(names), number), axis=along, quantity=name, by=lines)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=200)
    typer.echo(f"{path}: {', '.join(names)} against {along}" + (f", by {lines}" if lines else ""))
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


def _column(name: str, known: Sequence[str], option: str) -> str:
    """The column called `name`, or by its key alone."""
    for column in known:
        if name in {column, column.rpartition(".")[2]}:
            return column
    near = difflib.get_close_matches(name, [*known, *(column.rpartition(".")[2] for column in known)], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise DataError(f"{option} {name}: unknown.{hint} Known are {', '.join(known)}.")
