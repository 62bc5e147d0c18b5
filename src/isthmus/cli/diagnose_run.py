"""What `isthmus diagnose` does: model and data in, a page, the verdict and a table by layer out."""

from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from isthmus.cli.diagnosis_data import DiagnosisData, diagnosis_data
from isthmus.cli.diagnosis_request import DiagnosisRequest
from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.outcome import print_lines
from isthmus.cli.terminal import terminal
from isthmus.diagnostics import Diagnosis, diagnose
from isthmus.diagnostics.samples import Inputs
from isthmus.discovery.chains.running_cost import num_parameters
from isthmus.discovery.files.models import read_model_file
from isthmus.errors import DataError, IsthmusError
from isthmus.reports import report, short_layer_table, verdict_of
from isthmus.reports.tables import TableText
from isthmus.training import Limits

MOST_ROWS = 40  # of the table on the terminal; the page has them all
SHORTEST_NAME = 12
LONG = 1e9  # samples times parameters from which on the cost is said before the work starts


def diagnose_to(page: Path, request: DiagnosisRequest, *, say: Callable[[str], None]) -> int:
    """Diagnose the network of a file, write the page, print the verdict; returns the exit code.

    Raises:
        DataError: the model or the data cannot be read or do not fit; one line says why.
    """
    read = read_model_file(request.model, factory=request.factory)
    given = diagnosis_data(request.data, read, target=request.target, classes=request.classes)
    if request.ridge is not None and given.y is None:
        raise DataError("--ridge: is used together with targets. Add --target or --classes, or leave it out.")
    num_samples = len(next(iter(given.x.values())) if isinstance(given.x, dict) else given.x)
    is_long = num_samples * num_parameters(read.module) >= LONG

    def diagnosed(x: Inputs) -> Diagnosis:
        return diagnose(
            read.module, x, given.y, ridge=request.ridge, limits=Limits(memory=request.bytes_of_memory),
            progress=say if is_long else None,
        )  # fmt: skip

    found = _first_that_works(diagnosed, given)
    if read.note:
        say(read.note)
    found.layers.attrs |= {"network": read.what, "data": f"{request.data}, {num_samples} samples"}
    page.parent.mkdir(parents=True, exist_ok=True)
    report(found, page, command=request.command)
    print_diagnosis(found, page)
    return ExitCode.DONE


def _first_that_works(diagnosed: Callable[[Inputs], Diagnosis], given: DiagnosisData) -> Diagnosis:
    """Samples as numbers; where the module refuses those, whole numbers as such (tokens)."""
    try:
        return _in_one_line(diagnosed, given.x)
    except DataError:
        if given.whole is None:
            raise
        try:
            return _in_one_line(diagnosed, given.whole)
        except IsthmusError:
            pass
        raise


def _in_one_line(diagnosed: Callable[[Inputs], Diagnosis], x: Inputs) -> Diagnosis:
    try:
        return diagnosed(x)
    except IsthmusError:
        raise
    except (ValueError, TypeError) as error:
        raise DataError(str(error)) from error


def print_diagnosis(found: Diagnosis, page: Path) -> None:
    """Say the rank with its evidence, what each layer does, what was skipped, and where the page lies."""
    console = terminal()
    print_lines(console, verdict_of(found), "bold")
    _print_layers(console, short_layer_table(found))
    console.print()
    for warning in found.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"))
    if found.skipped:
        console.print(Text(f"{len(found.skipped)} modules have no row; the report says why"))
    console.print(Text(f"Report: {page}"), soft_wrap=True)


def _print_layers(console: Console, content: TableText) -> None:
    """The first layers, one line each; names that are too long are abbreviated, the page has them whole."""
    rows = content.rows[:MOST_ROWS]
    widths = [max(map(len, column)) for column in zip(content.headings, *rows, strict=True)]
    taken = sum(width + 2 for place, width in enumerate(widths) if place not in content.words)
    room = max(SHORTEST_NAME, (console.width - taken) // max(len(content.words), 1) - 2)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, heading in enumerate(content.headings):
        table.add_column(Text(heading), justify="left" if place in content.words else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(_abbreviated(c, room) if i in content.words else c) for i, c in enumerate(row)))
    console.print(table)
    left = len(content.rows) - MOST_ROWS
    if left > 0:
        console.print(Text(f"and {left} more layers: see the report", style="dim"))


def _abbreviated(name: str, room: int) -> str:
    """bert.encoder.layer.0.output.dense as b.e.l.0.o.dense where there is no room for more; numbers are kept."""
    parts = name.split(".")
    for place, part in enumerate(parts[:-1]):
        if len(".".join(parts)) <= room:
            break
        parts[place] = part if part.isdecimal() else part[:1]
    short = ".".join(parts)
    return short if len(short) <= room else f"…{short[len(short) - room + 1 :]}"
