"""`isthmus region MODEL`: an exact two-dimensional slice of a network, drawn and measured. The cells: `networks`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Colour(StrEnum):
    """What colours the pieces."""

    RANK = "rank"
    CLASS = "class"


def region(
    model: Annotated[Path, typer.Argument(help="A folder that discover wrote, or a network saved as .safetensors.")],
    data: Annotated[str, typer.Option(help="A file with the input columns, or builtin:NAME.")],
    through: Annotated[
        str, typer.Option("--slice", help="Three rows that span it (ROW,ROW,ROW, from 1), or two input columns.")
    ],
    out: Annotated[Path, typer.Option(help="The picture: .png or .svg.")],
    at: Annotated[
        int | None, typer.Option(min=1, help="Two columns: the row that fixes the others; default mean.")
    ] = None,
    colour: Annotated[Colour | None, typer.Option(help="Colour by; default class for classifiers, else rank.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an older file at --out.")] = False,
) -> int:
    """Draw a network on a plane through the data, where it is exactly affine, and what that proves.

    A folder gives decoder o encoder, in the units of the data. Rank, norms and tripoints are exact on the slice.
    """
    from isthmus.cli.output_file import checked_output

    checked_output(out, kinds=[".png", ".svg"], inputs=[model, data], replace=replace)

    from isthmus.cli.interrupts import warnings_as_lines
    from isthmus.cli.region_model import read_model
    from isthmus.cli.region_run import draw, measure, plane, print_measured
    from isthmus.cli.terminal import Notes

    with warnings_as_lines(Notes()):
        chosen = read_model(model, data)
        where = plane(chosen, through, at)
    by_class = chosen.is_classifier if colour is None else colour is Colour.CLASS
    found = measure(chosen, where, by_class=by_class)
    draw(found, chosen, where, out)
    print_measured(found, chosen, out)
    return 0
