"""The records of a log batch, whatever the table's log format: rows as Arrow, and change types.

A thin choice between `LogBatch.record_batch` and `records.log.row_log`, for readers that follow
tables of every kind.
"""

from __future__ import annotations

import pyarrow as pa

from fluss.model.tables.table_options import KvFormat, LogFormat
from fluss.records.arrow.arrow_body import BODY_BYTES_MAX
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.log.log_batch import LogBatch
from fluss.records.log.row_log import read_row_log
from fluss.rows.buffers.columns import ByteArray


def read_log_records(
    batch: LogBatch,
    layout: BatchLayout,
    log_format: LogFormat,
    *,
    body_bytes_max: int = BODY_BYTES_MAX,
) -> tuple[pa.RecordBatch, ByteArray | None]:
    """Decode a log batch.

    Args:
        batch: The batch.
        layout: The columns of the batch: those of its schema id, projected as it was fetched.
        log_format: `table.log.format`.
        body_bytes_max: What the uncompressed columns of an Arrow batch may take.

    Returns:
        The rows in `layout.user_schema`, and one change type per row, or None where all are
        appends.

    Raises:
        CorruptDataError: The batch is not what the layout and its header say.
    """
    if log_format is LogFormat.ARROW:
        rows = batch.record_batch(layout, body_bytes_max=body_bytes_max)
        return rows, batch.change_types()
    return read_row_log(batch, layout, KvFormat(log_format.value))
