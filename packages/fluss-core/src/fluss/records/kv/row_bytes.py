"""Encodes Arrow batches as rows, and decodes them, for writers of keys and values.

The row codecs (`rows.formats.compacted`, `rows.formats.indexed`) know numpy columns; this file puts
them between Arrow batches. Rows that came over the wire become arrays that have been validated, so
text is UTF-8 and offsets are in order.
"""

from __future__ import annotations

import pyarrow as pa

from fluss.model.tables.table_options import KvFormat
from fluss.records.arrow.array_checks import check_arrays
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.numpy_columns import to_batch, to_columns
from fluss.records.corrupt import corrupt_batch
from fluss.records.framing import Frames
from fluss.rows.buffers.columns import RowBytes
from fluss.rows.formats.compacted import read_compacted_rows, write_compacted_rows
from fluss.rows.formats.indexed import read_indexed_rows, write_indexed_rows

_WRITERS = {KvFormat.COMPACTED: write_compacted_rows, KvFormat.INDEXED: write_indexed_rows}
_READERS = {KvFormat.COMPACTED: read_compacted_rows, KvFormat.INDEXED: read_indexed_rows}


def rows_from_batch(batch: pa.RecordBatch, layout: BatchLayout, row_format: KvFormat) -> RowBytes:
    """Encode each row of a batch in wire form.

    Args:
        batch: The rows.
        layout: The columns of the batch.
        row_format: `table.kv.format`; logs that are not ARROW have the same two.
    """
    return _WRITERS[row_format](to_columns(batch, layout.types))


def batch_from_rows(
    rows: Frames | RowBytes, layout: BatchLayout, row_format: KvFormat
) -> pa.RecordBatch:
    """Decode rows into a batch of `layout.user_schema`.

    Args:
        rows: The encoded rows.
        layout: The columns they were encoded with.
        row_format: The format they were encoded in.

    Raises:
        CorruptDataError: A row does not match the layout.
    """
    if isinstance(rows, RowBytes):
        rows = Frames(data=rows.data, starts=rows.offsets[:-1], ends=rows.offsets[1:])
    columns = _READERS[row_format](rows.data, rows.starts, rows.ends, layout.types)
    batch = to_batch(columns, layout.user_schema)
    try:
        check_arrays(batch)
    except pa.ArrowException as error:
        at = int(rows.starts[0]) if len(rows) else 0
        why = f"Arrow: {error}"
        raise corrupt_batch(f"{row_format.value.lower()} rows", at=at, why=why) from error
    return batch
