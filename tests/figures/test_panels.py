import numpy as np
from matplotlib.figure import Figure

from isthmus.figures.panels import Curve, Frame, curves

X = [0.0, 1.0, 2.0]


def test_marks_at_zero_are_not_cut_in_half() -> None:
    low, high = curves([Curve("a", X, [0.0, 1.0, 2.0], "points")], Frame("x", "y", limits=(0, None))).get_ylim()
    assert -0.1 * high < low < 0
    assert curves([Curve("a", X, X)], Frame("x", "y", limits=(-1, 4))).get_ylim() == (-1, 4)


def test_a_logarithmic_axis_may_be_straight_in_its_middle() -> None:
    energies = [Curve("a", X, [600.0, 2.0, -3.0]), Curve("b", X, [2.0, 2.0, 2.0])]
    ax = curves(energies, Frame("x", "y", log_y=True, linear_to=2.0))
    assert ax.get_yscale() == "symlog"
    places = ax.transData.transform([(0, 600.0), (0, 60.0), (0, 2.0), (0, 0.0), (0, -3.0)])[:, 1]
    assert np.all(np.diff(places) < 0)
    assert places[1] - places[2] > 0.2 * (places[0] - places[3])  # 60 and 2 stand well apart
    assert curves(energies, Frame("x", "y", log_y=True)).get_yscale() == "log"


def test_names_of_ticks_on_a_short_logarithmic_axis_do_not_meet() -> None:
    ax = curves([Curve("a", [32.0, 128.0, 512.0], X)], Frame("x", "y", log_x=True))
    figure = ax.get_figure()
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    ticks = [*ax.xaxis.get_ticklabels(), *ax.xaxis.get_ticklabels(minor=True)]
    shown = [tick for tick in ticks if tick.get_text() and 32 <= tick.get_position()[0] <= 512]
    assert [tick.get_text() for tick in shown] == ["50", "100", "200", "500"]
    ends = [tick.get_window_extent() for tick in shown]
    assert all(left.x1 < right.x0 for left, right in zip(ends, ends[1:], strict=False))
