"""The index of a sweep: one SQLite file in WAL mode with one row per run; one process writes it, any may read it.

The folders of the runs are the truth and the index can be made from them again: `store`.
"""

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        SweepError: written by a newer version. sqlite3.DatabaseError: damaged.
    """

    def __init__(self, path: Path, *, read_only: bool = False, migrations: Sequence[str] = MIGRATIONS) -> None:
        self._path = path
        address = f"{path.resolve().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        self._connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=30.0)
        try:
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if version > len(migrations):
                raise SweepError(
                    f"{path}: has schema version {version}, this isthmus knows {len(migrations)}; use the newer one."
                )
            if not read_only:
                self._prepare(version, migrations)
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, version: int, migrations: Sequence[str]) -> None:
        (verdict,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
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
        """Every run, in the order of the ids."""
        found = self._connection.execute("SELECT id, status, settings, numbers, error FROM runs ORDER BY id")
        rows: list[Row] = []
        while records := found.fetchmany(_AT_ONCE):
            keys, statuses, settings, numbers, errors = zip(*records, strict=True)
            rows += map(Row, keys, map(_STATUS.__getitem__, statuses), _values(settings), _numbers(numbers), errors)
        return rows

    def statuses(self) -> dict[str, Status]:
        """Id -> status of every run."""
        return {key: Status(status) for key, status in self._connection.execute("SELECT id, status FROM runs")}

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


def unwritable(path: Path, error: sqlite3.Error) -> SweepError:
    """What to say when the disk is full or read-only; the database as such is sound."""
    return SweepError(
        f"{path}: cannot be written ({error}). Make room or give write permission; the same command goes on."
    )


def _values(texts: Sequence[str]) -> list[Any]:
    """What texts of JSON say. As one list: a call of its own for each costs as much again, and keys are then shared."""
    return json.loads(f"[{','.join(texts)}]")


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
