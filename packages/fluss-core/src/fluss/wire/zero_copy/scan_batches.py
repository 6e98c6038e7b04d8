"""The answers to LIMIT_SCAN and SCAN_KV: batches of one bucket.

Their requests are small and are left to protobuf.
"""

from __future__ import annotations

from dataclasses import dataclass

from fluss.wire.byte_buffers import Buffer
from fluss.wire.field_codecs import BOOL, INT32, INT64, LARGE_BYTES, SHORT_BYTES, STRING
from fluss.wire.message_layout import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitScanResponse:
    """The first rows of a bucket: log batches of a log table, else value batches."""

    error_code: int | None = None
    error_message: str | None = None
    is_log_table: bool | None = None
    records: tuple[Buffer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanKvResponse:
    """One page of a scan; `log_offset` comes with the first page only."""

    error_code: int | None = None
    error_message: str | None = None
    scanner_id: bytes | None = None
    has_more_results: bool | None = None
    records: tuple[Buffer, ...] = ()
    log_offset: int | None = None


LIMIT_SCAN_RESPONSE = Layout(
    LimitScanResponse,
    {
        1: ("error_code", INT32),
        2: ("error_message", STRING),
        3: ("is_log_table", BOOL),
        4: ("records", LARGE_BYTES),
    },
)
SCAN_KV_RESPONSE = Layout(
    ScanKvResponse,
    {
        1: ("error_code", INT32),
        2: ("error_message", STRING),
        3: ("scanner_id", SHORT_BYTES),
        4: ("has_more_results", BOOL),
        5: ("records", LARGE_BYTES),
        6: ("log_offset", INT64),
    },
)
