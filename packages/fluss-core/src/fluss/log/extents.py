"""Asks leaders where their buckets begin and end at this moment, to pin a scan.

LIST_OFFSETS is answered by followers too, with an end of their own, and is asked table by table and
partition by partition. A FETCH_LOG is answered by leaders alone, carries the high watermark, which
is the end that counts, and takes the buckets of all partitions together. So one fetch per server,
from offset 0, pins a whole scan; only buckets whose beginning has been trimmed need a second round.

However few bytes it is asked for, a server answers with the first batch of one of the buckets.
Asking for one column does not make that less: Fluss 0.9.1 fills the size of the whole batch with
the column of the batches after it (18 of them in 546 kB instead of one in 562 kB).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

import anyio

from fluss.errors import FlussError, error_from_code, unusable_answer
from fluss.log.plan_fetch_errors import LAG_S_MAX
from fluss.model.extent import Extent
from fluss.model.offsets import EARLIEST_OFFSET, OffsetSpec
from fluss.model.paths import TableBucket
from fluss.net.cluster_client import Cluster
from fluss.net.leader_requests import Places, ask_leaders
from fluss.net.list_offsets import ask_offsets, list_offsets
from fluss.wire import messages
from fluss.wire.api import CLIENT_IS_NO_FOLLOWER, ApiKey
from fluss.wire.messages import write_message
from fluss.wire.zero_copy.fetch_log import FETCH_LOG_RESPONSE, FetchedBucket

BYTES_MIN = 1
TRIMMED_ATTEMPTS_MAX = 3
LAG_POLL_S = 0.1
TIMES_LOST = 2
OUT_OF_RANGE_CODE = 19
FUTURE_TIME_CODE = 38


async def fetch_extents(
    cluster: Cluster, places: Places, *, reached: Mapping[TableBucket, int] | None = None
) -> dict[TableBucket, Extent]:
    """Return the first offset and the end of each bucket, with one round of requests.

    For a moment a new leader reports an earlier end than readers have already seen. Where `reached`
    shows that, the call waits for the leader, unless it does not have the rows at all.

    Args:
        cluster: The cluster to ask.
        places: The buckets, and the table or partition of each.
        reached: How far the logs are known to have reached.
    """
    return await cluster.in_one_call(_pin(cluster, places, reached or {}))


async def _pin(
    cluster: Cluster, places: Places, reached: Mapping[TableBucket, int]
) -> dict[TableBucket, Extent]:
    extents = await _extents(cluster, places)
    begin = asyncio.get_running_loop().time()
    times_lost = 0
    while lagging := _lagging(extents, places, reached):
        log_ends = await list_offsets(cluster, lagging, OffsetSpec.latest(), as_replica=True)
        is_lost = any(log_ends[bucket] < reached[bucket] for bucket in lagging)
        # The answer may be from a server that has just lost the lead; the next one is not.
        times_lost = times_lost + 1 if is_lost else 0
        waited_s = asyncio.get_running_loop().time() - begin
        if times_lost == TIMES_LOST or waited_s >= LAG_S_MAX:
            break
        await anyio.sleep(LAG_POLL_S)
        extents |= await _extents(cluster, lagging)
    return extents


def _lagging(
    extents: Mapping[TableBucket, Extent], places: Places, reached: Mapping[TableBucket, int]
) -> Places:
    return {
        bucket: places[bucket]
        for bucket, extent in extents.items()
        if extent.end < reached.get(bucket, 0)
    }


async def _extents(cluster: Cluster, places: Places) -> dict[TableBucket, Extent]:
    found = await _high_watermarks(cluster, places, offset=0)
    extents = {
        bucket: Extent(earliest=0, end=end) for bucket, end in found.items() if end is not None
    }
    for _ in range(TRIMMED_ATTEMPTS_MAX):
        trimmed = {bucket: path for bucket, path in places.items() if bucket not in extents}
        if not trimmed:
            return extents
        # Rows may be trimmed between the two requests: then the fetch is out of range again.
        ends, earliest = await asyncio.gather(
            _high_watermarks(cluster, trimmed, offset=EARLIEST_OFFSET),
            list_offsets(cluster, trimmed, OffsetSpec.earliest()),
        )
        for bucket, end in ends.items():
            if end is not None:
                extents[bucket] = Extent(earliest=min(earliest[bucket], end), end=end)
    return extents | await _listed(
        cluster, {bucket: path for bucket, path in places.items() if bucket not in extents}
    )


async def _listed(cluster: Cluster, places: Places) -> dict[TableBucket, Extent]:
    """The extents of buckets whose beginning moves with every fetch."""
    earliest, ends = await asyncio.gather(
        list_offsets(cluster, places, OffsetSpec.earliest()),
        list_offsets(cluster, places, OffsetSpec.latest()),
    )
    return {
        bucket: Extent(earliest=min(earliest[bucket], end), end=end) for bucket, end in ends.items()
    }


async def offsets_at(
    cluster: Cluster, places: Places, timestamp_ms: int
) -> dict[TableBucket, int | None]:
    """Return where the first batch committed at or after a time begins, by the servers' indexes.

    None where a server refused the time because its clock has not reached it. Its log may hold rows
    of that time all the same: see `scan.commit_times`.
    """
    spec = OffsetSpec.timestamp(timestamp_ms)

    async def ask(
        server_id: int, buckets: list[TableBucket]
    ) -> dict[TableBucket, int | FlussError | None]:
        answers = await ask_offsets(cluster, server_id, buckets, spec)
        return {bucket: _unless_future(answer) for bucket, answer in answers.items()}

    return await ask_leaders(cluster, places, ask)


def _unless_future(answer: int | FlussError) -> int | FlussError | None:
    if isinstance(answer, FlussError) and answer.error_code == FUTURE_TIME_CODE:
        return None
    return answer


async def _high_watermarks(
    cluster: Cluster, places: Places, *, offset: int
) -> dict[TableBucket, int | None]:
    """The high watermark of each bucket; None where the log no longer has the offset."""
    return await ask_leaders(cluster, places, partial(_ask, cluster, offset=offset))


async def _ask(
    cluster: Cluster, server_id: int, buckets: list[TableBucket], *, offset: int
) -> dict[TableBucket, int | FlussError | None]:
    request = messages.FetchLogRequest(
        follower_server_id=CLIENT_IS_NO_FOLLOWER, max_bytes=BYTES_MIN
    )
    tables: dict[int, messages.PbFetchLogReqForTable] = {}
    for bucket in buckets:
        table = tables.get(bucket.table_id)
        if table is None:
            table = tables[bucket.table_id] = request.tables_req.add(
                table_id=bucket.table_id, projection_pushdown_enabled=False
            )
        table.buckets_req.add(
            partition_id=bucket.partition_id,
            bucket_id=bucket.bucket_id,
            fetch_offset=offset,
            max_fetch_bytes=BYTES_MIN,
            routing_bucket_count=cluster.view.routing_count(bucket),
        )
    body = await cluster.send(server_id, ApiKey.FETCH_LOG, [write_message(request)])
    found: dict[TableBucket, int | FlussError | None] = {}
    for answer in FETCH_LOG_RESPONSE.read(body).tables_resp:
        for found_bucket in answer.buckets_resp:
            bucket = TableBucket.with_partition(
                answer.table_id, found_bucket.partition_id, found_bucket.bucket_id
            )
            found[bucket] = _end_of(bucket, found_bucket)
    # An error is made only where it is needed: it takes longer than all the rest.
    return {bucket: found[bucket] if bucket in found else _unusable(bucket) for bucket in buckets}


def _end_of(bucket: TableBucket, answer: FetchedBucket) -> int | FlussError | None:
    if answer.error_code == OUT_OF_RANGE_CODE:
        return None
    if answer.error_code is not None:
        return error_from_code(answer.error_code, answer.error_message, bucket=bucket.bucket_id)
    return _unusable(bucket) if answer.high_watermark is None else answer.high_watermark


def _unusable(bucket: TableBucket) -> FlussError:
    return unusable_answer("FETCH_LOG", f"it names no high watermark of bucket {bucket.bucket_id}")
