"""Asks leaders where their buckets begin and end at this moment, to pin a scan.

LIST_OFFSETS is answered by followers too, with an end of their own, and is asked table by table and
partition by partition. A FETCH_LOG is answered by leaders alone, carries the high watermark, which
is the end that counts, and takes the buckets of all partitions together. So one fetch per server,
of next to no bytes and from offset 0, pins a whole scan; only buckets whose beginning has been
trimmed need a second round.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping

import anyio

from fluss.errors import FlussError, ProtocolError, error_from_code
from fluss.log.plan_fetch_errors import LAG_S_MAX
from fluss.model.extent import Extent
from fluss.model.offsets import EARLIEST_OFFSET, OffsetSpec
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.net.cluster_client import Cluster
from fluss.net.list_offsets import list_offsets
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

Places = Mapping[TableBucket, PhysicalTablePath]


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
        log_ends = await _offsets(cluster, lagging, OffsetSpec.latest(), as_replica=True)
        is_lost = any((log_ends[bucket] or 0) < reached[bucket] for bucket in lagging)
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
            _offsets(cluster, trimmed, OffsetSpec.earliest()),
        )
        for bucket, end in ends.items():
            if end is not None:
                extents[bucket] = Extent(earliest=min(earliest[bucket] or 0, end), end=end)
    return extents | await _listed(
        cluster, {bucket: path for bucket, path in places.items() if bucket not in extents}
    )


async def _listed(cluster: Cluster, places: Places) -> dict[TableBucket, Extent]:
    """The extents of buckets whose beginning moves with every fetch."""
    earliest, ends = await asyncio.gather(
        _offsets(cluster, places, OffsetSpec.earliest()),
        _offsets(cluster, places, OffsetSpec.latest()),
    )
    return {
        bucket: Extent(earliest=min(earliest[bucket] or 0, end or 0), end=end or 0)
        for bucket, end in ends.items()
    }


async def offsets_at(
    cluster: Cluster, places: Places, timestamp_ms: int
) -> dict[TableBucket, int | None]:
    """Return where the first batch committed at or after a time begins, by the servers' indexes.

    None where a server refused the time because its clock has not reached it. Its log may hold rows
    of that time all the same: see `scan.commit_times`.
    """
    spec = OffsetSpec.timestamp(timestamp_ms)
    return await _offsets(cluster, places, spec)


async def _offsets(
    cluster: Cluster, places: Places, spec: OffsetSpec, *, as_replica: bool = False
) -> dict[TableBucket, int | None]:
    by_path: dict[PhysicalTablePath, list[TableBucket]] = defaultdict(list)
    for bucket, path in places.items():
        by_path[path].append(bucket)

    async def ask(path: PhysicalTablePath) -> Mapping[TableBucket, int | None]:
        try:
            return await list_offsets(cluster, path, by_path[path], spec, as_replica=as_replica)
        except FlussError as error:
            if error.error_code == FUTURE_TIME_CODE:
                return dict.fromkeys(by_path[path])
            raise

    answers = await asyncio.gather(*(ask(path) for path in by_path))
    return {bucket: offset for answer in answers for bucket, offset in answer.items()}


async def _high_watermarks(
    cluster: Cluster, places: Places, *, offset: int
) -> dict[TableBucket, int | None]:
    """The high watermark of each bucket; None where the log no longer has the offset."""
    found: dict[TableBucket, int | None] = {}

    async def attempt() -> None:
        missing = [each for each in places if each not in found]
        leaders = await by_leader(cluster, {each: places[each] for each in missing})
        answers = await asyncio.gather(
            *(_ask(cluster, server, asked, offset) for server, asked in leaders.items())
        )
        failed: FlussError | None = None
        for answer in answers:
            for bucket, end in answer.items():
                if isinstance(end, FlussError):
                    cluster.view.forget_leader(bucket)
                    failed = end
                else:
                    found[bucket] = end
        if failed is not None:
            raise failed

    if places:
        await cluster.retrying(attempt)
    return found


async def by_leader(cluster: Cluster, places: Places) -> dict[int, list[TableBucket]]:
    """Group buckets by the server that leads each; unknown leaders are asked for."""
    unknown = [path for bucket, path in places.items() if cluster.view.leader_of(bucket) is None]
    if unknown:
        await cluster.refresh(dict.fromkeys(unknown))
    grouped: dict[int, list[TableBucket]] = defaultdict(list)
    for bucket, path in places.items():
        grouped[(await cluster.leader(path, bucket)).server_id].append(bucket)
    return grouped


async def _ask(
    cluster: Cluster, server_id: int, buckets: Iterable[TableBucket], offset: int
) -> dict[TableBucket, int | FlussError | None]:
    request = messages.FetchLogRequest(
        follower_server_id=CLIENT_IS_NO_FOLLOWER, max_bytes=BYTES_MIN
    )
    tables: dict[int, messages.PbFetchLogReqForTable] = {}
    asked = list(buckets)
    for bucket in asked:
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
        )
    body = await cluster.send(server_id, ApiKey.FETCH_LOG, [write_message(request)])
    found: dict[TableBucket, int | FlussError | None] = {}
    for answer in FETCH_LOG_RESPONSE.read(body).tables_resp:
        for found_bucket in answer.buckets_resp:
            bucket = TableBucket.with_partition(
                answer.table_id, found_bucket.partition_id, found_bucket.bucket_id
            )
            found[bucket] = _end_of(bucket, found_bucket)
    return {bucket: found.get(bucket, _unusable(bucket)) for bucket in asked}


def _end_of(bucket: TableBucket, answer: FetchedBucket) -> int | FlussError | None:
    if answer.error_code == OUT_OF_RANGE_CODE:
        return None
    if answer.error_code is not None:
        return error_from_code(answer.error_code, answer.error_message, bucket=bucket.bucket_id)
    return _unusable(bucket) if answer.high_watermark is None else answer.high_watermark


def _unusable(bucket: TableBucket) -> ProtocolError:
    why = f"it names no high watermark of bucket {bucket.bucket_id}"
    return ProtocolError(
        f"The answer to FETCH_LOG cannot be used: {why}.", what="FETCH_LOG", at=0, why=why
    )
