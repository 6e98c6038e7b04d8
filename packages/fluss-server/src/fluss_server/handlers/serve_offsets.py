"""LIST_OFFSETS, LIMIT_SCAN and GET_TABLE_STATS: offsets of logs, first and last rows, counts."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

from fluss.error_codes import ErrorCode
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.byte_buffers import Buffer
from fluss.wire.zero_copy.scan_batches import LIMIT_SCAN_RESPONSE, LimitScanResponse
from fluss_server.handlers.bucket_answers import (
    bucket_count_of,
    error_fields,
    partition_id_of,
    set_error,
)
from fluss_server.request_handler import Call, layout_handler, message_handler
from fluss_server.server_errors import request_error
from fluss_server.server_node import Node
from fluss_server.tablets import Tablet

if TYPE_CHECKING:
    from fluss_server.log.bucket_log import BucketLog

_ALL_BYTES: Final = 2**31 - 1


def list_offsets(node: Node, call: Call, request: pb.ListOffsetsRequest) -> pb.ListOffsetsResponse:
    """Return the requested offset of each requested bucket."""
    del call
    response = pb.ListOffsetsResponse()
    for bucket_id in request.bucket_id:
        answer = response.buckets_resp.add(bucket_id=bucket_id)
        try:
            tablet = node.tablets.find_routed(
                request.table_id,
                partition_id_of(request),
                bucket_id,
                bucket_count=bucket_count_of(request),
            )
            answer.offset = _offset(tablet.log, request, now_ms=node.now_ms())
        except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
            set_error(answer, error)
    return response


def _offset(log: BucketLog, request: pb.ListOffsetsRequest, *, now_ms: int) -> int:
    match request.offset_type:
        case 0:
            return log.start_offset
        case 1:
            return log.high_watermark
        case 2:
            return _offset_since(log, request.startTimestamp, now_ms=now_ms)
        case other:
            raise request_error(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"There is no offset of type {other}."
            )


def _offset_since(log: BucketLog, timestamp: int, *, now_ms: int) -> int:
    if timestamp > now_ms:
        raise request_error(
            ErrorCode.INVALID_TIMESTAMP_EXCEPTION,
            f"The timestamp {timestamp} lies in the future; the server's clock says {now_ms}.",
        )
    found = log.offset_since(timestamp)
    return log.high_watermark if found is None else found


# --- LIMIT_SCAN -----------------------------------------------------------------------------------


def limit_scan(
    node: Node, call: Call, request: pb.LimitScanRequest
) -> LimitScanResponse | Awaitable[LimitScanResponse]:
    """Return the last rows of a log, or the first keys of a primary-key table."""
    del call
    try:
        tablet = node.tablets.find_routed(
            request.table_id,
            partition_id_of(request),
            request.bucket_id,
            bucket_count=bucket_count_of(request),
        )
        if tablet.table.descriptor.has_primary_key:
            return _scan_keys(node, tablet, request.limit)
        records = _last_rows(tablet.log, request.limit, node.config.limits.response_bytes_max)
    except Exception as error:  # noqa: BLE001 - the answer has a field for it
        return LimitScanResponse(**error_fields(error))
    return LimitScanResponse(is_log_table=True, records=records)


def _last_rows(log: BucketLog, limit: int, bytes_max: int) -> tuple[Buffer, ...]:
    offset = max(log.start_offset, log.high_watermark - max(limit, 0))
    found: list[Buffer] = []
    size = 0
    while offset < log.high_watermark:
        read = log.read(offset, _ALL_BYTES, at_least_one=True)
        found.append(read.data)
        size += len(read.data)
        if size > bytes_max:
            raise request_error(
                ErrorCode.RECORD_TOO_LARGE_EXCEPTION,
                f"The last {limit} rows are more than the {bytes_max} bytes that one answer holds.",
                hint="Request fewer, or read the log from an offset.",
            )
        offset = min(read.end_offset, log.high_watermark)
    return tuple(found)


async def _scan_keys(node: Node, tablet: Tablet, limit: int) -> LimitScanResponse:
    try:
        async with tablet.lock.reserve():
            state = await node.open_state(tablet)
            records = await node.in_storage(state.limit_scan, max(limit, 0))
    except Exception as error:  # noqa: BLE001 - the answer has a field for it
        return LimitScanResponse(**error_fields(error))
    return LimitScanResponse(is_log_table=False, records=tuple(memoryview(r) for r in records))


# --- GET_TABLE_STATS ------------------------------------------------------------------------------


async def get_table_stats(
    node: Node, call: Call, request: pb.GetTableStatsRequest
) -> pb.GetTableStatsResponse:
    """Return how many rows each bucket has."""
    del call
    response = pb.GetTableStatsResponse()
    for requested in request.buckets_req:
        answer = response.buckets_resp.add(bucket_id=requested.bucket_id)
        partition_id = partition_id_of(requested)
        if partition_id is not None:
            answer.partition_id = partition_id
        await _count(node, request.table_id, requested, answer)
    return response


async def _count(node: Node, table_id: int, requested: Any, answer: Any) -> None:
    try:
        tablet = node.tablets.find_routed(
            table_id,
            partition_id_of(requested),
            requested.bucket_id,
            bucket_count=bucket_count_of(requested),
        )
        if tablet.table.descriptor.has_primary_key:
            async with tablet.lock.reserve():
                answer.row_count = (await node.open_state(tablet)).row_count
        else:
            answer.row_count = tablet.log.high_watermark - tablet.log.start_offset
    except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
        set_error(answer, error)


HANDLERS = (
    message_handler(ApiKey.LIST_OFFSETS, list_offsets),
    layout_handler(ApiKey.LIMIT_SCAN, limit_scan, response=LIMIT_SCAN_RESPONSE),
    message_handler(ApiKey.GET_TABLE_STATS, get_table_stats),
)
