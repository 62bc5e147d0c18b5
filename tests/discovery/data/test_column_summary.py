import numpy as np
import pandas as pd
import pytest

from isthmus.discovery.data.checking import checked_data, with_powers
from isthmus.discovery.data.column_summary import column_summary, target_tails, ties
from isthmus.tasks import Kind
from isthmus.tasks.builtin import builtin
from isthmus.tasks.input_columns import InputColumn, Made

RNG = np.random.default_rng(0)
A = RNG.standard_normal((400, 2))


def said(*, ordered: bool = False, targets: tuple[str, ...] = ("y",), **columns: np.ndarray) -> str:
    x = np.column_stack([A, *columns.values()])
    made = [InputColumn(name) for name in ("a", "b", *columns)]
    return "\n".join(column_summary(x, made, targets, ordered=ordered)[1:])


def test_a_plain_table_is_counted_and_nothing_else() -> None:
    assert said() == ""
    columns = [InputColumn("a"), InputColumn("s=u", Made.ONE_HOT, "s", "u"), InputColumn("s=v", Made.ONE_HOT, "s", "v")]
    x = np.column_stack([A[:, 0], A[:, 1] > 0, A[:, 1] <= 0]).astype(float)
    assert column_summary(x, columns) == ["400 rows of 2 input columns as 3 inputs, to reconstruct them."]


def test_columns_that_never_change_are_counted_apart() -> None:
    x = np.column_stack([A, np.full(400, 2.0), np.zeros(400)])
    counted = column_summary(x, [InputColumn(name) for name in "abcd"])
    assert counted == ["400 rows of 2 input columns (2 more never change), to reconstruct them."]


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
    for clock in (np.arange(7.0, 407), np.cumsum(RNG.exponential(size=400))):
        told = said(n=clock, ordered=True, targets=())
        assert told.startswith("column 'n': rises from row to row: a clock is no state")
        assert said(n=clock, ordered=True) == said(n=-clock, ordered=True, targets=()) == ""
    assert said(n=np.sort(A[:, 0]).repeat(2)[:400], targets=()) == "", "sorted, with ties"
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
    assert wide == "Of target 'b' a few rows hold most of the variance. Take their logarithms (log, --log)."
    assert other.startswith("Of target 'c' a few rows hold most of the variance. Look at these rows, or take the Huber")
    assert other.endswith('(loss="huber", --loss huber).')
    assert target_tails(y[:, :1], ["a"]) == []


def test_what_counts_is_the_target_as_it_is_predicted() -> None:
    force, speed = np.exp(2 * RNG.standard_normal(400)), np.exp(RNG.standard_normal(400))
    columns = [InputColumn("speed"), InputColumn("other")]
    x = np.column_stack([speed, np.exp(A[:, 1])])
    for log, loss, heavy in ((None, None, True), (["y"], None, False), (None, "huber", False)):
        data = with_powers(checked_data(x, pd.DataFrame({"y": force}), loss=loss, columns=columns), log, None)
        assert any("hold most of the variance" in note for note in data.notes()) is heavy
    assert not checked_data(x, None, loss=None, columns=columns).notes()


def tied(x: np.ndarray, y: np.ndarray | None = None, *, names: str = "abcdefgh", classes: bool = False) -> str:
    columns = [InputColumn(name) for name, _ in zip(names, x.T, strict=False)]
    return " ".join(ties(x, y, columns, are_classes=classes))


def walks(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).standard_normal((n, d)), axis=0)


@pytest.mark.parametrize("n", [120, 300, 5000])
def test_rows_in_the_order_of_measurement_are_noticed(n: int) -> None:
    """A series that drifts, of which nothing was said, had .06 of held-out rows and 1.05 of fresh ones."""
    x, y = walks(n, 3), walks(n, 2, seed=1)
    assert "pass ordered=True (--ordered)" in tied(x, y)
    assert "--ordered" in tied(x)
    shuffled = np.random.default_rng(2).permutation(n)
    assert tied(x[shuffled], y[shuffled]) == tied(x[shuffled]) == ""
    labels = (np.arange(n) // (n // 5) % 2).astype(float)
    assert "--ordered" in tied(x, labels, classes=True)
    assert tied(np.random.default_rng(3).standard_normal((n, 3)), y) == ""  # no input tells when a row was measured
    assert tied(x, np.random.default_rng(3).standard_normal((n, 2))) == ""  # nothing drifts


def test_what_was_said_of_the_rows_is_not_asked_again() -> None:
    data = checked_data(walks(300, 3), walks(300, 2, seed=1), None)
    assert any("--ordered" in note for note in data.notes())
    assert data.notes(are_tied=True) == []


@pytest.mark.parametrize(
    "name",
    ["iris", "wine", "diabetes", "digits", "digits_classes", "breast_cancer", "linnerud", "teacher", "friedman",
     "mixture_classes", "circle", "swiss_roll"],
)  # fmt: skip
def test_ordinary_tables_have_no_ties(name: str) -> None:
    """Iris and wine are sorted by their classes."""
    task = builtin(name)
    is_classes = task.kind is Kind.CLASSIFICATION
    y = task.y if task.y is None or not is_classes else task.y.argmax(1).astype(float)
    columns = [InputColumn(f"x{i}") for i in range(task.x.shape[1])]
    assert ties(task.x, y, columns, are_classes=is_classes) == ties(task.x, None, columns) == []


def test_labels_of_what_rows_belong_to_are_no_measurements() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 7, size=40)
    runs = np.repeat(1000.0 + np.arange(40) * 3, sizes)
    x = np.column_stack([rng.standard_normal(len(runs)), runs])
    assert tied(x).startswith("Each value of column 'b' stands in neighbouring rows alone.")
    assert "--groups NAME" in tied(x)
    for other in (
        rng.permutation(runs), np.arange(len(runs)) * 1.0, runs + 0.5, np.repeat([1.0, 2.0], len(runs))[: len(runs)],
        rng.integers(0, 40, len(runs)).astype(float), np.sort(rng.standard_normal(len(runs))),
    ):  # fmt: skip
        assert tied(np.column_stack([x[:, 0], other])) == ""
    values = [f"r{i}" for i in range(40)]
    columns = [InputColumn("a"), *(InputColumn(f"run={v}", Made.ONE_HOT, "run", v) for v in values)]
    text = np.column_stack([x[:, 0], np.eye(40)[np.repeat(np.arange(40), sizes)]])
    assert ties(text, None, columns)[0].startswith("Each value of column 'run' stands in neighbouring rows alone.")
    assert ties(text[rng.permutation(len(text))], None, columns) == []


@pytest.mark.parametrize(("count", "lines"), [(5, 5), (98, 1)])
def test_many_columns_that_are_the_same_as_others_take_one_line(count: int, lines: int) -> None:
    """A picture that is symmetric had 98."""
    x = np.column_stack([A, *((i + 2.0) * A[:, 0] for i in range(count))])
    names = ["a", "b", *(f"c{i}" for i in range(count))]
    told = column_summary(x, [InputColumn(name) for name in names], ("y",))[1:]
    assert len(told) == lines
    if lines == 1:
        assert told[0].startswith("98 columns are the same as others but for scale and origin: 'c0' as 'a', 'c1' as ")
        assert told[0].endswith(" and 93 more.")
