"""`isthmus factor MODEL` and `isthmus compress MODEL`: any network cut in two halves, or made smaller.

What both are asked for: here. What they write and print: `export_run`. The cut and the moves: `discovery`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.interrupts import terminate_like_interrupt, warnings_as_lines
from isthmus.cli.run_folder import chosen_export_folder
from isthmus.cli.shared_options import Factory, Key, Model, Samples, with_options
from isthmus.errors import DataError


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The options that both commands have, by their names on the command line."""

    model: Model
    data: Samples
    out: Annotated[Path | None, typer.Option(help="Folder to write; default runs/MODEL-COMMAND.")] = None
    onnx: Annotated[bool, typer.Option("--onnx", help="Write ONNX too (extra onnx).")] = False
    factory: Factory = None
    key: Key = None
    replace: Annotated[bool, typer.Option("--replace", help="Remove an older export from the folder first.")] = False

    def writable_folder(self, command: str) -> Path:
        """The folder to write, --out or runs/MODEL-COMMAND, after checking that it may be.

        Raises:
            DataError: it cannot be written, holds an input or other files, or an older export that is to stay.
        """
        return chosen_export_folder(self.model, self.data, self.out, command, replace=self.replace)


@with_options(ExportRequest)
def factor(
    request: ExportRequest,
    rank: Annotated[int | None, typer.Option(min=1, help="Number of coordinates; default: as diagnose reads.")] = None,
    layer: Annotated[str | None, typer.Option(help="Layer to cut, by number or name; default: the best.")] = None,
) -> int:
    """Cut a network in two: encoder and decoder as safetensors and .pt2, and the error of the cut.

    Exit codes: 0 done, 2 bad input, 130 interrupted.
    """
    folder = request.writable_folder("factor")
    from isthmus.cli.export_run import factor_in  # torch and the rest: only once the folder may be written
    from isthmus.cli.terminal import Notes

    with terminate_like_interrupt(), warnings_as_lines(Notes()):
        return factor_in(folder, request, rank=rank, layer=layer)


@with_options(ExportRequest)
def compress(
    request: ExportRequest,
    tolerance: Annotated[float, typer.Option(help="Largest relative error of the output on fresh samples.")],
    polish: Annotated[str | None, typer.Option(help="distil: train it briefly against the original outputs.")] = None,
    allow_slower: Annotated[
        bool, typer.Option("--allow-slower", help="Keep the smallest network, though it was measured to be slower.")
    ] = False,
) -> int:
    """Make a network smaller: parameters, operations and measured speed before and after, and what was left alone.

    Exit codes: 0 done (also "nothing can be saved at this tolerance"), 2 bad input, 3 the structure allowed nothing to
    be tried, 130 interrupted.
    """
    if not 0 < tolerance < float("inf"):
        raise DataError(f"--tolerance {tolerance:g}: needs a positive number, relative to the output's spread: 0.01.")
    if polish not in {None, "distil"}:
        raise DataError(f"--polish {polish}: there is only distil.")
    folder = request.writable_folder("compress")
    from isthmus.cli.export_run import compress_in  # torch and the rest: only once the request makes sense
    from isthmus.cli.terminal import Notes

    with terminate_like_interrupt(), warnings_as_lines(Notes()):
        return compress_in(folder, request, tolerance=tolerance, polish=polish, allow_slower=allow_slower)
