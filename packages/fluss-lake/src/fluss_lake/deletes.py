"""Applies the deletes of a snapshot to the rows of its files: by position, and by equal keys.

A file of equality deletes has the keys of rows that earlier commits wrote. A row is deleted if the
newest delete of its key is of a later commit than its file. Keys are kept once for each set of such
files, with the newest commit that deletes each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.table import Table

from fluss.errors import CorruptDataError
from fluss.records.arrow.numpy_arrays import to_numpy
from fluss.rows.buffers.columns import BoolArray, Int64Array
from fluss_lake.file_plan import DataFile, DeleteFile
from fluss_lake.iceberg_parts import open_file, places_by_id


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Keys:
    """Deleted keys, each with the newest commit that deletes it.

    Attributes:
        columns: The names of the columns that are compared.
        values: The keys, each once; of several columns as one structure's text.
        sequences: The newest commit that deletes each.
    """

    columns: tuple[str, ...]
    values: pa.Array
    sequences: Int64Array

    def deleted(self, batch: pa.RecordBatch, sequence: int) -> BoolArray:
        """Which rows of a file of this commit are deleted."""
        keys = key_column([batch.column(name) for name in self.columns])
        places = pc.index_in(keys.cast(self.values.type), value_set=self.values)
        found = to_numpy(pc.fill_null(places, -1))
        later: BoolArray = (found >= 0) & (self.sequences[found] > sequence)
        return later


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Applied:
    """The deletes that apply to one file.

    Attributes:
        sequence: The commit of the file.
        positions: The places of deleted rows, in order.
        keys: Deleted keys, by the columns that are compared.
    """

    sequence: int
    positions: Int64Array
    keys: Sequence[Keys]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that rows are compared by."""
        return tuple(name for each in self.keys for name in each.columns)

    def kept(self, batch: pa.RecordBatch, first: int) -> BoolArray | None:
        """Which rows are not deleted; None for all.

        Args:
            batch: Rows of the file.
            first: The place of the first in the file.
        """
        kept: BoolArray = np.ones(batch.num_rows, dtype=np.bool_)
        low, high = np.searchsorted(self.positions, [first, first + batch.num_rows])
        kept[self.positions[low:high] - first] = False
        for each in self.keys:
            kept &= ~each.deleted(batch, self.sequence)
        return None if kept.all() else kept


@dataclass(slots=True)
class Deletes:
    """The deletes of a table's files, each file of them read once."""

    table: Table
    _positions: dict[str, dict[str, Int64Array]] = field(default_factory=dict)
    _keys: dict[tuple[DeleteFile, ...], list[Keys]] = field(default_factory=dict)

    def of(self, file: DataFile) -> Applied:
        """The deletes that apply to a file."""
        by_position = [each for each in file.deletes if not each.equality_ids]
        by_key = tuple(each for each in file.deletes if each.equality_ids)
        found = [self._positions_in(each).get(file.path) for each in by_position]
        positions = [each for each in found if each is not None]
        return Applied(
            sequence=file.sequence,
            positions=np.unique(np.concatenate(positions))
            if positions
            else np.empty(0, dtype=np.int64),
            keys=self._keys_in(by_key),
        )

    def _positions_in(self, deletes: DeleteFile) -> dict[str, Int64Array]:
        if deletes.path not in self._positions:
            rows = self._read(deletes)
            paths = rows.column("file_path").combine_chunks().dictionary_encode()
            positions = to_numpy(rows.column("pos").combine_chunks()).astype(np.int64)
            numbers = to_numpy(paths.indices)
            self._positions[deletes.path] = {
                path: positions[numbers == number]
                for number, path in enumerate(paths.dictionary.to_pylist())
            }
        return self._positions[deletes.path]

    def _keys_in(self, files: tuple[DeleteFile, ...]) -> list[Keys]:
        if files not in self._keys:
            grouped: dict[tuple[int, ...], list[DeleteFile]] = {}
            for each in files:
                grouped.setdefault(each.equality_ids, []).append(each)
            self._keys[files] = [self._newest(ids, group) for ids, group in grouped.items()]
        return self._keys[files]

    def _newest(self, ids: tuple[int, ...], files: Sequence[DeleteFile]) -> Keys:
        """The keys of some files, each with its newest commit."""
        keys, sequences = [], []
        for file in sorted(files, key=lambda each: each.sequence):
            rows = self._read(file)
            columns = _columns_by_id(rows, ids, file)
            keys.append(key_column(columns))
            sequences.append(np.full(rows.num_rows, file.sequence, dtype=np.int64))
        together = pa.concat_arrays(keys).dictionary_encode()
        newest: Int64Array = np.zeros(len(together.dictionary), dtype=np.int64)
        newest[to_numpy(together.indices)] = np.concatenate(sequences)  # the last one stays
        schema = self.table.schema()
        return Keys(
            columns=tuple(schema.find_field(each).name for each in ids),
            values=together.dictionary,
            sequences=newest,
        )

    def _read(self, file: DeleteFile) -> pa.Table:
        with open_file(self.table.io, file.path) as source:
            return pq.read_table(source)


def key_column(columns: Sequence[pa.Array]) -> pa.Array:
    """Keys as one column; several columns become bytes that are equal where all columns are."""
    if len(columns) == 1:
        return columns[0]
    parts = []
    for each in columns:
        text = each if pa.types.is_binary(each.type) else each.cast(pa.string())
        data = text.cast(pa.binary())
        length = pc.binary_length(data).cast(pa.string()).cast(pa.binary())
        # A NULL has no length, so that it equals a NULL and nothing else.
        parts += [
            pc.fill_null(length, b""),
            pa.repeat(pa.scalar(b":"), len(each)),
            pc.fill_null(data, b""),
        ]
    return pc.binary_join_element_wise(*parts, pa.scalar(b""))


def _columns_by_id(rows: pa.Table, ids: Sequence[int], file: DeleteFile) -> list[pa.Array]:
    by_id = places_by_id(rows.schema)
    missing = [each for each in ids if each not in by_id]
    if missing:
        raise CorruptDataError(
            f"The file of deletes {file.path} does not have the columns it compares.",
            what="file of deletes",
            at=0,
            why=f"it has no columns of the ids {missing}",
        )
    return [rows.column(by_id[each]).combine_chunks() for each in ids]
