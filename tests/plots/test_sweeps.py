import numpy as np
import pandas as pd

from isthmus.plots import sweep_lines


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


def test_runs_without_a_number_are_left_out() -> None:
    failed = table()
    failed.loc[failed["network.depth"] == 8, "objective"] = np.nan
    ax = sweep_lines(failed, axis="network.depth", quantity="objective")
    assert np.asarray(ax.lines[0].get_xdata()).tolist() == [4.0] * 6
    assert ax.get_xscale() == "linear"
