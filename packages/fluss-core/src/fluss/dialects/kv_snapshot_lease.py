"""The lease that keeps KV snapshots, for callers that await."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping

from fluss.admin.snapshot_admin import KvSnapshotLeaseCore
from fluss.model.paths import TableBucket
from fluss.net.engine_thread import Engine


class KvSnapshotLease:
    """Keeps KV snapshots from being deleted; `FlussAdmin.create_kv_snapshot_lease` makes it."""

    def __init__(self, engine: Engine, core: KvSnapshotLeaseCore) -> None:
        self._engine = engine
        self._core = core

    @property
    def lease_id(self) -> str:
        """Its name."""
        return self._core.lease_id

    @property
    def lease_duration_ms(self) -> int:
        """How long the snapshots are kept after the last `acquire_snapshots` or `renew`."""
        return self._core.lease_duration_ms

    def acquire_snapshots(
        self, snapshots: Mapping[TableBucket, int]
    ) -> Awaitable[set[TableBucket]]:
        """Keep snapshots: `{bucket: snapshot id}`; the buckets whose snapshot is missing.

        Servers of 0.9.1 report a missing snapshot as kept.
        """
        return self._engine.submit(self._core.acquire_snapshots(snapshots))

    def renew(self) -> Awaitable[None]:
        """Keep what the lease keeps for another `lease_duration_ms`."""
        return self._engine.submit(self._core.renew())

    def release_snapshots(self, buckets: Iterable[TableBucket]) -> Awaitable[None]:
        """Keep the snapshots of these buckets no longer."""
        return self._engine.submit(self._core.release_snapshots(buckets))

    def drop_lease(self) -> Awaitable[None]:
        """End the lease; one that has ended is no error."""
        return self._engine.submit(self._core.drop_lease())

    def __repr__(self) -> str:
        return f"KvSnapshotLease({self.lease_id!r}, lease_duration_ms={self.lease_duration_ms})"
