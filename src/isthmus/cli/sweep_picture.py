"""The picture of a sweep's folder: numbers against a setting. The lines themselves: `plots.sweeps`.

Apart from `sweep_folder`, whose table is to be there before matplotlib would be.
"""

import difflib
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import typer
from matplotlib.figure import Figure

from isthmus import plots
from isthmus.cli.output_file import checked_output
from isthmus.cli.sweep_folder import rows_of
from isthmus.errors import DataError
from isthmus.plots.style import SIZE, own_settings
from isthmus.sweeps.folder import SweepFolder
from isthmus.sweeps.frames import run_table
from isthmus.sweeps.numbers import NUMBERS
from isthmus.writing.atomic import atomic_path


def draw(
    folder: Path, axis: str | None, by: str | None, quantities: Sequence[str], path: Path, *, replace: bool = False
) -> int:
    """Numbers against a setting, one panel each, as a file; exit code 0.

    Raises:
        DataError: a name that is no setting or number of these runs, or an extension that is no picture.
    """
    if path.suffix.lower() not in {".png", ".svg"}:
        raise DataError(f"--out {path}: unknown extension {path.suffix!r}. Use .png or .svg.")
    place = SweepFolder(folder)
    checked_output(path, inputs=[folder], replace=replace)
    table = run_table(rows_of(place))
    numeric = [name for name in table.columns if "." in name and pd.api.types.is_numeric_dtype(table[name])]
    if not numeric:
        raise DataError(f"{folder}: no setting differs between its runs. Sweep over one to draw it.")
    many_first = sorted(
        (name for name in numeric if name.rpartition(".")[2] != "seed"), key=lambda n: -table[n].nunique()
    )
    settings = [name for name in table.columns if "." in name]
    lines = _column(by, settings, "--by") if by else None
    free = [name for name in (many_first or numeric) if name != lines]
    along = _column(axis, numeric, "--axis") if axis else (free or numeric)[0]
    if along == lines:
        raise DataError(f"--by {by}: that is the axis already. Give another setting, or another one with --axis.")
    if lines is None:
        lines = next((name for name in many_first if name != along), None)
    names = [_column(name, NUMBERS, "--quantity") for name in quantities]
    with own_settings():
        figure = Figure(figsize=(SIZE[0] * len(names), SIZE[1]), layout="constrained")
        for number, name in enumerate(names, 1):
            plots.sweep_lines(table, figure.add_subplot(1, len(names), number), axis=along, quantity=name, by=lines)
        with atomic_path(path) as temporary:
            figure.savefig(temporary, dpi=200)
    typer.echo(f"{path}: {', '.join(names)} against {along}" + (f", by {lines}" if lines else ""))
    return 0


def _column(name: str, known: Sequence[str], option: str) -> str:
    """The column called `name`, or by its key alone."""
    for column in known:
        if name in {column, column.rpartition(".")[2]}:
            return column
    near = difflib.get_close_matches(name, [*known, *(column.rpartition(".")[2] for column in known)], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise DataError(f"{option} {name}: unknown.{hint} Known are {', '.join(known)}.")
