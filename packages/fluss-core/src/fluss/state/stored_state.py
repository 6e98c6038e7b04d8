"""The rows that a server has stored of one bucket, as of some offset: what a changelog starts from.

Three ways to get them, one shape: values (schema id and row) in chunks, decoded here with the
schema each was written with, and the offset of the log that they stand at.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from fluss.connection.connection import TableHandle
from fluss.errors import CorruptDataError, MissingExtraError, SnapshotNotFoundError
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.net.cancellation import Cancellation
from fluss.net.remote_files import RemoteFiles
from fluss.records.framing import Frames
from fluss.records.kv.value_batch import (
    frames_of_values,
    read_value_batch,
)
from fluss.state.kv_scan import KvScan, scan_at_once
from fluss.state.kv_snapshot import copy_snapshot, latest_snapshots

VALUES_PER_CHUNK: Final = 8_192
SNAPSHOT_ATTEMPTS_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredRows:
    """What was stored.

    Attributes:
        values: The values, chunk by chunk; to be read once.
        log_offset: Where in the log they stand; None where the server does not say.
    """

    values: Iterator[Frames]
    log_offset: int | None


@contextmanager
def rows_at_once(
    table: TableHandle,
    path: PhysicalTablePath,
    bucket: TableBucket,
    cancellation: Cancellation | None,
) -> Iterator[StoredRows]:
    """All rows in one message, of a moment between the question and the answer."""
    connection = table.connection
    scan = scan_at_once(connection.cluster, path, bucket)
    records = connection.engine.run(scan, cancellation=cancellation)
    values = _chunks(read_value_batch(records)) if len(records) else iter(())
    yield StoredRows(values=values, log_offset=None)


@contextmanager
def rows_by_pages(
    table: TableHandle,
    path: PhysicalTablePath,
    bucket: TableBucket,
    cancellation: Cancellation | None,
) -> Iterator[StoredRows]:
    """Pages of a snapshot that the server holds until the last of them."""
    engine = table.connection.engine
    scan = KvScan(table.connection.cluster, path, bucket)

    def pages() -> Iterator[Frames]:
        while (page := engine.run(scan.next_page(), cancellation=cancellation)) is not None:
            yield from _chunks(read_value_batch(page))

    try:
        engine.run(scan.open(), cancellation=cancellation)
        yield StoredRows(values=pages(), log_offset=scan.log_offset)
    finally:
        engine.let_run(scan.close)  # the server may be the one that does not answer


@contextmanager
def rows_of_snapshot(
    table: TableHandle,
    path: PhysicalTablePath,
    bucket: TableBucket,
    snapshot_id: int | None,
    cancellation: Cancellation | None,
) -> Iterator[StoredRows]:
    """A KV snapshot, copied to a directory that goes away afterwards.

    Args:
        table: The table.
        path: The table or partition.
        bucket: The bucket.
        snapshot_id: The snapshot wanted; where it has been deleted, the newest there is.
        cancellation: Ends the copying from another thread.

    Raises:
        SnapshotNotFoundError: There is none.
        MissingExtraError: rocksdict is not installed.
    """
    rocksdict = _rocksdict()
    # Where it is cancelled, threads may still be writing the files that are removed here.
    with tempfile.TemporaryDirectory(prefix="fluss-snapshot-", ignore_cleanup_errors=True) as name:
        copying = _copied(table, path, bucket, snapshot_id, Path(name))
        log_offset, directory = table.connection.engine.run(copying, cancellation=cancellation)
        try:
            options = rocksdict.Options(raw_mode=True)
            access = rocksdict.AccessType.read_only()
            database = rocksdict.Rdict(str(directory), options, access_type=access)
        except Exception as error:  # rocksdict raises what its binding makes of RocksDB's errors
            raise _unreadable(error) from error
        try:
            yield StoredRows(
                values=_values_of(database, rocksdict.ReadOptions()), log_offset=log_offset
            )
        finally:
            database.close()


async def _copied(
    table: TableHandle,
    path: PhysicalTablePath,
    bucket: TableBucket,
    snapshot_id: int | None,
    directory: Path,
) -> tuple[int, Path]:
    """Copy the snapshot, or a newer one where servers have deleted it meanwhile."""
    connection = table.connection
    files = RemoteFiles(connection.cluster)
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
                connection.cluster,
                files,
                bucket,
                snapshot_id,
                target,
                reads_at_once_max=connection.config.remote_file_download_thread_num,
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


def _chunks(values: Frames) -> Iterator[Frames]:
    for start in range(0, len(values), VALUES_PER_CHUNK):
        stop = start + VALUES_PER_CHUNK
        yield Frames(
            data=values.data, starts=values.starts[start:stop], ends=values.ends[start:stop]
        )


def _values_of(database: Any, once: Any) -> Iterator[Frames]:
    once.fill_cache(False)  # each block is wanted once, and RocksDB would keep 32 MB of them
    values = database.values(read_opt=once)
    try:
        while chunk := list(islice(values, VALUES_PER_CHUNK)):
            yield frames_of_values(chunk)
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
            hint="pip install 'fluss-core[snapshot]'",
        ) from error
    return rocksdict


def _unreadable(error: Exception) -> CorruptDataError:
    why = f"RocksDB says: {error}"
    return CorruptDataError(
        f"A KV snapshot cannot be read: {why}.", what="KV snapshot", at=0, why=why
    )
