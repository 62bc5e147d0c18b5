"""Panels of curves in the house style: what most figures of the papers consist of.

Spectra, regions, paths and arrows: `plots`. The pages around the panels: `reports`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter
from numpy.typing import ArrayLike

from isthmus.plots.style import HUES, INK, MUTED, axes_or_new, legend, whole_numbers
from isthmus.reports.picture import Picture
from isthmus.theory.inputs import Real

COLORS = (*HUES, MUTED, INK)
_MARKERS = "os^Dv<"
_WIDE = 8.0
_TWO_DECADES = 100.0
_BELOW = 0.03  # of the height, below a vertical axis that begins at 0
_DASHES = ("-", "--", "-.", (0, (1, 1.2)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve of a panel.

    Attributes:
        label: in the legend; empty for none.
        x: places.
        y: numbers; those that are not finite are left out.
        kind: a line, points, or both.
        look: number of its colour, marker and dash; by its place in the panel unless given.
        low: lower end of a band around it.
        high: upper end.
    """

    label: str
    x: ArrayLike | xr.DataArray
    y: ArrayLike | xr.DataArray
    kind: Literal["line", "points", "both"] = "line"
    look: int | None = None
    low: ArrayLike | xr.DataArray | None = None
    high: ArrayLike | xr.DataArray | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """The axes of a panel.

    Attributes:
        x: what lies along.
        y: what goes up.
        log_x: whether the horizontal axis is logarithmic.
        log_y: whether the vertical axis is.
        linear_to: with `log_y`, numbers up to this size, negative ones too, stand on a straight scale in its middle.
        levels: dashed horizontal lines, by what they are called.
        limits: of the vertical axis; what fits unless given.
        whole: whether the horizontal axis counts.
    """

    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    linear_to: Real | None = None
    levels: dict[str, Real] = field(default_factory=dict[str, Real])
    limits: tuple[Real | None, Real | None] = (None, None)
    whole: bool = False


def curves(found: Sequence[Curve], frame: Frame, ax: Axes | None = None) -> Axes:
    """Draw curves into axes, new ones unless given; returns them."""
    ax = axes_or_new(ax)
    for place, curve in enumerate(found):
        look = place if curve.look is None else curve.look
        if _there(curve).any():  # no name in the legend for what cannot be seen
            _draw(ax, curve, look)
    for name, level in frame.levels.items():
        ax.axhline(level, color=INK, linestyle=(0, (4, 2)), linewidth=1.0, zorder=1.5, label=name)
    if frame.log_x and _spans(curve.x for curve in found):
        ax.set_xscale("log")
        _plain_ticks(ax)
    if frame.linear_to is not None:
        ax.set_yscale("symlog", linthresh=frame.linear_to)
    elif frame.log_y and _spans(curve.y for curve in found):
        ax.set_yscale("log")
    ax.set_ylim(*frame.limits)
    if frame.limits[0] == 0 and not frame.log_y:  # room for the marks at 0
        ax.set_ylim(bottom=-_BELOW * ax.get_ylim()[1])
    ax.set_xlabel(frame.x)
    ax.set_ylabel(frame.y)
    if frame.whole and not frame.log_x:
        whole_numbers(ax)
    if frame.levels or any(curve.label and _there(curve).any() for curve in found):
        legend(ax)
    return ax


def _plain_ticks(ax: Axes) -> None:
    """Whole ticks 1, 2, 5, 10 on a logarithmic axis of less than two decades, whose own names run into each other."""
    low, high = ax.get_xlim()
    if high < _TWO_DECADES * low:
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        ax.xaxis.set_minor_formatter(NullFormatter())


def _spans(found: Iterable[ArrayLike | xr.DataArray]) -> bool:
    """Whether the numbers are far enough apart for a logarithmic axis: below that, its ticks run into each other."""
    values = np.concatenate([np.asarray(column, dtype=np.float64).ravel() for column in found])
    values = values[np.isfinite(values) & (values > 0)]
    return len(values) > 0 and bool(values.max() >= _WIDE * values.min())


def panel(name: str, caption: str, found: Sequence[Curve], frame: Frame) -> Picture:
    """A picture of curves; its description for those who do not see it is made of the axes and the names."""
    names = ", ".join(curve.label for curve in found if curve.label)
    description = f"{frame.y} against {frame.x}" + (f": {names}" if names else "")
    return Picture(name, caption, description, lambda: curves(found, frame))


def _there(curve: Curve) -> np.ndarray:
    """Which points of a curve are numbers."""
    return np.isfinite(np.asarray(curve.x, dtype=np.float64)) & np.isfinite(np.asarray(curve.y, dtype=np.float64))


def _draw(ax: Axes, curve: Curve, look: int) -> None:
    x, y, there = np.asarray(curve.x, dtype=np.float64), np.asarray(curve.y, dtype=np.float64), _there(curve)
    color, marker = COLORS[look % len(COLORS)], _MARKERS[look % len(_MARKERS)]
    if curve.low is not None and curve.high is not None:
        low, high = np.asarray(curve.low, dtype=np.float64), np.asarray(curve.high, dtype=np.float64)
        ax.fill_between(x[there], low[there], high[there], color=color, alpha=0.15, linewidth=0)
    ax.plot(
        x[there],
        y[there],
        linestyle="none" if curve.kind == "points" else _DASHES[look % len(_DASHES)],
        marker="none" if curve.kind == "line" else marker,
        markersize=4.5,
        color=color,
        label=curve.label or None,
        zorder=3 if curve.kind == "points" else 2,
    )


def weight_spectra(table: xr.Dataset, name: str, caption: str) -> Picture:
    """Every singular value of the weights against the position of the layer, marks where the steps are.

    Args:
        table: `position` by "layer", `weight_singular_values` by "layer" and "component".
        name: of the picture.
        caption: what it shows.
    """
    spectra = [table["weight_singular_values"].isel(component=i) for i in range(table.sizes["component"])]
    shown = [
        Curve("" if i else "singular values", table["position"], values, "both", 0) for i, values in enumerate(spectra)
    ]
    return panel(name, caption, shown, Frame("position", "singular value", limits=(0, None)))
