"""`isthmus cost MATRIX`: what the least network that computes a matrix costs. The formulas: `theory`."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.voice import tell


class CostKind(StrEnum):
    """Which networks compete."""

    CONNECTED = "connected"
    DIAGONAL = "diagonal"
    RESNET1 = "resnet1"
    RESNET2 = "resnet2"


def cost(
    matrix: Annotated[Path, typer.Argument(help="A .csv, .tsv, .npy, .npz or zarr with one matrix.")],
    depth: Annotated[int, typer.Option(min=1, max=2**53, help="Weight matrices, or residual blocks.")],
    kind: Annotated[CostKind, typer.Option(help="Linear networks: plain, diagonal, residual with blocks of 1 or 2.")],
    residual_weight: Annotated[float | None, typer.Option(help="Weight of the blocks in a resnet; default 1.")] = None,
    rank: Annotated[
        int | None, typer.Option(min=0, help="Singular values to keep; default those above rounding.")
    ] = None,
) -> int:
    """Least parameter norm with which a linear network computes MATRIX, and how it hangs on the rank."""
    from isthmus.errors import DataError

    is_residual = kind in {CostKind.RESNET1, CostKind.RESNET2}
    if residual_weight is not None and not is_residual:
        raise DataError(f"--residual-weight: means nothing for --kind {kind}. Leave it out, or ask for a resnet.")
    lam = 1.0 if residual_weight is None else residual_weight
    if not (lam > 0 and math.isfinite(lam)):
        raise DataError(f"--residual-weight {lam:g}: needs a positive number.")

    from isthmus.cli.cost_table import cost_reading, facts_of, print_reading
    from isthmus.tasks import read_matrix

    values = read_matrix(matrix)
    reading = cost_reading(
        values, name=str(matrix), depth=depth, kind=kind, residual_weight=lam if is_residual else None, rank=rank
    )
    tell(**facts_of(reading))
    print_reading(reading)
    return 0
