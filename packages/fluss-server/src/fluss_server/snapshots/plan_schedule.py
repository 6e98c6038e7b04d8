"""When the next KV snapshot of a bucket is due.

As in Fluss, an interval passes between two looks at a bucket, and a look at a bucket that has not
changed makes no snapshot. The first look comes after half an interval to a whole one, by the
bucket's id, so that the buckets of a table are not due together.
"""

from __future__ import annotations

from zlib import crc32

from fluss.model.paths import TableBucket


class Schedule:
    """The last look at each bucket. This file has no clock."""

    def __init__(self) -> None:
        self._looks_ms: dict[TableBucket, int] = {}

    def is_due(self, bucket: TableBucket, *, now_ms: int, interval_ms: int) -> bool:
        """Return whether a bucket is to be looked at now, and note that it is."""
        last_ms = self._looks_ms.get(bucket)
        if last_ms is None:
            self._looks_ms[bucket] = now_ms - _share_of(bucket, interval_ms // 2)
            return False
        # A clock that was set back must not keep the bucket from being looked at.
        if 0 <= now_ms - last_ms < interval_ms:
            return False
        self._looks_ms[bucket] = now_ms
        return True

    def note(self, bucket: TableBucket, *, now_ms: int) -> None:
        """Note a snapshot that was made before it was due."""
        self._looks_ms[bucket] = now_ms

    def forget(self, bucket: TableBucket) -> None:
        """Forget a bucket that was dropped."""
        self._looks_ms.pop(bucket, None)


def _share_of(bucket: TableBucket, span_ms: int) -> int:
    text = f"{bucket.table_id} {bucket.partition_id} {bucket.bucket_id}"
    return crc32(text.encode()) % (span_ms + 1)
