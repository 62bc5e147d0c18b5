"""Pictures are the same whatever matplotlib was told before."""

from collections.abc import Callable

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

import discoveries
from isthmus import plots
from isthmus.plots.interpretation import STRONGEST_UNDER_NUMBERS
from isthmus.plots.style import PALETTE, axes_or_new, covered, floor, legend
from isthmus.reports.picture import Picture, drawn, svg_of
from isthmus.reports.pictures import pictures_of

FOUND = discoveries.discovery()
# what a matplotlibrc could say; LaTeX is not needed to see whether it would be asked for
FOREIGN = {
    "text.usetex": True, "lines.linewidth": 9.0, "font.size": 30.0, "font.family": ["serif"], "svg.fonttype": "none",
    "axes.prop_cycle": cycler("color", ["#010203"]), "axes.facecolor": "#010203", "savefig.dpi": 17.0,
    "patch.edgecolor": "#010203", "axes.formatter.limits": [0, 0], "mathtext.fontset": "cm", "figure.dpi": 31.0,
    "axes.autolimit_mode": "round_numbers", "legend.loc": "lower left", "savefig.transparent": True,
    "scatter.marker": "x", "image.cmap": "gray", "axes.titlelocation": "right", "savefig.bbox": "tight",
}  # fmt: skip


def svg(draw: Callable[[], Axes]) -> str:
    return svg_of(Picture("p", "", "", draw), "salt")


@pytest.mark.dear(1)
@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.scree(FOUND.scree, rank=FOUND.rank),
        lambda: plots.objective_curve(FOUND.objective_curve, rank=FOUND.rank),
        lambda: plots.layer_spectra(FOUND.diagnosis.layers),
        lambda: plots.coordinates(xr.Dataset({"coordinates": (("sample", "coordinate"), np.eye(5)[:, :2])})),
    ],
    ids=["scree", "objective_curve", "layer_spectra", "coordinates"],
)
def test_a_picture_is_the_same_under_foreign_settings(draw: Callable[[], Axes]) -> None:
    expected = svg(draw)
    before = {k: v for k, v in matplotlib.rcParams.items() if k != "backend"}
    with matplotlib.rc_context(FOREIGN):  # pyright: ignore[reportArgumentType] - stubs list the keys one by one
        assert svg(draw) == expected
        made = draw()
        texts = [t for t in made.figure.findobj() if hasattr(t, "get_usetex")]
        assert texts
        assert not any(t.get_usetex() for t in texts)  # pyright: ignore[reportAttributeAccessIssue] - just asked
        assert matplotlib.rcParams["font.size"] == 30.0  # the caller's are back
    # asked for its backend, matplotlib would choose one
    assert {k: v for k, v in matplotlib.rcParams.items() if k != "backend"} == before


def test_axes_of_the_caller_keep_the_callers_settings() -> None:
    with matplotlib.rc_context({"font.family": ["monospace"]}):
        ax = plots.scree(FOUND.scree, Figure().add_subplot(), rank=FOUND.rank)
    assert {t.get_fontfamily()[0] for t in ax.texts} == {"monospace"}


def test_numbers_in_the_cells_of_a_map_can_be_read_on_light_and_on_dark_pages() -> None:
    """The strongest cell under its number, by the web's accessibility rules; stronger would not do on dark pages."""
    for scheme in (0, 1):
        blue, ground, ink = (rgb(PALETTE[name][scheme]) for name in ("blue", "surface", "ink"))
        for strength, passes in ((STRONGEST_UNDER_NUMBERS, True), (1.0, False)):
            cell = strength * blue + (1 - strength) * ground
            assert (contrast(ink, cell) >= 4.5) is passes


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def contrast(a: np.ndarray, b: np.ndarray) -> float:
    parts = [np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for c in (a, b)]
    low, high = sorted(float(part @ [0.2126, 0.7152, 0.0722]) + 0.05 for part in parts)
    return high / low


def test_what_was_cut_off_below_is_hatched_and_not_drawn_as_data() -> None:
    ax = axes_or_new(None)
    ax.set_yscale("log")
    ax.plot([1, 2], [1.0, 1e-6])
    floor(ax, 1e-6, "a millionth or less")
    assert [patch.get_hatch() for patch in ax.patches] == ["/////"]
    assert ax.get_ylim()[0] < 1e-6
    assert [text.get_text() for text in ax.texts] == ["a millionth or less"]


@pytest.mark.parametrize(("first", "side"), [(1.0, "left"), (1e-6, "center")])
def test_words_at_a_floor_stand_where_no_curve_is(first: float, side: str) -> None:
    ax = axes_or_new(None)
    ax.set_yscale("log")
    ax.plot([1, 2], [first, 1e-6])
    floor(ax, 1e-6, "less")
    assert [text.get_horizontalalignment() for text in ax.texts] == [side]


@pytest.mark.dear(1)
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_no_legend_covers_a_line(scale: str) -> None:
    """Of curves that fill their axes, wherever it would lie; the axes grow by what it needs."""

    def draw() -> Axes:
        ax = axes_or_new(None)
        ax.set_yscale(scale)
        for number in range(3):
            ax.plot(np.linspace(0, 1, 60), 2 + np.sin(30 * np.linspace(0, 1, 60) + number), label=f"mode {number}")
        legend(ax)
        return ax

    figure = draw().figure
    figure.get_layout_engine().execute(figure)  # pyright: ignore[reportOptionalMemberAccess, reportArgumentType] - as `axes_or_new` makes it
    assert covered(figure.axes[0]) != [], "matplotlib finds no place for it"
    assert covered(drawn(Picture("p", "", "", draw)).axes[0]) == []


@pytest.mark.slow
def test_no_picture_of_a_discovery_has_a_line_behind_its_legend() -> None:
    pictures = [drawn(picture) for picture in pictures_of(FOUND, discoveries.inputs())]
    legends = [ax for figure in pictures for ax in figure.axes if ax.get_legend() is not None]
    assert len(legends) >= 3
    assert [covered(ax) for ax in legends] == [[]] * len(legends)


def test_a_legend_as_high_as_its_axes_is_left_where_it_is() -> None:
    def draw() -> Axes:
        ax = axes_or_new(None)
        for number in range(11):
            ax.plot(np.linspace(0, 1, 60), np.sin(30 * np.linspace(0, 1, 60) + number), label=f"mode {number}")
        ax.set_ylim(-1.1, 1.1)
        legend(ax)
        return ax

    assert drawn(Picture("p", "", "", draw)).axes[0].get_ylim() == (-1.1, 1.1)
