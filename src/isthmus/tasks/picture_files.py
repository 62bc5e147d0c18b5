"""One picture in a file as numbers: which are taken, what is said of others. Folders of them: `picture_folders`.

Pillow reads them, asked for a few formats by name: others would start programs. A file is believed only as far as there
is memory for what its head says.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from PIL import Image, ImageOps, UnidentifiedImageError

from isthmus.errors import DataError
from isthmus.processes.shared_state import held_in_common, raised, silenced
from isthmus.tasks.door import through_door
from isthmus.tasks.memory import check_memory

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif")
_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF")
_FIRST_IS_ALL = "MPO"  # a photograph of a phone, with what it shows or measures besides behind it
_BYTES_PER_PIXEL = 48  # of four bands: as Pillow has them, and as numbers, twice
_RAW_16 = ";16"
_STDERR = 2
_COLOUR, _ALPHA = ("red", "green", "blue"), ("alpha",)
# mode of Pillow -> what it is called, its bands, the number that is 1
_KINDS: dict[str, tuple[str, tuple[str, ...], float]] = {
    "1": ("black and white", ("",), 1.0),
    "L": ("8-bit grey", ("",), 255.0),
    "LA": ("8-bit grey with alpha", ("grey", *_ALPHA), 255.0),
    "RGB": ("8-bit colour", _COLOUR, 255.0),
    "RGBA": ("8-bit colour with alpha", (*_COLOUR, *_ALPHA), 255.0),
    **dict.fromkeys(("I;16", "I;16B", "I;16L", "I;16N"), ("16-bit grey", ("",), 65535.0)),
    "I": ("32-bit grey", ("",), 1.0),
    "F": ("floating point", ("",), 1.0),
}
_CHANGED = {"P": "RGB", "PA": "RGBA"}  # colours by number


@dataclass(frozen=True, slots=True)
class Form:
    """What pictures have in common that can be compared with each other.

    Attributes:
        height: in pixels.
        width: in pixels.
        kind: what a pixel is, in words.
        bands: of a pixel by name; one without name is grey.
    """

    height: int
    width: int
    kind: str
    bands: tuple[str, ...]

    @property
    def size(self) -> int:
        """Numbers of one picture."""
        return self.height * self.width * len(self.bands)

    @property
    def words(self) -> str:
        """`8 x 6 pixels, 8-bit grey`: width before height, as everywhere."""
        return f"{self.width} x {self.height} pixels, {self.kind}"

    @property
    def names(self) -> tuple[str, ...]:
        """Of the numbers, line by line, the bands of a pixel beside each other."""
        return tuple(
            f"row {row} column {column}{band and f' {band}'}"
            for row in range(1, self.height + 1)
            for column in range(1, self.width + 1)
            for band in self.bands
        )


def read_picture(path: Path) -> tuple[Float64[np.ndarray, "height width bands"], Form]:
    """The pixels of a picture, upright: 0 to 1 for 8 and 16 bits, as they are for 32 bits and floating point.

    Raises:
        DataError: no picture, one that is cut short, moves, is a single pixel, or of which Pillow keeps a part only.
    """
    return through_door(path, _read, kind="a picture", remedy="Save it again, or take it out of the folder.")


def _read(path: Path) -> tuple[np.ndarray, Form]:
    with silenced(), raised(Image.DecompressionBombWarning), _libtiff_silent():  # of odd tags nothing is said
        try:
            opened = Image.open(path, formats=_FORMATS)
        except UnidentifiedImageError:
            raise DataError(f"{path}: is no picture of the kinds {', '.join(_FORMATS)}. Take it out.") from None
        with opened as image:
            _check(path, image)
            check_memory(_BYTES_PER_PIXEL * image.width * image.height, str(path))
            # tags say how a camera was held, and everybody is shown the picture upright
            kind, bands, one = _KINDS[_mode(image)]
            upright = ImageOps.exif_transpose(image)
            values = np.asarray(upright.convert(_CHANGED[upright.mode]) if upright.mode in _CHANGED else upright)
    form = Form(values.shape[0], values.shape[1], kind, bands)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        pixels = values.reshape(form.height, form.width, len(bands)).astype(np.float64) / one
    if not np.isfinite(pixels).all():
        raise DataError(f"{path}: holds pixels that are NaN or infinite. Fill them in, or take it out.")
    return pixels, form


@held_in_common
@contextmanager
def _libtiff_silent() -> Generator[None]:
    """Below Python libtiff writes what it thinks of a damaged file, where one line of ours says it."""
    try:
        kept = os.dup(_STDERR)
    except OSError:  # it is closed, and nobody reads it
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, _STDERR)
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
        os.close(nowhere)


def _mode(image: Image.Image) -> str:
    if image.mode == "I" and image.format == "PNG":  # what Pillow before 11.3 makes of 16 bits
        return "I;16"
    return _CHANGED.get(image.mode, image.mode)


def _check(path: Path, image: Image.Image) -> None:
    if getattr(image, "is_animated", False) and image.format != _FIRST_IS_ALL:
        raise DataError(f"{path}: holds several pictures. Save each as a file of its own, or all as one .npy.")
    if image.size == (1, 1):
        raise DataError(f"{path}: is a single pixel, no picture. Take it out.")
    if _mode(image) not in _KINDS:
        raise DataError(f"{path}: its pixels are {image.mode[:20]}. Save it in grey or in colour (RGB).")
    if _RAW_16 in str(getattr(image, "tile", "")) and not image.mode.startswith(
        "I"
    ):  # Pillow keeps 8 of these bits, in silence
        raise DataError(f"{path}: has 16 bits a colour. Save it with 8, or each colour as a picture in grey.")
