import numpy as np

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
