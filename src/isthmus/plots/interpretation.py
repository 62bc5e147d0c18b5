"""The coordinates of an encoder, two at a time; the error each saves, the inputs and the variables that it follows.

How these are computed: `discovery.evidence.interpretation`, `Discovery.transform`.
"""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba

from isthmus.plots.style import (
    BLUE,
    HUES,
    INK,
    SMALL,
    axes_or_new,
    colour_bar,
    in_own_settings,
    legend,
    plain_text,
    whole_numbers,
)

_NAMES = 24  # rows and columns up to which each has its name; half as many up to which each cell has its number
_MOST_BINS = 40
_MOST_CLASSES = 10  # that are told apart by colour
# of a cell with a number in it: as strong as leaves the number a contrast of 4.5 on light and on dark pages
STRONGEST_UNDER_NUMBERS = 0.5


@in_own_settings
def errors_saved(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """One bar for each coordinate: how much worse the outputs become when it is held at its mean.

    Args:
        dataset: of `interpret` (dimension "coordinate"; `error_saved`).
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    >>> plots.errors_saved(isthmus.interpret(found, x)).get_ylabel()
    'error saved / variance'
    """
    ax = axes_or_new(ax)
    ax.bar(dataset["coordinate"].values, dataset["error_saved"].values, color=BLUE, width=0.7)
    ax.set_xlabel("coordinate")
    ax.set_ylabel("error saved / variance")
    whole_numbers(ax)
    return ax


@in_own_settings
def attributions(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """How strongly each coordinate (row) follows each input (column), by its mean derivative in units of the spreads.

    Args:
        dataset: of `interpret` (dimensions "coordinate" and "input"; `attribution`).
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    >>> plots.attributions(isthmus.interpret(found, x)).get_ylabel()
    'coordinate'
    """
    return _cells(dataset["attribution"].transpose("coordinate", "input"), "input", axes_or_new(ax))


@in_own_settings
def candidates(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Distance correlation of each coordinate (row) with each candidate variable (column), from 0 to 1.

    Args:
        dataset: of `interpret` with candidates (dimensions "coordinate" and "candidate"; `distance_correlation`).
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    >>> plots.candidates(isthmus.interpret(found, x, candidates={"first": x[:, 0]})).get_ylabel()
    'coordinate'
    """
    cells = dataset["distance_correlation"].transpose("coordinate", "candidate")
    return _cells(cells, "candidate", axes_or_new(ax), most=1.0)


@in_own_settings
def symmetry_defects(dataset: xr.Dataset, ax: Axes | None = None) -> Axes:
    """One bar for each transformation: 0 where the coordinates are invariant, 1 (dashed) as two unrelated rows differ.

    Args:
        dataset: of `interpret` with transforms (dimension "transform"; `symmetry_defect`).
        ax: axes to draw into; new ones unless given.

    Returns:
        The axes.

    >>> meaning = isthmus.interpret(found, x, transforms={"turned about": lambda rows: -rows})
    >>> len(plots.symmetry_defects(meaning).patches)
    1
    """
    ax = axes_or_new(ax)
    names = [plain_text(name) for name in dataset["transform"].values]
    ax.bar(range(len(names)), dataset["symmetry_defect"].values, color=BLUE, width=0.7)
    ax.axhline(1.0, color=INK, linewidth=0.8, linestyle="--")
    ax.set_xticks(range(len(names)), names, rotation=60, ha="right")
    ax.set_xlabel("transformation")
    ax.set_ylabel("symmetry defect")
    return ax


def _cells(table: xr.DataArray, column: str, ax: Axes, *, most: float | None = None) -> Axes:
    """A map of the table: one cell for each pair, with its number where there is room."""
    values = table.values
    rows, columns = values.shape
    top = most or float(np.max(values, initial=0.0)) or 1.0
    numbered = columns <= _NAMES // 2 and rows <= _NAMES // 2
    strongest = STRONGEST_UNDER_NUMBERS if numbered else 1.0
    # one colour, more or less opaque: it follows the scheme of a page, which a picture of pixels would not
    shades = LinearSegmentedColormap.from_list("isthmus", [to_rgba(BLUE, 0.0), to_rgba(BLUE, strongest)], N=64)
    edges = (np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5)
    cells = ax.pcolormesh(*edges, values, cmap=shades, vmin=0, vmax=top)
    ax.invert_yaxis()
    ax.grid(visible=False)
    labelled = range(0, rows, -(-rows // _NAMES))  # of many coordinates every second, third, ...
    ax.set_yticks(labelled, [plain_text(table["coordinate"].values[i]) for i in labelled])
    named = range(0, columns, -(-columns // _NAMES))  # as of the coordinates: pixels and wavelengths are many
    ax.set_xticks(named, [plain_text(table[column].values[i]) for i in named], rotation=60, ha="right")
    if numbered:
        for (i, j), value in np.ndenumerate(values):
            ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=SMALL - 1, color=INK)
    ax.set_xlabel(column)
    ax.set_ylabel("coordinate")
    colour_bar(ax, cells, str(table.name).replace("_", " "))
    return ax


def _classes(shown: xr.DataArray | None) -> list[tuple[str, np.ndarray]]:
    """Which samples are of each class, in the order of their names; nothing for numbers, or for too many classes."""
    if shown is None or np.issubdtype(shown.dtype, np.number):
        return []
    names = sorted(set(shown.values.tolist()))
    # by number: names that are shortened may become the same
    return [(plain_text(str(name)), shown.values == name) for name in names] if len(names) <= _MOST_CLASSES else []


def _hues(count: int) -> list[Any]:
    """As many colours that can be told apart."""
    return list(HUES[:count]) if count <= len(HUES) else list(colormaps["tab10"](range(count)))


@in_own_settings
def coordinates(dataset: xr.Dataset, ax: Axes | None = None, *, pair: tuple[int, int] = (0, 1)) -> Axes:
    """Scatter of two coordinates of every sample; a histogram where there is only one coordinate.

    Args:
        dataset: `coordinates` with dimensions "sample" and "coordinate"; with `shown` of dimension "sample", names of
            classes or numbers, samples are coloured by it, and its attribute "name" says what it is.
        ax: axes to draw into; new ones unless given.
        pair: which two coordinates, counted from 0.

    Returns:
        The axes.

    Raises:
        ValueError: `pair` names a coordinate that is not there.

    >>> table = xr.Dataset({"coordinates": (("sample", "coordinate"), x[:, :2])})
    >>> plots.coordinates(table).get_xlabel()
    'coordinate 1'
    """
    ax = axes_or_new(ax)
    values = dataset["coordinates"].transpose("sample", "coordinate").values
    num_samples, num_coordinates = values.shape
    shown = dataset.get("shown")
    classes = _classes(shown)
    if num_coordinates == 1:
        bins = min(_MOST_BINS, max(5, num_samples // 10))
        parts = [(name, values[mask, 0]) for name, mask in classes] or [("", values[:, 0])]
        names, numbers = [name for name, _ in parts], [part for _, part in parts]
        ax.hist(numbers, bins=bins, stacked=True, color=_hues(len(parts)), label=names)
        if classes:
            legend(ax)
        ax.set_xlabel("coordinate 1")
        ax.set_ylabel("samples")
        return ax
    first, second = pair
    if not 0 <= min(pair) <= max(pair) < num_coordinates:
        raise ValueError(f"coordinates(pair={pair}): needs two of the coordinates 0..{num_coordinates - 1}.")
    # many points: smaller and fainter, as pixels, so that files stay small
    many = num_samples > 1000
    alpha = 0.35 if many else 0.7
    scatter = partial(ax.scatter, s=5 if many else 12, alpha=alpha, linewidths=0, rasterized=many)
    x, y = values[:, first], values[:, second]
    if classes:
        for hue, (name, mask) in zip(_hues(len(classes)), classes, strict=True):
            scatter(x[mask], y[mask], color=hue, label=name)
        legend(ax, markerscale=2.0)
    elif shown is not None and np.issubdtype(shown.dtype, np.number):
        points = scatter(x, y, c=shown.values, cmap="cividis")  # whose dark end can be seen on a dark page
        colour_bar(ax, points, plain_text(str(shown.attrs.get("name", ""))))
    else:
        scatter(x, y, color=BLUE)
    ax.set_xlabel(f"coordinate {first + 1}")
    ax.set_ylabel(f"coordinate {second + 1}")
    return ax
