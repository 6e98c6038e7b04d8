"""PUT_KV, LOOKUP and PREFIX_LOOKUP: rows by their keys.

`fluss_server.kv` applies a put. This file takes the requests to the buckets, each under the
bucket's lock and on a storage thread; a few lookups run inline. Lookups that insert nothing share
the lock with each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from fluss.error_codes import ErrorCode
from fluss.model.tables.table_options import DataLakeFormat
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss.wire.zero_copy.lookup_values import (
    LOOKUP_REQUEST,
    LOOKUP_RESPONSE,
    PREFIX_LOOKUP_REQUEST,
    PREFIX_LOOKUP_RESPONSE,
    LookedUpBucket,
    LookupRequest,
    LookupResponse,
    PrefixLookedUpBucket,
    PrefixLookupRequest,
    PrefixLookupResponse,
)
from fluss.wire.zero_copy.record_batches import PUT_KV_REQUEST, PutKvRequest, WrittenBucket
from fluss_server.handlers.bucket_answers import check_not_historical, error_fields, set_error
from fluss_server.handlers.serve_produce import check_acks
from fluss_server.put_request import PutOptions
from fluss_server.request_handler import Call, layout_handler
from fluss_server.server_errors import request_error
from fluss_server.server_node import Node
from fluss_server.tablets import Tablet

# Up to this many lookups cost less than a hop to a thread and back.
_INLINE_KEYS_MAX: Final = 16

T = TypeVar("T")


def keyed_tablet(
    node: Node,
    table_id: int,
    partition_id: int | None,
    bucket_id: int,
    *,
    bucket_count: int | None,
) -> Tablet:
    """Return a bucket of a primary-key table, for a request that was routed by a bucket count.

    Raises:
        FlussError: The bucket does not exist, or its table has no primary key.
    """
    tablet = node.tablets.find_routed(table_id, partition_id, bucket_id, bucket_count=bucket_count)
    if not tablet.table.descriptor.has_primary_key:
        raise request_error(
            ErrorCode.NON_PRIMARY_KEY_TABLE_EXCEPTION,
            f"the primary key table not exists for {tablet.bucket}",
        )
    return tablet


def _requested_tablet(node: Node, table_id: int, requested: Any) -> Tablet:
    return keyed_tablet(
        node,
        table_id,
        requested.partition_id,
        requested.bucket_id,
        bucket_count=requested.routing_bucket_count,
    )


def _check_version(tablet: Tablet, version: int) -> None:
    """Refuse clients that encode the keys of this table in an older format."""
    info = tablet.table.info
    lake = info.options.datalake_format
    has_own_keys = lake in {DataLakeFormat.PAIMON, DataLakeFormat.ICEBERG}
    if (
        version == 0
        and has_own_keys
        and info.options.kv_format_version == 2  # noqa: PLR2004 - the format that introduced it
        and info.bucket_keys != info.physical_primary_keys
    ):
        raise request_error(
            ErrorCode.UNSUPPORTED_VERSION,
            f"The table {info.table_path} encodes keys by kv format version 2, which the client does "
            "not know.",
        )


# --- PUT_KV ---------------------------------------------------------------------------------------


def put_kv(node: Node, call: Call, request: PutKvRequest) -> Awaitable[pb.PutKvResponse]:
    """Apply the batches; return a response for each bucket, in the order of the request."""
    check_acks(request.acks)
    options = PutOptions(
        target_columns=tuple(request.target_columns),
        agg_mode=request.agg_mode or 0,
        api_version=call.version,
    )
    # The tickets are reserved now; the coroutines run later.
    return _all_puts([_put(node, request.table_id, each, options) for each in request.buckets_req])


async def _all_puts(puts: Sequence[Awaitable[pb.PbPutKvRespForBucket]]) -> pb.PutKvResponse:
    return pb.PutKvResponse(buckets_resp=await asyncio.gather(*puts))


def _put(
    node: Node, table_id: int, requested: WrittenBucket, options: PutOptions
) -> Awaitable[pb.PbPutKvRespForBucket]:
    answer = pb.PbPutKvRespForBucket(
        bucket_id=requested.bucket_id,
        partition_id=requested.partition_id,
        original_partition_name=requested.original_partition_name,
    )
    try:
        check_not_historical(requested)
        tablet = _requested_tablet(node, table_id, requested)
        _check_version(tablet, options.api_version)
    except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
        set_error(answer, error)
        return _ready(answer)
    ticket = tablet.lock.reserve()

    async def put() -> pb.PbPutKvRespForBucket:
        try:
            async with ticket:
                tablet.check_exists()
                records = (
                    requested.records[0]
                    if len(requested.records) == 1
                    else b"".join(requested.records)
                )
                if len(records):
                    answer.log_end_offset = await node.change_rows(
                        tablet,
                        lambda state, now_ms: state.put(records, options, now_ms=now_ms),
                    )
                else:
                    answer.log_end_offset = tablet.log.high_watermark
        except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
            answer.ClearField("log_end_offset")
            set_error(answer, error)
        return answer

    return put()


# --- lookups --------------------------------------------------------------------------------------


def lookup(node: Node, call: Call, request: LookupRequest) -> Awaitable[LookupResponse]:
    """Return the rows of keys, in the order of the keys."""
    options = PutOptions(api_version=call.version)

    is_reading = not request.insert_if_not_exists

    def answer_bucket(requested: Any) -> Awaitable[LookedUpBucket]:
        keys = requested.keys
        name = requested.original_partition_name
        ids = {
            "bucket_id": requested.bucket_id,
            "partition_id": requested.partition_id,
            "original_partition_name": name,
        }
        if name is not None:
            work = _not_historical(requested)
        elif not is_reading:
            check_acks(-1 if request.acks is None else request.acks)
            work = _inserting(node, keys, options)
        else:
            work = _reading(node, keys, lambda state: tuple(state.lookup(keys)))
        return _answered(
            node, call, request.table_id, requested, work, lambda v: LookedUpBucket(values=v, **ids),
            lambda e: LookedUpBucket(**ids, **error_fields(e)),
            is_reading=is_reading,
        )  # fmt: skip

    return _gathered([answer_bucket(each) for each in request.buckets_req], _lookup_response)


def prefix_lookup(
    node: Node, call: Call, request: PrefixLookupRequest
) -> Awaitable[PrefixLookupResponse]:
    """Return for each prefix the rows whose keys begin with it."""

    def answer_bucket(requested: Any) -> Awaitable[PrefixLookedUpBucket]:
        keys = requested.keys
        ids = {"bucket_id": requested.bucket_id, "partition_id": requested.partition_id}
        work = _reading(
            node, keys, lambda state: tuple(map(tuple, state.prefix_lookup(keys))), may_inline=False
        )
        return _answered(
            node, call, request.table_id, requested, work,
            lambda v: PrefixLookedUpBucket(value_lists=v, **ids),
            lambda e: PrefixLookedUpBucket(**ids, **error_fields(e)),
            is_reading=True,
        )  # fmt: skip

    return _gathered([answer_bucket(each) for each in request.buckets_req], _prefix_response)


Work = Callable[[Tablet], Awaitable[Any]]


def _not_historical(requested: Any) -> Work:
    async def work(_: Tablet) -> Any:
        check_not_historical(requested)

    return work


def _reading(
    node: Node, keys: Sequence[bytes], read: Callable[[Any], Any], *, may_inline: bool = True
) -> Work:
    async def work(tablet: Tablet) -> Any:
        state = await node.open_state(tablet)
        if may_inline and len(keys) <= _INLINE_KEYS_MAX:
            return read(state)
        return await node.in_storage(read, state)

    return work


def _inserting(node: Node, keys: Sequence[bytes], options: PutOptions) -> Work:
    async def work(tablet: Tablet) -> Any:
        return await node.change_rows(
            tablet,
            lambda state, now_ms: tuple(state.lookup_or_insert(keys, options, now_ms=now_ms)),
        )

    return work


def _answered(
    node: Node,
    call: Call,
    table_id: int,
    requested: Any,
    work: Work,
    answer: Callable[[Any], T],
    refused: Callable[[BaseException], T],
    *,
    is_reading: bool,
) -> Awaitable[T]:
    try:
        tablet = _requested_tablet(node, table_id, requested)
        _check_version(tablet, call.version)
    except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
        return _ready(refused(error))
    # RocksDB releases the GIL, so two large requests for one bucket use both storage threads:
    # 20 000 lookups in one call take 32 ms instead of 41. The first one opens the rows, alone.
    ticket = tablet.lock.reserve(is_shared=is_reading and tablet.state is not None)

    async def answer_bucket() -> T:
        try:
            async with ticket:
                tablet.check_exists()
                return answer(await work(tablet))
        except Exception as error:  # noqa: BLE001 - one bucket's trouble is not the others'
            return refused(error)

    return answer_bucket()


async def _gathered(answers: Sequence[Awaitable[T]], response: Callable[[Sequence[T]], Any]) -> Any:
    return response(await asyncio.gather(*answers))


async def _ready(answer: T) -> T:
    return answer


def _lookup_response(buckets: Sequence[LookedUpBucket]) -> LookupResponse:
    return LookupResponse(buckets_resp=tuple(buckets))


def _prefix_response(buckets: Sequence[PrefixLookedUpBucket]) -> PrefixLookupResponse:
    return PrefixLookupResponse(buckets_resp=tuple(buckets))


HANDLERS = (
    layout_handler(ApiKey.PUT_KV, put_kv, request=PUT_KV_REQUEST),
    layout_handler(ApiKey.LOOKUP, lookup, request=LOOKUP_REQUEST, response=LOOKUP_RESPONSE),
    layout_handler(
        ApiKey.PREFIX_LOOKUP,
        prefix_lookup,
        request=PREFIX_LOOKUP_REQUEST,
        response=PREFIX_LOOKUP_RESPONSE,
    ),
)
