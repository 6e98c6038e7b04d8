"""How many rows buckets have, as their leaders count them (GET_TABLE_STATS)."""

from __future__ import annotations

import asyncio
from functools import partial

from fluss.errors import FlussError, error_from_code
from fluss.model.paths import TableBucket
from fluss.net.cluster_client import Cluster
from fluss.net.leader_requests import Places, ask_leaders, by_leader
from fluss.wire import messages
from fluss.wire.api import ApiKey
from fluss.wire.table_paths import read_bucket


async def row_counts(cluster: Cluster, places: Places) -> dict[TableBucket, int | None]:
    """Ask for the rows of each bucket; None where they are not known. One request to each server.

    Args:
        cluster: The cluster.
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
    known = {bucket: rows for bucket, rows in found.items() if not isinstance(rows, FlussError)}
    return {bucket: known.get(bucket) for bucket in places}


async def leaders_row_counts(cluster: Cluster, places: Places) -> dict[TableBucket, int | None]:
    """The same, and a bucket whose leader has moved is asked for again.

    Raises:
        FlussError: A leader cannot be asked, or refuses.
    """
    return await ask_leaders(cluster, places, partial(_ask, cluster))


async def _ask(
    cluster: Cluster, server_id: int, buckets: list[TableBucket]
) -> dict[TableBucket, int | FlussError | None]:
    table_id = buckets[0].table_id
    request = messages.GetTableStatsRequest(table_id=table_id)
    for bucket in buckets:
        request.buckets_req.add(
            partition_id=bucket.partition_id,
            bucket_id=bucket.bucket_id,
            routing_bucket_count=cluster.view.routing_count(bucket),
        )
    answer = await cluster.ask_server(server_id, request, messages.GetTableStatsResponse)
    counts: dict[TableBucket, int | FlussError | None] = {}
    for found in answer.buckets_resp:
        count: int | FlussError | None
        if found.error_code:
            count = error_from_code(found.error_code, found.error_message)
        else:
            count = found.row_count if found.HasField("row_count") else None
        counts[read_bucket(table_id, found)] = count
    return counts
