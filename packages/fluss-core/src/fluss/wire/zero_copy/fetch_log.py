"""The answer to FETCH_LOG: log batches, or their segments in the remote store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from fluss.errors import ProtocolError
from fluss.wire.byte_buffers import Buffer
from fluss.wire.field_codecs import INT32, INT64, LARGE_BYTES, STRING
from fluss.wire.message_layout import Layout, Nested, NestedList
from fluss.wire.protobuf_fields import WireType, read_tag, read_varint, skip_value


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegment:
    """A log segment that has moved to the remote store."""

    remote_log_segment_id: Annotated[str, 1, STRING]
    remote_log_start_offset: Annotated[int, 2, INT64]
    remote_log_end_offset: Annotated[int, 3, INT64]
    segment_size_in_bytes: Annotated[int, 4, INT32]
    max_timestamp: Annotated[int | None, 5, INT64] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogFetchInfo:
    """The segments to read instead, for an offset whose records are in the remote store."""

    remote_log_tablet_dir: Annotated[str, 1, STRING]
    partition_name: Annotated[str | None, 2, STRING] = None
    remote_log_segments: Annotated[
        tuple[RemoteLogSegment, ...], 3, NestedList(RemoteLogSegment)
    ] = ()
    first_start_pos: Annotated[int | None, 4, INT32] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketAnswer:
    """The fields with which the answer for every bucket begins."""

    partition_id: Annotated[int | None, 1, INT64] = None
    bucket_id: Annotated[int, 2, INT32]
    error_code: Annotated[int | None, 3, INT32] = None
    error_message: Annotated[str | None, 4, STRING] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedBucket(BucketAnswer):
    """The answer for one bucket."""

    high_watermark: Annotated[int | None, 5, INT64] = None
    log_start_offset: Annotated[int | None, 6, INT64] = None
    remote_log_fetch_info: Annotated[RemoteLogFetchInfo | None, 7, Nested(RemoteLogFetchInfo)] = (
        None
    )
    records: Annotated[tuple[Buffer, ...], 8, LARGE_BYTES] = ()
    filtered_end_offset: Annotated[int | None, 9, INT64] = None
    min_retain_offset: Annotated[int | None, 10, INT64] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedTable:
    """The answers for the buckets of one table."""

    table_id: Annotated[int, 1, INT64]
    buckets_resp: Annotated[tuple[FetchedBucket, ...], 2, NestedList(FetchedBucket)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLogResponse:
    """The answer to FETCH_LOG."""

    tables_resp: Annotated[tuple[FetchedTable, ...], 1, NestedList(FetchedTable)] = ()


FETCH_LOG_RESPONSE = Layout(FetchLogResponse)

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
