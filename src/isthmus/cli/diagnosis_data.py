"""DATA of `isthmus diagnose` as inputs and targets of a module that was made anywhere.

Samples without targets: `model_data`. Columns of tables and their refusals: `tasks`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from isthmus.cli.data import choice_of, rows_like
from isthmus.cli.model_data import model_rows, own_arrays, whole_numbers
from isthmus.diagnostics.samples import Inputs
from isthmus.discovery.files.models import LoadedModel
from isthmus.errors import DataError
from isthmus.tasks import Kind, builtin, read_table
from isthmus.tasks.arrays import check_same_length

_BUILTIN, _OWN = "builtin:", "y"


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
    choice = choice_of(target, classes, autoencode=False)
    if not choice.target and choice.classes is None:
        by_name = _arguments(Path(data))
        if by_name is not None:
            return DiagnosisData(by_name)
        return DiagnosisData(model_rows(data, model), whole_numbers(Path(data)))
    if data.startswith(_BUILTIN) or Path(data).suffix.lower() == ".npz":
        if choice.target not in {(), (_OWN,)} or choice.classes not in {None, _OWN}:
            raise DataError(f"{data}: has its own targets, called y. Give --target y, or --classes y.")
        x, y = model_rows(data, model), _own_targets(data, as_classes=choice.classes is not None)
        check_same_length(len(x), len(y), name=data)
        return DiagnosisData(x, whole_numbers(Path(data)), y)
    task = read_table(data, target=choice.target, classes=choice.classes, drop_constant=False)
    x = rows_like(data, model.input_names, model.columns) if model.input_names else task.x
    assert task.y is not None
    y = task.y.argmax(1) if task.kind is Kind.CLASSIFICATION else task.y
    return DiagnosisData(torch.from_numpy(np.array(x)), None, torch.from_numpy(y))


def _own_targets(data: str, *, as_classes: bool) -> Tensor:
    """Y of an .npz in its own shape, or of builtin data."""
    if data.startswith(_BUILTIN):
        task = builtin(data.removeprefix(_BUILTIN))
        if task.y is None:
            raise DataError(f"{data}: has no targets. Leave out --target and --classes.")
        y = task.y.argmax(1) if as_classes and task.kind is Kind.CLASSIFICATION else task.y
    else:
        read_table(data, autoencode=True, drop_constant=False)  # whatever is wrong with the file, it says
        y = own_arrays(Path(data)).get(_OWN)
        if y is None:
            raise DataError(f"{data}: holds no array y. Leave out --target and --classes, or save y in it.")
    if as_classes:
        if y.ndim > 1 and y.shape[1:] != (1,):
            raise DataError(f"{data}: --classes y needs one class per row, got y of shape {y.shape}.")
        return torch.from_numpy(np.unique(y.reshape(-1), return_inverse=True)[1].astype(np.int64))
    if y.dtype.kind not in "fiub":
        raise DataError(f"{data}: y holds {y.dtype}, not numbers. Give --classes y.")
    return torch.from_numpy(y.astype(np.float64))


def _arguments(path: Path) -> dict[str, Tensor] | None:
    """The arrays of an .npz without x, by name; None for anything else."""
    arrays = own_arrays(path)
    if not arrays or path.suffix.lower() != ".npz" or "x" in arrays:
        return None
    found: dict[str, Tensor] = {}
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub" or not array.ndim or not array.size:
            raise DataError(f"{path}: {name} holds {array.dtype} of shape {array.shape}; needs numbers, rows first.")
        found[name] = torch.from_numpy(array.astype(np.float64) if array.dtype.kind == "f" else array.astype(np.int64))
    return found
