"""The leases of KV snapshots: which snapshots are kept for whom, and until when.

As in Fluss, a lease holds one snapshot of each bucket, each request for it extends all of it, and
it ends when it is dropped, when its last bucket is released, or when its time is over. This file
decides and has no clock; `kv_snapshots` stores the text of each lease that changes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.model.paths import TableBucket
from fluss_server.server_errors import request_error

LEASES_MAX: Final = 10_000
BUCKETS_MAX: Final = 20_000  # of one lease
ID_CHARACTERS_MAX: Final = 250
_TIME_MAX: Final = 2**63 - 1


@dataclass(slots=True, kw_only=True)
class _Lease:
    expires_ms: int
    snapshots: dict[TableBucket, int] = field(default_factory=dict)


class Leases:
    """All leases of a server."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        """Begin with stored leases, by their ids."""
        self._leases: dict[str, _Lease] = {}
        self._held: Counter[tuple[TableBucket, int]] = Counter()
        for lease_id, text in (texts or {}).items():
            expires_ms, buckets = json.loads(text)
            snapshots = {
                TableBucket(table_id, bucket, partition_id=partition_id): snapshot_id
                for table_id, partition_id, bucket, snapshot_id in buckets
            }
            self._leases[lease_id] = _Lease(expires_ms=expires_ms, snapshots=snapshots)
            self._held.update(snapshots.items())

    def __len__(self) -> int:
        return len(self._leases)

    def text_of(self, lease_id: str) -> str | None:
        """Return what the next start begins with; None where there is no such lease."""
        lease = self._leases.get(lease_id)
        if lease is None:
            return None
        buckets = [
            (each.table_id, each.partition_id, each.bucket_id, snapshot_id)
            for each, snapshot_id in lease.snapshots.items()
        ]
        return json.dumps((lease.expires_ms, buckets), separators=(",", ":"))

    def holds(self, bucket: TableBucket, snapshot_id: int) -> bool:
        """Return whether a lease keeps a snapshot."""
        return self._held[bucket, snapshot_id] > 0

    def tables_of(self, lease_id: str) -> set[int]:
        """Return the ids of the tables that a lease has snapshots of."""
        lease = self._leases.get(lease_id)
        return set() if lease is None else {each.table_id for each in lease.snapshots}

    def acquire(
        self, lease_id: str, snapshots: Mapping[TableBucket, int], *, expires_ms: int
    ) -> None:
        """Extend a lease, and add snapshots; another one of the same bucket is replaced.

        Raises:
            FlussError: There are too many leases, or their names are too long.
        """
        lease = self._leases.get(lease_id)
        if lease is None and not snapshots:
            return  # it would hold nothing
        self._check(lease_id, lease, snapshots)
        if lease is None:
            lease = self._leases[lease_id] = _Lease(expires_ms=0)
        lease.expires_ms = min(expires_ms, _TIME_MAX)
        for bucket, snapshot_id in snapshots.items():
            self._release(lease, bucket)
            lease.snapshots[bucket] = snapshot_id
            self._held[bucket, snapshot_id] += 1

    def release(self, lease_id: str, buckets: Iterable[TableBucket]) -> bool:
        """Take buckets out of a lease; return whether that changed anything."""
        lease = self._leases.get(lease_id)
        if lease is None:
            return False
        released = [self._release(lease, bucket) for bucket in buckets]
        if not lease.snapshots:
            del self._leases[lease_id]
        return any(released)

    def drop(self, lease_id: str) -> bool:
        """End a lease; return whether there was one."""
        lease = self._leases.get(lease_id)
        return lease is not None and self.release(lease_id, list(lease.snapshots))

    def expire(self, *, now_ms: int) -> list[str]:
        """End the leases whose time is over; return their ids."""
        over = [key for key, lease in self._leases.items() if lease.expires_ms < now_ms]
        for lease_id in over:
            self.drop(lease_id)
        return over

    def forget(self, table_id: int, partition_id: int | None = None) -> list[str]:
        """Take a dropped table or partition out of all leases; return the ids of these."""
        changed = []
        for lease_id, lease in list(self._leases.items()):
            gone = [
                each
                for each in lease.snapshots
                if each.table_id == table_id and partition_id in {None, each.partition_id}
            ]
            if gone:
                self.release(lease_id, gone)
                changed.append(lease_id)
        return changed

    def _release(self, lease: _Lease, bucket: TableBucket) -> bool:
        snapshot_id = lease.snapshots.pop(bucket, None)
        if snapshot_id is None:
            return False
        self._held[bucket, snapshot_id] -= 1
        if not self._held[bucket, snapshot_id]:
            del self._held[bucket, snapshot_id]
        return True

    def _check(
        self, lease_id: str, lease: _Lease | None, snapshots: Mapping[TableBucket, int]
    ) -> None:
        if not 0 < len(lease_id) <= ID_CHARACTERS_MAX:
            raise request_error(
                ErrorCode.INVALID_CONFIG_EXCEPTION,
                f"The id of a lease has {len(lease_id)} characters; 1 to {ID_CHARACTERS_MAX} are "
                "possible.",
            )
        if lease is None and len(self._leases) >= LEASES_MAX:
            raise request_error(
                ErrorCode.STORAGE_EXCEPTION,
                f"There are {len(self._leases)} leases of KV snapshots, and no more are possible.",
                hint="drop leases that are no longer needed; each ends when its time is over",
            )
        count = len(snapshots) if lease is None else len({*lease.snapshots, *snapshots})
        if count > BUCKETS_MAX:
            raise request_error(
                ErrorCode.STORAGE_EXCEPTION,
                f"The lease {lease_id!r} would have {count} KV snapshots; {BUCKETS_MAX} are possible.",
                hint="use several leases",
            )
