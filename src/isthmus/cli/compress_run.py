"""What `isthmus compress` does: model and data in, a smaller network and a table before/after out."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.export_folder import SUMMARY
from isthmus.cli.export_run import write_export
from isthmus.cli.factor_run import loaded, show
from isthmus.cli.model_data import module_rows
from isthmus.cli.terminal import terminal
from isthmus.discovery import Compression, compress
from isthmus.discovery.files.export import check_onnx_extra

MOST_PLACES = 3  # named of each kind on the terminal
_PARTICULAR = re.compile(r" \([^()]*\)$")


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
    return ExitCode.DONE if found.changes or found.was_tried else ExitCode.DOUBTFUL


_NUMBERS = (
    "relative_error", "parameters_before", "parameters_after", "flops_before", "flops_after", "seconds_before",
    "seconds_after", "speedup",
)  # fmt: skip


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
        console.print("Nothing was saved: the network that is written is the one that came.", markup=False)


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
    table.add_row("speed", "1", f"{found.speedup:.2f}")
    table.add_row("relative error, held out", "0", f"{found.relative_error:.4g}")
    return table
