"""How many rows buckets have now, as their leaders count them: GET_TABLE_STATS.

A leader knows the rows of a primary-key table where it keeps count of them, and those of a log by
its offsets. It is asked once: who wants to know how much there is does not wait for a failover.
"""

from __future__ import annotations

import asyncio

from fluss.log.extents import Places, by_leader
from fluss.model.paths import TableBucket
from fluss.net.cluster_client import Cluster
from fluss.wire import messages
from fluss.wire.api import ApiKey


async def row_counts(cluster: Cluster, places: Places) -> dict[TableBucket, int | None]:
    """The rows of each bucket; None where they are not known. One request to each server.

    Args:
        cluster: Whom to ask.
        places: The buckets of one table, and the table or partition each is of.

    Raises:
        FlussError: A server cannot be asked.
    """
    if not places or not await cluster.offers(ApiKey.GET_TABLE_STATS):
        return dict.fromkeys(places)
    leaders = await by_leader(cluster, places)
    answers = await asyncio.gather(
        *(_ask(cluster, server_id, buckets) for server_id, buckets in leaders.items())
    )
    found = {bucket: rows for answer in answers for bucket, rows in answer.items()}
    return {bucket: found.get(bucket) for bucket in places}


async def _ask(
    cluster: Cluster, server_id: int, buckets: list[TableBucket]
) -> dict[TableBucket, int | None]:
    table_id = buckets[0].table_id
    request = messages.GetTableStatsRequest(table_id=table_id)
    for each in buckets:
        request.buckets_req.add(partition_id=each.partition_id, bucket_id=each.bucket_id)
    answer = await cluster.ask_server(
        server_id, ApiKey.GET_TABLE_STATS, request, messages.GetTableStatsResponse
    )
    counts: dict[TableBucket, int | None] = {}
    for found in answer.buckets_resp:
        partition_id = found.partition_id if found.HasField("partition_id") else None
        bucket = TableBucket.with_partition(table_id, partition_id, found.bucket_id)
        counts[bucket] = found.row_count if found.HasField("row_count") else None
    return counts
