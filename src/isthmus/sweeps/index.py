"""The index of a sweep: one SQLite file with one row per run, in WAL mode while one process writes; any may read it.

The folders of the runs are the truth and the index can be made from them again: `store`.
"""

import hashlib
import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
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
    # of all but the status: SQLite sees a damaged tree, not a damaged number
    "ALTER TABLE runs ADD COLUMN checksum TEXT NOT NULL DEFAULT ''",
)


class Status(StrEnum):
    """Where a run stands."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


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
        SweepError: written by a newer version. sqlite3.DatabaseError: damaged (also by what else is called later).
    """

    def __init__(self, path: Path, *, read_only: bool = False, migrations: Sequence[str] = MIGRATIONS) -> None:
        self._path, self._read_only = path, read_only
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
            has_checksums = version >= 2 or not read_only
            self._columns = f"id, status, settings, numbers, error, {'checksum' if has_checksums else repr('')}"
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
        self._check_tree()
        if version:
            self.statuses()
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        for number, script in enumerate(migrations[version:], version + 1):
            self._connection.executescript(f"BEGIN; {script}; PRAGMA user_version = {number}; COMMIT;")

    def _check_tree(self) -> None:
        (verdict,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)

    def check(self) -> None:
        """Read everything once; a damaged index is closed.

        Raises:
            sqlite3.DatabaseError: damaged.
        """
        try:
            self._check_tree()
            self._read()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file; a writer puts everything into it first, so that nothing is left beside it."""
        if not self._read_only:
            # whoever reads now keeps the log alive: then the next writer to close does this
            with suppress(sqlite3.Error):
                self._connection.executescript("PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE;")
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
        sealed = [(*record, _checksum(record[0], *record[2:])) for record in values]
        names = "id, status, settings, numbers, error, checksum"
        self._many(f"INSERT OR REPLACE INTO runs ({names}) VALUES (?, ?, ?, ?, ?, ?)", sealed)

    def mark(self, ids: Iterable[str], status: Status) -> None:
        """Set the status of runs, all or none."""
        self._many("UPDATE runs SET status = ? WHERE id = ?", [(status.value, key) for key in ids])

    def rows(self) -> list[Row]:
        """Every run, in the order of the ids.

        Raises:
            SweepError: a row says what no run says.
        """
        try:
            return self._read()
        except sqlite3.Error as error:
            reason = " ".join(str(error).split())[:160]
            raise SweepError(
                f"{self._path}: is damaged ({reason}). Make it again: isthmus sweep reindex {self._path.parent}"
            ) from None

    def _read(self) -> list[Row]:
        rows: list[Row] = []
        try:
            found = self._connection.execute(f"SELECT {self._columns} FROM runs ORDER BY id")
            while records := found.fetchmany(_AT_ONCE):
                for key, _, *texts, checksum in records:
                    # empty: of an earlier version
                    if checksum and checksum != _checksum(key, *texts):
                        raise sqlite3.DatabaseError(f"the row of run {key} is damaged")
                keys, statuses, settings, numbers, errors, _ = zip(*records, strict=True)
                rows += map(Row, keys, map(_status, statuses), _values(settings), _numbers(numbers), errors)
            _check(rows)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise sqlite3.DatabaseError(str(error)) from None
        return rows

    def statuses(self) -> dict[str, Status]:
        """Id -> status of every run.

        Raises:
            sqlite3.DatabaseError: damaged.
        """
        return {key: _status(status) for key, status in self._connection.execute("SELECT id, status FROM runs")}

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


def _status(text: str) -> Status:
    try:
        return Status(text)
    except ValueError:
        raise sqlite3.DatabaseError(f"no run has the status {text!r}") from None


def _checksum(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


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
