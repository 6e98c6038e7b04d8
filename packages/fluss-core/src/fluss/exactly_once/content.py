"""Compares rows in the log with those that would be written now.

The checksums are equal as long as both attempts cut their rows alike, encoded with the same
libraries and had the same schema. Where they differ, the rows are read and compared before an error
is raised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.errors import WriterStateError
from fluss.exactly_once.plan_ledger import AlreadyWritten, Piece
from fluss.hints import Hint, HintKey
from fluss.model.options.scan_options import Order
from fluss.model.paths import TableBucket
from fluss.model.types.type_to_arrow import with_leaves
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.cast import to_wire_batch
from fluss.records.convert.cast_rules import relabelled
from fluss.records.log.log_header import read_log_header
from fluss.records.log.log_writer import write_log_batch
from fluss.scan.door import read_splits
from fluss.scan.split import ScanSplit
from fluss.write.write_batch import WriteBatch

_LOG = logging.getLogger("fluss.scan")


def check_same_rows(
    table: TableHandle,
    made: WriteBatch,
    body: Any,
    rows: Callable[[], pa.RecordBatch],
    there: AlreadyWritten,
    bucket: TableBucket,
    *,
    may_differ: Collection[str] = (),
) -> None:
    """Refuse to continue after rows that differ.

    Args:
        table: The table.
        made: The batch as it would be written now.
        body: Its records.
        rows: Its rows in wire form.
        there: The rows in the log in their place, or in the place of the first of them.
        bucket: The bucket.
        may_differ: Columns that are not compared.

    Raises:
        WriterStateError: The rows differ.
    """
    landed = there.pieces[0].landed
    if there.pieces[0].row_count == landed.row_count == made.row_count and (
        landed.crc == crc_of(made, body, landed.writer_id, landed.sequence)
    ):
        return
    if _same(table, rows(), there, bucket, made, may_differ):
        return
    raise _other_rows(
        table,
        f"written other rows than this one would: {landed.row_count} rows at offset "
        f"{landed.base_offset} of bucket {bucket.bucket_id} of {made.path}, in place of "
        f"{made.row_count}.",
        partition=made.path.partition_name,
        bucket=bucket.bucket_id,
        offset=landed.base_offset,
    )


def more_rows(table: TableHandle, surplus: Piece, bucket: TableBucket) -> WriterStateError:
    """The error for a task that has fewer rows than the log."""
    what = f"those from offset {surplus.offset} of bucket {bucket.bucket_id} on."
    return _other_rows(
        table,
        f"written more rows than this one has: {what}",
        bucket=bucket.bucket_id,
        offset=surplus.offset,
    )


def more_claims(table: TableHandle) -> WriterStateError:
    """The error for a task that needs fewer buckets than an earlier attempt at it."""
    return _other_rows(
        table,
        "claimed partitions, or all of its buckets, that this one has no rows for: its rows were "
        "others, or this one's broke off.",
    )


def _other_rows(table: TableHandle, what: str, **facts: Any) -> WriterStateError:
    return WriterStateError(
        f"An earlier attempt at this task has {what}",
        hint=Hint(HintKey.OTHER_ROWS),
        table=str(table.info.table_path),
        **facts,
    )


def log_gained(table: TableHandle, gained: Collection[str], rows: int) -> None:
    """Log that rows of an earlier attempt keep NULL in columns that were added since."""
    if not gained or not rows:
        return
    _LOG.warning(
        "%s: %d rows that an earlier attempt at a task has written have NULL in %s, which the table "
        "has gained since",
        table.info.table_path,
        rows,
        ", ".join(sorted(gained)),
    )


def crc_of(made: WriteBatch, body: Any, writer_id: int, sequence: int) -> int:
    """Compute the checksum of a batch that is sent with a writer id and a number."""
    header = write_log_batch(
        body, schema_id=made.route.schema_id, writer_id=writer_id, batch_sequence=sequence
    )[0]
    return read_log_header(memoryview(header)).crc


def _same(
    table: TableHandle,
    rows: pa.RecordBatch,
    there: AlreadyWritten,
    bucket: TableBucket,
    made: WriteBatch,
    may_differ: Collection[str],
) -> bool:
    """Whether the rows in the log are those of a batch.

    Columns that were added after the rows were written are not compared: the rows have NULL there,
    and keep it.
    """
    expected = _plain(rows, BatchLayout.of_schema(table.info.schema))
    at = 0
    for piece in there.pieces:
        found = _stored(table, piece, bucket, made)
        names = _names_of(table, piece.landed.schema_id)
        part = expected.slice(at, piece.row_count)
        at += piece.row_count
        # As texts: a NaN equals itself there.
        if any(
            repr(_values(found.column(name))) != repr(_values(part.column(name)))
            for name in names
            if name not in may_differ
        ):
            return False
    return True


def _names_of(table: TableHandle, schema_id: int) -> list[str]:
    """The columns of the table that a schema has."""
    table.connection.engine.run(table.schemas.load([schema_id]))
    written = table.schemas.get(schema_id)
    names = table.info.schema.column_names
    if written is None:
        return list(names)
    return [each for each in names if each in written.column_names]


def _values(column: Any) -> list[Any]:
    """The values of a column; times as numbers, because those of Python end with the year 9999."""
    numbers = with_leaves(column.type, _number_of)
    listed: list[Any] = (column if numbers == column.type else column.cast(numbers)).to_pylist()
    return listed


def _number_of(kind: Any) -> Any:
    """The type of the number that a time or a day is stored as; any other type itself."""
    types = pa.types
    if types.is_timestamp(kind) or types.is_time64(kind):
        return pa.int64()
    return pa.int32() if types.is_date32(kind) or types.is_time32(kind) else kind


def _stored(table: TableHandle, piece: Piece, bucket: TableBucket, made: WriteBatch) -> pa.Table:
    """Rows of the log in wire form."""
    layout = BatchLayout.of_schema(table.info.schema)
    split = ScanSplit.of_log(
        table.info,
        bucket,
        made.path.partition_name,
        start=piece.offset,
        stop=piece.offset + piece.row_count,
        columns=table.info.schema.column_names,
    )
    stored = read_splits(table, [split], order=Order.BUCKET).read_all()
    return pa.Table.from_batches(
        [_plain(to_wire_batch(each, layout), layout) for each in stored.to_batches()],
        schema=layout.wire_schema,
    )


def _plain(rows: pa.RecordBatch, layout: BatchLayout) -> pa.RecordBatch:
    """The same rows in the types of the wire: some frames name a zone where others do not."""
    fields = layout.wire_schema
    arrays = [relabelled(*each) for each in zip(rows.columns, fields.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=fields)
