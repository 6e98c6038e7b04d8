"""SCAN_KV: all rows of a bucket at one moment, page by page.

The protocol is that of main (no 0.9.1 server has it): a scan begins with page 0, each further page
is requested by its number, and a wrong number closes the scan. `fluss_server.open_scans` keeps the
open scans; errors are reported in the response.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.zero_copy.scan_batches import SCAN_KV_RESPONSE, ScanKvResponse
from fluss_server.fair_lock import FairLock, Ticket
from fluss_server.handlers.bucket_answers import bucket_count_of, error_fields, partition_id_of
from fluss_server.handlers.serve_keys import keyed_tablet
from fluss_server.open_scans import OpenScan
from fluss_server.request_handler import Call, layout_handler
from fluss_server.server_errors import request_error
from fluss_server.server_node import Node

PAGE_BYTES_MAX: Final = 10 << 20  # kv.scanner.max-batch-size


def scan_kv(
    node: Node, call: Call, request: pb.ScanKvRequest
) -> ScanKvResponse | Awaitable[ScanKvResponse]:
    """Begin, continue or close a scan."""
    del call
    try:
        _check(request)
    except FlussError as error:
        return ScanKvResponse(**error_fields(error))
    if request.HasField("bucket_scan_req"):
        return _begin(node, request)
    known = node.scans.find(request.scanner_id)
    # Pages that are requested concurrently are read one after the other.
    ticket = (FairLock() if known is None else known.lock).reserve()
    return _continue(node, request, ticket)


def _check(request: pb.ScanKvRequest) -> None:
    begins, continues = request.HasField("bucket_scan_req"), request.HasField("scanner_id")
    if begins == continues:
        raise _invalid("A scan is begun with a bucket, or gone on with by its id; one of the two.")
    if request.close_scanner:
        if begins:
            raise _invalid("A scan cannot be begun and closed by one request.")
        return
    if not request.HasField("batch_size_bytes") or request.batch_size_bytes <= 0:
        raise _invalid("batch_size_bytes is not a number from 1 on.")
    if not request.HasField("call_seq_id") or (begins and request.call_seq_id != 0):
        raise _invalid("call_seq_id is missing, or a scan does not begin with page 0.")


def _invalid(why: str) -> FlussError:
    return request_error(ErrorCode.INVALID_SCAN_REQUEST, why)


async def _begin(node: Node, request: pb.ScanKvRequest) -> ScanKvResponse:
    requested = request.bucket_scan_req
    try:
        tablet = keyed_tablet(
            node,
            requested.table_id,
            partition_id_of(requested),
            requested.bucket_id,
            bucket_count=bucket_count_of(requested),
        )
        node.scans.check_limits(tablet.bucket)
        limit = requested.limit if requested.HasField("limit") and requested.limit > 0 else None
        async with tablet.lock.reserve():
            tablet.check_exists()
            state = await node.open_state(tablet)
            # The scan writes pending rows into the store, which must never be ahead of its log.
            await node.in_storage(tablet.log.sync)
            scan = await node.in_storage(state.open_scan, limit=limit)
        opened = node.scans.add(scan, tablet, now_ms=node.now_ms())
        async with opened.lock.reserve():
            page = await _page(node, opened, request.batch_size_bytes)
    except Exception as error:  # noqa: BLE001 - the answer has a field for it
        return ScanKvResponse(**error_fields(error))
    records, has_more = page
    return ScanKvResponse(
        scanner_id=opened.scan_id if records else None,
        has_more_results=has_more,
        records=records,
        log_offset=opened.scan.log_offset,
    )


async def _continue(node: Node, request: pb.ScanKvRequest, ticket: Ticket) -> ScanKvResponse:
    scan_id = request.scanner_id
    try:
        async with ticket:
            if request.close_scanner:
                node.scans.close(scan_id)
                return ScanKvResponse(has_more_results=False)
            found = node.scans.take(scan_id, request.call_seq_id, now_ms=node.now_ms())
            records, has_more = await _page(node, found, request.batch_size_bytes)
    except Exception as error:  # noqa: BLE001 - the answer has a field for it
        return ScanKvResponse(**error_fields(error))
    return ScanKvResponse(scanner_id=scan_id, has_more_results=has_more, records=records)


async def _page(
    node: Node, opened: OpenScan, bytes_asked: int
) -> tuple[tuple[memoryview, ...], bool]:
    """Read the next page; close the scan after the last one."""
    size = min(bytes_asked, PAGE_BYTES_MAX)
    (records, count), has_more = await node.in_storage(_read_page, opened, size)
    if not has_more:
        node.scans.close(opened.scan_id)
    return (records if count else ()), has_more


def _read_page(opened: OpenScan, size: int) -> tuple[tuple[tuple[memoryview, ...], int], bool]:
    batch, has_more = opened.scan.next_page(size)
    views = tuple(memoryview(each).cast("B") for each in batch)
    return (views, count_of(views)), has_more


def count_of(batch: tuple[memoryview, ...]) -> int:
    """Return the row count of a value batch, which follows its length and its magic byte."""
    head = b"".join(bytes(each[:9]) for each in batch)[:9]
    return int.from_bytes(head[5:9], "little")


HANDLERS = (layout_handler(ApiKey.SCAN_KV, scan_kv, response=SCAN_KV_RESPONSE),)
