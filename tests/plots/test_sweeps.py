import numpy as np
import pandas as pd

from isthmus.plots import sweep_lines
from isthmus.plots.sweeps import drawn_rows


def table() -> pd.DataFrame:
    rows = [(d, lam, seed, d * lam + 0.1 * seed) for d in (4, 8) for lam in (1e-3, 1e-1) for seed in (0, 1, 2)]
    return pd.DataFrame(rows, columns=["network.depth", "training.ridge", "network.seed", "objective"])


def test_every_run_is_a_point_and_the_medians_a_line() -> None:
    ax = sweep_lines(table(), axis="training.ridge", quantity="objective", by="network.depth")
    points, medians = ax.lines[0], ax.lines[1]
    assert len(np.asarray(points.get_xdata())) == 6
    assert np.asarray(medians.get_xdata()).tolist() == [1e-3, 1e-1]
    assert np.allclose(np.asarray(medians.get_ydata()), [4e-3 + 0.1, 0.4 + 0.1])
    assert len(ax.lines) == 4
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["depth 4", "depth 8"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("ridge", "objective", "log")


def test_lines_that_lie_on_each_other_show_both() -> None:
    equal = table().assign(objective=2.0)
    ax = sweep_lines(equal, axis="training.ridge", quantity="objective", by="network.depth")
    below, above = ax.lines[1], ax.lines[3]
    assert (below.get_linestyle(), above.get_linestyle()) == ("-", "--")
    assert below.get_markersize() > above.get_markersize()


def test_runs_that_lack_the_setting_of_the_lines_have_their_own() -> None:
    """Networks of another kind have no effective depth: they were gone from the picture, and counted below it."""
    mixed = table().assign(**{"network.effective_depth": [None] * 6 + [2.0] * 6})
    ax = sweep_lines(mixed, axis="training.ridge", quantity="objective", by="network.effective_depth")
    legend = ax.get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} == {"effective_depth 2.0", "effective_depth none"}
    assert sum(len(np.asarray(line.get_xdata())) for line in ax.lines[::2]) == len(mixed)


def test_runs_without_the_setting_along_the_axis_are_left_out_and_bend_no_scale() -> None:
    rows = table().assign(**{"training.ridge": [1e-3, None, 1e-1] * 4})
    ax = sweep_lines(rows, axis="training.ridge", quantity="objective")
    assert (
        len(np.asarray(ax.lines[0].get_xdata()))
        == len(drawn_rows(rows, axis="training.ridge", quantity="objective"))
        == 8
    )
    assert ax.get_xscale() == "log"


def test_runs_without_a_number_are_left_out() -> None:
    failed = table()
    failed.loc[failed["network.depth"] == 8, "objective"] = np.nan
    ax = sweep_lines(failed, axis="network.depth", quantity="objective")
    assert np.asarray(ax.lines[0].get_xdata()).tolist() == [4.0] * 6
    assert ax.get_xscale() == "linear"
