"""The answer to FETCH_LOG: log batches, or their segments in the remote store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fluss.errors import ProtocolError
from fluss.wire.byte_buffers import Buffer
from fluss.wire.field_codecs import INT32, INT64, LARGE_BYTES, STRING
from fluss.wire.message_layout import Layout, Nested, NestedList
from fluss.wire.protobuf_fields import WireType, read_tag, read_varint, skip_value


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegment:
    """A log segment that has moved to the remote store."""

    remote_log_segment_id: str
    remote_log_start_offset: int
    remote_log_end_offset: int
    segment_size_in_bytes: int
    max_timestamp: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogFetchInfo:
    """The segments to read instead, for an offset whose records are in the remote store."""

    remote_log_tablet_dir: str
    partition_name: str | None = None
    remote_log_segments: tuple[RemoteLogSegment, ...] = ()
    first_start_pos: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedBucket:
    """The answer for one bucket."""

    partition_id: int | None = None
    bucket_id: int
    error_code: int | None = None
    error_message: str | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    remote_log_fetch_info: RemoteLogFetchInfo | None = None
    records: tuple[Buffer, ...] = ()
    filtered_end_offset: int | None = None
    min_retain_offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedTable:
    """The answers for the buckets of one table."""

    table_id: int
    buckets_resp: tuple[FetchedBucket, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLogResponse:
    """The answer to FETCH_LOG."""

    tables_resp: tuple[FetchedTable, ...] = ()


_REMOTE_LOG_SEGMENT = Layout(
    RemoteLogSegment,
    {
        1: ("remote_log_segment_id", STRING),
        2: ("remote_log_start_offset", INT64),
        3: ("remote_log_end_offset", INT64),
        4: ("segment_size_in_bytes", INT32),
        5: ("max_timestamp", INT64),
    },
)
_REMOTE_LOG_FETCH_INFO = Layout(
    RemoteLogFetchInfo,
    {
        1: ("remote_log_tablet_dir", STRING),
        2: ("partition_name", STRING),
        3: ("remote_log_segments", NestedList(_REMOTE_LOG_SEGMENT)),
        4: ("first_start_pos", INT32),
    },
)
_FETCHED_BUCKET = Layout(
    FetchedBucket,
    {
        1: ("partition_id", INT64),
        2: ("bucket_id", INT32),
        3: ("error_code", INT32),
        4: ("error_message", STRING),
        5: ("high_watermark", INT64),
        6: ("log_start_offset", INT64),
        7: ("remote_log_fetch_info", Nested(_REMOTE_LOG_FETCH_INFO)),
        8: ("records", LARGE_BYTES),
        9: ("filtered_end_offset", INT64),
        10: ("min_retain_offset", INT64),
    },
)
_FETCHED_TABLE = Layout(
    FetchedTable,
    {1: ("table_id", INT64), 2: ("buckets_resp", NestedList(_FETCHED_BUCKET))},
)
FETCH_LOG_RESPONSE = Layout(FetchLogResponse, {1: ("tables_resp", NestedList(_FETCHED_TABLE))})

# These tags mean the same in every message: tables, their buckets, and the records of these.
_AROUND_RECORDS: Final = frozenset(number << 3 | WireType.LENGTH for number in (1, 2))
_RECORDS: Final = 8 << 3 | WireType.LENGTH


def find_first_records(head: memoryview) -> int:
    """Where the first records of an answer begin; 0 where the received bytes do not show it.

    Only the beginning of the answer is needed. Damage is not reported: reading the whole answer
    does.
    """
    at, end = 0, len(head)
    try:
        while at < end:
            tag, at = read_tag(head, at, end)
            if tag in _AROUND_RECORDS:
                _, at = read_varint(head, at, end)
            elif tag == _RECORDS:
                size, at = read_varint(head, at, end)
                if size:
                    return at
            else:
                at = skip_value(head, tag, at, end)
    except ProtocolError:
        pass
    return 0
