"""Finds the offsets of a time in the logs of a scan, even where the clocks of servers differ.

A server looks a time up in its time index, and refuses a time after its own clock (code 38). That
does not mean that the log ends before that time: after the clock was set back, or where the clocks
of two servers differ, a log may hold later rows. Then the header of the last batch decides. Commit
times of a bucket do not run backwards, because a leader gives no batch an earlier time than the one
before it (Java's `LogTablet.append`, `fluss_server.log.bucket_log`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fluss.connection.connection import TableHandle
from fluss.log.extents import Places, offsets_at
from fluss.model.extent import Extent
from fluss.model.paths import TableBucket
from fluss.scan.batch_headers import newest_times, offsets_of_time
from fluss.scan.split import ScanSplit

# A server is asked for earlier times until its clock has reached one: a second, 8 s, ... 35 years.
STEPS_MS: Final = tuple(1_000 * 8**power for power in range(11))


async def offsets_since(
    table: TableHandle,
    places: Places,
    extents: Mapping[TableBucket, Extent],
    timestamp_ms: int,
) -> dict[TableBucket, int | None]:
    """Find offsets before which all rows are older than a time; None where the whole log is.

    Args:
        table: The table.
        places: The buckets, and the table or partition each is of.
        extents: Where the log of each bucket begins and ends.
        timestamp_ms: The time.
    """
    found = await offsets_at(table.connection.cluster, places, timestamp_ms)
    refused = [
        bucket
        for bucket, offset in found.items()
        if offset is None and extents[bucket].earliest < extents[bucket].end
    ]
    if not refused:
        return found
    newest = await newest_times(
        table,
        [_split(table, places, bucket, extents[bucket].earliest, extents) for bucket in refused],
    )
    # A last offset without a row has no time: the log is then read from before it.
    ahead = [bucket for bucket in refused if newest.get(bucket, timestamp_ms) >= timestamp_ms]
    return found | await _offsets_before(table, places, ahead, extents, timestamp_ms)


async def offsets_until(
    table: TableHandle,
    places: Places,
    extents: Mapping[TableBucket, Extent],
    offsets: Mapping[TableBucket, int | None],
    timestamp_ms: int,
) -> dict[TableBucket, int | None]:
    """Find the first offset of a time or later, to end a scan there; None where there is none.

    Servers answer with an offset at or before it; the headers from there on give the exact one.

    Args:
        table: The table.
        places: The buckets, and the table or partition each is of.
        extents: Where the log of each bucket begins and ends.
        offsets: The answer of `offsets_since` for this time.
        timestamp_ms: The time.
    """
    unsettled = [
        _split(table, places, bucket, max(offset, extents[bucket].earliest), extents)
        for bucket, offset in offsets.items()
        if offset is not None and offset < extents[bucket].end
    ]
    return {**offsets, **await offsets_of_time(table, unsettled, timestamp_ms)}


async def _offsets_before(
    table: TableHandle,
    places: Places,
    buckets: list[TableBucket],
    extents: Mapping[TableBucket, Extent],
    timestamp_ms: int,
) -> dict[TableBucket, int | None]:
    """Find offsets at or before a time that servers refuse to look up."""
    found: dict[TableBucket, int | None] = {each: extents[each].earliest for each in buckets}
    left = list(buckets)
    for step_ms in STEPS_MS:
        earlier_ms = timestamp_ms - step_ms
        if not left or earlier_ms < 0:
            break
        answers = await offsets_at(
            table.connection.cluster, {each: places[each] for each in left}, earlier_ms
        )
        found |= {bucket: offset for bucket, offset in answers.items() if offset is not None}
        left = [bucket for bucket, offset in answers.items() if offset is None]
    return found


def _split(
    table: TableHandle,
    places: Places,
    bucket: TableBucket,
    start: int,
    extents: Mapping[TableBucket, Extent],
) -> ScanSplit:
    partition_name, stop = places[bucket].partition_name, extents[bucket].end
    return ScanSplit.of_log(table.info, bucket, partition_name, start=start, stop=stop)
