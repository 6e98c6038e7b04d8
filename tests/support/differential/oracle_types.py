"""The arguments and the answers of the oracle as plain values.

They are in a separate file so that golden cases can be described without Java.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

RowFormat = Literal["COMPACTED", "INDEXED", "ALIGNED"]
LogFormat = Literal["ARROW", "INDEXED", "COMPACTED"]
KvFormat = Literal["COMPACTED", "INDEXED"]
Lake = Literal["paimon", "lance", "iceberg"] | None
DocumentKind = Literal["schema", "table", "database", "bucket_offsets", "manifest", "snapshot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHeader:
    """What a log batch says about itself besides sizes and checksum."""

    magic: int = 0
    append_only: bool = True
    schema_id: int = 1
    base_offset: int = 0
    timestamp: int = 0
    writer_id: int = -1
    sequence: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLogBatch:
    """A log batch as Java read it; `records` are (offset, timestamp, change type, row)."""

    magic: int
    is_valid: bool
    base_offset: int
    next_offset: int
    timestamp: int
    leader_epoch: int
    schema_id: int
    writer_id: int
    sequence: int
    size: int
    records: list[tuple[int, int, int, tuple[Any, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadKvBatch:
    """A KV batch as Java read it; `records` are (key, row or None)."""

    magic: int
    schema_id: int
    writer_id: int
    sequence: int
    size: int
    records: list[tuple[bytes, tuple[Any, ...] | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumerations:
    """Fluss's fixed lists, each entry as it stands in the Java enum."""

    errors: list[tuple[int, str, bool, bool]]  # code, name, retriable, refresh metadata
    api_keys: list[tuple[int, str, int, int, bool]]  # id, name, lowest, highest, public
    change_types: list[tuple[int, str, str]]  # byte, name, short name
