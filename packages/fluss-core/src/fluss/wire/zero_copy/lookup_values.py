"""LOOKUP and PREFIX_LOOKUP: keys, and the values under them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fluss.wire.byte_buffers import Buffer
from fluss.wire.field_codecs import (
    BOOL,
    INT32,
    INT64,
    SHORT_BYTES_LIST,
    STRING,
    VALUE_LISTS,
    VALUE_RANGES,
    VALUES,
)
from fluss.wire.message_layout import Layout, NestedList
from fluss.wire.zero_copy.fetch_log import BucketAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupBucket:
    """Keys to look up in one bucket."""

    partition_id: Annotated[int | None, 1, INT64] = None
    bucket_id: Annotated[int, 2, INT32]
    keys: Annotated[tuple[bytes, ...], 3, SHORT_BYTES_LIST] = ()
    original_partition_name: Annotated[str | None, 4, STRING] = None
    routing_bucket_count: Annotated[int | None, 5, INT32] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRequest:
    """Keys to look up in the buckets of one table."""

    table_id: Annotated[int, 1, INT64]
    buckets_req: Annotated[tuple[LookupBucket, ...], 2, NestedList(LookupBucket)] = ()
    insert_if_not_exists: Annotated[bool | None, 3, BOOL] = None
    acks: Annotated[int | None, 4, INT32] = None
    timeout_ms: Annotated[int | None, 5, INT32] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUpBucket(BucketAnswer):
    """The values of the keys of one bucket, in the order of the request; None for a missing key."""

    values: Annotated[tuple[Buffer | None, ...], 5, VALUES] = ()
    original_partition_name: Annotated[str | None, 6, STRING] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupResponse:
    """The answer to LOOKUP."""

    buckets_resp: Annotated[tuple[LookedUpBucket, ...], 1, NestedList(LookedUpBucket)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUpRanges(BucketAnswer):
    """The same as `LookedUpBucket`, for many keys: only where the values are in the answer.

    Attributes:
        ranges: Start and stop of each value, one after the other; -1 and -1 for a missing key.
    """

    ranges: Annotated[tuple[int, ...], 5, VALUE_RANGES] = ()
    original_partition_name: Annotated[str | None, 6, STRING] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRangesResponse:
    """The answer to LOOKUP, for many keys."""

    buckets_resp: Annotated[tuple[LookedUpRanges, ...], 1, NestedList(LookedUpRanges)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixLookupBucket:
    """Key prefixes to look up in one bucket."""

    partition_id: Annotated[int | None, 1, INT64] = None
    bucket_id: Annotated[int, 2, INT32]
    keys: Annotated[tuple[bytes, ...], 3, SHORT_BYTES_LIST] = ()
    routing_bucket_count: Annotated[int | None, 4, INT32] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixLookupRequest:
    """Key prefixes to look up in the buckets of one table."""

    table_id: Annotated[int, 1, INT64]
    buckets_req: Annotated[tuple[PrefixLookupBucket, ...], 2, NestedList(PrefixLookupBucket)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixLookedUpBucket(BucketAnswer):
    """All values of each key prefix of one bucket, in the order of the request."""

    value_lists: Annotated[tuple[tuple[Buffer, ...], ...], 5, VALUE_LISTS] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixLookupResponse:
    """The answer to PREFIX_LOOKUP."""

    buckets_resp: Annotated[
        tuple[PrefixLookedUpBucket, ...], 1, NestedList(PrefixLookedUpBucket)
    ] = ()


LOOKUP_REQUEST = Layout(LookupRequest)
LOOKUP_RESPONSE = Layout(LookupResponse)
LOOKUP_RANGES_RESPONSE = Layout(LookupRangesResponse)
PREFIX_LOOKUP_REQUEST = Layout(PrefixLookupRequest)
PREFIX_LOOKUP_RESPONSE = Layout(PrefixLookupResponse)
