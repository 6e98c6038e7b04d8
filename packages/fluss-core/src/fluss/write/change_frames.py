"""Frames that say of each row what happened to it: a changelog, to be applied to another table.

The column `_change_type` has Fluss's names (insert, update_before, update_after, delete) or the
short ones (+I, -U, +U, -D). An update comes as the row before and the row after; the row before is
left out, since the row after replaces it by key. The other columns that scans add are left out of
whatever is written, unless the table has columns of these names itself.
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

# Batches smaller than this are gathered, so that a changelog of small batches makes large ones.
GATHERED_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangeBatch:
    """Changes to be applied in this order.

    Attributes:
        rows: The rows, without those that updates replace.
        deletes: Which of them are deleted.
        counts: How many changes of each kind there were.
        places: Which of the rows of the frame these are; None where they are all of them.
    """

    rows: pa.RecordBatch
    deletes: BoolArray
    counts: dict[str, int]
    places: Int64Array | None = None


def added_columns(table: TableInfo, names: Iterable[str]) -> list[str]:
    """Those of a frame's columns that a scan added, and the table does not have."""
    own = table.schema.column_names
    return [each for each in names if each in METADATA_COLUMNS and each not in own]


def without_columns(batch: pa.RecordBatch, names: Iterable[str]) -> pa.RecordBatch:
    """A batch without some of its columns."""
    left_out = set(names)
    if left_out.isdisjoint(batch.schema.names):
        return batch
    return batch.select([each for each in batch.schema.names if each not in left_out])


def change_batch(batch: pa.RecordBatch) -> ChangeBatch:
    """What a batch with `_change_type` says; the column itself is left out.

    Raises:
        InvalidValueError: A row does not say what happened to it, or not in words we know.
    """
    kinds = change_types(batch.column(CHANGE_TYPE))
    rows = without_columns(batch, [CHANGE_TYPE])
    counts = {change.long_name: int((kinds == change).sum()) for change in ChangeType if change}
    kept = kinds != ChangeType.UpdateBefore
    places = None
    if not kept.all():
        rows = rows.filter(from_numpy(kept))
        kinds = kinds[kept]
        places = np.flatnonzero(kept)
    deletes = kinds == ChangeType.Delete
    return ChangeBatch(rows=rows, deletes=deletes, counts=counts, places=places)


def change_types(column: pa.Array) -> npt.NDArray[np.int8]:
    """The kinds of change that a column of texts names; an appended row is an inserted one.

    Raises:
        InvalidValueError: One is NULL, or no kind of change; `row` says where.
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
    """The same rows in larger batches."""
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
    said = "is NULL" if text is None else f"says {text!r}, which is no kind of change"
    return InvalidValueError(
        f"The column {CHANGE_TYPE!r} {said}.", hint=_HINT, column=CHANGE_TYPE
    ).add_context(row=row)
