"""How every picture looks: colours that colour-blind readers tell apart, sizes legible on a telephone, fresh axes.

No data here. Each colour has a light and a dark form; `reports` swaps them in pages that follow the reader's scheme.
"""

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache, wraps
from inspect import signature
from typing import Any, ParamSpec

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import MaxNLocator

from isthmus.tasks.names import shown
from isthmus.theory.inputs import Real

# light, dark: hues after Okabe and Ito, shifted until each has 3:1 contrast with its background
PALETTE: dict[str, tuple[str, str]] = {
    "ink": ("#1b1e23", "#e8eaed"),
    "muted": ("#5f6670", "#a0a7b1"),
    "grid": ("#dadde2", "#3a4049"),
    "surface": ("#fefefe", "#1b1f24"),
    "blue": ("#0072b2", "#56b4e9"),
    "orange": ("#cc5500", "#ff9f5b"),
    "green": ("#007a5e", "#35c29a"),
    "purple": ("#a8488a", "#e39bc8"),
}
INK, MUTED, GRID, SURFACE, BLUE, ORANGE, GREEN, PURPLE = (light for light, _dark in PALETTE.values())
HUES = (BLUE, ORANGE, GREEN, PURPLE)
LOOKS = tuple(zip(HUES, "osD^", strict=True))  # colour and marker of one curve after the other
_P = ParamSpec("_P")
SMALL = 8.5
_MOST_ROOM = 0.5  # of the axes, for a legend above the lines; one of twenty curves would leave them no height
_LONGEST_NAME, LONGEST_AXIS = 32, 60
# at a width of 350 px the 9 pt text of a 4.4 inch figure is still 10 px high
SIZE = (4.4, 3.1)
_RC: dict[str, object] = {
    "figure.facecolor": SURFACE,
    "savefig.facecolor": SURFACE,
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "font.family": ["DejaVu Sans"],
}


_ONE_AT_A_TIME = threading.RLock()  # settings are those of all threads, and matplotlib draws in one


@contextmanager
def own_settings(settings: Mapping[str, object] | None = None) -> Generator[None]:
    """Matplotlib as if there were no matplotlibrc, and some settings of ours, while something is drawn or saved.

    Files of that name are read from the working folder first: one with `text.usetex` would start LaTeX here, and
    pictures would not be the same for everybody. rc_context itself keeps the backend.
    """
    defaults = {name: value for name, value in matplotlib.rcParamsDefault.items() if name != "backend"}
    with _ONE_AT_A_TIME, matplotlib.rc_context({**defaults, **(settings or {})}):  # pyright: ignore[reportArgumentType] - stubs list the keys
        yield


def in_own_settings(draw: Callable[_P, Axes]) -> Callable[_P, Axes]:
    """A function that draws, in settings of ours where the axes are; axes of the caller's keep the caller's."""
    parameters = signature(draw)

    @wraps(draw)
    def drawn(*arguments: _P.args, **named: _P.kwargs) -> Axes:
        if parameters.bind(*arguments, **named).arguments.get("ax") is not None:
            return draw(*arguments, **named)
        with own_settings():
            return draw(*arguments, **named)

    return drawn


def axes_or_new(ax: Axes | None, *, height: float = 0.0) -> Axes:
    """`ax` untouched, or the axes of a new figure in the house style, outside pyplot's state.

    Where many rows need a larger `height` in inches, the figure has it.
    """
    if ax is not None:
        return ax
    with own_settings(_RC):
        return Figure(figsize=(SIZE[0], max(SIZE[1], height)), layout="constrained").add_subplot()


def plain_text(name: object, *, most: int = _LONGEST_NAME) -> str:
    """A name of the user's for a picture: taken as it stands, never as a formula.

    Invisible characters are escaped, those that the font lacks are boxes, and what is too long is shortened.
    """
    text = "".join(c if ord(c) in _characters() else "\N{WHITE SQUARE}" for c in shown(name, most=most))
    if text.startswith("_"):  # which matplotlib would leave out of a legend
        text = f" {text}"
    return text.replace("$", r"\$")


@cache
def _characters() -> frozenset[int]:
    """What the font of our pictures can draw."""
    return frozenset(get_font(findfont("DejaVu Sans")).get_charmap())


def legend(ax: Axes, *, markerscale: float = 1.0) -> None:
    """A small legend where it covers least, on a plain ground so that lines behind it do not cross the words."""
    box = ax.legend(
        fontsize=SMALL, labelcolor=INK, handlelength=1.8, borderaxespad=0.2, framealpha=0.85, markerscale=markerscale
    )
    box.get_frame().set(facecolor=SURFACE, edgecolor="none")


def uncover(figure: Figure) -> None:
    """Where a legend covers a line wherever it lies, room for it above the lines; for a figure that is laid out."""
    for ax in figure.axes:
        box = ax.get_legend()
        if box is None or not covered(ax):
            continue
        frame, (low, high) = ax.get_window_extent(), ax.get_ylim()
        room = 1.1 * box.get_window_extent().height / frame.height
        if room > _MOST_ROOM:
            continue
        to_axes, from_axes = ax.yaxis.get_transform(), ax.yaxis.get_transform().inverted()
        bottom, top = to_axes.transform([low, high])
        ax.set_ylim(top=float(from_axes.transform([bottom + (top - bottom) / (1 - room)])[0]))
        box.set_loc("upper right")


def covered(ax: Axes) -> list[str]:
    """The names of the lines of data that run behind the legend of laid out axes."""
    box = ax.get_legend()
    assert box is not None
    extent = box.get_window_extent()
    data = [line for line in ax.lines if line.get_transform() == ax.transData]  # no marks across the axes
    paths = [(str(line.get_label()), line.get_path().transformed(line.get_transform())) for line in data]
    return [name for name, path in paths if path.intersects_bbox(extent, filled=False)]


def mark_rank(ax: Axes, rank: int | None, *, between: bool = False) -> None:
    """A dashed line at the chosen rank, or just behind it (`between`, for spectra), with its name above the axes."""
    if rank is None:
        return
    position = rank + 0.5 if between else rank
    # the pale line below keeps the dashes visible on a coloured map
    ax.axvline(position, color=SURFACE, linewidth=2.4, zorder=1.4)
    ax.axvline(position, color=INK, linestyle=(0, (4, 2)), linewidth=1.2, zorder=1.5)
    above(ax, position, f"rank {rank}", fontsize=SMALL, fontweight="bold", color=INK)


def above(ax: Axes, x: Real, text: str, **look: Any) -> None:
    """A few words just above the axes."""
    ax.text(x, 1.015, text, transform=ax.get_xaxis_transform(), ha="center", va="bottom", **look)


def floor(ax: Axes, height: float, text: str) -> None:
    """A hatched strip below a height at which values were cut off: what lies in it is that or less, not measured.

    For a logarithmic axis, behind everything that is drawn.
    """
    low = ax.get_ylim()[0] if ax.get_ylim()[0] < height else height / 3
    ax.axhspan(low, height, facecolor="none", edgecolor=MUTED, hatch="/////", linewidth=0, alpha=0.5, zorder=0.5)
    ax.set_ylim(bottom=low)
    # curves fall to the right: the words stand on the left, unless one begins in the strip
    curves = [line for line in ax.lines if line.get_transform() == ax.transData]
    firsts = [float(first) for line in curves for first in np.asarray(line.get_ydata())[:1]]
    left = min(firsts, default=0.0) > 3 * height
    ax.annotate(
        text, (0.01 if left else 0.5, height), xycoords=("axes fraction", "data"), xytext=(0, 4),
        textcoords="offset points", ha="left" if left else "center", va="bottom", fontsize=SMALL - 1, color=MUTED,
    )  # fmt: skip


def colour_bar(ax: Axes, cells: ScalarMappable, text: str, *, cut: bool = False) -> None:
    """What the colours of a map mean; a pointed end where values were cut off below."""
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(cells, ax=ax, pad=0.02, extend="min" if cut else "neither")
    assert bar.solids is not None
    if bar.solids.get_alpha() is not None:
        bar.solids.set_alpha(1)  # that of faint points is not the colour's
    bar.solids.set_rasterized(False)  # as pixels it would not follow the scheme of a page
    bar.ax.set_facecolor("none")
    if bar.cmap(np.linspace(0.0, 1.0, 5))[:, 3].min() == 1.0:
        bar.solids.set_edgecolor("face")  # no seams between its steps; of a transparent one they would be seams
    bar.set_label(text, color=ax.xaxis.label.get_color(), fontsize=SMALL)
    bar.ax.tick_params(color=MUTED, labelcolor=ax.xaxis.label.get_color(), labelsize=SMALL)
    bar.outline.set_edgecolor(MUTED)  # pyright: ignore[reportCallIssue] - typed as a list of spines, is one


def whole_numbers(ax: Axes, *, y: bool = False) -> None:
    """Ticks at whole numbers only: a rank, a layer or a component is a count."""
    axis = ax.yaxis if y else ax.xaxis
    axis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
