"""`isthmus interpret RUN`: what the coordinates of a saved discovery mean. The numbers: `discovery.evidence`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isthmus.cli.shared_options import TableReading, with_options
from isthmus.cli.voice import tell

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from isthmus.discovery import Discovery


@dataclass(frozen=True, slots=True)
class InterpretRequest:
    """Which discovery, on which rows."""

    run_dir: Annotated[Path, typer.Argument(help="Folder that discover wrote.")]
    data: Annotated[
        str | None, typer.Argument(help="Rows to judge by: a file, or builtin:NAME; default what the run stored.")
    ] = None
    candidates: Annotated[
        str | None, typer.Option(help="Columns of DATA to compare the coordinates with, separated by commas.")
    ] = None
    reading: TableReading = field(default_factory=TableReading)


@with_options(InterpretRequest)
def interpret(request: InterpretRequest) -> int:
    """What each coordinate of a discovery saves, and which inputs it follows; on the run's own rows, or on DATA.

    Exit codes: 0 done, 2 bad input.
    """
    from isthmus.cli.data_of_run import rows_like
    from isthmus.cli.interrupts import warnings_as_lines
    from isthmus.cli.terminal import Notes, labelled, terminal
    from isthmus.discovery import interpret as meaning_of
    from isthmus.discovery import load
    from isthmus.errors import DataError
    from isthmus.reports.meaning import meaning_table

    found = load(request.run_dir)
    if found.rank < 1:
        raise DataError(f"{request.run_dir}: has rank {found.rank}, and so no coordinates that could mean something.")
    candidates = _candidates(request)
    if request.data is None:
        meaning = _stored(request.run_dir, found)
    else:
        with warnings_as_lines(Notes()):
            x = rows_like(request.data, found.input_names, found.columns, request.reading.options())
            meaning = meaning_of(found, x, candidates=candidates)
    table = meaning_table(meaning)
    rows = [dict(zip(table.headings, row, strict=True)) for row in table.rows]
    tell(
        rank=found.rank,
        coordinates=_plain_rows(meaning),
        inputs=list(found.input_names),
        attribution=meaning["attribution"].values,
    )
    console = terminal()
    for row in rows:
        console.print(labelled(row.items()))
        console.print()
    return 0


def _candidates(request: InterpretRequest) -> "dict[str, np.ndarray]":
    """The columns that --candidates names.

    Raises:
        DataError: it names nothing, or what DATA does not have.
    """
    from isthmus.cli.run_folder import builtin_name
    from isthmus.errors import DataError
    from isthmus.tasks.files import columns_beside
    from isthmus.tasks.names import names_in

    if request.candidates is None:
        return {}
    if not (names := names_in(request.candidates)):
        raise DataError("--candidates: names no column. Give one or several, separated by commas.")
    if request.data is None or builtin_name(request.data) is not None:
        raise DataError("--candidates: needs DATA, a file that has these columns.")
    return columns_beside(request.data, names, request.reading.options())


def _plain_rows(meaning: "xr.Dataset") -> list[dict[str, object]]:
    """The rows as numbers and whole names."""
    names = [str(name) for name in meaning["input"].values]
    columns = (meaning[name].values.tolist() for name in ("coordinate", "order", "error_saved", "attribution"))
    found: list[dict[str, object]] = [
        {"coordinate": number, "order": order, "error_saved": saved, "attribution": dict(zip(names, row, strict=True))}
        for number, order, saved, row in zip(*columns, strict=True)
    ]
    if "distance_correlation" in meaning:
        others = [str(name) for name in meaning["candidate"].values]
        for one, row in zip(found, meaning["distance_correlation"].values.tolist(), strict=True):
            one["distance_correlation"] = dict(zip(others, row, strict=True))
    return found


def _stored(folder: Path, found: "Discovery") -> "xr.Dataset":
    """What the run stored of its coordinates.

    Raises:
        DataError: nothing, or what is damaged or of another run.
    """
    from isthmus.discovery.files.storage import INTERPRETATION, read_beside
    from isthmus.errors import DataError

    again = "Give DATA, the rows to judge by."
    meaning = read_beside(folder, INTERPRETATION)
    if meaning is None:
        raise DataError(f"{folder}: stored no interpretation. {again}")
    # what a run from before its checksum was kept can be told by
    shape = (found.encoder.dimensions[-1], len(found.input_names))
    names = tuple(map(str, meaning["input"].values)) if "input" in meaning.coords else ()
    if names != found.input_names or "attribution" not in meaning or meaning["attribution"].shape != shape:
        raise DataError(f"{folder / INTERPRETATION}: is damaged or of another run (it has other columns). {again}")
    return meaning
