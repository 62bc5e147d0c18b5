"""Sets of images to autoencode for the figure of denoising: the digits that come along, and MNIST from files at hand.

Reading images: `tasks.images`. What is made of them: `denoising`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isthmus.sweeps import Plan
from isthmus.tasks import digits, mnist
from isthmus.writing.atomic import atomic_path
from isthmus.writing.staying import made_folder

NOISE = 1.0  # of the data's spread: about as much noise as there is image


@dataclass(frozen=True, slots=True)
class ImageSizes:
    """Numbers of a preset.

    Attributes:
        shallow: depth of the shallow autoencoder.
        deep: of the deep one.
        width: of every hidden layer.
        num_samples: images of MNIST; of the digits there are 1797.
        ridge: of both.
        evaluations: gradients of each training.
        shown: images in the picture.
    """

    shallow: int
    deep: int
    width: int
    num_samples: int
    ridge: float
    evaluations: int
    shown: int = 6


def digits_plan(sizes: ImageSizes) -> Plan:
    """Autoencoders of the digits of scikit-learn, 8 x 8 pixels between 0 and 1."""
    return _plan("digits", {"name": "digits"}, sizes, Path())


def mnist_plan(sizes: ImageSizes, path: Path, folder: Path) -> Plan:
    """Autoencoders of the first images of MNIST, of the pixels that are not the same in all of them.

    Args:
        sizes: how many images, and the networks.
        path: as `tasks.mnist` takes it.
        folder: where the table of these images is written; made if missing.

    Raises:
        DataError: the files are missing, cut short, or of another format. OSError: the folder cannot be written.
    """
    x = mnist(path, num_samples=sizes.num_samples).x
    name = f"mnist-{sizes.num_samples}.npy"
    made_folder(folder)
    with atomic_path(folder / name) as temporary:
        np.save(temporary, x[:, varying(x)])
    return _plan("MNIST", {"file": name, "autoencode": True}, sizes, folder)


def digit_pixels() -> np.ndarray:
    """Which pixels the plan of the digits has: all."""
    return np.ones(digits().x.shape[1], dtype=bool)


def mnist_pixels(path: Path, num_samples: int) -> np.ndarray:
    """Which pixels the plan of MNIST has."""
    return varying(mnist(path, num_samples=num_samples).x)


def varying(x: np.ndarray) -> np.ndarray:
    """Which columns are not constant: a constant pixel teaches an autoencoder nothing."""
    return x.min(0) < x.max(0)


def whole(values: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """Rows of the chosen pixels as rows of all pixels, 0 elsewhere."""
    found = np.zeros((len(values), len(pixels)))
    found[:, pixels] = values
    return found


def _plan(name: str, task: Mapping[str, object], sizes: ImageSizes, folder: Path) -> Plan:
    return Plan(
        task,
        {"width": sizes.width, "seed": 0},
        {"ridge": sizes.ridge, "evaluations": sizes.evaluations, "scaling": "none"},
        grid={"depth": [sizes.shallow, sizes.deep]},
        record={"ranks": False, "history": False},
        folder=folder,
        name=f"denoising of {name}",
    )
