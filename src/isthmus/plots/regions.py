"""The pieces of a two-dimensional slice of a network, coloured by a whole number: a rank or a class.

Where the pieces come from: `networks.slice_cells` and `networks.class_regions`. Scatters of samples: `coordinates`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize, to_hex
from matplotlib.patches import Patch
from numpy.typing import ArrayLike, NDArray

from isthmus.plots.style import HUES, INK, LONGEST_AXIS, SMALL, SURFACE, axes_or_new, in_own_settings, plain_text

_MOST_IN_LEGEND = 12
_MANY = 2000  # pieces from which on their edges would hide them


@in_own_settings
def regions(
    polygons: Sequence[ArrayLike],
    labels: ArrayLike,
    ax: Axes | None = None,
    *,
    names: Mapping[int, str],
    shades: ArrayLike | None = None,
    points: ArrayLike | None = None,
    tripoints: ArrayLike | None = None,
    axis_names: tuple[str, str] = ("u", "v"),
) -> Axes:
    """Convex polygons coloured by label, with samples as dots and tripoints as rings.

    Args:
        polygons: vertices (u, v) of each piece, shapes (num_vertices, 2).
        labels: a whole number per piece.
        ax: axes to draw into; new ones unless given.
        names: what the legend calls each label.
        shades: where labels are ranks, drawn from pale to dark: a number >= 0 per piece, which colours the pieces where
            all ranks are the same.
        points: samples on the slice, shape (n, 2).
        tripoints: points where three classes meet, shape (n, 2).
        axis_names: what u and v are.

    Returns:
        The axes.

    Raises:
        ValueError: not one label per polygon.

    >>> plots.regions([[[0, 0], [1, 0], [0, 1]]], [1], names={1: "rank 1"}).get_xlabel()
    'u'
    """
    ax = axes_or_new(ax)
    corners = [np.asarray(polygon, dtype=np.float64) for polygon in polygons]
    whole = np.asarray(labels)
    if len(corners) != len(whole) or not corners:
        raise ValueError(f"regions: needs one label per polygon; got {len(whole)} for {len(corners)}.")
    present = sorted({int(label) for label in whole})
    handles: list[object] = []
    if shades is not None and len(present) == 1:
        name = plain_text(names[present[0]])
        _fill_by_number(ax, corners, np.asarray(shades), f"largest singular value, {name} everywhere")
    else:
        colors = _colors(present, ordered=shades is not None)
        _fill(ax, corners, [colors[int(label)] for label in whole])
        handles += [Patch(color=colors[label], label=plain_text(names[label])) for label in present[:_MOST_IN_LEGEND]]
        if (more := len(present) - _MOST_IN_LEGEND) > 0:
            handles.append(Patch(alpha=0, label=f"and {more} more"))
    if points is not None and len(at := np.asarray(points)):
        look = {"s": 12, "color": INK, "edgecolors": SURFACE, "linewidths": 0.6, "zorder": 3}
        handles.append(ax.scatter(*at.T, label="samples", **look))
    if tripoints is not None and len(at := np.asarray(tripoints)):
        look = {"s": 46, "facecolors": "none", "edgecolors": INK, "linewidths": 1.6, "zorder": 4}
        handles.append(ax.scatter(*at.T, label="tripoints", **look))
    if shades is None or len(present) > 1:
        box = ax.legend(
            handles=handles, fontsize=SMALL, labelcolor=INK, loc="center left", bbox_to_anchor=(1.01, 0.5),
            handlelength=1.2,
        )  # fmt: skip
        box.get_frame().set(facecolor="none", edgecolor="none")
    ax.set_xlabel(plain_text(axis_names[0], most=LONGEST_AXIS))
    ax.set_ylabel(plain_text(axis_names[1], most=LONGEST_AXIS))
    return ax


def _fill(ax: Axes, corners: Sequence[NDArray[np.float64]], colors: Sequence[str]) -> None:
    """Draw the pieces, which fill the axes."""
    many = len(corners) > _MANY
    ax.add_collection(
        PolyCollection(
            corners,
            facecolors=colors,
            # an edge of its own colour closes the hairlines between neighbours
            edgecolors=colors if many else SURFACE,
            linewidths=0.2 if many else 0.3,
            rasterized=many,
            label="pieces",
        )
    )
    ax.grid(visible=False)
    low, high = np.concatenate(corners).min(0), np.concatenate(corners).max(0)
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])


def _fill_by_number(ax: Axes, corners: Sequence[NDArray[np.float64]], values: NDArray[Any], what: str) -> None:
    """Draw the pieces from pale to dark by a number, with a bar that says which; one label for all says nothing."""
    low, high = float(values.min()), float(values.max())
    scale = Normalize(low, high if high > low else low + 1.0)
    shades = ScalarMappable(scale, matplotlib.colormaps["YlGnBu"])
    _fill(ax, corners, [to_hex(shade) for shade in shades.to_rgba(values)])
    figure = ax.get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(shades, ax=ax)
    bar.set_label(what, color=INK, fontsize=SMALL)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue] - a spine, which its stub calls a function


def _colors(present: Sequence[int], *, ordered: bool) -> dict[int, str]:
    """A colour per label: pale to dark for ranks, the house hues for few classes, hues around a circle for many."""
    if ordered:
        shades = matplotlib.colormaps["YlGnBu"](np.linspace(0.15, 0.85, max(len(present), 2)))
        return {label: to_hex(shade) for label, shade in zip(present, shades, strict=False)}
    if len(present) <= len(HUES):
        return dict(zip(present, HUES, strict=False))
    wheel = matplotlib.colormaps["tab20" if len(present) > 10 else "tab10"]
    return {label: to_hex(wheel(i % wheel.N)) for i, label in enumerate(present)}
