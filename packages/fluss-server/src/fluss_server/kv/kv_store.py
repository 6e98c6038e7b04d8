"""Rows by key on disk: RocksDB, with the offset up to which the changelog has been applied.

Keys and values of the default column family are those of Fluss (encoded primary key; schema id and
row), in files that Fluss's RocksDB 6.20 reads, so that a copy of the files is a KV snapshot. What
the server itself has to know is in a column family of its own. RocksDB's write-ahead log is off,
because the changelog is one. Rows and the applied offset are written in one batch and flushed
together, the offset never first; what RocksDB had not flushed when the process was killed is
applied from the changelog again. Only `kv` uses RocksDB (rocksdict).
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, error_from_code

# The column family of what only the server has to know.
SERVER_FAMILY: Final = "fluss-server"
_STATE_KEY: Final = b"state"
_IDENTITY_KEY: Final = b"identity"
CURRENT: Final = "CURRENT"
_STATE = struct.Struct("<qq")
_DISK_IS_FULL: Final = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
_BLOOM_BITS: Final = 10  # bloom filter bits per key: lookups of missing keys cost next to nothing
# The newest format of tables that the RocksDB of Fluss's clients (6.20) reads.
_TABLE_FORMAT: Final = 5
_SERVER_FAMILY_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreState:
    """The state of a store.

    Args:
        applied_offset: The store has every change below this offset of the changelog.
        row_count: How many keys it has; -1 where they are not counted.
    """

    applied_offset: int
    row_count: int


class KvStore:
    """The rows of one bucket. Any thread may read; one at a time may write."""

    def __init__(self, folder: Path, identity: bytes = b"") -> None:
        """Open the store in a folder; create it where there is none.

        Args:
            folder: The folder.
            identity: The identity of the bucket; a store with another one is refused.

        Raises:
            FlussError: KV_STORAGE_EXCEPTION: its files are damaged, another process has them open,
                or they are the rows of another bucket.
        """
        from fluss_server.kv.store_upgrade import finish_upgrade, upgrade

        self.folder = self._folder = folder
        self._identity = identity
        try:
            finish_upgrade(folder)
            folder.mkdir(parents=True, exist_ok=True)
            _check_complete(folder)
            upgrade(folder)
            self._db, self._server = open_database(folder)
            self._server_handle = self._db.get_column_family_handle(SERVER_FAMILY)
            state = self._server.get(_STATE_KEY)
            known_identity = self._server.get(_IDENTITY_KEY)
        except Exception as error:  # rocksdict raises plain Exception
            raise self._broken(error) from error
        if known_identity not in {None, identity}:
            self.close()
            raise self._broken(ValueError("they are the rows of another bucket"))
        self._write_options = without_log()
        self._is_untouched = state is None
        known = (0, 0) if state is None else _STATE.unpack(state)
        self.state = StoreState(applied_offset=known[0], row_count=known[1])
        # The applied offset on disk; what is written and not synced is lost with the process.
        self.synced_offset = self.state.applied_offset

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the row of each key; None where there is none."""
        if not keys or self._is_untouched:
            return [None] * len(keys)  # a first load need not look up its keys
        try:
            found: Any = self._db.get(list(keys))
        except Exception as error:
            raise self._broken(error) from error
        return list(found)

    def write(self, changes: Mapping[bytes, bytes | None], state: StoreState) -> None:
        """Write changes and the new state atomically."""
        from rocksdict import WriteBatch

        batch = WriteBatch(raw_mode=True)
        for key, value in changes.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        if self._identity:
            batch.put(_IDENTITY_KEY, self._identity, self._server_handle)
        packed = _STATE.pack(state.applied_offset, state.row_count)
        batch.put(_STATE_KEY, packed, self._server_handle)
        self._is_untouched = False
        try:
            self._db.write(batch, self._write_options)
        except Exception as error:
            raise self._broken(error) from error
        self.state = state

    def sync(self) -> None:
        """Flush what has been written to disk."""
        written = self.state.applied_offset
        try:
            self._db.flush(wait=True)
            # Second: a state without its rows would be believed.
            self._server.flush(wait=True)
        except Exception as error:
            raise self._broken(error) from error
        self.synced_offset = written

    def copy_to(self, target: Path) -> None:
        """Copy the files of a synced store to a new directory, by hard links where there are some.

        Raises:
            FlussError: KV_STORAGE_EXCEPTION: the disk refused.
        """
        from rocksdict import Checkpoint

        try:
            Checkpoint(self._db).create_checkpoint(str(target))
        except Exception as error:
            raise self._broken(error) from error

    def from_key(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over keys and rows in key order from a key on, as they are now.

        Raises:
            FlussError: KV_STORAGE_EXCEPTION: the files are damaged.
        """
        return _rows_from(self._db, start, self._folder)

    def snapshot(self) -> StoreSnapshot:
        """Return a snapshot of the rows for reads that take long."""
        return StoreSnapshot(self._db.snapshot(), self._folder)

    def close(self) -> None:
        """Close the files; unsynced changes are applied from the changelog at the next start.

        Raises:
            FlussError: KV_STORAGE_EXCEPTION: RocksDB found damage.
        """
        self._server_handle = None  # it would keep the files open
        try:
            self._db.close()
            self._server.close()
        except Exception as error:  # rocksdict raises plain Exception
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> FlussError:
        return _broken(self._folder, error)


def _broken(folder: Path, error: Exception) -> FlussError:
    if any(text in str(error) for text in _DISK_IS_FULL):  # RocksDB gives no error numbers
        return error_from_code(
            ErrorCode.KV_STORAGE_EXCEPTION,
            f"The disk of {folder} is full: {error}.",
            hint="free space on it; where writes are still refused, restart the server: "
            "acknowledged rows are in the changelog",
            path=str(folder),
        )
    return error_from_code(
        ErrorCode.KV_STORAGE_EXCEPTION,
        f"The rows in {folder} cannot be read or written: {error}.",
        hint="remove this folder while the server is down: as long as the changelog is whole, "
        "the rows are rebuilt from it",
        path=str(folder),
    )


def _check_complete(folder: Path) -> None:
    """Refuse a folder where RocksDB would create a new store and remove the files of this one."""
    if not (folder / CURRENT).exists() and any(folder.glob("*.sst")):
        raise FileNotFoundError(f"the file {CURRENT} is missing")


class StoreSnapshot:
    """The rows of one moment."""

    def __init__(self, snapshot: Any, folder: Path) -> None:
        self._snapshot = snapshot
        self._folder = folder

    def from_key(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over keys and rows in key order from a key on.

        Raises:
            FlussError: KV_STORAGE_EXCEPTION: the files are damaged.
        """
        return _rows_from(self._snapshot, start, self._folder)


def _rows_from(source: Any, start: bytes, folder: Path) -> Iterator[tuple[bytes, bytes]]:
    key = start
    for key, value in source.items(from_key=start):
        yield key, value
    _check_end(source, key, folder)


def _check_end(source: Any, key: bytes, folder: Path) -> None:
    """Raise where the iteration ended at a damaged block, which RocksDB does silently."""
    cursor = source.iter()
    try:
        cursor.seek(key)
        if cursor.valid():
            cursor.next()
        cursor.status()
    except Exception as error:  # rocksdict raises plain Exception
        raise _broken(folder, error) from error


def open_database(folder: Path) -> tuple[Any, Any]:
    """Open a store's RocksDB, or create it: the rows, and what only the server has to know.

    Raises:
        Exception: As of rocksdict.
    """
    from rocksdict import Options, Rdict

    options = _options()
    families = {SERVER_FAMILY: Options(raw_mode=True)}
    families[SERVER_FAMILY].set_write_buffer_size(_SERVER_FAMILY_BYTES)
    database = Rdict(str(folder), options, column_families=families)
    return database, database.get_column_family(SERVER_FAMILY)


def without_log() -> Any:
    """Return the options of writes that RocksDB does not log."""
    from rocksdict import WriteOptions

    options: Any = WriteOptions()  # its stubs call this property a method
    options.disable_wal = True
    return options


def _options() -> Any:
    from rocksdict import BlockBasedOptions, ChecksumType, DBCompressionType, Options

    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    # Where RocksDB flushes by itself, the state must not become durable before its rows.
    options.set_atomic_flush(True)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_write_buffer_size(32 * 1024 * 1024)
    options.set_max_background_jobs(2)
    blocks = BlockBasedOptions()
    blocks.set_bloom_filter(_BLOOM_BITS, False)
    blocks.set_format_version(_TABLE_FORMAT)
    blocks.set_checksum_type(ChecksumType.crc32c())
    options.set_block_based_table_factory(blocks)
    return options
