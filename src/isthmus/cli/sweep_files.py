"""The table of a sweep's folder as a file, and a new index for it.

On the terminal: `sweep_folder`. The picture: `sweep_picture`.
"""

from contextlib import closing
from pathlib import Path

import typer

from isthmus.cli.output_file import checked_output
from isthmus.cli.sweep_folder import rows_of
from isthmus.errors import DataError
from isthmus.sweeps.folder import SweepFolder
from isthmus.sweeps.frames import run_table
from isthmus.sweeps.index import Status
from isthmus.sweeps.store import Store
from isthmus.tasks.csv_cells import csv_text
from isthmus.writing.atomic import atomic_path


def write_table(folder: Path, path: Path, *, replace: bool = False) -> int:
    """The whole table as a file; exit code 0.

    Raises:
        DataError: an extension that is neither .csv nor .parquet, or pyarrow is missing.
    """
    if path.suffix.lower() not in {".csv", ".parquet"}:
        raise DataError(f"--out {path}: unknown extension {path.suffix!r}. Use .csv or .parquet.")
    checked_output(path, inputs=[folder], replace=replace)
    table = run_table(rows_of(SweepFolder(folder)))
    with atomic_path(path) as temporary:
        if path.suffix.lower() == ".csv":
            temporary.write_text(csv_text(table), encoding="utf-8", newline="")
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
    with (
        store.place.locked(),
        closing(store.rebuilt_index(lambda text: typer.echo(f"note: {text}", err=True))) as index,
    ):
        statuses = list(index.statuses().values())
    done = sum(status is Status.DONE for status in statuses)
    typer.echo(f"{folder}: {done} finished and {len(statuses) - done} failed runs in the index")
    return 0
