"""Reads the rows of planned files in the order of their offsets, without deleted rows.

Columns are matched by their field ids and not by their names, so a column that was renamed or added
in the lake is read correctly. The rows have the Arrow types of the Fluss table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table import Table

from fluss.errors import CorruptDataError
from fluss.lake.file_decoder import FileDecoder
from fluss.lake.lake_format import LakePart, LakeRows, without_lake
from fluss.model.predicates.binding import BoundPredicate
from fluss.model.schema.schema import Schema
from fluss.records.arrow.dictionaries import DICTIONARY, TEXT
from fluss.records.arrow.numpy_arrays import from_numpy, to_numpy
from fluss.records.arrow.views import VIEWS
from fluss_lake.deletes import Deletes
from fluss_lake.dictionary_columns import as_dictionary, dictionary_columns, without_dictionary
from fluss_lake.file_plan import OFFSET, TIMESTAMP, DataFile
from fluss_lake.iceberg_parts import local_path, open_file, places_by_id
from fluss_lake.lent_decoder import LentDecoder
from fluss_lake.order import in_order, overlapping
from fluss_lake.read_errors import reading_file
from fluss_lake.row_groups import Run, row_groups

# Rows that are still in the cache of a processor when the engine takes them over.
BATCH_ROWS: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReader:
    """Reads the same columns from any part of one table.

    Attributes:
        table: The table in the lake.
        schema: The schema of the Fluss table.
        columns: The columns to return, in order.
        condition: The filter by which row groups are skipped; None to read all of them.
        with_places: Whether to return offsets and times, and the rows in the order of offsets.
        as_views: Whether strings and bytes may be views, where no row has to be left out.
        dictionaries: The columns whose strings may be dictionaries, where offsets are not needed.
        decoder: Decodes files in place of pyarrow, where rows may have views.
        note: Called with the number of row groups that the filter has skipped.
    """

    table: Table
    schema: Schema
    columns: Sequence[str]
    condition: BoundPredicate | None = None
    with_places: bool = True
    as_views: bool = False
    dictionaries: frozenset[str] = frozenset()
    decoder: FileDecoder | None = None
    note: Callable[[int], None] | None = None

    def read(self, part: LakePart, start: int, stop: int) -> Iterator[LakeRows]:
        """Read the files and row groups of a part that have offsets in this range."""
        files = [each for each in part.files if each.offsets[0] < stop and each.offsets[1] >= start]
        deletes = Deletes(self.table, files)
        offsets = range(start, stop) if self.with_places else None
        runs = overlapping(files) if self.with_places else [[each] for each in files]
        # Another program may have written a log's file in another order. The order of rows matters
        # only for logs.
        is_log = not self.table.schema().identifier_field_ids
        fields = self._fields()
        views = self._views(fields)
        for together in runs:
            pieces = [self._file(each, deletes, offsets, views) for each in together]
            has_order = self.with_places and (is_log or len(pieces) > 1)
            rows = in_order(pieces) if has_order else chain.from_iterable(pieces)
            for piece in rows:
                yield self._result(piece, fields)

    def read_unordered(self, part: LakePart) -> Iterator[LakeRows]:
        """Read all rows of a part, file by file, without ordering them by offset."""
        deletes = Deletes(self.table, part.files)
        fields = self._fields()
        views = self._views(fields)
        for file in part.files:
            for piece in self._file(file, deletes, None, views):
                yield self._result(piece, fields)

    # --- one file -----------------------------------------------------------------------------

    def _file(
        self,
        file: DataFile,
        deletes: Deletes,
        offsets: range | None,
        views: Mapping[str, pa.DataType] | None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a file that are not deleted, with all columns that the caller needs."""
        applied = deletes.of(file)
        places = (OFFSET, TIMESTAMP) if self.with_places else ()
        names = list(dict.fromkeys([*self.columns, *places, *applied.columns]))
        may_be_views = views if applied.is_nothing else None
        # Keys are compared with texts.
        dictionaries = self._dictionaries().difference(applied.columns)
        for first, batch in self._batches(file, names, offsets, may_be_views, dictionaries):
            kept = applied.kept(batch, first)
            rows = batch if kept is None else batch.filter(from_numpy(kept))
            if rows.num_rows:
                yield rows

    def _batches(
        self,
        file: DataFile,
        names: Sequence[str],
        offsets: range | None,
        views: Mapping[str, pa.DataType] | None,
        dictionaries: Collection[str],
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of the required row groups; each batch with the position of its first row."""
        with reading_file(file.path), open_file(self.table.io, file.path) as source:
            parquet = pq.ParquetFile(source)
            found = self._found(file, parquet.schema_arrow, names)
            stored = [each for each in found.values() if each is not None]
            groups = row_groups(
                parquet.metadata, self._stored_names(parquet), self.condition, offsets
            )
            if self.note is not None and groups.left_out_by_condition:
                self.note(groups.left_out_by_condition)
            lent = None if views is None else self._lent(file, parquet, stored)
            by_dictionary = dictionary_columns(parquet.metadata, stored)
            if by_dictionary:
                parquet = pq.ParquetFile(
                    source, metadata=parquet.metadata, read_dictionary=by_dictionary
                )
            for run in groups.runs:
                first = run.first_row
                for batch in _decoded(parquet, run, stored, lent):
                    yield first, _arranged(batch, found, views or {}, dictionaries)
                    first += batch.num_rows

    def _stored_names(self, parquet: pq.ParquetFile) -> dict[str, str]:
        """The names of the columns in the file, by their present names."""
        arrow = parquet.schema_arrow
        names = {id_: arrow.names[at] for id_, at in places_by_id(arrow).items()}
        fields = self.table.schema().fields
        return {each.name: names[each.field_id] for each in fields if each.field_id in names}

    def _found(
        self, file: DataFile, arrow: pa.Schema, names: Sequence[str]
    ) -> dict[str, str | None]:
        """The name of each column in the file; None if the file is older than the column."""
        physical = {id_: arrow.names[at] for id_, at in places_by_id(arrow).items()}
        fields = {name: self.table.schema().find_field(name) for name in names}
        found = {name: physical.get(each.field_id) for name, each in fields.items()}
        missing = [name for name, each in found.items() if each is None and fields[name].required]
        if not physical or missing:
            why = f"it has no column {missing[0]!r}" if missing else "its columns have no ids"
            raise CorruptDataError(
                f"The file {file.path} does not fit the table in the lake: {why}.",
                hint=without_lake("Another program may have added it."),
                what="file of a lake",
                at=0,
                why=why,
            )
        return found

    # --- results ------------------------------------------------------------------------------

    def _fields(self) -> list[pa.Field]:
        """The columns of the results, which take as long to make as a batch takes to convert."""
        arrow = self.schema.to_arrow()
        return [arrow.field(name) for name in self.columns]

    def _lent(
        self, file: DataFile, parquet: pq.ParquetFile, stored: Sequence[str]
    ) -> LentDecoder | None:
        path = None if self.decoder is None else local_path(self.table.io, file.path)
        if self.decoder is None or path is None:
            return None
        return LentDecoder(self.decoder, path, parquet, stored)

    def _views(self, fields: Sequence[pa.Field]) -> dict[str, pa.DataType] | None:
        """The columns that may be views, with the types of the views; None where none may be."""
        if not self.as_views or self.with_places:
            return None
        found = {each.name: VIEWS.get(each.type) for each in fields}
        return {name: view for name, view in found.items() if view is not None}

    def _dictionaries(self) -> frozenset[str]:
        return frozenset() if self.with_places else self.dictionaries

    def _result(self, rows: pa.RecordBatch, fields: Sequence[pa.Field]) -> LakeRows:
        arrays = [_cast(rows.column(each.name), each) for each in fields]
        given = [each.with_type(array.type) for each, array in zip(fields, arrays, strict=True)]
        batch = _batch(arrays, pa.schema(given), rows.num_rows)
        if not self.with_places:
            return LakeRows(batch=batch)
        times = rows.column(TIMESTAMP).cast(pa.timestamp("ms", "UTC"), safe=False)
        return LakeRows(
            batch=batch,
            offsets=to_numpy(rows.column(OFFSET)),
            timestamps=to_numpy(times.cast(pa.int64())),
        )


def _decoded(
    parquet: pq.ParquetFile, run: Run, columns: Sequence[str], lent: LentDecoder | None
) -> Iterator[pa.RecordBatch]:
    """The rows of some row groups, by the engine's decoder as far as it goes."""
    given = 0
    for batch in () if lent is None else lent.read(run):
        given += batch.num_rows
        yield batch
    if lent is not None and given == run.rows:
        return
    for batch in parquet.iter_batches(
        batch_size=BATCH_ROWS, row_groups=list(run.groups), columns=list(columns)
    ):
        left = batch.slice(given)
        given = max(0, given - batch.num_rows)
        if left.num_rows or not columns:
            yield left


def _arranged(
    batch: pa.RecordBatch,
    found: Mapping[str, str | None],
    views: Mapping[str, pa.DataType],
    dictionaries: Collection[str],
) -> pa.RecordBatch:
    """The batch with the present column names, and NULLs for columns that the file lacks."""
    arrays = [
        pa.nulls(batch.num_rows)
        if stored is None
        else as_dictionary(batch.column(stored))
        if name in dictionaries
        else without_dictionary(batch.column(stored), views.get(name))
        for name, stored in found.items()
    ]
    if not arrays:
        return _batch([], pa.schema([]), batch.num_rows)
    return pa.RecordBatch.from_arrays(arrays, names=list(found))


def _batch(arrays: list[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))


def _cast(array: pa.Array, field: pa.Field) -> pa.Array:
    if array.type in (field.type, VIEWS.get(field.type)):
        return array
    if array.type == DICTIONARY and field.type == TEXT:
        return array
    try:
        return array.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorruptDataError(
            f"The column {field.name!r} in the lake has the type {array.type}, which cannot be read as "
            f"{field.type}.",
            what="column of a lake",
            at=0,
            why=str(error).splitlines()[0],
        ) from error
