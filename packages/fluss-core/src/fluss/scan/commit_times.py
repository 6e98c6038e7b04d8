"""Finds the offsets of a time in the logs of a scan, even where the clocks of servers differ.

A server looks a time up in its time index, and refuses a time after its own clock (code 38). That
does not mean that the log ends before that time: after the clock was set back, or where the clocks
of two servers differ, a log may hold later rows. Then the header of the last batch decides. Commit
times of a bucket do not run backwards, because a leader gives no batch an earlier time than the one
before it (Java's `LogTablet.append`, `fluss_server.log.bucket_log`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fluss.connection.connection import TableHandle
from fluss.log.extents import offsets_at
from fluss.model.extent import Extent
from fluss.model.paths import TableBucket
from fluss.net.leader_requests import Places
from fluss.scan.batch_headers import newest_times, offsets_of_time
from fluss.scan.split import ScanSplit

# A server is asked for earlier times until its clock has reached one: a second, 8 s, ... 35 years.
STEPS_MS: Final = tuple(1_000 * 8**power for power in range(11))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitTimes:
    """Finds the offsets of times in some logs of one table.

    Attributes:
        table: The table.
        places: The buckets, and the table or partition each is of.
        extents: Where the log of each bucket begins and ends.
    """

    table: TableHandle
    places: Places
    extents: Mapping[TableBucket, Extent]

    async def offsets_since(self, timestamp_ms: int) -> dict[TableBucket, int | None]:
        """Find offsets before which all rows are older than a time; None where the whole log is."""
        extents = self.extents
        found = await offsets_at(self.table.connection.cluster, self.places, timestamp_ms)
        refused = [
            bucket
            for bucket, offset in found.items()
            if offset is None and extents[bucket].earliest < extents[bucket].end
        ]
        if not refused:
            return found
        logs = [self._split(bucket, extents[bucket].earliest) for bucket in refused]
        newest = await newest_times(self.table, logs)
        # A last offset without a row has no time: the log is then read from before it.
        ahead = [bucket for bucket in refused if newest.get(bucket, timestamp_ms) >= timestamp_ms]
        return found | await self._offsets_before(ahead, timestamp_ms)

    async def offsets_until(
        self, timestamp_ms: int, since: Mapping[TableBucket, int | None]
    ) -> dict[TableBucket, int | None]:
        """Find the first offset of a time or later, to end a scan there; None where there is none.

        Servers answer with an offset at or before it; the headers from there on give the exact one.

        Args:
            timestamp_ms: The time.
            since: The answer of `offsets_since` for this time.
        """
        unsettled = [
            self._split(bucket, max(offset, self.extents[bucket].earliest))
            for bucket, offset in since.items()
            if offset is not None and offset < self.extents[bucket].end
        ]
        return {**since, **await offsets_of_time(self.table, unsettled, timestamp_ms)}

    async def _offsets_before(
        self, buckets: list[TableBucket], timestamp_ms: int
    ) -> dict[TableBucket, int | None]:
        """Find offsets at or before a time that servers refuse to look up."""
        found: dict[TableBucket, int | None] = {
            bucket: self.extents[bucket].earliest for bucket in buckets
        }
        left = buckets
        for step_ms in STEPS_MS:
            earlier_ms = timestamp_ms - step_ms
            if not left or earlier_ms < 0:
                break
            places = {bucket: self.places[bucket] for bucket in left}
            answers = await offsets_at(self.table.connection.cluster, places, earlier_ms)
            found |= {bucket: offset for bucket, offset in answers.items() if offset is not None}
            left = [bucket for bucket, offset in answers.items() if offset is None]
        return found

    def _split(self, bucket: TableBucket, start: int) -> ScanSplit:
        partition_name, stop = self.places[bucket].partition_name, self.extents[bucket].end
        return ScanSplit.of_log(self.table.info, bucket, partition_name, start=start, stop=stop)
