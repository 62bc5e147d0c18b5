"""DATA for a MODEL that was made anywhere: rows of a table, or an array with more dimensions as the module takes it.

The columns of a saved discovery are found by name: `cli.data`. Reading files: `tasks`.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from isthmus.cli.data import rows_like
from isthmus.discovery.files.models import LoadedModel
from isthmus.errors import DataError
from isthmus.tasks import builtin, read_table
from isthmus.tasks.arrays import check_finite

_BUILTIN = "builtin:"


def model_rows(data: str, model: LoadedModel) -> Tensor:
    """The samples of DATA, first dimension the samples, float64.

    An .npy or .npz of more than two dimensions (images, sequences) keeps its shape; anything else is a table.

    Raises:
        DataError: the data cannot be read, have NaN, or lack columns of the run that the model comes from.
    """
    if model.input_names:
        return torch.from_numpy(np.array(rows_like(data, model.input_names)))
    if data.startswith(_BUILTIN):
        return torch.from_numpy(np.array(builtin(data.removeprefix(_BUILTIN)).x))
    array = _many_dimensions(Path(data))
    if array is not None:
        check_finite(array.reshape(len(array), -1), data)
        return torch.from_numpy(array)
    # constant columns stay: the network has an input for each
    return torch.from_numpy(read_table(data, autoencode=True, drop_constant=False).x)


def _many_dimensions(path: Path) -> np.ndarray | None:
    """The array of a file, if it has more than two dimensions; whatever is wrong with the file `read_table` says."""
    if path.suffix.lower() not in {".npy", ".npz"} or not path.is_file():
        return None
    try:
        content = np.load(path, allow_pickle=False)
        array = content if isinstance(content, np.ndarray) else content["x"]
    except Exception:  # numpy and zip raise types of their own, and read_table turns them into a line
        return None
    if array.ndim <= 2:
        return None
    if array.dtype.kind not in "fiub" or not array.size:
        raise DataError(f"{path}: needs numbers, got {array.dtype} of shape {array.shape}.")
    return np.ascontiguousarray(array, dtype=np.float64)
