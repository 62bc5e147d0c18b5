"""What `isthmus factor` does: model and data in, two halves and a short table out."""

from collections.abc import Callable
from pathlib import Path

import torch
from rich.table import Table

from isthmus.cli.export_run import write_export
from isthmus.cli.model_data import module_rows
from isthmus.cli.terminal import terminal
from isthmus.discovery import factorise
from isthmus.discovery.chains.module_input import checked_input
from isthmus.discovery.chains.running_cost import num_parameters
from isthmus.discovery.files.export import check_onnx_extra
from isthmus.discovery.files.models import LoadedModel, read_model_file
from isthmus.errors import DataError, IsthmusError


def factor_in(  # noqa: PLR0913 - one argument per option
    folder: Path, model: Path, data: str, *, rank: int | None, layer: str | None, onnx: bool, factory: str | None,
    say: Callable[[str], None],
) -> int:  # fmt: skip
    """Cut the network of a file and write the halves into a folder; returns the exit code.

    Raises:
        DataError: the model or the data cannot be read, do not fit, or the cut is impossible; one line says why.
    """
    if onnx:
        check_onnx_extra()
    read = loaded(model, factory, say)
    x = module_rows("factor", data, read)
    number = int(layer) if layer is not None and layer.isdecimal() else layer
    try:
        halves = factorise(read.module, x, rank, layer=number)
    except IsthmusError:
        raise
    except ValueError as error:
        raise DataError(str(error)) from error
    with torch.no_grad():
        coordinates = halves.encoder(checked_input("factor", halves.encoder, x, least_rows=2))
    facts = {
        "command": "factor", "model": str(model), "data": data, "rank": halves.rank, "layer": halves.layer,
        "relative_error": halves.relative_error,
    }  # fmt: skip
    x = x.to(coordinates.dtype) if x.is_floating_point() else x
    files = write_export(
        folder, {"encoder": (halves.encoder, x), "decoder": (halves.decoder, coordinates)}, facts, onnx=onnx
    )
    table = Table.grid(padding=(0, 2))
    table.add_row("network", f"{read.what}, {num_parameters(read.module)} parameters")
    table.add_row("cut at", f"layer {halves.layer}, through {halves.rank} coordinates")
    table.add_row("relative error", f"{halves.relative_error:.3g} on {len(x)} samples")
    table.add_row("encoder", f"{num_parameters(halves.encoder)} parameters")
    table.add_row("decoder", f"{num_parameters(halves.decoder)} parameters")
    show(table, folder, files)
    return 0


def loaded(model: Path, factory: str | None, say: Callable[[str], None]) -> LoadedModel:
    """The model of a file; what was done for it is said."""
    if factory is not None:
        say(f"--factory {factory}: runs your code to make the network.")
    return read_model_file(model, factory=factory)


def show(table: Table, folder: Path, files: list[str]) -> None:
    """Print a table, and where the files are."""
    console = terminal()
    console.print(table)
    console.print(f"written: {folder} ({', '.join(files)})", soft_wrap=True, markup=False, highlight=False)
