"""Pinning a scan: where each bucket begins and ends at this moment, as its leader says.

LIST_OFFSETS is answered by followers too, with an end of their own. So the end it names is only a
place to ask from: a FETCH_LOG there is answered by the leader alone, moves next to nothing, and
carries the high watermark, which is the end that counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fluss.engine.cluster import Cluster
from fluss.engine.offsets import list_offsets
from fluss.errors import ProtocolError, error_from_code
from fluss.model.offsets import OffsetSpec
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.wire import messages
from fluss.wire.api import ApiKey
from fluss.wire.envelope.fetch import FETCH_LOG_RESPONSE
from fluss.wire.messages import write_message

CLIENT_IS_NO_FOLLOWER = -1
BYTES_MIN = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The offsets of one bucket between which a scan reads."""

    start: int
    stop: int


async def pin_buckets(
    cluster: Cluster, path: PhysicalTablePath, buckets: Sequence[TableBucket]
) -> Mapping[TableBucket, Pin]:
    """From the earliest row there is to where the log ends now, for each bucket."""
    starts, ends = await asyncio.gather(
        list_offsets(cluster, path, buckets, OffsetSpec.earliest()),
        list_offsets(cluster, path, buckets, OffsetSpec.latest()),
    )
    stops = await asyncio.gather(
        *(_high_watermark(cluster, path, bucket, ends[bucket]) for bucket in buckets)
    )
    return {
        bucket: Pin(start=min(starts[bucket], stop), stop=stop)
        for bucket, stop in zip(buckets, stops, strict=True)
    }


async def _high_watermark(
    cluster: Cluster, path: PhysicalTablePath, bucket: TableBucket, offset: int
) -> int:
    request = messages.FetchLogRequest(
        follower_server_id=CLIENT_IS_NO_FOLLOWER, max_bytes=BYTES_MIN
    )
    table = request.tables_req.add(table_id=bucket.table_id, projection_pushdown_enabled=False)
    table.buckets_req.add(
        partition_id=bucket.partition_id,
        bucket_id=bucket.bucket_id,
        fetch_offset=offset,
        max_fetch_bytes=BYTES_MIN,
    )
    body = [write_message(request)]

    async def attempt() -> int:
        leader = await cluster.leader(path, bucket)
        answer = FETCH_LOG_RESPONSE.read(
            await cluster.send(leader.server_id, ApiKey.FETCH_LOG, body)
        )
        for each in (each for table in answer.tables_resp for each in table.buckets_resp):
            if each.error_code is not None:
                cluster.view.forget_leader(bucket)
                raise error_from_code(
                    each.error_code, each.error_message or "", bucket=bucket.bucket_id
                )
            if each.high_watermark is not None:
                return each.high_watermark
        why = "it names no high watermark"
        raise ProtocolError(
            f"The answer to FETCH_LOG cannot be used: {why}.", what="FETCH_LOG", at=0, why=why
        )

    return await cluster.retrying(attempt)
