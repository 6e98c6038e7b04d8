"""Changes as rows, under the names that Fluss gives them.

A binlog batch has one row per change, and an update is one change: the kind of the change, its
offset and commit time, and the row before and the row after it as structs. This file decides only
how batches look; the caller decides which offsets and which columns are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa

from fluss.log.decode import DecodedBatch
from fluss.model.change_type import ChangeType
from fluss.model.paths import TableBucket
from fluss.records.arrow.numpy_arrays import from_numpy, texts
from fluss.rows.buffers.columns import ByteArray, Int64Array

BEFORE: Final = "before"
AFTER: Final = "after"
TIMESTAMP_TYPE: Final = pa.timestamp("ms", tz="UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeColumns:
    """The names of the columns that describe a change."""

    change_type: str = "_change_type"
    log_offset: str = "_log_offset"
    commit_timestamp: str = "_commit_timestamp"

    def fields(self) -> list[pa.Field]:
        """The columns; none of them is ever NULL."""
        return [
            pa.field(self.change_type, pa.string(), nullable=False),
            pa.field(self.log_offset, pa.int64(), nullable=False),
            pa.field(self.commit_timestamp, TIMESTAMP_TYPE, nullable=False),
        ]


USUAL_COLUMNS: Final = ChangeColumns()


@cache
def _binlog_names() -> pa.Array:
    return texts(["insert", "insert", None, "update", "delete"])


def binlog_schema(rows: pa.Schema, names: ChangeColumns = USUAL_COLUMNS) -> pa.Schema:
    """The columns of binlog batches of rows with these columns."""
    row = pa.struct(list(rows))
    return pa.schema([*names.fields(), pa.field(BEFORE, row), pa.field(AFTER, row)])


class Binlog:
    """Makes binlog batches of the batches of one scan, each bucket's in their order.

    An update has the offset and the time of its first half, as in Fluss. Halves are joined across
    batches. Where the first half is missing, because the changelog does not have it (image `wal`)
    or the scan begins after it, the row before is NULL; a first half whose second one comes after
    the end of the scan is not a change yet.

    Args:
        schema: The columns of the decoded batches.
        names: The names of the columns in front.
    """

    def __init__(self, schema: pa.Schema, names: ChangeColumns = USUAL_COLUMNS) -> None:
        self._wanted = binlog_schema(schema, names)
        self._halves: dict[TableBucket, DecodedBatch] = {}

    def batch(self, decoded: DecodedBatch) -> pa.RecordBatch | None:
        """The changes that a batch completes; None where there are none."""
        earlier = self._halves.pop(decoded.bucket, None)
        types = _types_of(decoded)
        if types[-1] == ChangeType.UpdateBefore:
            self._halves[decoded.bucket] = decoded.slice(decoded.num_rows - 1, 1)
        return _binlog_batch(decoded, types, earlier, self._wanted)


def _binlog_batch(
    decoded: DecodedBatch, types: ByteArray, earlier: DecodedBatch | None, schema: pa.Schema
) -> pa.RecordBatch | None:
    rows = decoded.batch
    offsets = np.asarray(decoded.row_offsets(), dtype=np.int64)
    times = np.full(len(types), decoded.timestamp, dtype=np.int64)
    if earlier is not None:
        # The half from the batch before goes in front of this batch.
        rows = _joined(earlier.batch, rows)
        types = np.concatenate(([np.uint8(ChangeType.UpdateBefore)], types))
        offsets = np.concatenate(([earlier.base_offset], offsets))
        times = np.concatenate(([earlier.timestamp], times))
    changes = np.flatnonzero(types != ChangeType.UpdateBefore)
    if not len(changes):
        return None
    kinds = types[changes]
    follows = (kinds == ChangeType.UpdateAfter) & (changes > 0)
    follows &= types[changes - 1] == ChangeType.UpdateBefore
    firsts = changes - follows
    is_delete = kinds == ChangeType.Delete
    before = _structs(rows, firsts, follows | is_delete, schema.field(BEFORE).type)
    after = _structs(rows, changes, ~is_delete, schema.field(AFTER).type)
    arrays = [
        _binlog_names().take(from_numpy(kinds)),
        from_numpy(offsets[firsts]),
        from_numpy(times[firsts]).cast(TIMESTAMP_TYPE),
        before,
        after,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _structs(
    rows: pa.RecordBatch, places: Int64Array, is_there: np.ndarray, row_type: pa.StructType
) -> pa.StructArray:
    """These rows as one column, NULL where `is_there` is false."""
    taken = rows.take(from_numpy(places))
    missing = from_numpy(~is_there)
    return pa.StructArray.from_arrays(taken.columns, fields=list(row_type), mask=missing)


def _joined(first: pa.RecordBatch, rest: pa.RecordBatch) -> pa.RecordBatch:
    return pa.concat_batches([first, rest.cast(first.schema)])


def _types_of(decoded: DecodedBatch) -> ByteArray:
    types = decoded.change_types
    return np.zeros(decoded.num_rows, dtype=np.uint8) if types is None else types
