"""A matrix in a file: .csv, .tsv, .npy, .npz or zarr, kept as it stands. Tables of samples: `files`.

Nothing is ever unpickled. Every refusal is a `DataError` of one line: which file, where in it, what to do.
"""

import csv
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from isthmus.errors import DataError
from isthmus.tasks.array_files import kind_of_array, names_in_words, opened_arrays
from isthmus.tasks.arrays import as_samples
from isthmus.tasks.door import through_door
from isthmus.tasks.memory import check_memory
from isthmus.tasks.zarr_folders import checked_data

EXTENSIONS = (".csv", ".tsv", ".npy", ".npz", ".zarr")
_BYTES_PER_CELL = 120  # a short text and its place in a list


def read_matrix(path: str | Path) -> Float64[np.ndarray, "d_out d_in"]:
    """The matrix in a file, rows as they stand there.

    A .csv or .tsv holds one row per line; a first line without any number is a header. An .npz, or a group
    of zarr, holds one array, or several of which one is called x. One dimension becomes one column.

    Args:
        path: .csv (commas), .tsv, .npy, .npz or a zarr folder.

    Raises:
        DataError: the file cannot be read, or holds no matrix of finite real numbers; the line says what to do.

    >>> path = Path(tempfile.mkdtemp()) / "matrix.npy"
    >>> np.save(path, np.eye(3))
    >>> tasks.read_matrix(path).shape
    (3, 3)
    """
    path = Path(path)
    extension = kind_of_array(path)
    if extension not in EXTENSIONS:
        raise DataError(f"{path}: unknown extension {extension!r}. Use one of {', '.join(EXTENSIONS)}.")
    checked_data(path)
    if extension[1] in "ct":
        separator = "\t" if extension == ".tsv" else ","
        array = through_door(path, lambda place: _read_text(place, separator), kind=extension)
    else:
        array = through_door(path, _read_array, kind=extension, check=checked_data)
    if array.ndim > 2:
        raise DataError(f"{path}: holds an array of shape {array.shape}. Save one matrix, of two dimensions.")
    return as_samples(array, str(path))


def _read_array(path: Path) -> np.ndarray:
    with opened_arrays(path) as file:
        if len(file.names) != 1 and "x" not in file.names:
            raise DataError(f"{path}: holds {names_in_words(file.names)}. Save one array, or call the matrix x.")
        return file.read(file.names[0] if len(file.names) == 1 else "x")


def _read_text(path: Path, separator: str) -> np.ndarray:
    check_memory(_BYTES_PER_CELL / 2 * path.stat().st_size, str(path))
    with path.open(encoding="utf-8-sig", newline="") as stream:
        lines = [
            (reader.line_num, row)
            for reader in [csv.reader(stream, delimiter=separator, skipinitialspace=True)]
            for row in reader
            if any(cell.strip() for cell in row)
        ]
    if lines and not any(map(_is_number, lines[0][1])):
        lines = lines[1:]
    if not lines:
        raise DataError(f"{path}: has no row of numbers. Write one row of the matrix per line.")
    width = len(lines[0][1])
    for number, row in lines:
        if len(row) != width:
            raise DataError(
                f"{path}: line {number} has {len(row)} numbers, line {lines[0][0]} has {width}. Make them equal."
            )
        if odd := [cell for cell in row if not _is_number(cell)]:
            raise DataError(f"{path}: line {number} holds {odd[0][:40]!r}, which is no number. Correct it.")
    return np.array([[float(cell) for cell in row] for _number, row in lines])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
