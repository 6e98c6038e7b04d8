"""LIST_OFFSETS: where logs begin, end, or were at a time.

Followers answer this request as well, with an end of their own, so it is sent to leaders only. A
caller that needs an end that is certain takes the high watermark of a FETCH_LOG, as scans do. A
replica gets the offset where the leader's log really ends, with rows that are not replicated yet.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence

from fluss.errors import ProtocolError, error_from_code
from fluss.model.offsets import OffsetSpec, OffsetType
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.net.cluster_client import Cluster
from fluss.wire import messages
from fluss.wire.api import CLIENT_IS_NO_FOLLOWER, ApiKey

_TYPES = {OffsetType.EARLIEST: 0, OffsetType.LATEST: 1, OffsetType.TIMESTAMP: 2}


# Any server id will do: the answer does not depend on which.
_AS_REPLICA = 0


async def list_offsets(
    cluster: Cluster,
    path: PhysicalTablePath,
    buckets: Sequence[TableBucket],
    spec: OffsetSpec,
    *,
    as_replica: bool = False,
) -> dict[TableBucket, int]:
    """Ask the leaders of some buckets for one offset of each.

    Args:
        cluster: The cluster to ask.
        path: The table or partition.
        buckets: Its buckets.
        spec: Which offset.
        as_replica: Whether the latest offset is one past the last row, replicated or not.
    """
    asks_as = _AS_REPLICA if as_replica else CLIENT_IS_NO_FOLLOWER
    found: dict[TableBucket, int] = {}

    async def attempt() -> None:
        missing = [each for each in buckets if each not in found]
        by_leader: dict[int, list[TableBucket]] = defaultdict(list)
        for bucket in missing:
            by_leader[(await cluster.leader(path, bucket)).server_id].append(bucket)
        answers = await asyncio.gather(
            *(
                _ask(cluster, server_id, asked, spec, asks_as=asks_as)
                for server_id, asked in by_leader.items()
            )
        )
        for answer in answers:
            found.update(answer)

    await cluster.retrying(attempt)
    return {bucket: found[bucket] for bucket in buckets}


async def _ask(
    cluster: Cluster,
    server_id: int,
    buckets: Sequence[TableBucket],
    spec: OffsetSpec,
    *,
    asks_as: int,
) -> Mapping[TableBucket, int]:
    first = buckets[0]
    request = messages.ListOffsetsRequest(
        follower_server_id=asks_as,
        offset_type=_TYPES[spec.type],
        table_id=first.table_id,
        partition_id=first.partition_id,
        bucket_id=[each.bucket_id for each in buckets],
        startTimestamp=spec.timestamp_ms,
    )
    answer = await cluster.ask_server(
        server_id, ApiKey.LIST_OFFSETS, request, messages.ListOffsetsResponse
    )
    offsets = {}
    for found in answer.buckets_resp:
        bucket = TableBucket.with_partition(first.table_id, first.partition_id, found.bucket_id)
        if found.HasField("error_code"):
            cluster.view.forget_leader(bucket)
            raise error_from_code(found.error_code, found.error_message, bucket=found.bucket_id)
        offsets[bucket] = found.offset
    missing = [each.bucket_id for each in buckets if each not in offsets]
    if missing:
        why = f"it leaves out buckets {missing}"
        raise ProtocolError(
            f"The answer to LIST_OFFSETS cannot be used: {why}.", what="LIST_OFFSETS", at=0, why=why
        )
    return offsets
