"""FETCH_LOG: rows of logs, at once or when there are enough of them.

A fetch that finds too little is parked with all its buckets and looks again when one of them has
been written to, until its time is over (Fluss 0.9.1 lets a parked fetch sleep through writes). It
is answered at once where something is wrong with a bucket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.buffers import Buffer, count_bytes
from fluss.wire.envelope import (
    FETCH_LOG_RESPONSE,
    FetchedBucket,
    FetchedTable,
    FetchLogResponse,
)
from fluss_server.calls import Call, laid_out
from fluss_server.handlers.answers import partition_id_of, refusal
from fluss_server.log.projection import check_projectable, check_projection, project_batches
from fluss_server.node import Node
from fluss_server.tablets import Tablet

EARLIEST: Final = -2
_WAIT_MS_DEFAULT: Final = 100


@dataclass(slots=True)
class _Found:
    """What one look at the logs found."""

    tables: list[FetchedTable] = field(default_factory=list)
    size: int = 0
    is_urgent: bool = False

    @property
    def response(self) -> FetchLogResponse:
        return FetchLogResponse(tables_resp=tuple(self.tables))


def fetch_log(
    node: Node, call: Call, request: pb.FetchLogRequest
) -> FetchLogResponse | Awaitable[FetchLogResponse]:
    """Read; wait for rows where the request says so."""
    found = _look(node, request)
    wait_ms = _wait_ms(node, request)
    if not wait_ms or found.is_urgent or found.size >= request.min_bytes:
        return found.response
    return _park(node, call, request, wait_ms)


def _wait_ms(node: Node, request: pb.FetchLogRequest) -> int:
    if not request.HasField("min_bytes") or request.min_bytes <= 0:
        return 0
    wait_ms = request.max_wait_ms if request.HasField("max_wait_ms") else _WAIT_MS_DEFAULT
    return max(min(wait_ms, node.config.limits.fetch_wait_ms_max), 0)


async def _park(
    node: Node, call: Call, request: pb.FetchLogRequest, wait_ms: int
) -> FetchLogResponse:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_ms / 1000
    event = asyncio.Event()
    tablets = _tablets_of(node, request)
    for each in tablets:
        each.await_rows(event)
    try:
        while True:
            # What has come since the last look is seen by this one, and what comes during it wakes.
            event.clear()
            found = _look(node, request)
            if found.is_urgent or found.size >= request.min_bytes:
                break
            try:
                async with asyncio.timeout_at(deadline):
                    await event.wait()
            except TimeoutError:
                break
            if call.caller.is_gone:
                return FetchLogResponse()
    finally:
        for each in tablets:
            each.forget(event)
    await call.caller.can_take_more()
    return found.response


def _tablets_of(node: Node, request: pb.FetchLogRequest) -> list[Tablet]:
    return [
        node.tablets.find(table.table_id, partition_id_of(bucket), bucket.bucket_id)
        for table in request.tables_req
        for bucket in table.buckets_req
    ]


# --- one look -------------------------------------------------------------------------------------


def _look(node: Node, request: pb.FetchLogRequest) -> _Found:
    found = _Found()
    room = min(request.max_bytes, node.config.limits.response_bytes_max)
    for table in request.tables_req:
        buckets: list[FetchedBucket] = []
        for asked in table.buckets_req:
            bucket, size = _read_bucket(node, table, asked, room=room, is_first=found.size == 0)
            buckets.append(bucket)
            room -= size
            found.size += size
            found.is_urgent = found.is_urgent or bucket.error_code is not None
        found.tables.append(FetchedTable(table_id=table.table_id, buckets_resp=tuple(buckets)))
    return found


def _read_bucket(
    node: Node,
    table: pb.PbFetchLogReqForTable,
    asked: pb.PbFetchLogReqForBucket,
    *,
    room: int,
    is_first: bool,
) -> tuple[FetchedBucket, int]:
    """One bucket's rows, and how many bytes of the log they take."""
    partition_id = partition_id_of(asked)
    try:
        tablet = node.tablets.find(table.table_id, partition_id, asked.bucket_id)
        records, size = _read(tablet, table, asked, room=room, is_first=is_first)
    except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
        refused = FetchedBucket(
            partition_id=partition_id, bucket_id=asked.bucket_id, **refusal(error)
        )
        return refused, 0
    bucket = FetchedBucket(
        partition_id=partition_id,
        bucket_id=asked.bucket_id,
        high_watermark=tablet.log.high_watermark,
        log_start_offset=tablet.log.start_offset,
        records=records,
    )
    return bucket, size


def _read(
    tablet: Tablet,
    table: pb.PbFetchLogReqForTable,
    asked: pb.PbFetchLogReqForBucket,
    *,
    room: int,
    is_first: bool,
) -> tuple[tuple[Buffer, ...], int]:
    log = tablet.log
    if table.projection_pushdown_enabled:
        check_projectable(tablet.schemas)
    offset = log.start_offset if asked.fetch_offset == EARLIEST else asked.fetch_offset
    limit = min(room, asked.max_fetch_bytes)
    read = log.read(offset, limit, at_least_one=is_first)
    if not read.data:
        return (b"",), 0
    if not table.projection_pushdown_enabled:
        return (read.data,), len(read.data)
    # As in Fluss, columns are looked at when there is something to cut them out of.
    positions = check_projection(table.projected_fields, tablet.schemas)
    projected: Sequence[Buffer] = project_batches(read.data, positions, tablet.schemas)
    return tuple(projected), count_bytes(projected)


HANDLERS = (laid_out(ApiKey.FETCH_LOG, fetch_log, response=FETCH_LOG_RESPONSE),)
