"""LOOKUP and PREFIX_LOOKUP: keys, and the values under them."""

from __future__ import annotations

from dataclasses import dataclass

from fluss.wire.byte_buffers import Buffer
from fluss.wire.field_codecs import (
    BOOL,
    BYTES_LIST,
    INT32,
    INT64,
    STRING,
    VALUE_LISTS,
    VALUE_RANGES,
    VALUES,
)
from fluss.wire.message_layout import Layout, NestedList


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupBucket:
    """Keys to look up in one bucket."""

    partition_id: int | None = None
    bucket_id: int
    keys: tuple[Buffer, ...] = ()
    original_partition_name: str | None = None
    routing_bucket_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRequest:
    """Keys to look up in the buckets of one table."""

    table_id: int
    buckets_req: tuple[LookupBucket, ...] = ()
    insert_if_not_exists: bool | None = None
    acks: int | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUpBucket:
    """The values of the keys of one bucket, in the order of the request; None for a missing key."""

    partition_id: int | None = None
    bucket_id: int
    error_code: int | None = None
    error_message: str | None = None
    values: tuple[Buffer | None, ...] = ()
    original_partition_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupResponse:
    """The answer to LOOKUP."""

    buckets_resp: tuple[LookedUpBucket, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUpRanges:
    """The same as `LookedUpBucket`, for many keys: only where the values are in the answer.

    Attributes:
        ranges: Start and stop of each value, one after the other; -1 and -1 for a missing key.
    """

    partition_id: int | None = None
    bucket_id: int
    error_code: int | None = None
    error_message: str | None = None
    ranges: tuple[int, ...] = ()
    original_partition_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRangesResponse:
    """The answer to LOOKUP, for many keys."""

    buckets_resp: tuple[LookedUpRanges, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixLookupBucket:
    """Key prefixes to look up in one bucket."""

    partition_id: int | None = None
    bucket_id: int
    keys: tuple[Buffer, ...] = ()
    routing_bucket_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixLookupRequest:
    """Key prefixes to look up in the buckets of one table."""

    table_id: int
    buckets_req: tuple[PrefixLookupBucket, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixLookedUpBucket:
    """All values of each key prefix of one bucket, in the order of the request."""

    partition_id: int | None = None
    bucket_id: int
    error_code: int | None = None
    error_message: str | None = None
    value_lists: tuple[tuple[Buffer, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixLookupResponse:
    """The answer to PREFIX_LOOKUP."""

    buckets_resp: tuple[PrefixLookedUpBucket, ...] = ()


_LOOKUP_BUCKET = Layout(
    LookupBucket,
    {
        1: ("partition_id", INT64),
        2: ("bucket_id", INT32),
        3: ("keys", BYTES_LIST),
        4: ("original_partition_name", STRING),
        5: ("routing_bucket_count", INT32),
    },
)
LOOKUP_REQUEST = Layout(
    LookupRequest,
    {
        1: ("table_id", INT64),
        2: ("buckets_req", NestedList(_LOOKUP_BUCKET)),
        3: ("insert_if_not_exists", BOOL),
        4: ("acks", INT32),
        5: ("timeout_ms", INT32),
    },
)
_LOOKED_UP_BUCKET = Layout(
    LookedUpBucket,
    {
        1: ("partition_id", INT64),
        2: ("bucket_id", INT32),
        3: ("error_code", INT32),
        4: ("error_message", STRING),
        5: ("values", VALUES),
        6: ("original_partition_name", STRING),
    },
)
LOOKUP_RESPONSE = Layout(LookupResponse, {1: ("buckets_resp", NestedList(_LOOKED_UP_BUCKET))})
_LOOKED_UP_RANGES = Layout(
    LookedUpRanges,
    {
        1: ("partition_id", INT64),
        2: ("bucket_id", INT32),
        3: ("error_code", INT32),
        4: ("error_message", STRING),
        5: ("ranges", VALUE_RANGES),
        6: ("original_partition_name", STRING),
    },
)
LOOKUP_RANGES_RESPONSE = Layout(
    LookupRangesResponse, {1: ("buckets_resp", NestedList(_LOOKED_UP_RANGES))}
)
_PREFIX_LOOKUP_BUCKET = Layout(
    PrefixLookupBucket,
    {
        1: ("partition_id", INT64),
        2: ("bucket_id", INT32),
        3: ("keys", BYTES_LIST),
        4: ("routing_bucket_count", INT32),
    },
)
PREFIX_LOOKUP_REQUEST = Layout(
    PrefixLookupRequest,
    {1: ("table_id", INT64), 2: ("buckets_req", NestedList(_PREFIX_LOOKUP_BUCKET))},
)
_PREFIX_LOOKED_UP_BUCKET = Layout(
    PrefixLookedUpBucket,
    {
        1: ("partition_id", INT64),
        2: ("bucket_id", INT32),
        3: ("error_code", INT32),
        4: ("error_message", STRING),
        5: ("value_lists", VALUE_LISTS),
    },
)
PREFIX_LOOKUP_RESPONSE = Layout(
    PrefixLookupResponse, {1: ("buckets_resp", NestedList(_PREFIX_LOOKED_UP_BUCKET))}
)
