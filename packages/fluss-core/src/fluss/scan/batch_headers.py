"""Reads the headers of log batches alone: counts of rows, sizes, commit times, writers.

The lightest column is fetched and not decoded, so that counting a log moves a sixtieth of it. The
exact offset of a time is found here as well: where a log has moved to the remote store, a server
knows only an index entry before that offset, and the headers from there on give it.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import aclosing
from dataclasses import replace

from fluss.connection.connection import TableHandle
from fluss.log.decode import Decoder
from fluss.log.fetch_messages import Fetched
from fluss.log.range_reader import RangeReader
from fluss.model.paths import TableBucket
from fluss.net.cancellation import Cancellation
from fluss.records.log.log_batch import iter_log_headers
from fluss.records.log.log_header import LogBatchHeader, Magic1
from fluss.scan.lake_reader import LakeReader
from fluss.scan.log_reader import cheapest_column, positions_of, rows_within
from fluss.scan.plan_scan import Span, tail_starts
from fluss.scan.scan_stats import ScanStats
from fluss.scan.split import ScanSplit

UNREAD_BYTES_MAX = 16 * 1024 * 1024
# Offsets without rows are rare. Where they are not, each attempt looks at this many times more.
WIDER_BY = 8
BUCKETS_SAMPLED_MAX = 4


def spans_of(
    table: TableHandle,
    splits: Sequence[ScanSplit],
    stats: ScanStats | None = None,
    *,
    cancellation: Cancellation | None = None,
) -> dict[TableBucket, list[Span]]:
    """The first offset, the row count and the commit time of each batch within some splits."""
    spans: dict[TableBucket, list[Span]] = {each.bucket: [] for each in splits}
    skips_missing = any(each.skips_missing for each in splits)
    for fetched in _headers_of(
        table, splits, skips_missing=skips_missing, cancellation=cancellation
    ):
        batches = 0
        found = spans[fetched.bucket]
        for _, header in iter_log_headers(fetched.data, magic_1=table.connection.magic_1):
            batches += 1
            rows = rows_within(header.base_offset, header.record_count, fetched)
            if rows:
                found.append(
                    Span(
                        base_offset=max(header.base_offset, fetched.start),
                        rows=rows,
                        timestamp_ms=header.commit_timestamp,
                    )
                )
        if stats is not None:
            stats.add(bytes_read=len(fetched.data), batches_read=batches)
    return spans


def batches_by(
    table: TableHandle, splits: Sequence[ScanSplit], writer_ids: Container[int]
) -> dict[TableBucket, list[LogBatchHeader]]:
    """The headers of the batches of some writers that begin within the splits."""
    found: dict[TableBucket, list[LogBatchHeader]] = {each.bucket: [] for each in splits}
    for fetched in _headers_of(table, splits):
        stop = fetched.stop
        for _, header in iter_log_headers(fetched.data, magic_1=table.connection.magic_1):
            is_within = fetched.start <= header.base_offset and (
                stop is None or header.base_offset < stop
            )
            if is_within and header.writer_id in writer_ids:
                found[fetched.bucket].append(header)
    return found


def count_rows(table: TableHandle, splits: Sequence[ScanSplit], stats: ScanStats) -> int:
    """Count the rows of splits without a filter."""
    window = splits[0].window if splits else None
    in_lake = [each for each in splits if each.lake is not None]
    splits = [each for each in splits if each.lake is None]
    count = sum(LakeReader(table, each, 0, stats=stats).count() for each in in_lake)
    return count + sum(
        span.rows
        for spans in spans_of(table, splits, stats).values()
        for span in spans
        if window is None or window.holds(span.timestamp_ms)
    )


async def offsets_of_time(
    table: TableHandle, splits: Sequence[ScanSplit], timestamp_ms: int
) -> dict[TableBucket, int]:
    """Find the first batch that was committed at or after a time; the split's stop for none.

    Args:
        table: The table.
        splits: Its buckets, each from an offset before which all batches are older.
        timestamp_ms: The time.
    """
    reader = _headers_of(table, splits, rows_max=1)
    found: dict[TableBucket, int] = {}
    async with aclosing(aiter(reader)) as batches:
        async for fetched in batches:
            if fetched.bucket in found:
                continue
            offset = _first_since(fetched, timestamp_ms, magic_1=table.connection.magic_1)
            if offset is not None:
                found[fetched.bucket] = offset
                reader.leave(fetched.bucket)
    return {each.bucket: min(found.get(each.bucket, each.stop), each.stop) for each in splits}


async def newest_times(table: TableHandle, splits: Sequence[ScanSplit]) -> dict[TableBucket, int]:
    """Read when the last batch of each bucket was committed; without buckets that end in a gap.

    Args:
        table: The table.
        splits: Its buckets.
    """
    ends = [replace(each, start=max(each.start, each.stop - 1)) for each in splits]
    found: dict[TableBucket, int] = {}
    async with aclosing(aiter(_headers_of(table, ends, rows_max=1))) as batches:
        async for fetched in batches:
            for _, header in iter_log_headers(fetched.data, magic_1=table.connection.magic_1):
                newest = found.get(fetched.bucket, header.commit_timestamp)
                found[fetched.bucket] = max(newest, header.commit_timestamp)
    return found


def _headers_of(
    table: TableHandle,
    splits: Sequence[ScanSplit],
    *,
    rows_max: int | None = None,
    skips_missing: bool = False,
    cancellation: Cancellation | None = None,
) -> RangeReader:
    """Reads batches of which only the headers count: the lightest column of them is fetched."""
    decoder = Decoder(table, [cheapest_column(table.info.schema)])
    return RangeReader(
        table,
        positions_of(splits),
        decoder.fetch_target,
        unread_bytes_max=None if rows_max is not None else UNREAD_BYTES_MAX,
        rows_max=rows_max,
        skips_missing=skips_missing,
        cancellation=cancellation,
    )


def _first_since(fetched: Fetched, timestamp_ms: int, *, magic_1: Magic1) -> int | None:
    for _, header in iter_log_headers(fetched.data, magic_1=magic_1):
        if header.commit_timestamp >= timestamp_ms and header.next_offset > fetched.start:
            return max(header.base_offset, fetched.start)
    return None


def cut_to_tail(
    table: TableHandle,
    splits: Sequence[ScanSplit],
    rows: int,
    *,
    cancellation: Cancellation | None = None,
) -> list[ScanSplit]:
    """Cut splits to the last rows of all of them together."""
    if rows == 0:
        return [replace(each, start=each.stop) for each in splits]
    width = rows
    ends: dict[TableBucket, int] = {}
    begins: dict[TableBucket, int] = {}
    for split in splits:
        ends[split.bucket] = max(split.stop, ends.get(split.bucket, split.stop))
        begins[split.bucket] = min(split.start, begins.get(split.bucket, split.start))
    while True:
        looked_at = [_starting_at(each, ends[each.bucket] - width) for each in splits]
        held = _spans_held(table, looked_at, cancellation)
        # Whether each bucket has shown as many rows as are requested, or all that it has.
        if all(
            ends[bucket] - width <= begin or sum(span.rows for span in held[bucket]) >= rows
            for bucket, begin in begins.items()
        ):
            break
        width *= WIDER_BY
    starts = tail_starts(held, rows)
    return [_starting_at(each, starts.get(each.bucket, each.stop)) for each in splits]


def _starting_at(split: ScanSplit, offset: int) -> ScanSplit:
    """The split from an offset on, which may be before it or after it."""
    return replace(split, start=max(split.start, min(offset, split.stop)))


def _spans_held(
    table: TableHandle, splits: Sequence[ScanSplit], cancellation: Cancellation | None
) -> dict[TableBucket, list[Span]]:
    """The spans of some splits in the time that the scan reads: of lakes first, then of logs."""
    window = splits[0].window if splits else None
    found: dict[TableBucket, list[Span]] = {each.bucket: [] for each in splits}
    for split in splits:
        if split.lake is not None and split.start < split.stop:
            found[split.bucket] += LakeReader(table, split, 0, stats=ScanStats()).spans()
    in_log = [each for each in splits if each.lake is None]
    for bucket, spans in spans_of(table, in_log, cancellation=cancellation).items():
        found[bucket] += [
            span for span in spans if window is None or window.holds(span.timestamp_ms)
        ]
    return found


def bytes_stored(table: TableHandle, splits: Sequence[ScanSplit]) -> int | None:
    """Estimate how many bytes the logs of some splits take, by the last batches of the longest.

    None where there is no batch to judge by. A few batches are fetched, and their headers read.
    """
    longest = sorted(splits, key=lambda each: each.rows_max, reverse=True)[:BUCKETS_SAMPLED_MAX]
    ends = [replace(each, start=each.stop - 1) for each in longest if each.rows_max]
    reader = RangeReader(
        table,
        positions_of(ends),
        Decoder(table, None).fetch_target,
        unread_bytes_max=UNREAD_BYTES_MAX,
        skips_missing=True,
    )
    size = offsets = 0
    for fetched in reader:
        for _, header in iter_log_headers(fetched.data, magic_1=table.connection.magic_1):
            size += header.size_bytes
            offsets += header.next_offset - header.base_offset
    if not offsets:
        return None if ends else 0
    return sum(each.rows_max for each in splits) * size // offsets
