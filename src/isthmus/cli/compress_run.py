"""What `isthmus compress` does: model and data in, a smaller network and a table before/after out."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from isthmus.cli.export_run import write_export
from isthmus.cli.factor_run import loaded, show
from isthmus.cli.model_data import module_rows
from isthmus.discovery import Compression, compress
from isthmus.discovery.files.export import check_onnx_extra

DONE, NOTHING_TRIED = 0, 3


def compress_in(  # noqa: PLR0913 - one argument per option
    folder: Path, model: Path, data: str, *, tolerance: float, onnx: bool, factory: str | None,
    say: Callable[[str], None],
) -> int:  # fmt: skip
    """Compress the network of a file and write it into a folder; returns the exit code.

    Raises:
        DataError: the model or the data cannot be read or do not fit; one line says why.
    """
    if onnx:
        check_onnx_extra()
    read = loaded(model, factory, say)
    x = module_rows("compress", data, read)
    found = compress(read.module, x, tolerance=tolerance)
    numbers = {name: getattr(found, name) for name in _NUMBERS}
    facts = {
        "command": "compress", "model": str(model), "data": data, "tolerance": tolerance, **numbers,
        "changes": [asdict(change) for change in found.changes], "refused": found.refused,
    }  # fmt: skip
    files = write_export(folder, {"network": (found.module, x)}, facts, onnx=onnx)
    _print_moves(found)
    show(_table(found), folder, files)
    return DONE if found.changes or found.was_tried else NOTHING_TRIED


_NUMBERS = (
    "relative_error", "parameters_before", "parameters_after", "flops_before", "flops_after", "seconds_before",
    "seconds_after", "speedup",
)  # fmt: skip


def _print_moves(found: Compression) -> None:
    console = Console()
    for change in found.changes:
        layers = " to ".join(dict.fromkeys(change.layers))
        console.print(f"{layers}: {change.what}, {change.parameters} parameters saved", markup=False, highlight=False)
    for name, reason in found.refused:
        console.print(f"left alone: {name}: {reason}", markup=False, highlight=False)
    if found.is_unchanged:
        console.print("Nothing was saved: the network that is written is the one that came.", markup=False)


def _table(found: Compression) -> Table:
    table = Table("", "before", "after", box=None, pad_edge=False)
    table.add_row("parameters", f"{found.parameters_before}", f"{found.parameters_after}")
    table.add_row("operations per sample", f"{found.flops_before}", f"{found.flops_after}")
    table.add_row("ms per pass (median)", f"{1e3 * found.seconds_before:.3g}", f"{1e3 * found.seconds_after:.3g}")
    table.add_row("speed", "1", f"{found.speedup:.2f}")
    table.add_row("relative error, held out", "0", f"{found.relative_error:.4g}")
    return table
