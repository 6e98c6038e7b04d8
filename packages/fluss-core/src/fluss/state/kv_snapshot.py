"""Lists KV snapshots, and copies the files of one to a local directory under a lease.

A server deletes a snapshot as soon as two newer ones are complete; a lease keeps its files until
they have been copied. The files are a RocksDB database, which `state.stored_state` opens.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from fluss.errors import CorruptDataError, FlussError
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.net.cluster_client import Cluster
from fluss.net.remote_files import RemoteFiles
from fluss.wire import messages
from fluss.wire.table_paths import write_table_path

LEASE_MS: Final = 600_000
LEASE_RENEWED_S: Final = LEASE_MS / 3_000
PIECE_BYTES: Final = 4 * 1024 * 1024
_WHAT: Final = "KV snapshot"
# Characters that separate directories, or end a name, on some system.
_SEPARATORS: Final = frozenset("/\\:\0")


@dataclass(frozen=True, slots=True, kw_only=True)
class KvSnapshot:
    """A snapshot of the state at `log_offset` of the changelog."""

    snapshot_id: int
    log_offset: int


async def latest_snapshots(cluster: Cluster, path: PhysicalTablePath) -> Mapping[int, KvSnapshot]:
    """The newest snapshot of each bucket that has one, by bucket id."""
    request = messages.GetLatestKvSnapshotsRequest(
        table_path=write_table_path(path.table_path), partition_name=path.partition_name
    )
    answer = await cluster.ask_any(request, messages.GetLatestKvSnapshotsResponse)
    return {
        each.bucket_id: KvSnapshot(snapshot_id=each.snapshot_id, log_offset=each.log_offset)
        for each in answer.latest_snapshots
        if each.HasField("snapshot_id") and each.HasField("log_offset")
    }


async def copy_snapshot(
    cluster: Cluster,
    files: RemoteFiles,
    bucket: TableBucket,
    snapshot_id: int,
    directory: Path,
) -> int:
    """Copy the files of a snapshot into an empty directory.

    Returns:
        The offset of the log that it stands at.

    Raises:
        SnapshotNotFoundError: It has been deleted.
        CorruptDataError: The name of a file leads out of the directory.
        FlussError: A file cannot be read.
    """
    lease = _Lease(cluster, bucket, snapshot_id)
    await lease.acquire()
    try:
        # Servers of 0.9.1 lease missing snapshots, too. From here on one that exists is kept.
        answer = await _metadata(cluster, bucket, snapshot_id)
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(lease.keep())
            copies = [
                group.create_task(_copy(files, each.remote_path, target))
                for each, target in _targets(answer, directory)
            ]
            await asyncio.gather(*copies)
            keeping.cancel()
    except BaseExceptionGroup as group_error:
        raise _first_of(group_error) from group_error
    finally:
        await lease.drop()
    return int(answer.log_offset)


async def _metadata(
    cluster: Cluster, bucket: TableBucket, snapshot_id: int
) -> messages.GetKvSnapshotMetadataResponse:
    request = messages.GetKvSnapshotMetadataRequest(
        table_id=bucket.table_id,
        partition_id=bucket.partition_id,
        bucket_id=bucket.bucket_id,
        snapshot_id=snapshot_id,
    )
    return await cluster.ask_any(request, messages.GetKvSnapshotMetadataResponse)


def _targets(
    answer: messages.GetKvSnapshotMetadataResponse, directory: Path
) -> list[tuple[Any, Path]]:
    targets = []
    for file in answer.snapshot_files:
        name = file.local_file_name
        if name in {"", ".", ".."} or not _SEPARATORS.isdisjoint(name):
            why = f"a file is to be called {name!r}"
            raise CorruptDataError(f"A {_WHAT} cannot be copied: {why}.", what=_WHAT, at=0, why=why)
        targets.append((file, directory / name))
    return targets


async def _copy(files: RemoteFiles, remote_path: str, target: Path) -> None:
    """Copy one file, piece by piece."""
    at = 0
    while True:
        piece = await files.read_at(remote_path, at, PIECE_BYTES)
        await anyio.to_thread.run_sync(_write, target, piece, at)
        at += len(piece)
        if len(piece) < PIECE_BYTES:
            return


def _write(target: Path, piece: bytes, at: int) -> None:
    """Write a piece of a file; it is closed in between, because a copy may be cancelled there."""
    try:
        with target.open("ab" if at else "xb") as copy:
            copy.write(piece)
    except OSError as error:
        raise FlussError(
            f"A {_WHAT} cannot be copied to {target}: {error.strerror or error}.",
            hint="It is copied to the directory for temporary files; TMPDIR names another.",
            path=str(target),
        ) from error


class _Lease:
    """Keeps one snapshot from being deleted."""

    def __init__(self, cluster: Cluster, bucket: TableBucket, snapshot_id: int) -> None:
        self._cluster = cluster
        self._id = f"fluss-python-{uuid.uuid4().hex}"
        self._request = messages.AcquireKvSnapshotLeaseRequest(
            lease_id=self._id, lease_duration_ms=LEASE_MS
        )
        table = self._request.snapshots_to_lease.add(table_id=bucket.table_id)
        table.bucket_snapshots.add(
            partition_id=bucket.partition_id, bucket_id=bucket.bucket_id, snapshot_id=snapshot_id
        )

    async def acquire(self) -> None:
        await self._cluster.ask_coordinator(
            self._request,
            messages.AcquireKvSnapshotLeaseResponse,
        )

    async def keep(self) -> None:
        """Renew it until cancelled."""
        while True:
            await anyio.sleep(LEASE_RENEWED_S)
            await self.acquire()

    async def drop(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._cluster.ask_coordinator(
                messages.DropKvSnapshotLeaseRequest(lease_id=self._id),
                messages.DropKvSnapshotLeaseResponse,
            )


def _first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
