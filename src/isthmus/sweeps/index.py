"""The index of a sweep: one SQLite file in WAL mode with one row per run; one process writes it, any may read it.

The folders of the runs are the truth and the index can be made from them again: `store`.
"""

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from isthmus.errors import SweepError
from isthmus.sweeps.runs import canonical_json

# each script takes the database one version further; scripts are never changed once released, only added
MIGRATIONS = (
    """
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        status TEXT NOT NULL,
        settings TEXT NOT NULL,
        numbers TEXT NOT NULL DEFAULT '{}',
        error TEXT NOT NULL DEFAULT ''
    ) WITHOUT ROWID;
    CREATE INDEX runs_by_status ON runs (status);
    """,
)


class Status(StrEnum):
    """Where a run stands."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


_STATUS = {status.value: status for status in Status}
_SCHEMA = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'"
_AT_ONCE = 4096  # rows of the index in memory as text


@dataclass(frozen=True, slots=True)
class Row:
    """One run in the index.

    Attributes:
        id: of the run.
        status: where it stands.
        settings: canonical sections.
        numbers: of a finished run.
        error: of a failed one, with its traceback.
    """

    id: str
    status: Status
    settings: Mapping[str, Mapping[str, object]]
    numbers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: str = ""


class Index:
    """An open index.

    Args:
        path: the file; made if missing (unless `read_only`).
        read_only: open for readers beside a driver at work.
        migrations: the scripts that lead to the current version.

    Raises:
        SweepError: written by a newer version. sqlite3.DatabaseError: damaged, or of another make.
    """

    def __init__(self, path: Path, *, read_only: bool = False, migrations: Sequence[str] = MIGRATIONS) -> None:
        self._path = path
        address = f"{path.resolve().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        self._connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=30.0)
        try:
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            self._connection.execute("PRAGMA trusted_schema = OFF")
            if version > len(migrations):
                raise SweepError(
                    f"{path}: has schema version {version}, this isthmus knows {len(migrations)}; use the newer one."
                )
            self._check_schema(migrations[:version])
            if not read_only:
                self._prepare(version, migrations)
        except BaseException:
            self._connection.close()
            raise

    def _check_schema(self, migrations: Sequence[str]) -> None:
        """Refuse a file with other tables: a view in place of ours has rows without end, a trigger writes others."""
        with closing(sqlite3.connect(":memory:")) as own:
            for script in migrations:
                own.executescript(script)
            ours, theirs = (set(c.execute(_SCHEMA)) for c in (own, self._connection))
        if ours != theirs:
            raise sqlite3.DatabaseError("its tables are not those of an index")

    def _prepare(self, version: int, migrations: Sequence[str]) -> None:
        (verdict,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        if version:
            self.statuses()
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        for number, script in enumerate(migrations[version:], version + 1):
            self._connection.executescript(f"BEGIN; {script}; PRAGMA user_version = {number}; COMMIT;")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def put(self, rows: Iterable[Row]) -> None:
        """Write rows, all or none, over those of the same ids.

        Raises:
            SweepError: the disk is full or read-only.
        """
        values = [
            (row.id, row.status.value, canonical_json(row.settings), canonical_json(_tagged(row.numbers)), row.error)
            for row in rows
        ]
        self._many("INSERT OR REPLACE INTO runs (id, status, settings, numbers, error) VALUES (?, ?, ?, ?, ?)", values)

    def mark(self, ids: Iterable[str], status: Status) -> None:
        """Set the status of runs, all or none."""
        self._many("UPDATE runs SET status = ? WHERE id = ?", [(status.value, key) for key in ids])

    def rows(self) -> list[Row]:
        """Every run, in the order of the ids.

        Raises:
            SweepError: a row says what no run says.
        """
        rows: list[Row] = []
        try:
            found = self._connection.execute("SELECT id, status, settings, numbers, error FROM runs ORDER BY id")
            while records := found.fetchmany(_AT_ONCE):
                keys, statuses, settings, numbers, errors = zip(*records, strict=True)
                rows += map(Row, keys, map(_STATUS.__getitem__, statuses), _values(settings), _numbers(numbers), errors)
            _check(rows)
        except (sqlite3.Error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = " ".join(str(error).split())[:160]
            raise SweepError(
                f"{self._path}: is damaged ({reason}). Make it again: isthmus sweep reindex {self._path.parent}"
            ) from None
        return rows

    def statuses(self) -> dict[str, Status]:
        """Id -> status of every run.

        Raises:
            sqlite3.DatabaseError: damaged.
        """
        try:
            return {key: Status(status) for key, status in self._connection.execute("SELECT id, status FROM runs")}
        except ValueError as error:
            raise sqlite3.DatabaseError(str(error)[:160]) from None

    def _many(self, statement: str, values: list[tuple[str, ...]]) -> None:
        if not values:
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(statement, values)
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            raise unwritable(self._path, error) from error


def _check(rows: Sequence[Any]) -> None:
    """Refuse what other code would stumble over: settings in sections, numbers that are some."""
    for row in rows:
        if not (isinstance(row.id, str) and isinstance(row.error, str)):
            raise ValueError("a run without a name")
        if not all(isinstance(section, dict) for section in row.settings.values()):
            raise ValueError(f"run {row.id[:20]!r} has no settings")
        if not all(value is None or isinstance(value, int | float | str) for value in row.numbers.values()):
            raise ValueError(f"run {row.id[:20]!r} has numbers that are none")


def unwritable(path: Path, error: sqlite3.Error) -> SweepError:
    """What to say when the disk is full or read-only; the database as such is sound."""
    return SweepError(
        f"{path}: cannot be written ({error}). Make room or give write permission; the same command goes on."
    )


def _values(texts: Sequence[str]) -> list[Any]:
    """What texts of JSON say. As one list: a call of its own for each costs as much again, and keys are then shared."""
    found = json.loads(f"[{','.join(texts)}]")
    if len(found) != len(texts):  # a text of two values would push all that follow into the rows of others
        raise ValueError("a row that holds two values")
    return found


def _numbers(texts: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    for text, found in zip(texts, _values(texts), strict=True):
        # infinities and NaN are tagged, and seldom
        yield {name: _untagged(value) for name, value in found.items()} if "$" in text else found


def _tagged(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON lacks, as `discovery.files.json_values` writes it; that one cannot be read without torch."""
    return {
        name: {"$float": repr(value)} if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in numbers.items()
    }


def _untagged(value: Any) -> Any:
    return float(value["$float"]) if isinstance(value, dict) else value
