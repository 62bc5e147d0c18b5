import numpy as np
import pandas as pd
import pytest

from isthmus.plots import sweep_lines
from isthmus.plots.sweeps import drawn_rows, left_out


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


@pytest.mark.parametrize("outcome", ["COLLAPSED", "DIVERGED"])
def test_runs_that_were_lost_enter_no_median(outcome: str) -> None:
    """An objective of 4.6e60 and a rank read off rounding were half of a median."""
    rows = table().assign(outcome="PLATEAU")
    lost = (rows["network.seed"] == 2) & (rows["network.depth"] == 8)
    rows.loc[lost, ["outcome", "objective"]] = [outcome, 4.6e60]
    ax = sweep_lines(rows, axis="training.ridge", quantity="objective", by="network.depth")
    assert np.asarray(ax.lines[3].get_ydata()).tolist() == pytest.approx([8e-3 + 0.05, 0.8 + 0.05])
    assert max(float(np.max(np.asarray(line.get_ydata()))) for line in ax.lines) < 2
    assert ax.get_title(loc="right") == "10 of 12 runs"
    assert left_out(rows, axis="training.ridge", quantity="objective") == f"left out: 2 {outcome}"
    assert left_out(table(), axis="training.ridge", quantity="objective") == ""


def test_a_line_breaks_where_its_runs_have_no_number() -> None:
    rows = pd.DataFrame({"network.depth": [1, 2, 3, 4], "rank": [4, None, 3, 3]})
    ax = sweep_lines(rows, axis="network.depth", quantity="rank")
    np.testing.assert_array_equal(np.asarray(ax.lines[1].get_ydata(), dtype=float), [4, np.nan, 3, 3])
    assert left_out(rows, axis="network.depth", quantity="rank") == "left out: 1 without rank"


@pytest.mark.parametrize("by", [None, "training.ridge"])
def test_unlike_networks_have_no_median_together(by: str | None) -> None:
    kinds = table().assign(**{"network.kind": ["leaky", "resnet"] * 6})
    ax = sweep_lines(kinds, axis="network.depth", quantity="objective", by=by)
    box = ax.get_legend()
    assert box is not None
    names = [text.get_text() for text in box.get_texts()]
    assert all("kind leaky" in name or "kind resnet" in name for name in names)
    assert len(names) == (2 if by is None else 4)


def test_a_value_looks_the_same_in_every_picture() -> None:
    """The second of three kinds had the first colour where the first had no such number."""
    kinds = table().assign(**{"network.kind": ["a", "b", "c"] * 4})
    kinds["rank"] = kinds["objective"].where(kinds["network.kind"] != "a")
    looks: list[dict[str, tuple[object, ...]]] = []
    for quantity in ("objective", "rank"):
        ax = sweep_lines(kinds, axis="network.depth", quantity=quantity, by="network.kind")
        lines = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
        looks.append({str(l.get_label()): (l.get_color(), l.get_marker(), l.get_linestyle()) for l in lines})
    assert looks[1] == {name: look for name, look in looks[0].items() if name != "kind a"}
    assert len(set(looks[0].values())) == 3


@pytest.mark.parametrize("values", [["none", "column"], ["6", "6 6"], [True, False]], ids=["words", "lists", "yes"])
def test_words_stand_along_an_axis_without_a_line(values: list[object]) -> None:
    rows = table().assign(**{"training.scaling": values * 6})
    ax = sweep_lines(rows, axis="training.scaling", quantity="objective")
    assert [label.get_text() for label in ax.get_xticklabels()] == sorted(map(str, values))
    assert ax.lines[1].get_linestyle() == "None"
    assert len(np.asarray(ax.lines[0].get_xdata())) == 12
    assert ax.get_title(loc="right") == ""


def test_many_words_along_an_axis_are_read_side_by_side_and_widths_are_in_order() -> None:
    values = ["10 10", "6", "preconditioned", "cross_entropy", "16 32 32 16", "column", "global"]
    rows = pd.DataFrame({"network.width": values, "rank": [1, 2, 3, 4, 3, 2, 2]})
    ax = sweep_lines(rows, axis="network.width", quantity="rank")
    labels = ax.get_xticklabels()
    assert [label.get_text() for label in labels[:3]] == ["6", "10 10", "16 32 32 16"]
    assert all(label.get_rotation() == 30 for label in labels)
