"""FETCH_LOG: rows of logs, immediately or when `min_bytes` are available.

A fetch that finds too little waits with all its buckets. It reads again when one of them has been
written to, until its time is over (in Fluss 0.9.1 a waiting fetch sleeps through writes). It is
answered immediately where a bucket has an error, and where a filter skipped batches: the reader
continues after them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.model.cluster.acls import OperationType
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.byte_buffers import Buffer, count_bytes
from fluss.wire.zero_copy.fetch_log import (
    FETCH_LOG_RESPONSE,
    FetchedBucket,
    FetchedTable,
    FetchLogResponse,
)
from fluss_server.handlers.bucket_answers import bucket_count_of, error_fields, partition_id_of
from fluss_server.request_handler import Call, layout_handler
from fluss_server.server_errors import request_error
from fluss_server.server_node import Node
from fluss_server.tablets import Tablet

EARLIEST: Final = -2
_WAIT_MS_DEFAULT: Final = 100


@dataclass(slots=True)
class _FetchResult:
    """The result of one read of all requested buckets."""

    tables: list[FetchedTable] = field(default_factory=list)
    size: int = 0
    is_urgent: bool = False

    @property
    def response(self) -> FetchLogResponse:
        return FetchLogResponse(tables_resp=tuple(self.tables))


@dataclass(frozen=True, slots=True, kw_only=True)
class _BucketBatches:
    """The batches read from one bucket."""

    records: tuple[Buffer, ...]
    size: int
    filtered_end_offset: int | None


def fetch_log(
    node: Node, call: Call, request: pb.FetchLogRequest
) -> FetchLogResponse | Awaitable[FetchLogResponse]:
    """Read the requested buckets; wait for rows where the request says so."""
    for table in request.tables_req:
        if table.HasField("filter_predicate") and not table.HasField("filter_schema_id"):
            raise request_error(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "A filter needs the id of the schema that it was made for (filter_schema_id).",
            )
    forbidden = _take_forbidden(node, call, request) if node.access.is_on else []
    found = _read_all(node, request)
    if forbidden:
        found.tables += forbidden
        return found.response
    wait_ms = _wait_ms(node, request)
    if not wait_ms or found.is_urgent or found.size >= request.min_bytes:
        return found.response
    return _wait_for_rows(node, call, request, wait_ms)


def _take_forbidden(node: Node, call: Call, request: pb.FetchLogRequest) -> list[FetchedTable]:
    """Take the tables that the user may not read out of a request, and answer them."""
    answers = []
    for place in reversed(range(len(request.tables_req))):
        asked = request.tables_req[place]
        try:
            node.access.check_tables(call.caller.user, OperationType.READ, (asked.table_id,))
        except FlussError as error:
            refused = tuple(
                FetchedBucket(
                    partition_id=partition_id_of(each),
                    bucket_id=each.bucket_id,
                    **error_fields(error),
                )
                for each in asked.buckets_req
            )
            answers.append(FetchedTable(table_id=asked.table_id, buckets_resp=refused))
            del request.tables_req[place]
    return answers


def _wait_ms(node: Node, request: pb.FetchLogRequest) -> int:
    if not request.HasField("min_bytes") or request.min_bytes <= 0:
        return 0
    wait_ms = request.max_wait_ms if request.HasField("max_wait_ms") else _WAIT_MS_DEFAULT
    return max(min(wait_ms, node.config.limits.fetch_wait_ms_max), 0)


async def _wait_for_rows(
    node: Node, call: Call, request: pb.FetchLogRequest, wait_ms: int
) -> FetchLogResponse:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_ms / 1000
    event = asyncio.Event()
    tablets = _tablets_of(node, request)
    for tablet in tablets:
        tablet.await_rows(event)
    try:
        while True:
            # This read sees what was written before it; what is written during it sets the event.
            event.clear()
            found = _read_all(node, request)
            if found.is_urgent or found.size >= request.min_bytes:
                break
            try:
                async with asyncio.timeout_at(deadline):
                    await event.wait()
            except TimeoutError:
                break
            if call.caller.is_closed:
                return FetchLogResponse()
    finally:
        for tablet in tablets:
            tablet.forget(event)
    await call.caller.drain()
    return found.response


def _tablets_of(node: Node, request: pb.FetchLogRequest) -> list[Tablet]:
    """Return the existing buckets of a request.

    A table may be dropped between the first read and this one. The next read reports the error of
    its buckets; an error of the whole request would make clients give up the server.
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


# --- one read -------------------------------------------------------------------------------------


def _read_all(node: Node, request: pb.FetchLogRequest) -> _FetchResult:
    found = _FetchResult()
    room = min(request.max_bytes, node.config.limits.response_bytes_max)
    for table in request.tables_req:
        buckets: list[FetchedBucket] = []
        for requested in table.buckets_req:
            bucket, size = _read_bucket(node, table, requested, room=room, is_first=found.size == 0)
            buckets.append(bucket)
            room -= size
            found.size += size
            is_urgent = bucket.error_code is not None or bucket.filtered_end_offset is not None
            found.is_urgent = found.is_urgent or is_urgent
        found.tables.append(FetchedTable(table_id=table.table_id, buckets_resp=tuple(buckets)))
    return found


def _read_bucket(
    node: Node,
    table: pb.PbFetchLogReqForTable,
    requested: pb.PbFetchLogReqForBucket,
    *,
    room: int,
    is_first: bool,
) -> tuple[FetchedBucket, int]:
    """Read one bucket; return its response and how many bytes of the log it takes."""
    partition_id = partition_id_of(requested)
    try:
        tablet = node.tablets.find_routed(
            table.table_id,
            partition_id,
            requested.bucket_id,
            bucket_count=bucket_count_of(requested),
        )
        found = _read(tablet, table, requested, room=room, is_first=is_first)
    except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
        refused = FetchedBucket(
            partition_id=partition_id, bucket_id=requested.bucket_id, **error_fields(error)
        )
        return refused, 0
    bucket = FetchedBucket(
        partition_id=partition_id,
        bucket_id=requested.bucket_id,
        high_watermark=tablet.log.high_watermark,
        log_start_offset=tablet.log.start_offset,
        records=found.records,
        filtered_end_offset=found.filtered_end_offset,
    )
    return bucket, found.size


def _read(
    tablet: Tablet,
    table: pb.PbFetchLogReqForTable,
    requested: pb.PbFetchLogReqForBucket,
    *,
    room: int,
    is_first: bool,
) -> _BucketBatches:
    from fluss_server.log import stored_projection as projection

    log, is_projected = tablet.log, table.projection_pushdown_enabled
    if is_projected:
        projection.check_projectable(tablet.schemas)
    offset = log.start_offset if requested.fetch_offset == EARLIEST else requested.fetch_offset
    limit = min(room, requested.max_fetch_bytes)
    if table.HasField("filter_predicate") and table.filter_schema_id in tablet.schemas.schemas:
        data, end = _read_filtered(tablet, table, offset, limit, at_least_one=is_first)
    else:
        data, end = log.read(offset, limit, at_least_one=is_first).data, None
    if not data or not is_projected:
        return _BucketBatches(records=(data,), size=len(data), filtered_end_offset=end)
    # As in Fluss, the requested columns are checked only where there are batches.
    positions = projection.check_projection(table.projected_fields, tablet.schemas)
    projected: Sequence[Buffer] = projection.project_batches(data, positions, tablet.schemas)
    return _BucketBatches(
        records=tuple(projected), size=count_bytes(projected), filtered_end_offset=end
    )


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


HANDLERS = (layout_handler(ApiKey.FETCH_LOG, fetch_log, response=FETCH_LOG_RESPONSE),)
