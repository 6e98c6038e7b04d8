"""Whether rows in the log are those that would be written now.

The checksums tell, as long as both attempts cut their rows alike, encoded with the same libraries
and saw the same schema. Where they differ the rows are read and compared before anybody is alarmed.
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
from fluss.model.arrow_types import with_leaves
from fluss.model.paths import TableBucket
from fluss.model.scan_options import Order
from fluss.plan.once_ledger import Piece, There
from fluss.plan.scan import Output
from fluss.plan.writing import WriteBatch
from fluss.records.cast import to_wire_batch
from fluss.records.cast_rules import relabelled
from fluss.records.layout import BatchLayout
from fluss.records.log_header import read_log_header
from fluss.records.log_writer import write_log_batch

_SAME_ROWS: Final = (
    "A replay must bring the same rows in the same order: sort within partitions, leave out what "
    "changes from run to run (rand(), now(), the order behind a shuffle), or write into a "
    "primary-key table. Where the query has been changed since, run it once more as it was, with "
    "NULL for columns that the table has gained."
)


def check_same_rows(
    table: TableCore,
    made: WriteBatch,
    body: Any,
    rows: Callable[[], pa.RecordBatch],
    there: There,
    bucket: TableBucket,
) -> None:
    """Refuse to go on behind rows that are others.

    Args:
        table: The table.
        made: The batch as it would be written now.
        body: Its records.
        rows: Its rows in wire form.
        there: What is in the log in their place, or in that of the first of them.
        bucket: The bucket.

    Raises:
        WriterStateError: The rows differ.
    """
    landed = there.pieces[0].landed
    if there.pieces[0].row_count == landed.row_count == made.row_count and (
        landed.crc == crc_of(made, body, landed.writer_id, landed.sequence)
    ):
        return
    if _same(table, rows(), there, bucket, made):
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


def more_rows(table: TableCore, surplus: Piece, bucket: TableBucket) -> WriterStateError:
    """The error for a task that ends while the log goes on."""
    return WriterStateError(
        f"An earlier attempt at this task has written more rows than this one has: those from "
        f"offset {surplus.offset} of bucket {bucket.bucket_id} on.",
        hint=_SAME_ROWS,
        table=str(table.info.table_path),
        bucket=bucket.bucket_id,
        offset=surplus.offset,
    )


def more_claims(table: TableCore) -> WriterStateError:
    """The error for a task that needs fewer buckets than an earlier attempt at it."""
    return WriterStateError(
        "An earlier attempt at this task has claimed partitions, or all of its buckets, that this "
        "one has no rows for: its rows were others, or this one's broke off.",
        hint=_SAME_ROWS,
        table=str(table.info.table_path),
    )


def crc_of(made: WriteBatch, body: Any, writer_id: int, sequence: int) -> int:
    """The checksum of a batch that is sent with a writer id and a number."""
    header = write_log_batch(
        body, schema_id=made.route.schema_id, writer_id=writer_id, batch_sequence=sequence
    )[0]
    return read_log_header(memoryview(header)).crc


def _same(
    table: TableCore, rows: pa.RecordBatch, there: There, bucket: TableBucket, made: WriteBatch
) -> bool:
    stored = [_stored(table, each, bucket, made) for each in there.pieces]
    found = pa.concat_tables(stored)
    layout = BatchLayout.of_schema(table.info.schema)
    wanted = _plain(rows, layout).slice(0, there.row_count)
    # As texts: a NaN equals itself there.
    return all(
        repr(_values(found.column(place))) == repr(_values(wanted.column(place)))
        for place in range(found.num_columns)
    )


def _values(column: Any) -> list[Any]:
    """The values of a column; times as numbers, because Python's end with the year 9999."""
    numbers = with_leaves(column.type, _number_of)
    listed: list[Any] = (column if numbers == column.type else column.cast(numbers)).to_pylist()
    return listed


def _number_of(kind: Any) -> Any:
    """The whole number that a time or a day is kept as; any other type itself."""
    types = pa.types
    if types.is_timestamp(kind) or types.is_time64(kind):
        return pa.int64()
    return pa.int32() if types.is_date32(kind) or types.is_time32(kind) else kind


def _stored(table: TableCore, piece: Piece, bucket: TableBucket, made: WriteBatch) -> pa.Table:
    """Rows of the log in wire form."""
    layout = BatchLayout.of_schema(table.info.schema)
    names = tuple(table.info.schema.column_names)
    split = ScanSplit(
        table_path=made.path.table_path,
        bucket=bucket,
        partition_name=made.path.partition_name,
        schema_id=table.info.schema_id,
        start=piece.offset,
        stop=piece.offset + piece.row_count,
        output=Output(names=names, metadata=(None,) * len(names)),
    )
    schema = split_schema(table, split)
    stored = OpenSplits(table, [split], schema=schema, order=Order.BUCKET).reader().read_all()
    return pa.Table.from_batches(
        [_plain(to_wire_batch(each, layout), layout) for each in stored.to_batches()],
        schema=layout.wire_schema,
    )


def _plain(rows: pa.RecordBatch, layout: BatchLayout) -> pa.RecordBatch:
    """The same in the wire's own types: one frame says a zone where another one says none."""
    fields = layout.wire_schema
    arrays = [relabelled(*each) for each in zip(rows.columns, fields.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=fields)
