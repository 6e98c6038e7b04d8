"""PRODUCE_LOG: appends batches to the logs of one table's buckets.

A small request whose buckets are not locked is done inline; any other request reserves its tickets
immediately and waits for them. Buckets are independent: an error of one bucket is reported in its
own response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from fluss.error_codes import ErrorCode
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.byte_buffers import count_bytes
from fluss.wire.zero_copy.record_batches import (
    PRODUCE_LOG_REQUEST,
    ProduceLogRequest,
    WrittenBucket,
)
from fluss_server.fair_lock import Ticket
from fluss_server.handlers.bucket_answers import check_not_historical, set_error
from fluss_server.request_handler import Call, layout_handler
from fluss_server.server_errors import request_error
from fluss_server.server_node import INLINE_BYTES_MAX, Node
from fluss_server.tablets import Tablet

if TYPE_CHECKING:
    from fluss.records.log.log_batch import LogBatch

NO_OFFSET = -1
_ACKS = frozenset({-1, 0, 1})

Answer = pb.PbProduceLogRespForBucket
AppendTarget = tuple[WrittenBucket, Tablet, Ticket]


def check_acks(acks: int) -> None:
    """Refuse a value of acks that is not all, leader or none.

    Raises:
        ConfigError: The value is another one; the code is 18.
    """
    if acks not in _ACKS:
        raise request_error(
            ErrorCode.INVALID_REQUIRED_ACKS, f"Invalid required acks {acks}; it is -1, 0 or 1."
        )


def produce_log(
    node: Node, call: Call, request: ProduceLogRequest
) -> pb.ProduceLogResponse | Awaitable[pb.ProduceLogResponse]:
    """Append the batches; return a response for each bucket, in the order of the request."""
    del call
    check_acks(request.acks)
    answers: list[Answer] = []
    targets: list[tuple[Answer, AppendTarget]] = []
    for requested in request.buckets_req:
        answer = Answer(
            bucket_id=requested.bucket_id,
            partition_id=requested.partition_id,
            original_partition_name=requested.original_partition_name,
        )
        answers.append(answer)
        try:
            tablet = _log_tablet(node, request.table_id, requested)
        except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
            set_error(answer, error)
            continue
        targets.append((answer, (requested, tablet, tablet.lock.reserve())))
    size = sum(count_bytes(requested.records) for _, (requested, _, _) in targets)
    if size <= INLINE_BYTES_MAX and all(_is_quick(node, target) for _, target in targets):
        for answer, target in targets:
            _append_now(node, answer, target)
        return pb.ProduceLogResponse(buckets_resp=answers)
    return _append_all(node, answers, targets)


def _log_tablet(node: Node, table_id: int, requested: WrittenBucket) -> Tablet:
    check_not_historical(requested)
    tablet = node.tablets.find_routed(
        table_id,
        requested.partition_id,
        requested.bucket_id,
        bucket_count=requested.routing_bucket_count,
    )
    if tablet.table.descriptor.has_primary_key:
        # Fluss accepts it, which breaks the changelog.
        raise request_error(
            ErrorCode.INVALID_TABLE_EXCEPTION,
            f"The table {tablet.table.path} has a primary key; its rows are put, not appended.",
        )
    return tablet


def _is_quick(node: Node, target: AppendTarget) -> bool:
    _, tablet, ticket = target
    return ticket.is_granted and tablet.log.is_on_disk and node.publishes_immediately


def _append_now(node: Node, answer: Answer, target: AppendTarget) -> None:
    requested, tablet, ticket = target
    try:
        answer.base_offset = _append(node, tablet, requested)
        node.publish_now(tablet)
    except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
        set_error(answer, error)
    finally:
        ticket.release()


async def _append_all(
    node: Node, answers: Sequence[Answer], targets: Sequence[tuple[Answer, AppendTarget]]
) -> pb.ProduceLogResponse:
    await asyncio.gather(*(_append_in_turn(node, answer, target) for answer, target in targets))
    return pb.ProduceLogResponse(buckets_resp=answers)


async def _append_in_turn(node: Node, answer: Answer, target: AppendTarget) -> None:
    requested, tablet, ticket = target
    try:
        batches = await _checked_ahead(node, target)
        async with ticket:
            tablet.check_exists()
            if not tablet.log.is_on_disk:
                # After the check: a refused batch leaves no files.
                if batches is None:
                    batches = await node.in_storage(_checked, tablet, requested)
                if batches:
                    await node.create_files(tablet)
            if count_bytes(requested.records) <= INLINE_BYTES_MAX:
                base_offset = _append(node, tablet, requested, batches)
            else:
                base_offset = await node.in_storage(_append, node, tablet, requested, batches)
            node.publish_now(tablet)
        # Without the lock: other requests may write while this one waits for the disk, and share
        # the next sync.
        await node.publish(tablet)
        answer.base_offset = base_offset
    except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
        set_error(answer, error)


async def _checked_ahead(node: Node, target: AppendTarget) -> list[LogBatch] | None:
    """Check large batches while another request holds the lock; None where it is free."""
    requested, tablet, ticket = target
    if ticket.is_granted or count_bytes(requested.records) <= INLINE_BYTES_MAX:
        return None
    try:
        return await node.in_storage(_checked, tablet, requested)
    except BaseException:
        ticket.release()
        raise


def _append(
    node: Node, tablet: Tablet, requested: WrittenBucket, batches: list[LogBatch] | None = None
) -> int:
    if batches is None:
        batches = _checked(tablet, requested)
    if not batches:
        return NO_OFFSET
    return tablet.log.append(batches, now_ms=node.now_ms())[0].base_offset


def _checked(tablet: Tablet, requested: WrittenBucket) -> list[LogBatch]:
    from fluss_server.log.batch_checks import (
        checked_batches,  # imports Arrow; a server starts without it
    )

    return checked_batches(requested.records, tablet.schemas)


HANDLERS = (layout_handler(ApiKey.PRODUCE_LOG, produce_log, request=PRODUCE_LOG_REQUEST),)
