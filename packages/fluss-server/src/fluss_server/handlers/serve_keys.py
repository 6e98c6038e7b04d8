"""PUT_KV, LOOKUP and PREFIX_LOOKUP: rows by their keys.

What a put means is `fluss_server.kv`. Here requests are brought to the buckets, each in its turn
and on a storage thread; a few lookups in a bucket that is free are answered at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from fluss.error_codes import ErrorCode
from fluss.model.tables.table_options import DataLakeFormat
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.zero_copy import (
    LOOKUP_REQUEST,
    LOOKUP_RESPONSE,
    PREFIX_LOOKUP_REQUEST,
    PREFIX_LOOKUP_RESPONSE,
    PUT_KV_REQUEST,
    LookedUpBucket,
    LookupRequest,
    LookupResponse,
    PrefixLookedUpBucket,
    PrefixLookupRequest,
    PrefixLookupResponse,
    PutKvRequest,
)
from fluss.wire.zero_copy.record_batches import WrittenBucket
from fluss_server.handlers.bucket_answers import refusal
from fluss_server.handlers.serve_produce import check_acks
from fluss_server.put_request import PutOrder
from fluss_server.request import Call, laid_out
from fluss_server.server_errors import refuse
from fluss_server.server_node import Node
from fluss_server.tablets import Tablet

# So many lookups cost less than a hop to a thread and back.
_INLINE_KEYS_MAX: Final = 16

T = TypeVar("T")


def keyed_tablet(node: Node, table_id: int, partition_id: int | None, bucket_id: int) -> Tablet:
    """A bucket of a table that has a primary key.

    Raises:
        FlussError: There is no such bucket, or its table has none.
    """
    tablet = node.tablets.find(table_id, partition_id, bucket_id)
    if not tablet.table.descriptor.has_primary_key:
        raise refuse(
            ErrorCode.NON_PRIMARY_KEY_TABLE_EXCEPTION,
            f"the primary key table not exists for {tablet.bucket}",
        )
    return tablet


def _check_version(tablet: Tablet, version: int) -> None:
    """Refuse clients that would encode this table's keys by an older rule."""
    info = tablet.table.info
    lake = info.options.datalake_format
    has_own_keys = lake in {DataLakeFormat.PAIMON, DataLakeFormat.ICEBERG}
    if (
        version == 0
        and has_own_keys
        and info.options.kv_format_version == 2  # noqa: PLR2004 - the format that brought the rule
        and info.bucket_keys != info.physical_primary_keys
    ):
        raise refuse(
            ErrorCode.UNSUPPORTED_VERSION,
            f"The table {info.table_path} encodes keys by kv format version 2, which the client does "
            "not know.",
        )


# --- PUT_KV ---------------------------------------------------------------------------------------


def put_kv(node: Node, call: Call, request: PutKvRequest) -> Awaitable[pb.PutKvResponse]:
    """Apply the batches; an answer for each bucket, in the order asked."""
    check_acks(request.acks)
    order = PutOrder(
        target_columns=tuple(request.target_columns),
        agg_mode=request.agg_mode or 0,
        api_version=call.version,
    )
    # The places in line are taken now; the coroutines run later.
    return _all_puts([_put(node, request.table_id, each, order) for each in request.buckets_req])


async def _all_puts(puts: Sequence[Awaitable[pb.PbPutKvRespForBucket]]) -> pb.PutKvResponse:
    return pb.PutKvResponse(buckets_resp=await asyncio.gather(*puts))


def _put(
    node: Node, table_id: int, asked: WrittenBucket, order: PutOrder
) -> Awaitable[pb.PbPutKvRespForBucket]:
    answer = pb.PbPutKvRespForBucket(bucket_id=asked.bucket_id, partition_id=asked.partition_id)
    try:
        tablet = keyed_tablet(node, table_id, asked.partition_id, asked.bucket_id)
        _check_version(tablet, order.api_version)
    except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
        _tell(answer, error)
        return _ready(answer)
    ticket = tablet.turn.enter()

    async def put() -> pb.PbPutKvRespForBucket:
        try:
            async with ticket:
                tablet.check_exists()
                records = asked.records[0] if len(asked.records) == 1 else b"".join(asked.records)
                if len(records):
                    answer.log_end_offset = await node.change_rows(
                        tablet,
                        lambda state, now_ms: state.put(records, order, now_ms=now_ms),
                    )
                else:
                    answer.log_end_offset = tablet.log.high_watermark
        except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
            answer.ClearField("log_end_offset")
            _tell(answer, error)
        return answer

    return put()


# --- lookups --------------------------------------------------------------------------------------


def lookup(node: Node, call: Call, request: LookupRequest) -> Awaitable[LookupResponse]:
    """The rows of keys, in the order of the keys."""
    order = PutOrder(api_version=call.version)

    def ask(asked: Any) -> Awaitable[LookedUpBucket]:
        keys = [bytes(each) for each in asked.keys]
        place = {"bucket_id": asked.bucket_id, "partition_id": asked.partition_id}
        if request.insert_if_not_exists:
            check_acks(-1 if request.acks is None else request.acks)
            work = _inserting(node, keys, order)
        else:
            work = _reading(node, keys, lambda state: tuple(state.lookup(keys)))
        return _answered(
            node, call, request.table_id, asked, work, lambda v: LookedUpBucket(values=v, **place),
            lambda e: LookedUpBucket(**place, **refusal(e)),
        )  # fmt: skip

    return _gathered([ask(each) for each in request.buckets_req], _lookup_response)


def prefix_lookup(
    node: Node, call: Call, request: PrefixLookupRequest
) -> Awaitable[PrefixLookupResponse]:
    """For each prefix the rows of the keys that begin with it."""

    def ask(asked: Any) -> Awaitable[PrefixLookedUpBucket]:
        keys = [bytes(each) for each in asked.keys]
        place = {"bucket_id": asked.bucket_id, "partition_id": asked.partition_id}
        work = _reading(
            node, keys, lambda state: tuple(map(tuple, state.prefix_lookup(keys))), quick=False
        )
        return _answered(
            node, call, request.table_id, asked, work,
            lambda v: PrefixLookedUpBucket(value_lists=v, **place),
            lambda e: PrefixLookedUpBucket(**place, **refusal(e)),
        )  # fmt: skip

    return _gathered([ask(each) for each in request.buckets_req], _prefix_response)


Work = Callable[[Tablet], Awaitable[Any]]


def _reading(
    node: Node, keys: Sequence[bytes], read: Callable[[Any], Any], *, quick: bool = True
) -> Work:
    async def work(tablet: Tablet) -> Any:
        state = await node.open_state(tablet)
        if quick and len(keys) <= _INLINE_KEYS_MAX:
            return read(state)
        return await node.in_storage(read, state)

    return work


def _inserting(node: Node, keys: Sequence[bytes], order: PutOrder) -> Work:
    async def work(tablet: Tablet) -> Any:
        return await node.change_rows(
            tablet,
            lambda state, now_ms: tuple(state.lookup_or_insert(keys, order, now_ms=now_ms)),
        )

    return work


def _answered(
    node: Node,
    call: Call,
    table_id: int,
    asked: Any,
    work: Work,
    answer: Callable[[Any], T],
    refused: Callable[[BaseException], T],
) -> Awaitable[T]:
    try:
        tablet = keyed_tablet(node, table_id, asked.partition_id, asked.bucket_id)
        _check_version(tablet, call.version)
    except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
        return _ready(refused(error))
    ticket = tablet.turn.enter()

    async def ask() -> T:
        try:
            async with ticket:
                tablet.check_exists()
                return answer(await work(tablet))
        except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
            return refused(error)

    return ask()


async def _gathered(asked: Sequence[Awaitable[T]], response: Callable[[Sequence[T]], Any]) -> Any:
    return response(await asyncio.gather(*asked))


async def _ready(answer: T) -> T:
    return answer


def _lookup_response(buckets: Sequence[LookedUpBucket]) -> LookupResponse:
    return LookupResponse(buckets_resp=tuple(buckets))


def _prefix_response(buckets: Sequence[PrefixLookedUpBucket]) -> PrefixLookupResponse:
    return PrefixLookupResponse(buckets_resp=tuple(buckets))


def _tell(answer: Any, error: BaseException) -> None:
    for name, value in refusal(error).items():
        setattr(answer, name, value)


HANDLERS = (
    laid_out(ApiKey.PUT_KV, put_kv, request=PUT_KV_REQUEST),
    laid_out(ApiKey.LOOKUP, lookup, request=LOOKUP_REQUEST, response=LOOKUP_RESPONSE),
    laid_out(
        ApiKey.PREFIX_LOOKUP,
        prefix_lookup,
        request=PREFIX_LOOKUP_REQUEST,
        response=PREFIX_LOOKUP_RESPONSE,
    ),
)
