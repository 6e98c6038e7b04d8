"""The bodies of log batches whose table keeps rows instead of Arrow: INDEXED and COMPACTED.

A record is its length (int32, itself not counted), one byte whose low four bits are the change
type, and the encoded row (Java: `IndexedLogRecord`, `CompactedLogRecord`). The change type stands
in every record, also where the batch is append-only; there is no change-type vector. The header
in front is the one of every log batch (`records.log.log_header`).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from fluss.model.tables.table_options import KvFormat
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.framing import find_frames, write_frames
from fluss.records.kv.row_bytes import batch_from_rows, rows_from_batch
from fluss.records.log.log_batch import LogBatch, check_change_types
from fluss.records.log.log_writer import LogBody
from fluss.rows.buffers.byte_runs import fixed_words, runs_of_rows
from fluss.rows.buffers.columns import ByteArray, RowBytes

_CHANGE_TYPE_BYTES: Final = 1
_CHANGE_TYPE_BITS: Final = 0x0F


def row_log_body(
    batch: pa.RecordBatch,
    layout: BatchLayout,
    row_format: KvFormat,
    *,
    change_types: ByteArray | None = None,
) -> LogBody:
    """Encode a batch in wire form; `change_types` is None where all rows are appends."""
    rows = rows_from_batch(batch, layout, row_format)
    return row_log_body_of_rows(rows, change_types=change_types)


def row_log_body_of_rows(rows: RowBytes, *, change_types: ByteArray | None = None) -> LogBody:
    """Frame encoded rows; see `row_log_body`."""
    count = len(rows)
    types = np.zeros(count, dtype=np.uint8) if change_types is None else change_types
    records = write_frames(
        [fixed_words(types.astype(np.uint64), _CHANGE_TYPE_BYTES, None), runs_of_rows(rows)], count
    )
    return LogBody(buffers=(records.data,), record_count=count, is_append_only=change_types is None)


def read_row_log(
    batch: LogBatch, layout: BatchLayout, row_format: KvFormat
) -> tuple[pa.RecordBatch, ByteArray | None]:
    """Decode the body of a row batch.

    Args:
        batch: A batch of a table with this log format.
        layout: The columns of the batch's schema.
        row_format: The table's log format.

    Returns:
        The rows in `layout.user_schema`, and one change type per row, or None where all are
        appends.

    Raises:
        CorruptDataError: The records are not such rows.
    """
    header = batch.header
    start = header.records_start
    data = np.frombuffer(batch.data, dtype=np.uint8)
    records = find_frames(
        data,
        start=start,
        count=header.record_count,
        record_bytes_min=_CHANGE_TYPE_BYTES,
        what="log record",
        at=batch.at,
    )
    rows = batch_from_rows(records.beyond(_CHANGE_TYPE_BYTES), layout, row_format)
    if header.is_append_only:
        return rows, None
    change_types = np.bitwise_and(data[records.starts], np.uint8(_CHANGE_TYPE_BITS))
    check_change_types(change_types, at=batch.at + start)
    return rows, change_types
