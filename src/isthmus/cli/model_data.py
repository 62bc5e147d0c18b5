"""DATA for a MODEL that was made anywhere: rows of a table, or an array with more dimensions as the module takes it.

The columns of a saved discovery are found by name: `cli.data_of_run`. Reading files: `tasks`.
"""

from collections.abc import Collection
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from isthmus.cli.data import builtin_task
from isthmus.cli.data_of_run import rows_like
from isthmus.discovery.chains.module_input import checked_input
from isthmus.discovery.files.models import LoadedModel
from isthmus.errors import DataError
from isthmus.networks.copies import on_copy
from isthmus.tasks import read_table
from isthmus.tasks.array_files import arrays_of, is_archive, kind_of_array
from isthmus.tasks.arrays import check_finite
from isthmus.tasks.picture_folders import picture_folder
from isthmus.tasks.picture_listing import is_picture_folder

ARRAYS = {".npy", ".npz", ".zarr"}  # what arrays lie in, as `kind_of_array` calls it


def model_rows(data: str, model: LoadedModel) -> Tensor:
    """The samples of DATA, first dimension the samples, float64.

    A .npy, .npz or zarr array of more than two dimensions (images, sequences) keeps its shape. Pictures in a folder are
    numbers from 0 to 1, (n, bands, height, width), or rows where the module takes rows; anything else is a table.

    Raises:
        DataError: the data cannot be read, have NaN, or lack columns of the run that the model comes from.
    """
    if model.input_names:
        return torch.from_numpy(np.array(rows_like(data, model.input_names, model.columns)))
    if (task := builtin_task(data)) is not None:
        return torch.from_numpy(np.array(task.x))
    if is_picture_folder(data):
        return _pictures(Path(data), model)
    array = _many_dimensions(Path(data))
    if array is not None:
        check_finite(array.reshape(len(array), -1), data)
        return torch.from_numpy(array)
    # constant columns stay: the network has an input for each
    return torch.from_numpy(read_table(data, autoencode=True, drop_constant=False).x)


def module_rows(command: str, data: str, model: LoadedModel) -> Tensor:
    """The samples of DATA in the module's own type; whole numbers as such (tokens) where it takes only those.

    Of an .npz or a group of zarr without x the array that has the name of the module's first input.

    Raises:
        DataError: as for `model_rows`. ShapeError: fewer than 2 samples.
    """
    if (by_name := named_arrays(Path(data))) is not None:
        return checked_input(command, model.module, by_name, least_rows=2)
    x = checked_input(command, model.module, model_rows(data, model), least_rows=2)
    whole = whole_numbers(Path(data))
    return whole if whole is not None and not _runs(model, x) and _runs(model, whole) else x


def named_arrays(path: Path, *, but: Collection[str] = ()) -> dict[str, Tensor] | None:
    """The arrays of an .npz or a group of zarr without x, by name; None for anything else.

    Args:
        path: of the file.
        but: names of those that are no inputs.
    """
    arrays = own_arrays(path)
    if not arrays or "x" in arrays or not is_archive(path):
        return None
    found: dict[str, Tensor] = {}
    for name, array in arrays.items():
        if name in but:
            continue
        if array.dtype.kind not in "fiub" or not array.ndim or not array.size:
            raise DataError(f"{path}: {name} holds {array.dtype} of shape {array.shape}; needs numbers, rows first.")
        found[name] = torch.from_numpy(array.astype(np.float64) if array.dtype.kind == "f" else array.astype(np.int64))
    return found or None


def _pictures(path: Path, model: LoadedModel) -> Tensor:
    stack = torch.from_numpy(picture_folder(path).as_stack())
    own = next((p.dtype for p in model.module.parameters() if p.is_floating_point()), stack.dtype)
    flat = stack.flatten(1)
    return flat if not _runs(model, stack[:2].to(own)) and _runs(model, flat[:2].to(own)) else stack


def _runs(model: LoadedModel, x: Tensor) -> bool:
    try:
        with torch.no_grad():
            on_copy(model.module, x[:2])
    except Exception:  # a foreign module raises what it likes; which of its errors is told is decided later
        return False
    return True


def whole_numbers(path: Path) -> Tensor | None:
    """The array x of a file, if it holds whole numbers."""
    array = own_arrays(path).get("x")
    return None if array is None or array.dtype.kind not in "iu" else torch.from_numpy(array.astype(np.int64))


def own_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a .npy (called x), .npz or zarr; nothing for other files, and where there is none: `tasks` says so.

    Raises:
        DataError: it cannot be read.
    """
    return arrays_of(path) if kind_of_array(path) in ARRAYS else {}


def _many_dimensions(path: Path) -> np.ndarray | None:
    """The array of a file, if it has more than two dimensions."""
    array = own_arrays(path).get("x")
    if array is None or array.ndim <= 2:
        return None
    if array.dtype.kind not in "fiub" or not array.size:
        raise DataError(f"{path}: needs numbers, got {array.dtype} of shape {array.shape}.")
    return np.ascontiguousarray(array, dtype=np.float64)
