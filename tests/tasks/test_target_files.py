"""Targets that lie in a file of their own: their rows are those of the data."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isthmus.errors import DataError
from isthmus.tasks import Kind, read_table

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 4)), RNG.normal(size=(30, 2))
KINDS = np.array(["owl", "cat", "eel"] * 10)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    np.save(tmp_path / "short.npy", Y[:29])
    np.save(tmp_path / "odd.npy", np.where(np.eye(30, 2) > 0, np.nan, Y))
    np.save(tmp_path / "codes.npy", np.arange(30) % 3)
    pd.DataFrame(X, columns=list("abcd")).to_csv(tmp_path / "x.csv", index=False)
    pd.DataFrame(Y, columns=["heat", "drag"]).to_csv(tmp_path / "y.csv", index=False)
    pd.DataFrame({"kind": KINDS}).to_csv(tmp_path / "kinds.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("target", ["y.npy", "y.csv"])
@pytest.mark.parametrize("data", ["x.npy", "x.csv"])
@pytest.mark.parametrize("named", ["beside the data", "by its path"])
def test_all_columns_of_the_file_are_predicted(folder: Path, data: str, target: str, named: str) -> None:
    task = read_table(folder / data, target=target if named == "beside the data" else str(folder / target))
    assert task.kind is Kind.REGRESSION
    assert task.y is not None
    np.testing.assert_array_equal(task.y, Y)
    np.testing.assert_array_equal(task.x, X)
    assert task.y_names == (("heat", "drag") if target == "y.csv" else ("y1", "y2"))


@pytest.mark.parametrize(("classes", "names"), [("kinds.csv", ("cat", "eel", "owl")), ("codes.npy", ("0", "1", "2"))])
def test_classes_are_one_column(folder: Path, classes: str, names: tuple[str, ...]) -> None:
    task = read_table(folder / "x.npy", classes=classes)
    assert task.kind is Kind.CLASSIFICATION
    assert task.y_names == names


def test_a_large_array_keeps_its_place_on_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.tasks.large_tables.FITS", 100)
    task = read_table(folder / "x.npy", target="y.npy", drop_constant=False)
    assert task.y is not None
    np.testing.assert_array_equal(task.y, Y)


def test_a_column_of_such_a_name_is_a_column(folder: Path) -> None:
    pd.DataFrame({"a": X[:, 0], "y.csv": X[:, 1]}).to_csv(folder / "x.csv", index=False)
    assert read_table(folder / "x.csv", target="y.csv").y_names == ("y.csv",)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "short.npy"}, "x has 30 rows and y has 29"),
        ({"target": "odd.npy"}, r"odd\.npy: columns 1, 2 hold a missing value or NaN in rows 1, 2"),
        ({"target": "kinds.csv"}, r"kinds\.csv: target column 'kind' holds text"),
        ({"classes": "y.csv"}, r"y\.csv: has columns 'heat', 'drag', and classes are one"),
        ({"target": "gone.npy"}, "has no column 'gone.npy'"),
        ({"target": ["y.npy", "y.csv"]}, "has no column 'y.npy'"),
        ({"target": ["c1", "c2", "c1"]}, "target 'c1' is named twice. Name it once"),
    ],
)
def test_what_does_not_fit_is_refused(folder: Path, options: dict[str, str], words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_table(folder / "x.npy", **options)  # type: ignore[arg-type]
