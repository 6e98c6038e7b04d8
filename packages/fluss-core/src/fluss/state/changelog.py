"""Changes as rows: what happened to each row and when, under the names that Fluss gives them.

A changelog batch is the rows with three columns in front: what kind of change each is, its offset,
and when the server took it in. A binlog batch has one row per change, an update being one change,
with the row before and the row after as structs. Here is only how batches look; which offsets are
read, and which columns, is decided by whoever calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa

from fluss.errors import InvalidSchemaError
from fluss.hints import Hint, HintKey
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
    """The names of the columns that say what a change is."""

    change_type: str = "_change_type"
    log_offset: str = "_log_offset"
    commit_timestamp: str = "_commit_timestamp"

    @classmethod
    def prefixed(cls, prefix: str) -> ChangeColumns:
        """The names of a table whose own columns have the usual ones."""
        usual = cls()
        return cls(
            change_type=prefix + usual.change_type,
            log_offset=prefix + usual.log_offset,
            commit_timestamp=prefix + usual.commit_timestamp,
        )

    def fields(self) -> list[pa.Field]:
        """The columns; none of them is ever NULL."""
        return [
            pa.field(self.change_type, pa.string(), nullable=False),
            pa.field(self.log_offset, pa.int64(), nullable=False),
            pa.field(self.commit_timestamp, TIMESTAMP_TYPE, nullable=False),
        ]


USUAL_COLUMNS: Final = ChangeColumns()


@cache
def _changelog_names() -> pa.Array:
    return texts(each.long_name for each in sorted(ChangeType))


@cache
def _binlog_names() -> pa.Array:
    return texts(["insert", "insert", None, "update", "delete"])


def changelog_schema(rows: pa.Schema, names: ChangeColumns = USUAL_COLUMNS) -> pa.Schema:
    """The columns of changelog batches whose rows have these columns.

    Raises:
        InvalidSchemaError: The table has a column of such a name itself.
    """
    fields = names.fields()
    for field in fields:
        if field.name in rows.names:
            raise InvalidSchemaError(
                f"The column {field.name!r} of the table has the name of a metadata column.",
                hint=Hint(HintKey.OTHER_METADATA_NAMES),
                column=field.name,
            )
    return pa.schema([*fields, *rows])


def changelog_batches(
    decoded: Iterable[DecodedBatch], schema: pa.Schema, names: ChangeColumns = USUAL_COLUMNS
) -> Iterator[pa.RecordBatch]:
    """Every change as a row, in the order in which they come.

    Args:
        decoded: Batches of one scan, of any buckets.
        schema: The columns of the batches.
        names: What the columns in front are called.
    """
    wanted = changelog_schema(schema, names)
    for each in decoded:
        arrays = [*_change_arrays(each, _changelog_names()), *each.batch.columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=wanted)


def binlog_schema(rows: pa.Schema, names: ChangeColumns = USUAL_COLUMNS) -> pa.Schema:
    """The columns of binlog batches of rows with these columns."""
    row = pa.struct(list(rows))
    return pa.schema([*names.fields(), pa.field(BEFORE, row), pa.field(AFTER, row)])


def binlog_batches(
    decoded: Iterable[DecodedBatch], schema: pa.Schema, names: ChangeColumns = USUAL_COLUMNS
) -> Iterator[pa.RecordBatch]:
    """Every change as the row before and the row after it.

    An update has the offset and the time of its first half, as in Fluss. Halves find each other
    across batches. Where the first half is not there, because the changelog does not have it (image
    `wal`) or the scan begins behind it, the row before is NULL; a first half whose second one lies
    behind the end of the scan is no change yet.

    Args:
        decoded: Batches of one scan, of any buckets, each bucket's in their order.
        schema: The columns of the batches.
        names: What the columns in front are called.
    """
    binlog = Binlog(schema, names)
    for each in decoded:
        batch = binlog.batch(each)
        if batch is not None:
            yield batch


class Binlog:
    """What `binlog_batches` does, for who wants to know which batch became which.

    Args:
        schema: The columns of the batches.
        names: What the columns in front are called.
    """

    def __init__(self, schema: pa.Schema, names: ChangeColumns = USUAL_COLUMNS) -> None:
        self._wanted = binlog_schema(schema, names)
        self._halves: dict[TableBucket, DecodedBatch] = {}

    def batch(self, decoded: DecodedBatch) -> pa.RecordBatch | None:
        """The changes that a batch completes; None for none."""
        earlier = self._halves.pop(decoded.bucket, None)
        types = _types_of(decoded)
        if types[-1] == ChangeType.UpdateBefore:
            self._halves[decoded.bucket] = decoded.slice(decoded.num_rows - 1, 1)
        return _binlog_batch(decoded, types, earlier, self._wanted)


def _binlog_batch(
    decoded: DecodedBatch, types: ByteArray, earlier: DecodedBatch | None, wanted: pa.Schema
) -> pa.RecordBatch | None:
    rows = decoded.batch
    offsets = np.asarray(decoded.row_offsets(), dtype=np.int64)
    times = np.full(len(types), decoded.timestamp, dtype=np.int64)
    if earlier is not None:
        # As if the half that came with the batch before stood in front of this one.
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
    before = _structs(rows, firsts, follows | is_delete, wanted.field(BEFORE).type)
    after = _structs(rows, changes, ~is_delete, wanted.field(AFTER).type)
    arrays = [
        _binlog_names().take(from_numpy(kinds)),
        from_numpy(offsets[firsts]),
        from_numpy(times[firsts]).cast(TIMESTAMP_TYPE),
        before,
        after,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _structs(
    rows: pa.RecordBatch, places: Int64Array, is_there: np.ndarray, row_type: pa.StructType
) -> pa.StructArray:
    """These rows as one column, NULL where they are not there."""
    taken = rows.take(from_numpy(places))
    missing = from_numpy(~is_there)
    return pa.StructArray.from_arrays(taken.columns, fields=list(row_type), mask=missing)


def _joined(first: pa.RecordBatch, rest: pa.RecordBatch) -> pa.RecordBatch:
    return pa.concat_batches([first, rest.cast(first.schema)])


def _change_arrays(decoded: DecodedBatch, names: pa.StringArray) -> list[pa.Array]:
    count = decoded.num_rows
    times = from_numpy(np.full(count, decoded.timestamp, dtype=np.int64))
    return [
        names.take(from_numpy(_types_of(decoded))),
        from_numpy(np.asarray(decoded.row_offsets(), dtype=np.int64)),
        times.cast(TIMESTAMP_TYPE),
    ]


def _types_of(decoded: DecodedBatch) -> ByteArray:
    types = decoded.change_types
    return np.zeros(decoded.num_rows, dtype=np.uint8) if types is None else types
