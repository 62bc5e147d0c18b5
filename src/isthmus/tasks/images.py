"""Images of digits as tasks, pixels between 0 and 1. Tables of one's own: `files`."""

from typing import Any, cast

import numpy as np
from jaxtyping import Float64
from sklearn.datasets import load_digits

from isthmus.tasks.task import Kind, Task


def digits(*, classes: bool = False) -> Task:
    """The 1797 handwritten digits of 8 x 8 pixels that come with scikit-learn, pixels divided by 16.

    Args:
        classes: predict the ten classes instead of autoencoding.

    Returns:
        Task of unknown rank; as an autoencoding task it has no sharp one.
    """
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
