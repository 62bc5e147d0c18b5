"""What `isthmus diagnose` does: model and data in, a page, the verdict and a table by layer out."""

from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from isthmus.cli.diagnosis_data import DiagnosisData, diagnosis_data
from isthmus.cli.diagnosis_request import DiagnosisRequest
from isthmus.cli.outcome import DONE, print_lines
from isthmus.diagnostics import Diagnosis, diagnose
from isthmus.diagnostics.samples import Inputs
from isthmus.discovery.chains.running_cost import num_parameters
from isthmus.discovery.files.models import read_model_file
from isthmus.errors import DataError, IsthmusError
from isthmus.reports import report, short_layer_table, verdict_of
from isthmus.training import Limits

MOST_ROWS = 40  # of the table on the terminal; the page has them all
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
    return DONE


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
    console = Console()
    print_lines(console, verdict_of(found), "bold")
    content = short_layer_table(found)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, heading in enumerate(content.headings):
        is_words = place in content.words
        table.add_column(
            Text(heading), justify="left" if is_words else "right", overflow="fold", no_wrap=not is_words
        )  # fmt: skip
    for row in content.rows[:MOST_ROWS]:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
    left = len(content.rows) - MOST_ROWS
    if left > 0:
        console.print(Text(f"and {left} more layers: see the report", style="dim"))
    console.print()
    for warning in found.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"))
    if found.skipped:
        console.print(Text(f"{len(found.skipped)} modules have no row; the report says why"))
    console.print(Text(f"Report: {page}"), soft_wrap=True)
