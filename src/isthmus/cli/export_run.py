"""What `isthmus factor` and `isthmus compress` do: model and data in, smaller networks and a short table out.

Modules are written as files, then export.json, which says what they are; only files of isthmus are ever removed. The
cut and the moves: `discovery`. The files: `discovery.files.export`.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from rich.table import Table
from rich.text import Text
from torch import Tensor, nn

from isthmus import __version__
from isthmus.cli.interrupts import ExitCode
from isthmus.cli.model_data import module_rows
from isthmus.cli.model_exports import ExportRequest
from isthmus.cli.run_folder import SUMMARY
from isthmus.cli.terminal import Notes, terminal
from isthmus.cli.voice import tell
from isthmus.discovery import Compression, compress, factorise
from isthmus.discovery.chains.module_input import checked_input
from isthmus.discovery.chains.running_cost import num_parameters
from isthmus.discovery.files.export import check_onnx_extra, files_of, write_module
from isthmus.discovery.files.json_values import plain
from isthmus.discovery.files.models import LoadedModel, read_model_file
from isthmus.errors import DataError, IsthmusError
from isthmus.networks.copies import on_copy
from isthmus.tasks.arrays import counted
from isthmus.tasks.names import number_in
from isthmus.writing.atomic import remove_leftovers, write_text
from isthmus.writing.folder_lock import only_writer

FORMAT, FORMAT_VERSION = "isthmus export", 1
PARTS = ("encoder", "decoder", "network")
MOST_PLACES = 3  # named of each kind on the terminal
_PARTICULAR = re.compile(r" \([^()]*\)$")
_NUMBERS = (
    "relative_error", "error_bound", "rows_reporting", "parameters_before", "parameters_after", "flops_before",
    "flops_after", "seconds_before", "seconds_after", "speedup", "speedup_interval",
)  # fmt: skip


def factor_in(folder: Path, request: ExportRequest, *, rank: int | None, layer: str | None) -> int:
    """Cut the network of a file and write the halves into a folder; returns the exit code.

    Raises:
        DataError: the model or the data cannot be read, do not fit, or the cut is impossible; one line says why.
    """
    read, x = _read("factor", request)
    number = layer if layer is None or (place := number_in(layer)) is None else place
    try:
        halves = factorise(read.module, x, rank, layer=number)
    except IsthmusError:
        raise
    except ValueError as error:
        raise DataError(str(error)) from error
    with torch.no_grad():
        coordinates = on_copy(halves.encoder, checked_input("factor", halves.encoder, x, least_rows=2))
    facts = {
        "command": "factor", "model": str(request.model), "data": request.data, "rank": halves.rank,
        "layer": halves.layer, "relative_error": halves.relative_error,
        "heldout_error": halves.heldout_error if math.isfinite(halves.heldout_error) else None,
    }  # fmt: skip
    x = x.to(coordinates.dtype) if x.is_floating_point() else x
    files = _write(
        folder, {"encoder": (halves.encoder, x), "decoder": (halves.decoder, coordinates)}, facts, onnx=request.onnx
    )
    table = Table.grid(padding=(0, 2))
    table.add_row("network", f"{read.what}, {num_parameters(read.module)} parameters")
    table.add_row("cut at", f"layer {halves.layer}, through {_numbers_of(coordinates, halves.rank)}")
    table.add_row("relative error", f"{halves.heldout_error:.3g} on rows that the cut has not seen (a fifth in turn)")
    table.add_row("on its own rows", f"{halves.relative_error:.3g} on {len(x)} samples")
    table.add_row("encoder", f"{num_parameters(halves.encoder)} parameters")
    table.add_row("decoder", f"{num_parameters(halves.decoder)} parameters")
    _show(table, folder, files)
    return ExitCode.DONE


def compress_in(
    folder: Path, request: ExportRequest, *, tolerance: float, polish: str | None = None, allow_slower: bool = False
) -> int:
    """Compress the network of a file and write it into a folder; returns the exit code.

    Raises:
        DataError: the model or the data cannot be read or do not fit; one line says why.
    """
    read, x = _read("compress", request)
    found = compress(read.module, x, tolerance=tolerance, polish=polish, allow_slower=allow_slower)
    numbers = {name: getattr(found, name) for name in _NUMBERS}
    facts = {
        "command": "compress", "model": str(request.model), "data": request.data, "tolerance": tolerance,
        "polish": polish, "allow_slower": allow_slower, **numbers,
        "changes": [asdict(change) for change in found.changes], "refused": found.refused,
    }  # fmt: skip
    files = _write(folder, {"network": (found.module, x)}, facts, onnx=request.onnx)
    _print_moves(found)
    _show(_table(found), folder, files)
    if found.changes:
        terminal().print(_premise(found.rows_reporting))
    return ExitCode.DONE if found.changes or found.was_tried else ExitCode.DOUBTFUL


def _premise(rows: int) -> str:
    return (
        f"The bound takes fresh rows as draws like these. What happens on fewer than 3 in {rows} of them, the {rows} "
        "that had no say do not show: rows of a rarer kind may be further off. More rows show more."
    )


def _numbers_of(coordinates: Tensor, rank: int) -> str:
    """What passes for one sample, in words: tokens and pixels have coordinates of their own."""
    numbers = coordinates[0].numel()
    said = counted(rank, "coordinate")
    return said if numbers == rank else f"{said} at each of {numbers // rank} places: {numbers} numbers a sample"


def _print_moves(found: Compression) -> None:
    """Say the moves and what was left alone, one line for all places of one kind; export.json has every place."""
    console = terminal()
    saved, moved = Counter[str](), dict[str, list[str]]()
    for change in found.changes:
        saved[change.what] += change.parameters
        moved.setdefault(change.what, []).append(" to ".join(dict.fromkeys(change.layers)))
    if moved:
        console.print("parameters saved:")
        console.print(_by_kind({what: (f"{saved[what]:,}", places) for what, places in moved.items()}))
    if found.refused:
        console.print(f"places where no more was saved ({SUMMARY} has all of them):")
        console.print(_by_kind(_left_alone(found)))
    if found.is_unchanged:
        console.print("Nothing was saved: the network that is written is the one that came.")


def _left_alone(found: Compression) -> dict[str, tuple[str, list[str]]]:
    """Reason -> (number of places, their names); a reason loses what is particular to a place where others share it."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for name, reason in found.refused:
        kinds.setdefault(_PARTICULAR.sub("", reason), []).append((name, reason))
    return {
        kind if len(places) > 1 else places[0][1]: (str(len(places)), [name for name, _ in places])
        for kind, places in kinds.items()
    }


def _by_kind(kinds: Mapping[str, tuple[str, list[str]]]) -> Table:
    """A number, what it counts, and the first few places, as one row for each kind."""
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for what, (number, places) in kinds.items():
        places = [*dict.fromkeys(places)]
        more = len(places) - MOST_PLACES
        named = ", ".join(places[:MOST_PLACES]) + (f" and {more} more" if more > 0 else "")
        table.add_row(Text(f"  {number}"), Text(f"{what}: {named}" if named else what))
    return table


def _table(found: Compression) -> Table:
    table = Table("", "before", "after", box=None, pad_edge=False)
    table.add_row("parameters", f"{found.parameters_before}", f"{found.parameters_after}")
    table.add_row("operations per sample", f"{found.flops_before}", f"{found.flops_after}")
    table.add_row("ms per pass (median)", f"{1e3 * found.seconds_before:.3g}", f"{1e3 * found.seconds_after:.3g}")
    least, most = found.speedup_interval
    table.add_row("speed (95 % interval)", "1", f"{found.speedup:.2f} ({least:.2f} to {most:.2f})")
    table.add_row("relative error on unseen rows", "0", f"{found.relative_error:.4g}")
    table.add_row("of fresh rows, 95 % bound", "0", f"{found.error_bound:.4g}")
    return table


def _read(command: str, request: ExportRequest) -> tuple[LoadedModel, Tensor]:
    """The network and its samples; what is done for it is said."""
    if request.onnx:
        check_onnx_extra()
    if request.factory is not None:
        Notes()(f"--factory {request.factory}: runs your code to make the network.")
    read = read_model_file(request.model, factory=request.factory, key=request.key)
    return read, module_rows(command, request.data, read)


def _write(
    folder: Path, modules: Mapping[str, tuple[nn.Module, Tensor]], facts: Mapping[str, object], *, onnx: bool
) -> list[str]:
    """Write every module with its samples into the folder, then export.json; returns the names of the files.

    Raises:
        DataError: a module cannot be exported.
        OSError: a file cannot be written.
    """
    with only_writer(folder):
        return _written(folder, modules, facts, onnx=onnx)


def _written(
    folder: Path, modules: Mapping[str, tuple[nn.Module, Tensor]], facts: Mapping[str, object], *, onnx: bool
) -> list[str]:
    # the summary first: without it the rest is no export
    for name in (SUMMARY, *(file for part in PARTS for file in files_of(part))):
        (folder / name).unlink(missing_ok=True)
    remove_leftovers(folder)
    written: list[str] = []
    described: dict[str, object] = {}
    try:
        for name, (module, x) in modules.items():
            own = write_module(folder, name, module, x, onnx=onnx)
            described[name] = own
            if reason := own.get("no_program"):
                Notes()(
                    f"{name}.pt2 is not written: {reason} {name}.safetensors has all numbers, by the names of layers."
                )
            written += [str(file) for file in files_of(name) if (folder / file).exists()]
    except BaseException:
        for name in (file for part in modules for file in files_of(part)):
            (folder / name).unlink(missing_ok=True)
        raise
    versions = {"isthmus": __version__, "torch": str(torch.__version__)}
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "versions": versions}
    content = plain({**head, **facts, "modules": described}, "export")
    tell(folder=folder, **{name: value for name, value in facts.items() if name != "command"})
    write_text(folder / SUMMARY, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return [*written, SUMMARY]


def _show(table: Table, folder: Path, files: list[str]) -> None:
    """Print a table, and where the files are."""
    console = terminal()
    console.print(table)
    console.print(f"written: {folder} ({', '.join(files)})", soft_wrap=True)
