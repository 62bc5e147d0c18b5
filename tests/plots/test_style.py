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
from isthmus.reports.picture import Picture, svg_of

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
