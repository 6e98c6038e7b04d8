"""Reads the rows of planned files: in the order of offsets, without those that were deleted.

Files are found by the ids of their columns, not by their names, so that a column that the lake has
renamed or gained later is read rightly. What comes out has the table's own Arrow types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table import Table

from fluss.errors import CorruptDataError
from fluss.lake.lake_format import LakePart, LakeRows
from fluss.model.schema.schema import Schema
from fluss.records.arrow.numpy_arrays import from_numpy, to_numpy
from fluss_lake.deletes import Deletes
from fluss_lake.file_plan import OFFSET, TIMESTAMP, DataFile
from fluss_lake.iceberg_parts import open_file, places_by_id

BATCH_ROWS: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReader:
    """Reads parts of one table with the same columns.

    Attributes:
        table: The table in the lake.
        schema: The table's schema in Fluss.
        columns: The table's columns that are given, in order.
    """

    table: Table
    schema: Schema
    columns: Sequence[str]

    def read(self, part: LakePart, start: int, stop: int) -> Iterator[LakeRows]:
        """Read a part in the order of offsets, without files that have none of these offsets."""
        deletes = Deletes(self.table)
        files = [each for each in part.files if each.offsets[0] < stop and each.offsets[1] >= start]
        for together in _overlapping(files):
            pieces = (self._file(each, deletes) for each in together)
            rows = (piece for pieces_of_one in pieces for piece in pieces_of_one)
            if len(together) == 1:
                yield from (self._given(each) for each in rows)
            else:
                yield from self._merged(list(rows))

    def read_unordered(self, part: LakePart) -> Iterator[LakeRows]:
        """Read all files of a part one after the other, whatever offsets they have."""
        deletes = Deletes(self.table)
        for file in part.files:
            yield from (self._given(each) for each in self._file(file, deletes))

    # --- one file -----------------------------------------------------------------------------

    def _file(self, file: DataFile, deletes: Deletes) -> Iterator[pa.RecordBatch]:
        """The rows of a file that are not deleted, with system columns and those of deletes."""
        applied = deletes.of(file)
        names = list(dict.fromkeys([*self.columns, OFFSET, TIMESTAMP, *applied.columns]))
        first = 0
        for batch in self._batches(file, names):
            kept = applied.kept(batch, first)
            first += batch.num_rows
            rows = batch if kept is None else batch.filter(from_numpy(kept))
            if rows.num_rows:
                yield rows

    def _batches(self, file: DataFile, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with open_file(self.table.io, file.path) as source:
            parquet = pq.ParquetFile(source)
            arrow = parquet.schema_arrow
            physical = {id_: arrow.names[at] for id_, at in places_by_id(arrow).items()}
            found = {
                name: physical.get(self.table.schema().find_field(name).field_id) for name in names
            }
            stored = [each for each in found.values() if each is not None]
            for batch in parquet.iter_batches(batch_size=BATCH_ROWS, columns=stored):
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.nulls(batch.num_rows)
                        if (column := found[name]) is None
                        else batch.column(column)
                        for name in names
                    ],
                    names=list(names),
                )

    # --- what is given ------------------------------------------------------------------------

    def _given(self, rows: pa.RecordBatch) -> LakeRows:
        arrow = self.schema.to_arrow()
        arrays = [_cast(rows.column(name), arrow.field(name)) for name in self.columns]
        fields = [arrow.field(name) for name in self.columns]
        times = rows.column(TIMESTAMP).cast(pa.timestamp("ms", "UTC"), safe=False)
        return LakeRows(
            batch=_batch(arrays, pa.schema(fields), rows.num_rows),
            offsets=to_numpy(rows.column(OFFSET)),
            timestamps=to_numpy(times.cast(pa.int64())),
        )

    def _merged(self, pieces: list[pa.RecordBatch]) -> Iterator[LakeRows]:
        """Rows of files whose offsets overlap, as a compaction may leave them."""
        if not pieces:
            return
        table = pa.Table.from_batches([each.select(pieces[0].schema.names) for each in pieces])
        ordered = table.sort_by(OFFSET).combine_chunks()
        for batch in ordered.to_batches(max_chunksize=BATCH_ROWS):
            yield self._given(batch)


def _batch(arrays: list[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))


def _cast(array: pa.Array, field: pa.Field) -> pa.Array:
    if array.type.equals(field.type):
        return array
    try:
        return array.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorruptDataError(
            f"The column {field.name!r} of the lake is {array.type}, and not what {field.type} "
            "becomes there.",
            what="column of a lake",
            at=0,
            why=str(error).splitlines()[0],
        ) from error


def _overlapping(files: Sequence[Any]) -> Iterator[list[DataFile]]:
    """Runs of files whose ranges of offsets overlap; most runs are one file."""
    run: list[DataFile] = []
    last = -1
    for file in files:
        if run and file.offsets[0] > last:
            yield run
            run = []
        run.append(file)
        last = max(last, file.offsets[1])
    if run:
        yield run
