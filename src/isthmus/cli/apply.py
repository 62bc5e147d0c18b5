"""`isthmus apply RUN_DIR DATA`: new rows through a saved discovery. The networks themselves: `Discovery`."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isthmus.cli.shared_options import TableReading, with_options
from isthmus.cli.voice import tell, voice

if TYPE_CHECKING:
    import pandas as pd

    from isthmus.discovery.result import Discovery


class What(StrEnum):
    """What to give for each row."""

    COORDINATES = "coordinates"
    PREDICTION = "prediction"


@dataclass(frozen=True, slots=True)
class NewRows:
    """Which rows go through which discovery."""

    run_dir: Annotated[Path, typer.Argument(help="Folder that discover wrote.")]
    data: Annotated[
        str, typer.Argument(help="A file with the same input columns, a folder of such pictures, or builtin:NAME.")
    ]
    what: Annotated[What, typer.Option(help="Coordinates, or predicted targets.")] = What.COORDINATES
    reading: TableReading = field(default_factory=TableReading)


@with_options(NewRows)
def apply(
    request: NewRows,
    out: Annotated[
        Path | None, typer.Option(help="File for the table (.csv, .parquet, .npy); the terminal unless given.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an older file at --out.")] = False,
) -> int:
    """Coordinates or predictions of new rows, as a table; text like a formula gets an apostrophe in a .csv.

    A .npy holds the numbers alone. Rows in a .npy, .parquet or zarr too large for memory are gone through by parts.
    """
    from isthmus.cli.output_file import checked_output
    from isthmus.cli.output_tables import KINDS, save_table, writable

    if out is not None:
        checked_output(out, kinds=list(KINDS), inputs=[request.run_dir, request.data], replace=replace)
    from isthmus.cli.interrupts import warnings_as_lines
    from isthmus.cli.terminal import Notes
    from isthmus.discovery import load
    from isthmus.tasks.csv_cells import csv_text

    found = load(request.run_dir)
    say = Notes()
    with warnings_as_lines(say):
        table = applied(found, request)
    if not found.rank and request.what is What.COORDINATES:
        say("the rank is 0, so that there are no coordinates; --what prediction gives the constant.")
    if out is not None:
        table = writable(out, table)
    tell(columns=list(table.columns), **({"out": str(out)} if out else {"rows": table.to_numpy(dtype=object)}))
    if out is not None:
        save_table(out, table)
    elif not voice().as_json:
        typer.echo(csv_text(table), nl=False)
    return 0


def applied(found: "Discovery", request: NewRows) -> "pd.DataFrame":
    """What a discovery makes of the rows; of pictures the first column is their files.

    Raises:
        DataError: the rows cannot be read, or lack a column; one line says where and what to do.
    """
    import pandas as pd

    from isthmus.cli.data_of_run import files_of_rows, rows_like

    x = rows_like(request.data, found.input_names, found.columns, request.reading.options())
    if request.what is What.COORDINATES:
        table = pd.DataFrame(found.transform(x), columns=[f"coordinate {i + 1}" for i in range(found.rank)])
    else:
        table = pd.DataFrame(found.predict(x), columns=found.loss.output_names(found.target_names))
        if found.loss.classes:
            table.insert(0, "class", [found.target_names[i] for i in table.to_numpy().argmax(axis=1)])
    if files := files_of_rows(request.data):
        table.insert(0, "file", list(files))
    return table
