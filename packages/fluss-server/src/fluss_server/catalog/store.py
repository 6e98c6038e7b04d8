"""The sqlite file of the catalog: its tables, transactions, and what is said when it is damaged.

One connection, used by the event loop for changes and, for numbers only, by storage threads; a
lock keeps them apart. WAL with full syncs, because what was created must be there after a crash
of the machine: changes are rare and small.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from fluss.errors import LocalServerError

FORMAT: Final = 1
_APPLICATION_ID: Final = 0x464C5553  # "FLUS", which `file` shows

_SCHEMA: Final = """
CREATE TABLE counters (name TEXT PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE databases (
    name TEXT PRIMARY KEY, descriptor TEXT NOT NULL, created INTEGER NOT NULL,
    modified INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE tables (
    id INTEGER PRIMARY KEY, database TEXT NOT NULL, name TEXT NOT NULL, schema_id INTEGER NOT NULL,
    descriptor TEXT NOT NULL, created INTEGER NOT NULL, modified INTEGER NOT NULL,
    UNIQUE (database, name)
);
CREATE TABLE schemas (
    table_id INTEGER NOT NULL, schema_id INTEGER NOT NULL, schema TEXT NOT NULL,
    PRIMARY KEY (table_id, schema_id)
) WITHOUT ROWID;
CREATE TABLE partitions (
    id INTEGER PRIMARY KEY, table_id INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE (table_id, name)
);
CREATE TABLE producers (
    id TEXT PRIMARY KEY, expires INTEGER NOT NULL, body BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE doomed (path TEXT PRIMARY KEY) WITHOUT ROWID;
"""

Row = tuple[Any, ...]


class CatalogStore:
    """The open file.

    Args:
        path: Where it is; made where it is missing.
        is_durable: Whether a change waits for the disk.

    Raises:
        LocalServerError: It is damaged, or was made by a newer version.
    """

    def __init__(self, path: Path, *, is_durable: bool = True) -> None:
        self._path = path
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._open(is_durable=is_durable)
        except sqlite3.Error as error:
            raise self._damaged(error) from error

    def rows(self, statement: str, *values: object) -> list[Row]:
        """What a query finds."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def run(self, statement: str, *values: object) -> None:
        """Execute one statement, inside a transaction of the caller's."""
        self._connection.execute(statement, values)

    def run_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Execute one statement for many rows, inside a transaction of the caller's."""
        self._connection.executemany(statement, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what happens inside, or nothing."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def take_numbers(self, name: str, count: int) -> int:
        """Take numbers that nobody gets again, and return the first of them."""
        with self.transaction():
            return self.take_numbers_here(name, count)

    def take_numbers_here(self, name: str, count: int) -> int:
        """The same inside a transaction of the caller's."""
        found = self.rows("SELECT next FROM counters WHERE name = ?", name)
        start = int(found[0][0]) if found else 0
        self.run("INSERT OR REPLACE INTO counters VALUES (?, ?)", name, start + count)
        return start

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _open(self, *, is_durable: bool) -> None:
        execute = self._connection.execute
        ((application,),) = execute("PRAGMA application_id").fetchall()
        ((version,),) = execute("PRAGMA user_version").fetchall()
        if application not in {0, _APPLICATION_ID} or version > FORMAT:
            raise LocalServerError(
                f"{self._path} is no catalog that this version can read (format {version}, this "
                f"version knows {FORMAT}).",
                hint="Open it with the version of fluss-server that made it, or a newer one.",
                path=str(self._path),
            )
        execute("PRAGMA journal_mode = WAL")
        execute(f"PRAGMA synchronous = {'FULL' if is_durable else 'OFF'}")
        ((verdict,),) = execute("PRAGMA quick_check(1)").fetchall()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        if version == 0:
            self._connection.executescript(
                f"BEGIN; {_SCHEMA} PRAGMA application_id = {_APPLICATION_ID}; "
                f"PRAGMA user_version = {FORMAT}; COMMIT;"
            )

    def _damaged(self, error: sqlite3.Error) -> LocalServerError:
        return LocalServerError(
            f"The catalog {self._path} cannot be read: {error}. Nothing was changed.",
            hint="Restore the file from a backup, or recover it: "
            f"sqlite3 '{self._path}' .recover | sqlite3 recovered.sqlite",
            path=str(self._path),
        )
