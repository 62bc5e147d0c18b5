"""Images of digits as tasks, pixels between 0 and 1. Tables of one's own: `files`."""

import gzip
import math
import struct
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float64

from isthmus.errors import DataError
from isthmus.tasks.array_files import opened_arrays
from isthmus.tasks.door import through_door
from isthmus.tasks.memory import check_memory
from isthmus.tasks.task import Kind, Task

_FETCH = "Fetch the files again."


def digits(*, classes: bool = False) -> Task:
    """The 1797 handwritten digits of 8 x 8 pixels that come with scikit-learn, pixels divided by 16.

    Args:
        classes: predict the ten classes instead of autoencoding.

    Returns:
        Task of unknown rank; as an autoencoding task it has no sharp one.

    >>> tasks.digits().x.shape
    (1797, 64)
    """
    from sklearn.datasets import load_digits  # slow to import, and only this task needs it

    bunch = cast(Any, load_digits())  # its stubs know only the tuple form
    x = np.asarray(bunch.data, dtype=np.float64) / 16
    names = tuple(str(n) for n in bunch.feature_names)
    if not classes:
        return Task(x, None, None, "digits of scikit-learn", Kind.AUTOENCODING, x_names=names)
    y, y_names = one_hot(bunch.target)
    source = "digits of scikit-learn, classes"
    return Task(x, y, None, source, Kind.CLASSIFICATION, x_names=names, y_names=y_names)


def one_hot(labels: np.ndarray) -> tuple[Float64[np.ndarray, "n classes"], tuple[str, ...]]:
    """One 0/1 column per class in sorted order, and the classes' names."""
    classes, index = np.unique(labels, return_inverse=True)
    return np.eye(len(classes))[index.reshape(-1)], tuple(str(c) for c in classes)


def mnist(path: str | Path, *, classes: bool = False, test: bool = False, num_samples: int | None = None) -> Task:
    """The handwritten digits of MNIST from files at hand, 28 x 28 pixels divided by 255. Nothing is downloaded.

    Args:
        path: an .npz with x_train, y_train, x_test, y_test, or a folder with the four idx files, gzipped or not.
        classes: predict the ten classes instead of autoencoding.
        test: the 10,000 test images instead of the 60,000 for training.
        num_samples: only this many of the first rows; all take 376 MB.

    Returns:
        Task of unknown rank.

    Raises:
        DataError: the files are missing, cut short, or of another format.

    >>> try:
    ...     tasks.mnist("no_such_folder")
    ... except errors.DataError as error:
    ...     print(type(error).__name__)
    ...
    DataError
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder. Pass an .npz or a folder with the idx files of MNIST.")
    images, labels = _mnist_folder(path, test=test) if path.is_dir() else _mnist_archive(path, test=test)
    if images.ndim != 3 or not images.size or labels.shape != (len(images),):
        raise DataError(f"{path}: needs one label per image, got images {images.shape} and labels {labels.shape}.")
    if images.dtype.kind not in "biuf" or labels.dtype.kind not in "biuUS":
        raise DataError(f"{path}: needs numbers, got images of {images.dtype} and labels of {labels.dtype}. {_FETCH}")
    check_memory(8 * images[:num_samples].size, str(path))
    x = images[:num_samples].reshape(len(images[:num_samples]), -1) / 255.0
    source = f"mnist({'test' if test else 'train'}, {len(x)} images)"
    if not classes:
        return Task(x, None, None, source, Kind.AUTOENCODING)
    y, y_names = one_hot(labels[:num_samples])
    return Task(x, y, None, source, Kind.CLASSIFICATION, y_names=y_names)


def _mnist_archive(path: Path, *, test: bool) -> tuple[np.ndarray, np.ndarray]:
    part = "test" if test else "train"

    def read(place: Path) -> tuple[np.ndarray, np.ndarray]:
        with opened_arrays(place) as file:
            if not {f"x_{part}", f"y_{part}"} <= set(file.names):
                raise DataError(f"{path}: has no x_{part} and y_{part}. Pass the .npz of MNIST with these arrays.")
            return file.read(f"x_{part}"), file.read(f"y_{part}")

    return through_door(path, read, kind="MNIST", remedy=_FETCH)


def _mnist_folder(folder: Path, *, test: bool) -> tuple[np.ndarray, np.ndarray]:
    part = "t10k" if test else "train"
    return _read_idx(folder, f"{part}-images", "idx3-ubyte"), _read_idx(folder, f"{part}-labels", "idx1-ubyte")


def _read_idx(folder: Path, stem: str, kind: str) -> np.ndarray:
    """Unsigned bytes of an idx file: two zeros, the type, the number of dimensions, each as a big-endian integer."""
    names = [f"{stem}{dot}{kind}{packed}" for dot in "-." for packed in ("", ".gz")]
    path = next((folder / n for n in names if (folder / n).exists()), None)
    if path is None:
        raise DataError(f"{folder}: has no {names[0]} (or {names[1]}). Pass the folder with the four files of MNIST.")
    return through_door(path, _idx_values, kind="MNIST", remedy=_FETCH)


def _idx_values(path: Path) -> np.ndarray:
    """What an idx file holds; a packed one is unpacked only as far as its head says and memory goes."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        zeros, number_type, num_dimensions = struct.unpack(">HBB", stream.read(4))
        if (zeros, number_type) != (0, 8):
            raise DataError(f"{path}: is no idx file of unsigned bytes. Fetch it again.")
        shape = struct.unpack(f">{num_dimensions}I", stream.read(4 * num_dimensions))
        count = math.prod(shape)
        check_memory(count, str(path))
        values = np.frombuffer(stream.read(count + 1), dtype=np.uint8)
    if values.size != count:
        come = f"{values.size}" if values.size < count else "more"
        raise DataError(f"{path}: needs {count} values for shape {str(shape)[:80]}, got {come}. Fetch it again.")
    return values.reshape(shape)
