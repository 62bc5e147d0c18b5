"""`isthmus factor MODEL`: any network cut in two halves through k coordinates. The cut itself: `discovery`."""

from pathlib import Path
from typing import Annotated

import typer


def factor(
    model: Annotated[Path, typer.Argument(help="A folder of discover, .safetensors, a state dict (.pt), or .pt2.")],
    data: Annotated[str, typer.Option(help="Samples that the network takes: a file, or builtin:NAME.")],
    rank: Annotated[int | None, typer.Option(min=1, help="Number of coordinates; default: the gap.")] = None,
    layer: Annotated[str | None, typer.Option(help="Layer to cut, by number or name; default: the best.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write; default runs/MODEL-factor.")] = None,
    onnx: Annotated[bool, typer.Option("--onnx", help="Write ONNX files too (extra onnx).")] = False,
    factory: Annotated[str | None, typer.Option(help="module:callable that makes the network; runs your code.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Remove an older export from the folder first.")] = False,
) -> int:
    """Cut a network in two: encoder and decoder as safetensors and .pt2, and the error of the cut.

    Exit codes: 0 done, 2 bad input, 130 interrupted.
    """
    from isthmus.cli.interrupts import terminate_like_interrupt, warnings_as_lines
    from isthmus.cli.run_folder import chosen_export_folder

    folder = chosen_export_folder(model, data, out, "factor", replace=replace)

    from isthmus.cli.export_run import Given, factor_in  # torch and the rest: only once the folder may be written
    from isthmus.cli.terminal import notes

    with terminate_like_interrupt(), warnings_as_lines(notes()):
        return factor_in(folder, Given(model, data, factory, onnx), rank=rank, layer=layer)
