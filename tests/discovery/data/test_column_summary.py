import numpy as np
import pandas as pd

from isthmus.discovery.data.checking import checked_data, with_powers
from isthmus.discovery.data.column_summary import column_summary, target_tails
from isthmus.tasks.input_columns import InputColumn, Made

RNG = np.random.default_rng(0)
A = RNG.standard_normal((400, 2))


def said(*, ordered: bool = False, **columns: np.ndarray) -> str:
    x = np.column_stack([A, *columns.values()])
    made = [InputColumn(name) for name in ("a", "b", *columns)]
    return "\n".join(column_summary(x, made, ("y",), ordered=ordered)[1:])


def test_a_plain_table_is_counted_and_nothing_else() -> None:
    assert said() == ""
    columns = [InputColumn("a"), InputColumn("s=u", Made.ONE_HOT, "s", "u"), InputColumn("s=v", Made.ONE_HOT, "s", "v")]
    x = np.column_stack([A[:, 0], A[:, 1] > 0, A[:, 1] <= 0]).astype(float)
    assert column_summary(x, columns) == ["400 rows of 2 input columns as 3 inputs, to reconstruct them."]


def test_classes_are_told_apart_and_columns_predicted() -> None:
    x = np.random.default_rng(0).normal(size=(30, 1))
    columns = [InputColumn("a")]
    assert column_summary(x, columns, ("owl", "cat"), are_classes=True) == [
        "30 rows of 1 input column, to tell apart 2 classes, 'owl', 'cat'."
    ]
    assert column_summary(x, columns, tuple("abcdef"), are_classes=True) == [
        "30 rows of 1 input column, to tell apart 6 classes, 'a', 'b', 'c', 'd', 'e' and 1 more."
    ]
    assert column_summary(x, columns, ("owl", "cat")) == ["30 rows of 1 input column, to predict columns 'owl', 'cat'."]


def test_what_stands_out_is_named() -> None:
    assert said(n=np.arange(7.0, 407)).startswith("column 'n': rises by one")
    assert said(n=np.arange(7.0, 407), ordered=True) == ""
    assert said(n=RNG.permutation(400).astype(float)) == ""
    assert said(c=np.full(400, 2.5)) == ""  # `discover` warns of it
    assert said(d=5 - 1e8 * A[:, 1]) == "column 'd': the same as 'b' but for scale and origin."
    assert said(d=A[:, 1] + 1e-4 * A[:, 0]) == ""


def test_heavy_tails_are_told_from_light_ones_and_logarithms_advised_where_they_help() -> None:
    tail = np.exp(2 * RNG.standard_normal(400))
    assert said(t=tail).endswith("take logarithms.")
    assert said(t=-tail).endswith("look at these rows.")
    assert said(t=RNG.exponential(size=400)) == ""
    outlier = np.where(np.arange(400) == 9, 1e-9, 1.0) + 1e-3 * RNG.random(400)  # small, not large: no logarithm helps
    assert said(t=outlier).endswith("look at these rows.")


def test_targets_that_few_rows_decide_are_named_with_what_helps() -> None:
    tail = np.exp(2 * RNG.standard_normal(400))
    y = np.column_stack([A[:, 0], tail, -tail])
    wide, other = target_tails(y, ["a", "b", "c"])
    assert wide == "Of target 'b' a few rows hold most of the variance. Take their logarithms (log)."
    assert other == "Of target 'c' a few rows hold most of the variance. Look at these rows, or take the Huber loss."
    assert target_tails(y[:, :1], ["a"]) == []


def test_what_counts_is_the_target_as_it_is_predicted() -> None:
    force, speed = np.exp(2 * RNG.standard_normal(400)), np.exp(RNG.standard_normal(400))
    columns = [InputColumn("speed"), InputColumn("other")]
    x = np.column_stack([speed, np.exp(A[:, 1])])
    for log, loss, heavy in ((None, None, True), (["y"], None, False), (None, "huber", False)):
        data = with_powers(checked_data(x, pd.DataFrame({"y": force}), loss=loss, columns=columns), log, None)
        assert any("hold most of the variance" in note for note in data.notes()) is heavy
    assert not checked_data(x, None, loss=None, columns=columns).notes()
