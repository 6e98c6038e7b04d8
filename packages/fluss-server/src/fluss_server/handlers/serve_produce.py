"""PRODUCE_LOG: batches into the logs of one table's buckets.

A small request whose buckets are free is done at once; anything else takes its places in line at
once and waits for its turns. Buckets are independent: what is wrong with one is said in its own
answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from fluss.error_codes import ErrorCode
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.byte_buffers import count_bytes
from fluss.wire.zero_copy import PRODUCE_LOG_REQUEST, ProduceLogRequest
from fluss.wire.zero_copy.record_batches import WrittenBucket
from fluss_server.fair_lock import Ticket
from fluss_server.handlers.bucket_answers import refusal
from fluss_server.request import Call, laid_out
from fluss_server.server_errors import refuse
from fluss_server.server_node import INLINE_BYTES_MAX, Node
from fluss_server.tablets import Tablet

if TYPE_CHECKING:
    from fluss.records.log.log_batch import LogBatch

NO_OFFSET = -1
_ACKS = frozenset({-1, 0, 1})

Answer = pb.PbProduceLogRespForBucket
AppendTarget = tuple[WrittenBucket, Tablet, Ticket]


def check_acks(acks: int) -> None:
    """Refuse what is not all, leader or none.

    Raises:
        ConfigError: With code 18.
    """
    if acks not in _ACKS:
        raise refuse(
            ErrorCode.INVALID_REQUIRED_ACKS, f"Invalid required acks {acks}; it is -1, 0 or 1."
        )


def produce_log(
    node: Node, call: Call, request: ProduceLogRequest
) -> pb.ProduceLogResponse | Awaitable[pb.ProduceLogResponse]:
    """Append the batches; an answer for each bucket, in the order asked."""
    del call
    check_acks(request.acks)
    answers: list[Answer] = []
    places: list[tuple[Answer, AppendTarget]] = []
    for asked in request.buckets_req:
        answer = Answer(bucket_id=asked.bucket_id, partition_id=asked.partition_id)
        answers.append(answer)
        try:
            tablet = _log_tablet(node, request.table_id, asked)
        except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
            _tell(answer, error)
            continue
        places.append((answer, (asked, tablet, tablet.turn.enter())))
    size = sum(count_bytes(asked.records) for _, (asked, _, _) in places)
    if size <= INLINE_BYTES_MAX and all(_is_quick(node, place) for _, place in places):
        for answer, place in places:
            _append_now(node, answer, place)
        return pb.ProduceLogResponse(buckets_resp=answers)
    return _append_all(node, answers, places)


def _log_tablet(node: Node, table_id: int, asked: WrittenBucket) -> Tablet:
    tablet = node.tablets.find(table_id, asked.partition_id, asked.bucket_id)
    if tablet.table.descriptor.has_primary_key:
        # Fluss takes it and thereby breaks the changelog.
        raise refuse(
            ErrorCode.INVALID_TABLE_EXCEPTION,
            f"The table {tablet.table.path} has a primary key; its rows are put, not appended.",
        )
    return tablet


def _is_quick(node: Node, place: AppendTarget) -> bool:
    _, _, ticket = place
    return ticket.is_due and node.publishes_at_once


def _append_now(node: Node, answer: Answer, place: AppendTarget) -> None:
    asked, tablet, ticket = place
    try:
        answer.base_offset = _append(node, tablet, asked)
        node.publish_now(tablet)
    except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
        _tell(answer, error)
    finally:
        ticket.leave()


async def _append_all(
    node: Node, answers: Sequence[Answer], places: Sequence[tuple[Answer, AppendTarget]]
) -> pb.ProduceLogResponse:
    await asyncio.gather(*(_append_in_turn(node, answer, place) for answer, place in places))
    return pb.ProduceLogResponse(buckets_resp=answers)


async def _append_in_turn(node: Node, answer: Answer, place: AppendTarget) -> None:
    asked, tablet, ticket = place
    try:
        batches = await _looked_at(node, place)
        async with ticket:
            tablet.check_exists()
            if count_bytes(asked.records) <= INLINE_BYTES_MAX:
                base_offset = _append(node, tablet, asked, batches)
            else:
                base_offset = await node.in_storage(_append, node, tablet, asked, batches)
            node.publish_now(tablet)
        # Others may write while this waits for the disk, and share the next sync.
        await node.publish(tablet)
        answer.base_offset = base_offset
    except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
        _tell(answer, error)


async def _looked_at(node: Node, place: AppendTarget) -> list[LogBatch] | None:
    """Large batches are looked at while others have the turn; None where it is there already."""
    asked, tablet, ticket = place
    if ticket.is_due or count_bytes(asked.records) <= INLINE_BYTES_MAX:
        return None
    try:
        return await node.in_storage(_checked, tablet, asked)
    except BaseException:
        ticket.leave()
        raise


def _append(
    node: Node, tablet: Tablet, asked: WrittenBucket, batches: list[LogBatch] | None = None
) -> int:
    if batches is None:
        batches = _checked(tablet, asked)
    if not batches:
        return NO_OFFSET
    return tablet.log.append(batches, now_ms=node.now_ms())[0].base_offset


def _checked(tablet: Tablet, asked: WrittenBucket) -> list[LogBatch]:
    from fluss_server.log.batch_checks import checked_batches  # need Arrow: a server starts without

    return checked_batches(asked.records, tablet.schemas)


def _tell(answer: Answer, error: BaseException) -> None:
    for name, value in refusal(error).items():
        setattr(answer, name, value)


HANDLERS = (laid_out(ApiKey.PRODUCE_LOG, produce_log, request=PRODUCE_LOG_REQUEST),)
