"""The stored rows of one bucket as of some offset, to which a changelog is applied.

There are three ways to get them, with one shape of result: encoded values (schema id and row) in
chunks, and the offset of the log at which they stand.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.errors import (
    CorruptDataError,
    MissingExtraError,
    SnapshotNotFoundError,
    UnsupportedOperationError,
)
from fluss.install_hints import how_to_install
from fluss.log.log_services import remote_files
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.model.tables.table_info import TableInfo
from fluss.net.cancellation import Cancellation
from fluss.records.framing import Frames
from fluss.records.kv.value_batch import (
    frames_of_tagged_values,
    frames_of_values,
    read_value_batch,
)
from fluss.state.kv_scan import ROWS_MAX, KvScan, limit_scan
from fluss.state.kv_snapshot import copy_snapshot, latest_snapshots

T = TypeVar("T")

VALUES_PER_CHUNK: Final = 8_192
SNAPSHOT_ATTEMPTS_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredRows:
    """The stored rows of a bucket.

    Attributes:
        values: The encoded values, chunk by chunk; can be read once.
        batches: Rows in the requested columns, of a lake; can be read once.
        log_offset: The offset at which they stand; None where the server gives none.
    """

    values: Iterator[Frames] = field(default_factory=lambda: iter(()))
    batches: Iterator[pa.RecordBatch] = field(default_factory=lambda: iter(()))
    log_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """The stored rows of one bucket, and three ways to read them, on a blocking thread."""

    table: TableHandle
    path: PhysicalTablePath
    bucket: TableBucket
    cancellation: Cancellation | None = None

    @contextmanager
    def in_one_message(self) -> Iterator[StoredRows]:
        """All rows in one message, of a moment between request and answer."""
        cluster = self.table.connection.cluster
        answer = self._run(limit_scan(cluster, self.path, self.bucket, limit=ROWS_MAX))
        records = answer.records[0] if answer.records else b""
        values = _chunks(read_value_batch(records)) if len(records) else iter(())
        yield StoredRows(values=values, log_offset=None)

    @contextmanager
    def by_pages(self) -> Iterator[StoredRows]:
        """All rows in pages of a snapshot that the server keeps until the last page."""
        connection = self.table.connection
        page_bytes = connection.options.scanner_kv_fetch_max_bytes
        scan = KvScan(connection.cluster, self.path, self.bucket, page_bytes=page_bytes)

        def pages() -> Iterator[Frames]:
            while (page := self._run(scan.next_page())) is not None:
                yield from _chunks(read_value_batch(page))

        try:
            self._run(scan.open())
            yield StoredRows(values=pages(), log_offset=scan.log_offset)
        finally:
            connection.engine.run_in_background(scan.close)  # not waited for: this server may hang

    @contextmanager
    def of_snapshot(self, snapshot_id: int | None) -> Iterator[StoredRows]:
        """All rows of a KV snapshot, copied to a directory that is removed afterwards.

        Args:
            snapshot_id: The snapshot; where it has been deleted, the newest one is read.

        Raises:
            SnapshotNotFoundError: There is none.
            MissingExtraError: rocksdict is not installed.
        """
        rocksdict = _rocksdict()
        frames = _frames_function(self.table.info)
        # Where it is cancelled, threads may still be writing the files that are removed here.
        with tempfile.TemporaryDirectory(
            prefix="fluss-snapshot-", ignore_cleanup_errors=True
        ) as name:
            log_offset, directory = self._run(self._copied(snapshot_id, Path(name)))
            try:
                options = rocksdict.Options(raw_mode=True)
                access = rocksdict.AccessType.read_only()
                database = rocksdict.Rdict(str(directory), options, access_type=access)
            except Exception as error:  # rocksdict raises what its binding makes of RocksDB's
                raise _unreadable(error) from error
            try:
                values = _values_of(database, rocksdict.ReadOptions(), frames)
                yield StoredRows(values=values, log_offset=log_offset)
            finally:
                database.close()

    async def _copied(self, snapshot_id: int | None, directory: Path) -> tuple[int, Path]:
        """Copy the snapshot, or a newer one where servers have deleted it."""
        connection, path, bucket = self.table.connection, self.path, self.bucket
        files = remote_files(connection)
        for attempt in range(SNAPSHOT_ATTEMPTS_MAX):
            if snapshot_id is None:
                newest = (await latest_snapshots(connection.cluster, path)).get(bucket.bucket_id)
                if newest is None:
                    break
                snapshot_id = newest.snapshot_id
            target = directory / str(attempt)
            target.mkdir()
            try:
                log_offset = await copy_snapshot(
                    connection.cluster, files, bucket, snapshot_id, target
                )
            except SnapshotNotFoundError:
                snapshot_id = None
            else:
                return log_offset, target
        raise SnapshotNotFoundError(
            f"Bucket {bucket.bucket_id} of {path} has no KV snapshot that stays long enough to be "
            "copied.",
            hint="Another strategy does not need one.",
            table=str(path.table_path),
            bucket=bucket.bucket_id,
        )

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.table.connection.engine.run(work, cancellation=self.cancellation)


def _chunks(values: Frames) -> Iterator[Frames]:
    for start in range(0, len(values), VALUES_PER_CHUNK):
        stop = start + VALUES_PER_CHUNK
        yield Frames(
            data=values.data, starts=values.starts[start:stop], ends=values.ends[start:stop]
        )


def _frames_function(table: TableInfo) -> Callable[[Sequence[bytes]], Frames]:
    """What reads the values of a snapshot, by their layout.

    Raises:
        UnsupportedOperationError: The table has a layout that came later.
    """
    version = table.options.value_layout_version
    known = {None: frames_of_values, 1: frames_of_values, 2: frames_of_tagged_values}
    if version not in known:
        raise UnsupportedOperationError(
            f"The KV snapshots of {table.table_path} have the layout {version}, which this client "
            "does not know.",
            hint="Use a newer release, or read the state with strategy='scan_kv'.",
            table=str(table.table_path),
        )
    return known[version]


def _values_of(
    database: Any, once: Any, frames: Callable[[Sequence[bytes]], Frames]
) -> Iterator[Frames]:
    once.fill_cache(False)  # each block is read once, and RocksDB would keep 32 MB of them
    values = database.values(read_opt=once)
    try:
        while chunk := list(islice(values, VALUES_PER_CHUNK)):
            yield frames(chunk)
    except CorruptDataError:
        raise
    except Exception as error:  # as above
        raise _unreadable(error) from error


def _rocksdict() -> Any:
    try:
        import rocksdict
    except ImportError as error:
        raise MissingExtraError(
            "KV snapshots are RocksDB files, and rocksdict is not installed.",
            hint=how_to_install("fluss-core[snapshot]"),
        ) from error
    return rocksdict


def _unreadable(error: Exception) -> CorruptDataError:
    why = f"RocksDB reports: {error}"
    return CorruptDataError(
        f"A KV snapshot cannot be read: {why}.", what="KV snapshot", at=0, why=why
    )
