"""`isthmus compress MODEL`: any network made smaller within a tolerance. The moves themselves: `discovery`."""

from pathlib import Path
from typing import Annotated

import typer


def compress(
    model: Annotated[Path, typer.Argument(help="A folder of discover, .safetensors, a state dict (.pt), or .pt2.")],
    data: Annotated[str, typer.Option(help="Samples that the network takes: a file, or builtin:NAME.")],
    tolerance: Annotated[float, typer.Option(help="Largest relative error of the output on held-out samples.")],
    out: Annotated[Path | None, typer.Option(help="Folder to write; default runs/MODEL-compress.")] = None,
    onnx: Annotated[bool, typer.Option("--onnx", help="Write an ONNX file too (extra onnx).")] = False,
    factory: Annotated[str | None, typer.Option(help="module:callable that makes the network; runs your code.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Remove an older export from the folder first.")] = False,
) -> int:
    """Make a network smaller: parameters, operations and measured speed before and after, and what was left alone.

    Exit codes: 0 done (also "nothing can be saved at this tolerance"), 2 bad input, 3 the structure allowed nothing to
    be tried, 130 interrupted.
    """
    from isthmus.cli.interrupts import terminate_like_interrupt, warnings_as_lines
    from isthmus.cli.run_folder import chosen_export_folder
    from isthmus.errors import DataError

    if not 0 < tolerance < float("inf"):
        raise DataError(f"--tolerance {tolerance:g}: needs a positive number, relative to the output's spread: 0.01.")
    folder = chosen_export_folder(model, data, out, "compress", replace=replace)

    from isthmus.cli.export_run import Given, compress_in  # torch and the rest: only once the request makes sense
    from isthmus.cli.terminal import notes

    with terminate_like_interrupt(), warnings_as_lines(notes()):
        return compress_in(folder, Given(model, data, factory, onnx), tolerance=tolerance)
