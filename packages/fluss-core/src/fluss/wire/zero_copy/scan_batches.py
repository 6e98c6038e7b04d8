"""The answers to LIMIT_SCAN and SCAN_KV: batches of one bucket.

Their requests are small and are left to protobuf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fluss.wire.byte_buffers import Buffer
from fluss.wire.field_codecs import BOOL, INT32, INT64, LARGE_BYTES, SHORT_BYTES, STRING
from fluss.wire.message_layout import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitScanResponse:
    """The first rows of a bucket: log batches of a log table, else value batches."""

    error_code: Annotated[int | None, 1, INT32] = None
    error_message: Annotated[str | None, 2, STRING] = None
    is_log_table: Annotated[bool | None, 3, BOOL] = None
    records: Annotated[tuple[Buffer, ...], 4, LARGE_BYTES] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanKvResponse:
    """One page of a scan; `log_offset` comes with the first page only."""

    error_code: Annotated[int | None, 1, INT32] = None
    error_message: Annotated[str | None, 2, STRING] = None
    scanner_id: Annotated[bytes | None, 3, SHORT_BYTES] = None
    has_more_results: Annotated[bool | None, 4, BOOL] = None
    records: Annotated[tuple[Buffer, ...], 5, LARGE_BYTES] = ()
    log_offset: Annotated[int | None, 6, INT64] = None


LIMIT_SCAN_RESPONSE = Layout(LimitScanResponse)
SCAN_KV_RESPONSE = Layout(ScanKvResponse)
