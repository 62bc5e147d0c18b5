"""One row per run: which settings differ, in which order, and that thousands come back from the index."""

import re
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from isthmus.sweeps.index import Index, Row, Status
from isthmus.sweeps.run_table import MISSING, MOST_LINES, NUMBERS, WARNINGS, drawn_settings, run_columns

NETWORK = {"kind": "fully_connected", "width": [6, 7], "depth": 4}


def row(key: str, *, error: str = "", ridge: float = 0.1, **network: object) -> Row:
    settings = {"network": {**NETWORK, **network}, "task": {"name": "teacher"}, "training": {"ridge": ridge}}
    return Row(key, Status.FAILED if error else Status.DONE, settings, {"objective": 0.25, "rank": None}, error)


def test_settings_that_differ_are_columns_in_the_order_of_their_values() -> None:
    rows = [row("a", depth=10), row("b", width=8, error="Traceback\nValueError: no"), row("c", depth=2, bias=False)]
    table = pd.DataFrame(run_columns(rows))
    assert [name for name in table.columns if "." in name] == ["network.width", "network.depth", "network.bias"]
    assert table["id"].tolist() == ["b", "c", "a"]
    assert table["network.width"].tolist() == ["8", "6 7", "6 7"]  # of one type: files of tables hold no other
    assert table["network.bias"].tolist() == [None, False, None]
    assert table["error"].tolist() == ["ValueError: no", "", ""]
    assert table["objective"].tolist() == [0.25] * 3
    assert "training.ridge" in pd.DataFrame(run_columns([*rows, row("d", ridge=0.2)])).columns


def test_numbers_make_axes_and_few_values_or_words_make_lines_and_the_last_axes() -> None:
    rows = [row(f"{i}", depth=i, bias=i % 2 == 0, kind="ab"[i % 2], seed=i % 3) for i in range(12)]
    rows.append(row("12", depth=1, effective_depth=4))
    along, lines = drawn_settings(run_columns(rows))
    assert along[:2] == ["network.depth", "network.kind"], "first what every run has"
    assert along[2:] == ["network.effective_depth", "network.bias", "network.seed"]
    assert lines[0] == "network.kind", "unlike networks have no median together"
    assert set(lines) == {"network.bias", "network.kind", "network.effective_depth"}


@pytest.mark.parametrize(
    "values", [["none", "column"], [[4, 5], 6], [[4, 5], [6, 6]], [True, False]], ids=["words", "mixed", "lists", "yes"]
)
def test_whatever_differs_makes_an_axis(values: list[object]) -> None:
    """Of words alone it was said that no setting differs."""
    along, _ = drawn_settings(run_columns([row(f"{i}", width=value) for i, value in enumerate(values)]))
    assert along == ["network.width"]


def test_more_words_than_an_eye_tells_apart_make_no_axis() -> None:
    columns = run_columns([row(f"{i}", act=f"word {i}") for i in range(MOST_LINES + 1)])
    assert drawn_settings(columns) == ([], [])


def test_equal_settings_are_no_columns() -> None:
    assert [name for name in pd.DataFrame(run_columns([row("a"), row("b")])).columns if "." in name] == []


def test_thousands_of_rows_come_back_from_the_index_each_once(tmp_path: Path) -> None:
    rows = [row(f"{i:05d}", depth=i + 1, ridge=1 / (i + 1)) for i in range(5000)]
    with closing(Index(tmp_path / "index.sqlite")) as index:
        index.put(reversed(rows))
        assert index.rows() == rows


def test_every_column_is_defined_where_tables_are_explained() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guides" / "many-runs.md").read_text()
    told = page.partition("## What the columns are")[2].partition("\n## ")[0]
    named = {word for span in re.findall(r"`([^`]+)`", told) for word in span.split(", ")}
    assert {*NUMBERS, "outcome", MISSING, WARNINGS} - named == set()
