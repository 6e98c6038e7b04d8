"""LOOKUP and PREFIX_LOOKUP as `engine.lookups` sends them: keys and answers by bucket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fluss.errors import FlussError, ProtocolError, error_from_code
from fluss.model.paths import TableBucket
from fluss.wire.api import ApiKey
from fluss.wire.buffers import Buffer
from fluss.wire.envelope.lookup import (
    LOOKUP_REQUEST,
    LOOKUP_RESPONSE,
    PREFIX_LOOKUP_REQUEST,
    PREFIX_LOOKUP_RESPONSE,
    LookedUpBucket,
    LookupBucket,
    LookupRequest,
    PrefixLookedUpBucket,
    PrefixLookupBucket,
    PrefixLookupRequest,
)

ACKS_ALL = -1

Keys = Mapping[TableBucket, tuple[bytes, ...]]


class Way(NamedTuple):
    """What questions of one request have in common."""

    server_id: int
    table_id: int
    api: ApiKey
    insert_if_not_exists: bool


def write_lookup(way: Way, keys: Keys, *, timeout_ms: int) -> Sequence[Buffer]:
    """The body of a LOOKUP; the time is for inserting what is missing."""
    inserts = way.insert_if_not_exists
    return LOOKUP_REQUEST.write(
        LookupRequest(
            table_id=way.table_id,
            buckets_req=tuple(
                LookupBucket(
                    partition_id=bucket.partition_id, bucket_id=bucket.bucket_id, keys=asked
                )
                for bucket, asked in keys.items()
            ),
            insert_if_not_exists=True if inserts else None,
            acks=ACKS_ALL if inserts else None,
            timeout_ms=timeout_ms if inserts else None,
        )
    )


def read_lookup(
    way: Way, body: memoryview
) -> dict[TableBucket, Sequence[Buffer | None] | FlussError]:
    """One value per key, None for a key that is not there; or why a bucket has no answer."""
    return {
        _bucket_of(way, each): each.values if each.error_code is None else _error_of(way, each)
        for each in LOOKUP_RESPONSE.read(body).buckets_resp
    }


def write_prefix_lookup(way: Way, keys: Keys) -> Sequence[Buffer]:
    """The body of a PREFIX_LOOKUP."""
    return PREFIX_LOOKUP_REQUEST.write(
        PrefixLookupRequest(
            table_id=way.table_id,
            buckets_req=tuple(
                PrefixLookupBucket(
                    partition_id=bucket.partition_id, bucket_id=bucket.bucket_id, keys=asked
                )
                for bucket, asked in keys.items()
            ),
        )
    )


def read_prefix_lookup(
    way: Way, body: memoryview
) -> dict[TableBucket, Sequence[Sequence[Buffer]] | FlussError]:
    """All values per beginning of keys; or why a bucket has no answer."""
    return {
        _bucket_of(way, each): each.value_lists if each.error_code is None else _error_of(way, each)
        for each in PREFIX_LOOKUP_RESPONSE.read(body).buckets_resp
    }


def unanswered(way: Way, bucket: TableBucket, keys: int) -> ProtocolError:
    """An answer that says nothing of a bucket, or not of all its keys."""
    why = f"it does not answer the {keys} keys of bucket {bucket.bucket_id}"
    return ProtocolError(
        f"The answer to {way.api.name} cannot be used: {why}.",
        what=way.api.name,
        at=0,
        why=why,
        bucket=bucket.bucket_id,
    )


def _bucket_of(way: Way, answer: LookedUpBucket | PrefixLookedUpBucket) -> TableBucket:
    return TableBucket.with_partition(way.table_id, answer.partition_id, answer.bucket_id)


def _error_of(way: Way, answer: LookedUpBucket | PrefixLookedUpBucket) -> FlussError:
    return error_from_code(
        answer.error_code or 0,
        answer.error_message,
        table_id=way.table_id,
        bucket=answer.bucket_id,
    )
