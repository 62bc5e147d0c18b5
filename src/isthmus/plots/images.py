"""Rows of small grey images under each other: inputs, and what networks make of them; numbers of pixels as pictures.

Samples as points of a plane: `planes`. How every picture looks: `style`.
"""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgba
from matplotlib.patches import Rectangle

from isthmus.plots.combinations import direction_noun
from isthmus.plots.style import (
    BLUE,
    INK,
    MUTED,
    ORANGE,
    SMALL,
    axes_or_new,
    colour_bar,
    in_own_settings,
    plain_text,
)
from isthmus.tasks.input_columns import pixel_places

_GAP = 0.12  # between images, of their width
_WIDER = 1.6  # axes, than they are high
_MANY_CELLS = 3000  # from which on they are pixels of the file too, so that it stays small
MOST_MAPS = 12  # of numbers of pixels, side by side


@in_own_settings
def image_rows(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Square images in rows: one row for each version of the same samples, dark where pixels are large.

    Args:
        dataset: `images` with dimensions "version", "sample" and "pixel" (a square number, line by line); the
            coordinate "version" names the rows. Values below 0 are drawn as 0, those above the largest of the first
            version as that.
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    Raises:
        ValueError: the number of pixels is no square.

    >>> images = xr.Dataset({"images": (("version", "sample", "pixel"), np.zeros((1, 2, 9)))})
    >>> images["version"] = ["raw"]
    >>> len(plots.image_rows(images).images)
    2
    """
    images = dataset["images"].transpose("version", "sample", "pixel")
    num_versions, num_samples, pixels = images.shape
    side = round(pixels**0.5)
    if side * side != pixels:
        raise ValueError(f"image_rows: needs square images; got {pixels} pixels. Pad them with zeros to a square.")
    ax = axes_or_new(ax)
    largest = float(images[0].max())
    for version in range(num_versions):
        for sample in range(num_samples):
            left, top = sample * (1 + _GAP), version * (1 + _GAP)
            ax.imshow(
                images.values[version, sample].reshape(side, side),
                extent=(left, left + 1, top + 1, top),
                cmap="gray_r",
                vmin=0.0,
                vmax=largest,
                interpolation="nearest",
            )
    ax.set_xlim(-_GAP, num_samples * (1 + _GAP))
    ax.set_ylim(num_versions * (1 + _GAP), -_GAP)
    ax.set_xticks(np.arange(num_samples) * (1 + _GAP) + 0.5, [str(i + 1) for i in range(num_samples)])
    ax.set_yticks(np.arange(num_versions) * (1 + _GAP) + 0.5, [plain_text(name) for name in dataset["version"].values])
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("sample")
    ax.set_ylabel("images")
    return ax


def are_pixels(names: xr.DataArray) -> bool:
    """Whether columns are pixels of a picture by their names, or by what they were in an array."""
    return _places(names) is not None


def _places(names: xr.DataArray) -> np.ndarray | None:
    return pixel_places([str(name) for name in names.coords.get("pixel", names).values])


@in_own_settings
def attribution_maps(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """How strongly each coordinate follows each pixel, one picture for each of the first coordinates.

    Args:
        dataset: of `interpret` (dimensions "coordinate" and "input"; `attribution`), the inputs pixels by their names:
            "row 2 column 5", with a band behind it, or "pixel_1_4"; or by these in the coordinate "pixel", as those of
            arrays are. Of several bands the strongest is drawn.
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    Raises:
        ValueError: the inputs are no pixels of a picture.

    >>> table = xr.Dataset(coords={"coordinate": [1], "input": [f"pixel_{i}_{j}" for i in (0, 1) for j in (0, 1)]})
    >>> table["attribution"] = ("coordinate", "input"), [[0.1, 0.9, 0.2, 0.0]]
    >>> len(plots.attribution_maps(table).patches)
    1
    """
    cells = dataset["attribution"].transpose("coordinate", "input")
    shades = LinearSegmentedColormap.from_list("isthmus", [to_rgba(BLUE, 0.0), BLUE], N=64)
    return _maps(cells, shades, axes_or_new(ax))


@in_own_settings
def loading_maps(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Loadings over the pixels, one picture for each of the first directions: blue above 0, orange below.

    Args:
        dataset: as for `loadings`, the columns pixels by their names, see `attribution_maps`.
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    Raises:
        ValueError: the columns are no pixels of a picture.

    >>> table = xr.Dataset(coords={"direction": [1], "column": [f"pixel_{i}_{j}" for i in (0, 1) for j in (0, 1)]})
    >>> table["loading"] = ("direction", "column"), [[0.8, -0.6, 0.0, 0.0]]
    >>> len(plots.loading_maps(table).patches)
    1
    """
    cells = dataset["loading"].transpose("direction", "column")
    sides = [(0.0, ORANGE), (0.5, to_rgba(ORANGE, 0.0)), (0.5, to_rgba(BLUE, 0.0)), (1.0, BLUE)]
    shades = LinearSegmentedColormap.from_list("isthmus", sides, N=128)
    ax = _maps(cells, shades, axes_or_new(ax), signed=True)
    ax.set_xlabel(direction_noun(dataset))
    return ax


def _maps(table: xr.DataArray, shades: LinearSegmentedColormap, ax: Axes, *, signed: bool = False) -> Axes:
    """Rows of a table as pictures beside and below each other, all in one scale of colours."""
    row, column = map(str, table.dims)
    places = _places(table[column])
    if places is None:
        raise ValueError(f"{table.name} maps: need columns called as pixels, 'row 2 column 5'.")
    table = table.isel({row: slice(MOST_MAPS)})
    pictures = _pictures(table.values, places)
    count, height, width = pictures.shape
    pixel = 1 / max(height, width)
    across = min(count, max(1, round(math.sqrt(_WIDER * count * height / width))))
    step = np.array([width * pixel + _GAP, height * pixel + 2 * _GAP])
    top = float(np.nanmax(np.abs(pictures), initial=0.0)) or 1.0
    scale = Normalize(-top if signed else 0.0, top)
    for i, (picture, number) in enumerate(zip(pictures, table[row].values, strict=True)):
        left, above = step * (i % across, i // across)
        edges = left + pixel * np.arange(width + 1), above + pixel * np.arange(height + 1)
        if pictures.size > _MANY_CELLS:
            sides = edges[0][0], edges[0][-1], edges[1][-1], edges[1][0]
            ax.imshow(picture, extent=sides, interpolation="nearest", cmap=shades, norm=scale)
        else:
            ax.pcolormesh(*edges, picture, cmap=shades, norm=scale)
        frame = (left, above), width * pixel, height * pixel
        ax.add_patch(Rectangle(*frame, facecolor="none", edgecolor=MUTED, linewidth=0.8))
        middle = left + width * pixel / 2
        ax.text(middle, above - _GAP / 4, plain_text(number), ha="center", va="bottom", fontsize=SMALL, color=INK)
    colour_bar(ax, ScalarMappable(scale, shades), str(table.name).replace("_", " "))
    ax.set_xlim(-_GAP / 2, across * step[0] - _GAP / 2)
    ax.set_ylim(-(-count // across) * step[1] - 1.5 * _GAP, -1.5 * _GAP)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    ax.set_xlabel(row)
    ax.set_ylabel("pixels")
    return ax


def _pictures(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Rows (k, n) as pictures (k, height, width): of several bands the strongest, NaN where there is no column."""
    pictures = np.full((len(values), *(places.max(0) + 1)), np.nan)
    for picture, row in zip(pictures, values, strict=True):
        order = np.argsort(np.abs(row), kind="stable")  # of what is written to one place the last stays
        picture[tuple(places[order].T)] = row[order]
    return pictures
