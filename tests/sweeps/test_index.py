import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.discovery.files.json_values import plain
from isthmus.errors import SweepError
from isthmus.sweeps.index import MIGRATIONS, Index, Row, Status
from isthmus.sweeps.runs import canonical_json

SETTINGS = {"network": {"depth": 3, "linear": [1]}}


def row(key: str, status: Status = Status.DONE) -> Row:
    return Row(key, status, SETTINGS, {"objective": 0.1 + 0.2, "stationarity": float("inf"), "rank": None}, "")


def test_rows_come_back_exactly(tmp_path: Path) -> None:
    rows = [row("b"), row("a", Status.FAILED)]
    with closing(Index(tmp_path / "i.sqlite")) as index:
        index.put(rows)
        assert index.rows() == sorted(rows, key=lambda r: r.id)
        index.mark(["a"], Status.WAITING)
        assert index.statuses() == {"a": Status.WAITING, "b": Status.DONE}


def test_numbers_that_json_lacks_are_written_as_everywhere(tmp_path: Path) -> None:
    numbers = {"a": float("-inf"), "b": float("nan"), "c": 0.5, "d": None, "e": 3, "f": "DONE"}
    with closing(Index(tmp_path / "i.sqlite")) as index:
        index.put([Row("a", Status.DONE, SETTINGS, numbers)])
        (found,) = index.rows()
    with closing(sqlite3.connect(tmp_path / "i.sqlite")) as connection:
        (text,) = connection.execute("SELECT numbers FROM runs").fetchone()
    assert text == canonical_json(plain(numbers))
    assert canonical_json(plain(found.numbers)) == text


def test_a_reader_beside_a_writer_sees_what_is_committed(tmp_path: Path) -> None:
    with closing(Index(tmp_path / "i.sqlite")) as index:
        index.put([row("a")])
        with closing(Index(tmp_path / "i.sqlite", read_only=True)) as reader:
            index.put([row("b")])
            assert list(reader.statuses()) == ["a", "b"]
            with pytest.raises(SweepError, match="cannot be written .*readonly"):
                reader.put([row("c")])


def test_nothing_is_left_beside_a_closed_index_unless_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "i.sqlite"
    with closing(Index(path)) as index:
        index.put([row("a")])
        reader = Index(path, read_only=True)
        index.put([row("b")])
    with closing(reader):
        assert list(reader.statuses()) == ["a", "b"]
    with closing(Index(path)) as index:
        assert list(index.statuses()) == ["a", "b"]
    for _ in range(2):
        assert [file.name for file in tmp_path.iterdir()] == ["i.sqlite"]
        with closing(Index(path, read_only=True)) as reader:
            assert list(reader.statuses()) == ["a", "b"]


def test_rows_are_written_all_or_none(tmp_path: Path) -> None:
    with closing(Index(tmp_path / "i.sqlite")) as index:
        bad = Row("z", Status.DONE, {"network": {"depth": object()}})
        with pytest.raises(TypeError, match="not JSON serializable"):
            index.put([row("a"), bad])
        assert index.rows() == []


def test_an_older_index_is_brought_up_to_date_with_its_rows(tmp_path: Path) -> None:
    with closing(Index(tmp_path / "i.sqlite")) as index:
        index.put([row("a")])
    later = (*MIGRATIONS, "ALTER TABLE runs ADD COLUMN host TEXT NOT NULL DEFAULT 'here'")
    with closing(Index(tmp_path / "i.sqlite", migrations=later)) as index:
        assert index.rows() == [row("a")]
    with closing(sqlite3.connect(tmp_path / "i.sqlite")) as connection:
        assert connection.execute("SELECT id, host FROM runs").fetchall() == [("a", "here")]
        assert connection.execute("PRAGMA user_version").fetchone() == (len(later),)


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    with closing(Index(tmp_path / "i.sqlite")) as index:
        index.put([row("a")])
    broken = (*MIGRATIONS, "ALTER TABLE runs ADD COLUMN host TEXT; ALTER TABLE nowhere ADD COLUMN x TEXT")
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        Index(tmp_path / "i.sqlite", migrations=broken)
    with closing(Index(tmp_path / "i.sqlite")) as index:
        assert index.rows() == [row("a")]


def test_an_index_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    Index(tmp_path / "i.sqlite", migrations=(*MIGRATIONS, "CREATE TABLE more (x)")).close()
    with pytest.raises(SweepError, match="schema version 3, this isthmus knows 2"):
        Index(tmp_path / "i.sqlite")
