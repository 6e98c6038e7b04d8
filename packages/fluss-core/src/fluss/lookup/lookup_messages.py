"""LOOKUP and PREFIX_LOOKUP as bytes: requests of keys by bucket, and answers of single keys.

`lookup.lookup_queue` for single keys and `lookup.bulk_requests` for runs of keys send the same
requests. The latter reads its answers itself, without an object per key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from fluss.errors import FlussError, ProtocolError, error_from_code, unusable_answer
from fluss.model.paths import TableBucket
from fluss.wire.api import ApiKey
from fluss.wire.byte_buffers import Buffer
from fluss.wire.zero_copy import lookup_values as wire

ACKS_ALL = -1

# A bucket, and the partition whose rows are asked for where it is one of history; see
# `model.tables.auto_partition_names`. A request may have a bucket several times, told apart by it.
AskedBucket: TypeAlias = tuple[TableBucket, str | None]
Keys: TypeAlias = Mapping[AskedBucket, tuple[bytes, ...]]


class LookupRoute(NamedTuple):
    """What the lookups of one request have in common."""

    server_id: int
    table_id: int
    api: ApiKey
    insert_if_not_exists: bool = False


def write_keys(
    route: LookupRoute, keys: Keys, *, counts: Mapping[AskedBucket, int], timeout_ms: int
) -> list[Buffer]:
    """The body of a request for keys or prefixes of keys.

    Args:
        route: What they have in common.
        keys: The keys by bucket.
        counts: How many buckets the table or partition of each has, by which keys were placed.
        timeout_ms: The timeout of inserts.
    """
    is_prefix = route.api is ApiKey.PREFIX_LOOKUP
    if is_prefix:
        prefixes = tuple(
            wire.PrefixLookupBucket(
                partition_id=bucket.partition_id,
                bucket_id=bucket.bucket_id,
                keys=asked,
                routing_bucket_count=counts[bucket, original],
            )
            for (bucket, original), asked in keys.items()
        )
        request = wire.PrefixLookupRequest(table_id=route.table_id, buckets_req=prefixes)
        return wire.PREFIX_LOOKUP_REQUEST.write(request)
    buckets = tuple(
        wire.LookupBucket(
            partition_id=bucket.partition_id,
            bucket_id=bucket.bucket_id,
            keys=asked,
            original_partition_name=original,
            routing_bucket_count=counts[bucket, original],
        )
        for (bucket, original), asked in keys.items()
    )
    inserts = route.insert_if_not_exists
    return wire.LOOKUP_REQUEST.write(
        wire.LookupRequest(
            table_id=route.table_id,
            buckets_req=buckets,
            insert_if_not_exists=True if inserts else None,
            acks=ACKS_ALL if inserts else None,
            timeout_ms=timeout_ms if inserts else None,
        )
    )


def read_values(
    route: LookupRoute, body: memoryview
) -> dict[AskedBucket, Sequence[Any] | FlussError]:
    """The values of each bucket, or its error.

    A lookup has one value per key, None where the key does not exist; a prefix lookup has all
    values of each prefix.
    """
    if route.api is ApiKey.PREFIX_LOOKUP:
        return {
            (_bucket_of(route, each), None): each.value_lists
            if each.error_code is None
            else _error_of(route, each)
            for each in wire.PREFIX_LOOKUP_RESPONSE.read(body).buckets_resp
        }
    return {
        (_bucket_of(route, each), each.original_partition_name): each.values
        if each.error_code is None
        else _error_of(route, each)
        for each in wire.LOOKUP_RESPONSE.read(body).buckets_resp
    }


def unanswered(route: LookupRoute, bucket: TableBucket, keys: int) -> ProtocolError:
    """The error for an answer that lacks a bucket, or some of its keys."""
    why = f"it does not answer the {keys} keys of bucket {bucket.bucket_id}"
    return unusable_answer(route.api.name, why, bucket=bucket.bucket_id)


def _bucket_of(
    route: LookupRoute, answer: wire.LookedUpBucket | wire.PrefixLookedUpBucket
) -> TableBucket:
    return TableBucket.with_partition(route.table_id, answer.partition_id, answer.bucket_id)


def _error_of(
    route: LookupRoute, answer: wire.LookedUpBucket | wire.PrefixLookedUpBucket
) -> FlussError:
    return error_from_code(
        answer.error_code or 0,
        answer.error_message,
        table_id=route.table_id,
        bucket=answer.bucket_id,
    )
