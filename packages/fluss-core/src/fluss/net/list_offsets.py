"""LIST_OFFSETS: where logs begin, end, or were at a time.

Followers answer this request as well, with an end of their own, so it is sent to leaders only. A
caller that needs an end that is certain takes the high watermark of a FETCH_LOG, as scans do. A
replica gets the offset where the leader's log really ends, with rows that are not replicated yet.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence

from fluss.errors import FlussError, error_from_code, unusable_answer
from fluss.model.offsets import OffsetSpec, OffsetType
from fluss.model.paths import TableBucket
from fluss.net.cluster_client import Cluster
from fluss.net.leader_requests import Places, ask_leaders
from fluss.wire import messages
from fluss.wire.api import CLIENT_IS_NO_FOLLOWER

_TYPES = {OffsetType.EARLIEST: 0, OffsetType.LATEST: 1, OffsetType.TIMESTAMP: 2}
# Any server id will do: the answer does not depend on which.
_AS_REPLICA = 0


async def list_offsets(
    cluster: Cluster, places: Places, spec: OffsetSpec, *, as_replica: bool = False
) -> dict[TableBucket, int]:
    """Ask the leaders of some buckets for one offset of each.

    Args:
        cluster: The cluster to ask.
        places: The buckets.
        spec: Which offset.
        as_replica: Whether the latest offset is one past the last row, replicated or not.
    """
    asks_as = _AS_REPLICA if as_replica else CLIENT_IS_NO_FOLLOWER

    async def ask(
        server_id: int, buckets: list[TableBucket]
    ) -> Mapping[TableBucket, int | FlussError]:
        return await ask_offsets(cluster, server_id, buckets, spec, asks_as=asks_as)

    found = await ask_leaders(cluster, places, ask)
    return {bucket: found[bucket] for bucket in places}


async def ask_offsets(
    cluster: Cluster,
    server_id: int,
    buckets: Sequence[TableBucket],
    spec: OffsetSpec,
    *,
    asks_as: int = CLIENT_IS_NO_FOLLOWER,
) -> dict[TableBucket, int | FlussError]:
    """Ask one server once: the offset of each bucket, or why it was refused."""
    # A request is for one table or partition.
    together: dict[tuple[int, int | None], list[TableBucket]] = defaultdict(list)
    for bucket in buckets:
        together[bucket.table_id, bucket.partition_id].append(bucket)
    answers = await asyncio.gather(
        *(_ask(cluster, server_id, some, spec, asks_as) for some in together.values())
    )
    return {bucket: offset for answer in answers for bucket, offset in answer.items()}


async def _ask(
    cluster: Cluster, server_id: int, buckets: Sequence[TableBucket], spec: OffsetSpec, asks_as: int
) -> dict[TableBucket, int | FlussError]:
    first = buckets[0]
    request = messages.ListOffsetsRequest(
        follower_server_id=asks_as,
        offset_type=_TYPES[spec.type],
        table_id=first.table_id,
        partition_id=first.partition_id,
        bucket_id=[bucket.bucket_id for bucket in buckets],
        startTimestamp=spec.timestamp_ms,
        routing_bucket_count=cluster.view.routing_count(first),
    )
    answer = await cluster.ask_server(server_id, request, messages.ListOffsetsResponse)
    offsets: dict[TableBucket, int | FlussError] = {}
    for found in answer.buckets_resp:
        bucket = TableBucket.with_partition(first.table_id, first.partition_id, found.bucket_id)
        if found.HasField("error_code"):
            error = error_from_code(found.error_code, found.error_message, bucket=found.bucket_id)
            offsets[bucket] = error
        else:
            offsets[bucket] = found.offset
    missing = [bucket.bucket_id for bucket in buckets if bucket not in offsets]
    if missing:
        raise unusable_answer("LIST_OFFSETS", f"it leaves out buckets {missing}")
    return offsets
