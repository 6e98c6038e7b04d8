"""Whether a batch in the log is the one that would be written now.

The checksums tell, as long as both attempts encoded with the same libraries and saw the same
schema. Where they differ the rows are read and compared before anybody is alarmed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from fluss.client.connection import TableCore
from fluss.connector.opening import OpenSplits
from fluss.connector.planning import split_schema
from fluss.connector.split import ScanSplit
from fluss.errors import WriterStateError
from fluss.model.paths import TableBucket
from fluss.model.scan_options import Order
from fluss.plan.once_ledger import Landed
from fluss.plan.scan import Output
from fluss.plan.writing import WriteBatch
from fluss.records.cast import to_wire_batch
from fluss.records.layout import BatchLayout
from fluss.records.log_header import read_log_header
from fluss.records.log_writer import write_log_batch

_SAME_ROWS: Final = (
    "A replay must bring the same rows in the same order: sort within partitions, leave out what "
    "changes from run to run (rand(), now(), the order behind a shuffle), or write into a "
    "primary-key table."
)


def check_same_rows(
    table: TableCore,
    made: WriteBatch,
    body: Any,
    rows: Callable[[], pa.RecordBatch],
    landed: Landed,
    bucket: TableBucket,
) -> None:
    """Refuse to go on behind a batch that has other rows.

    Args:
        table: The table.
        made: The batch as it would be written now.
        body: Its records.
        rows: Its rows in wire form.
        landed: What is in the log in its place.
        bucket: The bucket.

    Raises:
        WriterStateError: The rows differ.
    """
    if landed.crc == _crc_of(made, body, landed):
        return
    if landed.row_count == made.row_count and _same(table, rows(), landed, bucket, made):
        return
    raise WriterStateError(
        f"An earlier attempt at this task has written other rows than this one would: "
        f"{landed.row_count} rows at offset {landed.base_offset} of bucket {bucket.bucket_id} of "
        f"{made.path}, in place of {made.row_count}.",
        hint=_SAME_ROWS,
        table=str(made.path.table_path),
        partition=made.path.partition_name,
        bucket=bucket.bucket_id,
        offset=landed.base_offset,
    )


def more_rows(table: TableCore, landed: Landed, bucket: TableBucket) -> WriterStateError:
    """The error for a task that ends while the log goes on."""
    return WriterStateError(
        f"An earlier attempt at this task has written more rows than this one has: those from "
        f"offset {landed.base_offset} of bucket {bucket.bucket_id} on.",
        hint=_SAME_ROWS,
        table=str(table.info.table_path),
        bucket=bucket.bucket_id,
        offset=landed.base_offset,
    )


def _crc_of(made: WriteBatch, body: Any, landed: Landed) -> int:
    header = write_log_batch(
        body,
        schema_id=made.route.schema_id,
        writer_id=landed.writer_id,
        batch_sequence=landed.sequence,
    )[0]
    return read_log_header(memoryview(header)).crc


def _same(
    table: TableCore,
    rows: pa.RecordBatch,
    landed: Landed,
    bucket: TableBucket,
    made: WriteBatch,
) -> bool:
    layout = BatchLayout.of_schema(table.info.schema)
    names = tuple(table.info.schema.column_names)
    split = ScanSplit(
        table_path=made.path.table_path,
        bucket=bucket,
        partition_name=made.path.partition_name,
        schema_id=table.info.schema_id,
        start=landed.base_offset,
        stop=landed.base_offset + landed.row_count,
        output=Output(names=names, metadata=(None,) * len(names)),
    )
    schema = split_schema(table, split)
    stored = OpenSplits(table, [split], schema=schema, order=Order.BUCKET).reader().read_all()
    there = pa.Table.from_batches(
        [to_wire_batch(each, layout) for each in stored.to_batches()], schema=layout.wire_schema
    )
    # As texts: a NaN equals itself there.
    return all(
        repr(there.column(place).to_pylist()) == repr(rows.column(place).to_pylist())
        for place in range(len(names))
    )
