"""`isthmus discover DATA`: options in, a run folder and a short verdict out. The search itself: `discovery`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.request import LARGEST, Request
from isthmus.cli.run_folder import check_writable, chosen_folder


class NetworkName(StrEnum):
    """The networks that can be trained, as `discover` calls them."""

    CONNECTED = "fully-connected"
    LEAKY = "leaky"
    RESNET = "resnet"


def discover(  # noqa: PLR0913 - one argument per option
    data: Annotated[str, typer.Argument(help="A .csv, .tsv, .parquet, .npy or .npz file, or builtin:NAME.")],
    target: Annotated[str | None, typer.Option(help="Columns to predict as numbers: COL,COL.")] = None,
    autoencode: Annotated[bool, typer.Option("--autoencode", help="Reconstruct the data themselves.")] = False,
    classes: Annotated[str | None, typer.Option(help="The column whose values are classes to predict.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; default runs/DATA-TARGET-....")] = None,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST, help="Of builtin data, the split and the starts.")] = 0,
    max_seconds: Annotated[float | None, typer.Option(help="Stop searching after so many seconds.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Remove an older run from the folder first.")] = False,
    ordered: Annotated[bool, typer.Option("--ordered", help="Rows are a time series: hold out blocks.")] = False,
    groups: Annotated[str | None, typer.Option(help="Column of labels; rows of one label stay together.")] = None,
    control: Annotated[bool, typer.Option("--control", help="Also run on random data of the same covariance.")] = False,
    ridge: Annotated[str | None, typer.Option(help="Penalties to try, largest first: 1e-2,1e-3.")] = None,
    starts: Annotated[int | None, typer.Option(min=1, help="Starts at each ridge.")] = None,
    depth: Annotated[int | None, typer.Option(min=2, help="Number of weight matrices, or residual layers.")] = None,
    evaluations: Annotated[
        int | None, typer.Option(min=10, max=LARGEST, help="Gradients per start: fewer is rougher.")
    ] = None,
    network: Annotated[
        NetworkName | None, typer.Option(help="What is trained; default fully-connected, which is fastest.")
    ] = None,
    pictures: Annotated[bool, typer.Option(help="Write the pictures and the page; --resume makes them later.")] = True,
    depth_path: Annotated[bool, typer.Option("--depth-path", help="Also find the rank at several depths.")] = False,
    candidates: Annotated[
        str | None, typer.Option(help="Columns to compare the coordinates with, no inputs: COL,COL.")
    ] = None,
) -> int:
    """How many dimensions DATA needs: writes a run folder with a report, and says the verdict.

    Exit codes: 0 done (also "no sharp rank"), 2 bad input, 3 finished but doubtful, 130 interrupted.
    """
    request = Request(
        data, target, autoencode, classes, seed, max_seconds, ordered, groups, control, ridge, starts, depth,
        evaluations, None if network is None else network.value, depth_path, candidates,
    )  # fmt: skip
    folder = chosen_folder(request.default_folder, out, resume, replace=replace)
    check_writable(folder)
    from isthmus.cli.discovery_run import run_in  # torch and the rest: only once the request makes sense

    return run_in(folder, request, resumed=resume is not None, replace=replace, pictures=pictures)
