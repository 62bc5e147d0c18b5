"""MNIST from small real files in each of its formats; a broken file is one line."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import DataError
from isthmus.tasks import Kind, mnist

IMAGES = np.random.default_rng(0).integers(0, 256, (12, 28, 28), dtype=np.uint8)
LABELS = (np.arange(12) % 10).astype(np.uint8)


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_folder(folder: Path, *, packed: bool, dot: str) -> Path:
    for part in ("train", "t10k"):
        for kind, array in ((f"images{dot}idx3", IMAGES), (f"labels{dot}idx1", LABELS)):
            content = idx(array if part == "train" else array[:5])
            path = folder / f"{part}-{kind}-ubyte{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(content) if packed else content)
    return folder


def write_archive(folder: Path) -> Path:
    np.savez(folder / "m.npz", x_train=IMAGES, y_train=LABELS, x_test=IMAGES[:5], y_test=LABELS[:5])
    return folder / "m.npz"


@pytest.mark.parametrize("form", ["npz", "idx", "idx.gz", "dotted"])
def test_every_format_gives_the_same_images(tmp_path: Path, form: str) -> None:
    path = write_archive(tmp_path) if form == "npz" else None
    path = path or write_folder(tmp_path, packed=form == "idx.gz", dot="." if form == "dotted" else "-")
    task = mnist(path)
    np.testing.assert_array_equal(task.x, IMAGES.reshape(12, 784) / 255)
    assert task.kind is Kind.AUTOENCODING
    assert len(mnist(path, test=True).x) == 5
    classes = mnist(path, classes=True, num_samples=11)
    np.testing.assert_array_equal(classes.target.argmax(1), LABELS[:11])
    assert classes.y_names == tuple("0123456789")


BROKEN = {
    "nothing": (None, b"", "no such file"),
    "other arrays": ("m.npz", b"", "cannot be read as MNIST"),
    "empty folder": ("", b"", "has no train-images-idx3-ubyte"),
    "cut short": ("train-images-idx3-ubyte", idx(IMAGES)[:-1], "needs 9408 values"),
    "cut header": ("train-images-idx3-ubyte", idx(IMAGES)[:6], "cannot be read as MNIST"),
    "other type": ("train-images-idx3-ubyte", b"\0\0\x0d" + idx(IMAGES)[3:], "no idx file of unsigned bytes"),
    "not gzipped": ("train-images-idx3-ubyte.gz", idx(IMAGES), "cannot be read as MNIST"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files_are_one_line(tmp_path: Path, case: str) -> None:
    name, content, match = BROKEN[case]
    if name:
        (tmp_path / name).write_bytes(content)
    path = tmp_path / "absent" if name is None else tmp_path / name if name.endswith(".npz") else tmp_path
    with pytest.raises(DataError, match=match):
        mnist(path)


def test_labels_that_do_not_number_the_images_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", x_train=IMAGES, y_train=LABELS[:-1])
    with pytest.raises(DataError, match="one label per image"):
        mnist(tmp_path / "m.npz")


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", x=IMAGES)
    with pytest.raises(DataError, match="has no x_train and y_train"):
        mnist(tmp_path / "m.npz")
