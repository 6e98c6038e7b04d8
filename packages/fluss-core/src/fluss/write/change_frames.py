"""Changelogs as frames: the column `_change_type` names the change of each row.

It has Fluss's names (insert, update_before, update_after, delete) or the short ones (+I, -U, +U,
-D). An update is two rows, before and after; the row before is left out, because the row after
replaces it by key. The other columns that scans add are not written, unless the table has columns
of these names itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fluss.errors import InvalidValueError
from fluss.model.change_type import ChangeType
from fluss.model.options.scan_options import CHANGE_TYPE, METADATA_COLUMNS
from fluss.model.tables.table_info import TableInfo
from fluss.records.arrow.numpy_arrays import from_numpy
from fluss.records.convert.cast_rules import decoded
from fluss.rows.buffers.columns import BoolArray, Int64Array

# Smaller batches of a changelog are joined up to this size.
GATHERED_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangeBatch:
    """Changes, in the order in which they are applied.

    Attributes:
        rows: The rows, without those before an update.
        deletes: Which of them delete.
        counts: How many changes of each kind there were.
        positions: Which rows of the frame these are; None for all.
    """

    rows: pa.RecordBatch
    deletes: BoolArray
    counts: dict[str, int]
    positions: Int64Array | None = None


def added_columns(table: TableInfo, names: Iterable[str]) -> list[str]:
    """The columns of a frame that a scan added and the table does not have."""
    own = table.schema.column_names
    return [each for each in names if each in METADATA_COLUMNS and each not in own]


def without_columns(batch: pa.RecordBatch, names: Iterable[str]) -> pa.RecordBatch:
    """A batch without some of its columns."""
    left_out = set(names)
    if left_out.isdisjoint(batch.schema.names):
        return batch
    return batch.select([each for each in batch.schema.names if each not in left_out])


def change_batch(batch: pa.RecordBatch) -> ChangeBatch:
    """Read a batch with `_change_type`; the column itself is left out.

    Raises:
        InvalidValueError: The change type of a row is NULL, or unknown.
    """
    kinds = change_types(batch.column(CHANGE_TYPE))
    rows = without_columns(batch, [CHANGE_TYPE])
    counts = {change.long_name: int((kinds == change).sum()) for change in ChangeType if change}
    kept = kinds != ChangeType.UpdateBefore
    positions = None
    if not kept.all():
        rows = rows.filter(from_numpy(kept))
        kinds = kinds[kept]
        positions = np.flatnonzero(kept)
    deletes = kinds == ChangeType.Delete
    return ChangeBatch(rows=rows, deletes=deletes, counts=counts, positions=positions)


def change_types(column: pa.Array) -> npt.NDArray[np.int8]:
    """The change types that a column of texts names; an appended row is an insert.

    Raises:
        InvalidValueError: One is NULL or unknown; `row` is its row.
    """
    if pa.types.is_dictionary(column.type):
        column = decoded(column)
    if not _is_text(column.type):
        raise InvalidValueError(
            f"The column {CHANGE_TYPE!r} holds {column.type}, not texts.",
            hint=_HINT,
            column=CHANGE_TYPE,
        )
    if column.null_count:
        raise _unknown(None, int(np.flatnonzero(np.asarray(column.is_null()))[0]))
    encoded = pc.dictionary_encode(column.cast(pa.string()))
    codes = np.asarray(encoded.indices)
    kinds = []
    for code, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            kind = ChangeType.parse(text)
        except InvalidValueError:
            raise _unknown(text, int((codes == code).argmax())) from None
        kinds.append(ChangeType.Insert if kind is ChangeType.AppendOnly else kind)
    found: npt.NDArray[np.int8] = np.array(kinds, dtype=np.int8)[codes]
    return found


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches of the same schema."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if waiting and not waiting[0].schema.equals(batch.schema):
            yield pa.concat_batches(waiting)
            waiting, size = [], 0
        waiting.append(batch)
        size += batch.nbytes
        if size >= GATHERED_BYTES:
            yield pa.concat_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_batches(waiting)


_HINT = "Write insert, update_before, update_after or delete; or +I, -U, +U, -D."


def _is_text(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(arrow_type)
        or types.is_large_string(arrow_type)
        or types.is_string_view(arrow_type)
    )


def _unknown(text: str | None, row: int) -> InvalidValueError:
    what = "is NULL" if text is None else f"has {text!r}, which is no change type"
    return InvalidValueError(
        f"The column {CHANGE_TYPE!r} {what}.", hint=_HINT, column=CHANGE_TYPE
    ).add_context(row=row)
