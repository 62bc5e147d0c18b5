"""What `isthmus diagnose` does: model and data in, a page, the verdict and a table by layer out.

Samples without targets: `model_data`. Columns of tables and their refusals: `tasks`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor

from isthmus.cli.data import TargetChoice, builtin_task, choice_of, loss_option
from isthmus.cli.diagnose import DiagnosisRequest
from isthmus.cli.interrupts import ExitCode
from isthmus.cli.model_data import ARRAYS, model_rows, named_arrays, own_arrays, whole_numbers
from isthmus.cli.run_folder import builtin_name
from isthmus.cli.terminal import print_headed, print_place, terminal
from isthmus.cli.voice import tell
from isthmus.diagnostics import Diagnosis, diagnose
from isthmus.diagnostics.rank_budgets import rank_budgets
from isthmus.diagnostics.samples import Inputs
from isthmus.discovery.chains.running_cost import num_parameters
from isthmus.discovery.files.models import LoadedModel, read_model_file
from isthmus.errors import DataError, DataWarning, IsthmusError
from isthmus.networks.devices import device_argument
from isthmus.processes.shared_state import silenced
from isthmus.reports import block_table, cut_table, report, short_layer_table, verdict_of
from isthmus.reports.tables import TableText
from isthmus.tasks import Kind, read_table
from isthmus.tasks.array_files import is_archive, kind_of_array
from isthmus.tasks.arrays import check_finite, check_same_length, counted
from isthmus.tasks.picture_listing import is_picture_folder
from isthmus.tasks.table_options import AS_IT_COMES
from isthmus.tasks.target_files import file_apart, targets_apart
from isthmus.training import Limits
from isthmus.writing.atomic import write_text
from isthmus.writing.staying import made_folder

MOST_ROWS = 40  # of the table on the terminal; the page has them all
SHORTEST_NAME = 12
LONG = 1e9  # samples times parameters from which on the cost is said before the work starts
OWN_TARGETS = "y"  # of an .npz, or of builtin data


@dataclass(frozen=True, slots=True, eq=False)
class DiagnosisData:
    """What a module is diagnosed on.

    Attributes:
        x: the samples, float64; a dict by argument name from an .npz without x.
        whole: the samples of an array of whole numbers as such (tokens), or None.
        y: targets, numbers or classes (whole numbers), or None.
    """

    x: Inputs
    whole: Tensor | None = None
    y: Tensor | None = None


def diagnose_to(page: Path, request: DiagnosisRequest, *, say: Callable[[str], None]) -> int:
    """Diagnose the network of a file, write the page, print the verdict; returns the exit code.

    Raises:
        DataError: the model or the data cannot be read or do not fit; one line says why.
    """
    _check_device(request.device)
    read = read_model_file(request.model, factory=request.factory, key=request.key)
    given = diagnosis_data(request.data, read, target=request.target, classes=request.classes)
    if request.ridge is not None and given.y is None:
        raise DataError("--ridge: is used together with targets. Add --target or --classes, or leave it out.")
    if has_unused_targets(request.data, request):
        say(f"{request.data}: its y is not used. Add --target y, or --classes y, for the loss.")
    loss = loss_option(request.loss)
    num_samples = len(next(iter(given.x.values())) if isinstance(given.x, dict) else given.x)
    is_long = num_samples * num_parameters(read.module) >= LONG

    limits = Limits(seconds=request.max_seconds, memory=request.bytes_of_memory, rows=request.rows)

    def diagnosed(x: Inputs) -> Diagnosis:
        return diagnose(
            read.module, x, given.y, jacobians=request.jacobians, ridge=request.ridge, loss=loss, limits=limits,
            checkpoint=request.checkpoint, progress=say if is_long else None, device=request.device,
        )  # fmt: skip

    found = _first_that_works(diagnosed, given)
    if read.note:
        say(read.note)
    found.layers.attrs |= {"network": read.what, "data": f"{request.data}, {num_samples} samples"}
    made_folder(page.parent)
    report(found, page, command=request.command)
    print_diagnosis(found, page)
    if request.export is not None:
        write_text(request.export, json.dumps(rank_budgets(found), indent=1, ensure_ascii=False) + "\n")
        print_place(terminal(), "Ranks", request.export)
    return ExitCode.DONE


def _check_device(device: str | None) -> None:
    """Refuse what torch does not see, in one line.

    Raises:
        DataError: --device is none of its devices.
    """
    try:
        device_argument(device, f"--device {device}")
    except ValueError as error:
        raise DataError(str(error)) from None


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


def diagnosis_data(data: str, model: LoadedModel, *, target: str | None, classes: str | None) -> DiagnosisData:
    """The samples and targets of DATA.

    Args:
        data: a table, an array, or "builtin:NAME"; an .npz without x holds the module's arguments by their names.
        model: whose columns are found by name where it knows them.
        target: columns of numbers; "y" is the y of an .npz or the targets of builtin data.
        classes: the column of classes, likewise.

    Raises:
        DataError: the data cannot be read, have NaN, or lack a column; one line says where.
    """
    choice, path = choice_of(target, classes, autoencode=False), Path(data)
    asked = choice.target if choice.classes is None else (choice.classes,)
    by_name = named_arrays(path, but=asked)
    if not asked:
        x = model_rows(data, model) if by_name is None else by_name
        return DiagnosisData(x, None if by_name else whole_numbers(path))
    apart = file_apart(asked, (), path) if kind_of_array(path) in ARRAYS else None
    if apart is None and builtin_name(data) is None and not is_archive(path):
        return _of_table(data, model, choice)
    if apart is None and asked != (OWN_TARGETS,):
        raise DataError(f"{data}: has its own targets, called y. Give --target y, or --classes y.")
    as_classes = choice.classes is not None
    if apart is not None:
        y = _targets_apart(asked[0], apart, path, as_classes=as_classes)
    else:
        y = _own_targets(data, as_classes=as_classes, is_checked=by_name is not None)
    x = model_rows(data, model) if by_name is None else by_name
    num = len(x) if isinstance(x, Tensor) else len(next(iter(x.values())))
    check_same_length(num, len(y), name=data if apart is None else f"{data}, {apart}")
    return DiagnosisData(x, None if by_name else whole_numbers(path), y)


def _of_table(data: str, model: LoadedModel, choice: TargetChoice) -> DiagnosisData:
    """Samples and targets in columns of one table, or targets in a file beside it."""
    task = read_table(data, target=choice.target, classes=choice.classes, drop_constant=False)
    # pictures have the shape that the module takes, and what a table tells of them is no input
    x = model_rows(data, model) if model.input_names or is_picture_folder(data) else torch.from_numpy(np.array(task.x))
    assert task.y is not None
    y = task.y.argmax(1) if task.kind is Kind.CLASSIFICATION else task.y
    return DiagnosisData(x, None, torch.from_numpy(y))


def has_unused_targets(data: str, request: DiagnosisRequest) -> bool:
    """Whether a file holds targets beside samples, and nobody asked for them though they could be used."""
    is_asked = request.target is not None or request.classes is not None or request.jacobians is False
    return not is_asked and {"x", OWN_TARGETS} <= own_arrays(Path(data)).keys()


def _targets_apart(name: str, place: Path, data: Path, *, as_classes: bool) -> Tensor:
    """The targets in a file of their own, beside samples that keep their shape; of an array of images in its shape."""
    with silenced(DataWarning, ".* was flattened"):
        table = targets_apart((name,), (), data, AS_IT_COMES, as_classes=as_classes)
    assert table is not None
    if as_classes:
        return _as_classes(table.iloc[:, 0].to_numpy())
    array = own_arrays(place).get("x")
    numbers = table.to_numpy() if array is None or array.ndim <= 2 else array
    return torch.from_numpy(np.array(numbers, dtype=np.float64))


def _as_classes(y: np.ndarray) -> Tensor:
    return torch.from_numpy(np.unique(y.reshape(-1), return_inverse=True)[1].astype(np.int64))


def _own_targets(data: str, *, as_classes: bool, is_checked: bool) -> Tensor:
    """Y of an .npz in its own shape, or of builtin data.

    Args:
        data: the file, or "builtin:NAME".
        as_classes: whether classes are asked for.
        is_checked: whether the arrays beside y are known to be numbers.
    """
    if (task := builtin_task(data)) is not None:
        if task.y is None:
            raise DataError(f"{data}: has no targets. Leave out --target and --classes.")
        y = task.y.argmax(1) if as_classes and task.kind is Kind.CLASSIFICATION else task.y
    else:
        if not is_checked:
            with silenced(DataWarning, ".* was flattened"):  # images keep their shape here
                read_table(data, autoencode=True, drop_constant=False)  # whatever is wrong with the file, it says
        y = own_arrays(Path(data)).get(OWN_TARGETS)
        if y is None:
            raise DataError(f"{data}: holds no array y. Leave out --target and --classes, or save y in it.")
    if as_classes:
        if y.ndim > 1 and y.shape[1:] != (1,):
            raise DataError(f"{data}: --classes y needs one class per row, got y of shape {y.shape}.")
        return _as_classes(y)
    if y.dtype.kind not in "fiub":
        raise DataError(f"{data}: y holds {y.dtype}, not numbers. Give --classes y.")
    check_finite(y.reshape(len(y), -1), f"{data}, y")
    return torch.from_numpy(y.astype(np.float64))


def print_diagnosis(found: Diagnosis, page: Path) -> None:
    """Say the rank with its evidence, what each layer does, what was skipped, and where the page lies."""
    console = terminal()
    verdict = verdict_of(found)
    tell(page=page, **found.to_dict())
    print_headed(console, verdict.headline, ((line.label, line.text) for line in verdict.lines), style="bold")
    if (cuts := cut_table(found)) is not None:
        _print_layers(console, cuts)
        if cuts.note:
            console.print(Text(cuts.note, style="dim"))
        console.print()
    if (blocks := block_table(found)) is not None:
        _print_layers(console, blocks)
        console.print()
    _print_layers(console, short_layer_table(found))
    console.print()
    for warning in found.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"))
    if found.skipped:
        console.print(Text(f"{counted(len(found.skipped), 'module')} without a row; the report says why"))
    print_place(console, "Report", page)


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
        console.print(Text(f"and {counted(left, 'more layer')}: see the report", style="dim"))


def _abbreviated(name: str, room: int) -> str:
    """bert.encoder.layer.0.output.dense as b.e.l.0.o.dense where there is no room for more; numbers are kept."""
    parts = name.split(".")
    for place, part in enumerate(parts[:-1]):
        if len(".".join(parts)) <= room:
            break
        parts[place] = part if part.isdecimal() else part[:1]
    short = ".".join(parts)
    return short if len(short) <= room else f"…{short[len(short) - room + 1 :]}"
