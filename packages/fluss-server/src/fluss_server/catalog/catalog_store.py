"""The sqlite file of the catalog: its tables and transactions, and the detection of damage.

One connection. The event loop uses it for changes, and storage threads use it to take numbers; a
lock serializes them. It uses WAL with full syncs, because what was created must survive a crash of
the machine; changes are rare and small.

sqlite silently drops a transaction whose frames in the WAL are damaged, and all later ones. So
each transaction has a number and stores a checksum of all rows, in the same transaction;
afterwards both are written to the ledger. A file that lost or changed anything has another number
or another checksum.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from fluss.errors import LocalServerError
from fluss_server.damage_errors import WAYS_OUT, DamagedDataError, damaged, removed

_LOG = logging.getLogger(__name__)
FORMAT: Final = 2
# A file gets this version when the first table is rescaled: earlier servers, which would count the
# buckets of partitions wrongly, refuse it.
FORMAT_WITH_RESCALES: Final = 3
# And this one when it gets a lake: they would delete rows that are not in the lake yet.
FORMAT_WITH_LAKE: Final = 4
# And this one when rows by key are stored as in Fluss: they would find no rows there.
FORMAT_WITH_PLAIN_ROWS: Final = 5
_NEWEST: Final = FORMAT_WITH_PLAIN_ROWS
_APPLICATION_ID: Final = 0x464C5553  # "FLUS", which `file` shows
_HASH_BYTES: Final = 16
_SUM_MODULUS: Final = 1 << (8 * _HASH_BYTES)

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
# One row: the number and the checksums of the newest transaction.
_CHECKS: Final = """
CREATE TABLE checks (
    one INTEGER PRIMARY KEY CHECK (one = 1), directory BLOB NOT NULL, sequence INTEGER NOT NULL,
    sum BLOB NOT NULL, sealed BLOB NOT NULL
);
"""
# The primary key of each table.
_KEYS: Final = {
    "counters": ("name",),
    "databases": ("name",),
    "tables": ("id",),
    "schemas": ("table_id", "schema_id"),
    "partitions": ("id",),
    "producers": ("id",),
    "doomed": ("path",),
}

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """A state of the catalog: the number of its last transaction, and a checksum of all rows."""

    sequence: int
    check: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The state that a file records about itself; its rows have been compared with it.

    Args:
        version: The version of its tables; 0 where it has no tables yet.
        directory_id: The data directory that it belongs to.
        sequence: The number of its last transaction.
        row_sum: The sum of the hashes of all rows.
    """

    version: int
    directory_id: bytes
    sequence: int
    row_sum: int

    @property
    def seal(self) -> Seal:
        """The state of the catalog."""
        recorded = self.directory_id + struct.pack("<q", self.sequence) + self.row_sum_bytes
        check = hashlib.blake2b(recorded, digest_size=_HASH_BYTES).digest()
        return Seal(sequence=self.sequence, check=check)

    @property
    def row_sum_bytes(self) -> bytes:
        """The sum as it is stored."""
        return (self.row_sum % _SUM_MODULUS).to_bytes(_HASH_BYTES, "little")

    @property
    def has_checks(self) -> bool:
        """Whether a version that numbers its transactions created the file."""
        return self.version >= FORMAT


def read_contents(path: Path) -> Contents:
    """Read the recorded state of a file without changing the file.

    Raises:
        LocalServerError: The file is damaged, or a newer version created it.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as opened:
            ((verdict,),) = opened.execute("PRAGMA integrity_check(1)").fetchall()
            if verdict != "ok":
                raise _unreadable(path, sqlite3.DatabaseError(verdict))
            return _contents_of(opened, path)
    except sqlite3.Error as error:
        raise _unreadable(path, error) from error


def _contents_of(opened: sqlite3.Connection, path: Path, *, compares: bool = True) -> Contents:
    ((application,),) = opened.execute("PRAGMA application_id").fetchall()
    ((version,),) = opened.execute("PRAGMA user_version").fetchall()
    if application not in {0, _APPLICATION_ID} or version > _NEWEST:
        raise LocalServerError(
            f"{path} is no catalog that this version can read (format {version}, this version "
            f"knows {_NEWEST}).",
            hint="Open it with the version of fluss-server that made it, or a newer one.",
            path=str(path),
        )
    directory_id, sequence, row_sum = bytes(_HASH_BYTES), 0, 0
    if version:
        row_sum = sum(
            _hash_of(table, row)
            for table in _KEYS
            for row in opened.execute(f"SELECT * FROM {table}")  # noqa: S608 - names are ours
        )
    recorded: list[Row] = []
    if version >= FORMAT:
        recorded = opened.execute("SELECT directory, sequence, sum, sealed FROM checks").fetchall()
    if recorded:
        directory_id, sequence = recorded[0][:2]
    found = Contents(version=version, directory_id=directory_id, sequence=sequence, row_sum=row_sum)
    if compares and recorded and recorded[0][2:] != (found.row_sum_bytes, found.seal.check):
        raise damaged(path, "is damaged: its rows are not those that were written")
    return found


class CatalogStore:
    """The open file.

    Args:
        path: The file; created where it is missing.
        is_durable: Whether a change waits for the disk.
        compares: Whether the rows must match the recorded checksum.

    Raises:
        LocalServerError: The file is damaged, or a newer version created it.
    """

    def __init__(self, path: Path, *, is_durable: bool = True, compares: bool = True) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._on_seal: Callable[[Seal], None] = lambda _: None
        self._refuse_change: Callable[[], None] = lambda: None
        self._sealed: Seal | None = None
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                self._open(is_durable=is_durable)
                self._contents = _contents_of(self._connection, path, compares=compares)
                self._place = path.stat()
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as error:
            raise _unreadable(path, error) from error

    @property
    def contents(self) -> Contents:
        """The recorded state of the file."""
        return self._contents

    def begin(
        self,
        directory_id: bytes,
        *,
        on_seal: Callable[[Seal], None],
        refuse_change: Callable[[], None],
    ) -> None:
        """Start to number transactions and to report them to the ledger.

        Args:
            directory_id: The data directory.
            on_seal: Called with the state after each transaction.
            refuse_change: Called before each transaction; raises where no change is allowed.

        Raises:
            OSError: The ledger cannot be written.
        """
        self._on_seal, self._refuse_change = on_seal, refuse_change
        known = self._contents
        if not known.has_checks or known.directory_id != directory_id:
            with self._lock, self._begun():
                if not known.has_checks:
                    self._connection.execute(_CHECKS)
                    self._connection.execute(f"PRAGMA user_version = {FORMAT}")
                self._contents = replace(
                    known, version=max(known.version, FORMAT), directory_id=directory_id
                )
                self._number()
        self._seal()

    def require_rescales(self) -> None:
        """Note in the open transaction that partitions have own bucket counts from now on."""
        self._require(FORMAT_WITH_RESCALES)

    def require_lake(self) -> None:
        """Note in the open transaction that tables are tiered into a lake from now on."""
        self._require(FORMAT_WITH_LAKE)

    def note_plain_rows(self) -> None:
        """Note that rows by key are stored as in Fluss from now on."""
        if self._contents.version < FORMAT_WITH_PLAIN_ROWS:
            with self.transaction():
                self._require(FORMAT_WITH_PLAIN_ROWS)

    def _require(self, version: int) -> None:
        version = max(version, self._contents.version)
        self._connection.execute(f"PRAGMA user_version = {version}")
        self._contents = replace(self._contents, version=version)

    def skip_to(self, sequence: int) -> None:
        """Raise the number of the open transaction to at least this one."""
        if self._contents.sequence < sequence:
            self._contents = replace(self._contents, sequence=sequence - 1)

    def rows(self, statement: str, *values: object) -> list[Row]:
        """Run a query and return its rows."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def put(self, table: str, *row: object) -> None:
        """Insert a row, or replace the one with the same key. Needs an open transaction."""
        keys = _KEYS[table]
        self.delete(table, **dict(zip(keys, row, strict=False)))
        marks = ", ".join("?" * len(row))
        self._connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)  # noqa: S608 - names are ours
        self._add(_hash_of(table, row))

    def delete(self, table: str, **where: object) -> None:
        """Delete the rows with these values. Needs an open transaction."""
        values = tuple(where.values())
        condition = f"{table} WHERE {' AND '.join(f'{name} = ?' for name in where)}"
        found = self._connection.execute(f"SELECT * FROM {condition}", values).fetchall()  # noqa: S608 - names are ours
        if found:
            self._connection.execute(f"DELETE FROM {condition}", values)  # noqa: S608 - names are ours
            self._add(-sum(_hash_of(table, row) for row in found))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Apply everything inside the block, or nothing.

        Raises:
            DamagedDataError: The file was removed, or the ledger belongs to another server.
            OSError: The ledger cannot be written.
        """
        with self._lock:
            self._refuse_change()
            # One transaction may be ahead of the ledger, never two.
            self._seal()
            with self._begun():
                yield
                self._number()
            try:
                self._seal()
            except OSError:
                # The change is committed and the next start finds it; the next change waits for
                # the ledger.
                _LOG.exception("the ledger could not be written")

    def take_numbers(self, name: str, count: int) -> int:
        """Take numbers from a counter, and return the first of them. No number is taken twice."""
        with self.transaction():
            return self.take_numbers_here(name, count)

    def take_numbers_here(self, name: str, count: int) -> int:
        """Do the same inside the caller's transaction."""
        start = self.next_number(name)
        self.put("counters", name, start + count)
        return start

    def next_number(self, name: str) -> int:
        """Return the next number of a counter."""
        found = self.rows("SELECT next FROM counters WHERE name = ?", name)
        return int(found[0][0]) if found else 0

    def check_in_place(self) -> None:
        """Refuse to write where the file was removed or replaced.

        Raises:
            DamagedDataError: The file is another one; sqlite would continue to write to the
                unlinked one.
        """
        try:
            is_in_place = os.path.samestat(self._place, self.path.stat())
        except OSError:
            is_in_place = False
        if not is_in_place:
            raise removed(self.path, "no database or table is changed")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    # --- numbers and checksums ------------------------------------------------------------------

    @contextmanager
    def _begun(self) -> Iterator[None]:
        known = self._contents
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # sqlite may have rolled back by itself
                self._connection.execute("ROLLBACK")
            self._contents = known
            raise

    def _add(self, hashes: int) -> None:
        self._contents = replace(self._contents, row_sum=self._contents.row_sum + hashes)

    def _number(self) -> None:
        """Store the transaction's number and the checksum of all rows."""
        self._contents = replace(self._contents, sequence=self._contents.sequence + 1)
        if self._contents.has_checks:
            seal = self._contents.seal
            self._connection.execute(
                "INSERT OR REPLACE INTO checks VALUES (1, ?, ?, ?, ?)",
                (
                    self._contents.directory_id,
                    seal.sequence,
                    self._contents.row_sum_bytes,
                    seal.check,
                ),
            )

    def _seal(self) -> None:
        seal = self._contents.seal
        if self._sealed != seal:
            self._on_seal(seal)
            self._sealed = seal

    # --- the file -------------------------------------------------------------------------------

    def _open(self, *, is_durable: bool) -> None:
        execute = self._connection.execute
        ((version,),) = execute("PRAGMA user_version").fetchall()
        execute("PRAGMA journal_mode = WAL")
        execute(f"PRAGMA synchronous = {'FULL' if is_durable else 'OFF'}")
        if version == 0:
            self._connection.executescript(
                f"BEGIN; {_SCHEMA} {_CHECKS} PRAGMA application_id = {_APPLICATION_ID}; "
                f"PRAGMA user_version = {FORMAT}; COMMIT;"
            )


def _unreadable(path: Path, error: sqlite3.Error) -> DamagedDataError:
    """Return the error for a catalog that sqlite cannot read."""
    return DamagedDataError(
        f"The catalog {path} cannot be read: {error}. Nothing was changed.",
        hint=WAYS_OUT,
        path=str(path),
    )


def _hash_of(table: str, row: Sequence[object]) -> int:
    data = repr((table, *row)).encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=_HASH_BYTES).digest(), "little")
