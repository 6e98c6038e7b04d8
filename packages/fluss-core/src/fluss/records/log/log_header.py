"""The header of a log record batch: one struct per magic byte, read and written.

All numbers are little endian (Java: `LogRecordBatchFormat`).

=====================  ====  =====================================================================
field                  size  what
=====================  ====  =====================================================================
base offset               8  of the first record; 0 until the leader has set it
length                    4  of everything after this field
magic                     1  which of the layouts below
commit timestamp          8  milliseconds; 0 until the leader has set it
leader epoch              4  magic 2, and what 0.9.1 calls magic 1
CRC-32C                   4  over everything after it
schema id                 2
attributes                1  bit 0: append-only, there are no change types
last offset delta         4  record count - 1, or 0 where there are no records
writer id                 8  -1 where the writer is not idempotent
batch sequence            4  -1 where the writer is not idempotent
record count              4
statistics length         4  magic 1 and 2 of the 1.0 line; the statistics follow the header
=====================  ====  =====================================================================

A magic byte of 1 means "with statistics" to servers of the 1.0 line and "with leader epoch" to
0.9.1; only the caller knows which of them wrote the bytes. `records.log.log_batch` computes the
checksum and compares the header with the bytes around it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Literal

from fluss.records.arrow.received_bytes import ByteSource
from fluss.records.corrupt import corrupt_batch

Magic1 = Literal["statistics", "leader_epoch"]

NO_WRITER_ID: Final = -1
NO_BATCH_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1
APPEND_ONLY: Final = 1  # the only attribute there is
LENGTH_END: Final = 12  # where the bytes begin that the length counts
MAGIC_AT: Final = 12
HEADER_BYTES_MIN: Final = 48

_LENGTH = struct.Struct("<i")
_LENGTH_AT: Final = 8
_BASE_OFFSET = struct.Struct("<q")
_BASE_OFFSET_AT: Final = 0
_TIMESTAMP = struct.Struct("<q")
_TIMESTAMP_AT: Final = 13
_LEADER_EPOCH = struct.Struct("<i")
_LEADER_EPOCH_AT: Final = 21
_CRC = struct.Struct("<I")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderFormat:
    """Which of the optional fields a header has, and where its checksum stands."""

    packed: struct.Struct
    values_of: Callable[[LogBatchHeader], tuple[int, ...]]
    crc_at: int
    has_leader_epoch: bool
    has_statistics: bool

    @property
    def size(self) -> int:
        """The header's length."""
        return self.packed.size

    @property
    def checked_from(self) -> int:
        """Where the bytes begin that the checksum covers: after it, at the schema id."""
        return self.crc_at + _CRC.size


# The fields in their order, and how each is packed.
_FIELDS: Final = {
    "base_offset": "q",
    "length": "i",
    "magic": "b",
    "commit_timestamp": "q",
    "leader_epoch": "i",
    "crc": "I",
    "schema_id": "h",
    "attributes": "b",
    "last_offset_delta": "i",
    "writer_id": "q",
    "batch_sequence": "i",
    "record_count": "i",
    "statistics_length": "i",
}


def _without(*absent: str) -> HeaderFormat:
    fields = tuple(each for each in _FIELDS if each not in absent)
    before_crc = "<" + "".join(_FIELDS[each] for each in fields[: fields.index("crc")])
    return HeaderFormat(
        packed=struct.Struct("<" + "".join(_FIELDS[each] for each in fields)),
        values_of=attrgetter(*fields),
        crc_at=struct.calcsize(before_crc),
        has_leader_epoch="leader_epoch" in fields,
        has_statistics="statistics_length" in fields,
    )


_MAGIC_0 = _without("leader_epoch", "statistics_length")
_WITH_EPOCH = _without("statistics_length")
_WITH_STATISTICS = _without("leader_epoch")
_MAGIC_2 = _without()

_FORMATS: Final[dict[Magic1, dict[int, HeaderFormat]]] = {
    "statistics": {0: _MAGIC_0, 1: _WITH_STATISTICS, 2: _MAGIC_2},
    "leader_epoch": {0: _MAGIC_0, 1: _WITH_EPOCH},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBatchHeader:
    """The fields of one header; `length` is that of the field, see `size_bytes`."""

    base_offset: int = 0
    length: int = 0
    magic: int = 0
    commit_timestamp: int = 0
    leader_epoch: int = NO_LEADER_EPOCH
    crc: int = 0
    schema_id: int
    attributes: int = 0
    last_offset_delta: int
    writer_id: int = NO_WRITER_ID
    batch_sequence: int = NO_BATCH_SEQUENCE
    record_count: int
    statistics_length: int = 0
    format: HeaderFormat

    @property
    def size_bytes(self) -> int:
        """The length of the whole batch, header included."""
        return self.length + LENGTH_END

    @property
    def next_offset(self) -> int:
        """One past the last offset; an empty batch takes one offset, too."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def is_append_only(self) -> bool:
        """Whether the batch has no change types, because every record is an append."""
        return bool(self.attributes & APPEND_ONLY)

    @property
    def records_start(self) -> int:
        """Where the records begin, from the start of the batch: after header and statistics."""
        return self.format.size + self.statistics_length


def format_of(magic: int) -> HeaderFormat:
    """Return the format that the 1.0 line writes under a magic byte of 0, 1 or 2."""
    return _FORMATS["statistics"][magic]


def read_length(data: memoryview, at: int) -> int:
    """Return the length field of the batch at `at`; at least LENGTH_END bytes must be there."""
    length: int = _LENGTH.unpack_from(data, at + _LENGTH_AT)[0]
    return length


def read_log_header(
    data: memoryview, at: int = 0, *, magic_1: Magic1 = "statistics"
) -> LogBatchHeader:
    """Read the header of the batch at `at`.

    Raises:
        CorruptBatchError: The magic byte is unknown, or there are fewer bytes than a header has.
    """
    what = "log batch header"
    if len(data) - at < HEADER_BYTES_MIN:
        raise corrupt_batch(what, at=at, why=f"only {max(len(data) - at, 0)} bytes are there")
    magic = data[at + MAGIC_AT]
    shape = _FORMATS[magic_1].get(magic)
    if shape is None:
        raise corrupt_batch(what, at=at, why=f"its magic byte {magic} is unknown")
    if len(data) - at < shape.size:
        raise corrupt_batch(what, at=at, why=f"only {len(data) - at} bytes are there")
    base_offset, length, magic, timestamp, *rest = shape.packed.unpack_from(data, at)
    leader_epoch = rest.pop(0) if shape.has_leader_epoch else NO_LEADER_EPOCH
    statistics_length = rest.pop() if shape.has_statistics else 0
    crc, schema_id, attributes, delta, writer_id, sequence, record_count = rest
    return LogBatchHeader(
        base_offset=base_offset,
        length=length,
        magic=magic,
        commit_timestamp=timestamp,
        leader_epoch=leader_epoch,
        crc=crc,
        schema_id=schema_id,
        attributes=attributes,
        last_offset_delta=delta,
        writer_id=writer_id,
        batch_sequence=sequence,
        record_count=record_count,
        statistics_length=statistics_length,
        format=shape,
    )


def write_log_header(header: LogBatchHeader) -> bytearray:
    """Return the header's bytes, in its own format and with its own length and checksum."""
    shape = header.format
    written = bytearray(shape.size)
    shape.packed.pack_into(written, 0, *shape.values_of(header))
    return written


def patch_crc(header: ByteSource, shape: HeaderFormat, crc: int) -> None:
    """Set the checksum of a written header in place."""
    _CRC.pack_into(header, shape.crc_at, crc)


def stamp_log_batch(
    batch: ByteSource,
    at: int = 0,
    *,
    base_offset: int,
    commit_timestamp: int,
    leader_epoch: int | None = None,
) -> None:
    """Set the leader's fields in place; the checksum does not cover them.

    Args:
        batch: Writable bytes.
        at: Where the batch begins in them.
        base_offset: The offset of the first record.
        commit_timestamp: The leader's clock, in milliseconds.
        leader_epoch: The leader's epoch, for a batch whose format has one (magic 2).
    """
    _BASE_OFFSET.pack_into(batch, at + _BASE_OFFSET_AT, base_offset)
    _TIMESTAMP.pack_into(batch, at + _TIMESTAMP_AT, commit_timestamp)
    if leader_epoch is not None:
        _LEADER_EPOCH.pack_into(batch, at + _LEADER_EPOCH_AT, leader_epoch)
