"""FETCH_LOG: rows of logs, at once or when there are enough of them.

A fetch that finds too little is parked with all its buckets and looks again when one of them has
been written to, until its time is over (Fluss 0.9.1 lets a parked fetch sleep through writes). It
is answered at once where something is wrong with a bucket, and where a filter left batches out:
the reader goes on behind them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.byte_buffers import Buffer, count_bytes
from fluss.wire.zero_copy import (
    FETCH_LOG_RESPONSE,
    FetchedBucket,
    FetchedTable,
    FetchLogResponse,
)
from fluss_server.handlers.bucket_answers import partition_id_of, refusal
from fluss_server.request import Call, laid_out
from fluss_server.server_errors import refuse
from fluss_server.server_node import Node
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """What was read of one bucket."""

    records: tuple[Buffer, ...]
    size: int
    filtered_end_offset: int | None


def fetch_log(
    node: Node, call: Call, request: pb.FetchLogRequest
) -> FetchLogResponse | Awaitable[FetchLogResponse]:
    """Read; wait for rows where the request says so."""
    for table in request.tables_req:
        if table.HasField("filter_predicate") and not table.HasField("filter_schema_id"):
            raise refuse(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "A filter needs the id of the schema that it was made for (filter_schema_id).",
            )
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
    """The buckets of a request that are there.

    A table may be dropped between the first look and this one. The next look answers for its
    buckets; an error of the whole request would make clients give up the server.
    """
    found = []
    for table in request.tables_req:
        for bucket in table.buckets_req:
            with suppress(FlussError):
                tablet = node.tablets.find(
                    table.table_id, partition_id_of(bucket), bucket.bucket_id
                )
                found.append(tablet)
    return found


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
            is_news = bucket.error_code is not None or bucket.filtered_end_offset is not None
            found.is_urgent = found.is_urgent or is_news
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
        found = _read(tablet, table, asked, room=room, is_first=is_first)
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
        records=found.records,
        filtered_end_offset=found.filtered_end_offset,
    )
    return bucket, found.size


def _read(
    tablet: Tablet,
    table: pb.PbFetchLogReqForTable,
    asked: pb.PbFetchLogReqForBucket,
    *,
    room: int,
    is_first: bool,
) -> _Rows:
    from fluss_server.log import stored_projection as projection

    log, is_projected = tablet.log, table.projection_pushdown_enabled
    if is_projected:
        projection.check_projectable(tablet.schemas)
    offset = log.start_offset if asked.fetch_offset == EARLIEST else asked.fetch_offset
    limit = min(room, asked.max_fetch_bytes)
    if table.HasField("filter_predicate") and table.filter_schema_id in tablet.schemas.schemas:
        data, end = _read_filtered(tablet, table, offset, limit, at_least_one=is_first)
    else:
        data, end = log.read(offset, limit, at_least_one=is_first).data, None
    if not data or not is_projected:
        return _Rows(records=(data,), size=len(data), filtered_end_offset=end)
    # As in Fluss, columns are looked at when there is something to cut them out of.
    positions = projection.check_projection(table.projected_fields, tablet.schemas)
    projected: Sequence[Buffer] = projection.project_batches(data, positions, tablet.schemas)
    return _Rows(records=tuple(projected), size=count_bytes(projected), filtered_end_offset=end)


def _read_filtered(
    tablet: Tablet,
    table: pb.PbFetchLogReqForTable,
    offset: int,
    limit: int,
    *,
    at_least_one: bool,
) -> tuple[bytes, int | None]:
    from fluss_server.log.filtered_read import BatchFilter, read_filtered  # need Arrow, too

    batches = BatchFilter(table.filter_predicate, tablet.schemas)
    found = read_filtered(tablet.log, offset, limit, batches, at_least_one=at_least_one)
    return found.data, found.filtered_end_offset


HANDLERS = (laid_out(ApiKey.FETCH_LOG, fetch_log, response=FETCH_LOG_RESPONSE),)
