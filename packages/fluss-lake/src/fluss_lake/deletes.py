"""Applies the deletes of a snapshot to the rows of its files: by position, and by equal keys.

A file of equality deletes has the keys of rows that earlier commits wrote. A row is deleted if the
newest delete of its key is of a later commit than its file. Keys are kept once for all files of a
bucket, each with the newest commit that deletes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table import Table

from fluss.errors import CorruptDataError
from fluss.records.arrow.key_index import KeyIndex
from fluss.records.arrow.numpy_arrays import from_numpy, to_numpy
from fluss.rows.buffers.columns import BoolArray, Int64Array
from fluss_lake.file_plan import DataFile, DeleteFile
from fluss_lake.iceberg_parts import open_file, places_by_id
from fluss_lake.read_errors import reading_file

NO_POSITIONS: Int64Array = np.empty(0, dtype=np.int64)


class Keys:
    """Deleted keys, each with the newest commit that deletes it.

    Args:
        columns: The names of the columns that are compared.
        values: The keys by column; some more than once.
        sequences: The commit that deletes each, ascending.
    """

    def __init__(
        self, columns: tuple[str, ...], values: Sequence[pa.Array], sequences: Int64Array
    ) -> None:
        self.columns = columns
        # A key of several columns is found column by column: the places of two values are one
        # number, and the place of that number goes with the next.
        self._indexes: list[KeyIndex] = []
        self._pairs: list[KeyIndex] = []
        codes = self._numbered(values[0])
        for column in values[1:]:
            codes = self._numbered_pairs(codes, self._numbered(column))
        newest: Int64Array = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.int64)
        newest[codes] = sequences  # the last one stays
        self._newest = newest

    def deleted(self, batch: pa.RecordBatch, sequence: int) -> BoolArray:
        """Which rows of a file of this commit are deleted."""
        first, *others = self._indexes
        codes = first.places(batch.column(self.columns[0]))
        for name, index, pairs in zip(self.columns[1:], others, self._pairs, strict=True):
            next_codes = index.places(batch.column(name))
            is_known = (codes >= 0) & (next_codes >= 0)
            together = from_numpy(codes * len(index.keys) + next_codes)
            codes = np.where(is_known, pairs.places(together), -1)
        if not len(self._newest):
            return np.zeros(batch.num_rows, dtype=np.bool_)
        later: BoolArray = (codes >= 0) & (self._newest[codes] > sequence)
        return later

    def _numbered(self, values: pa.Array) -> Int64Array:
        # NULLs are encoded, so that one is equal to another.
        encoded = values.dictionary_encode(null_encoding="encode")
        self._indexes.append(KeyIndex(encoded.dictionary))
        return to_numpy(encoded.indices).astype(np.int64)

    def _numbered_pairs(self, first: Int64Array, second: Int64Array) -> Int64Array:
        encoded = from_numpy(first * len(self._indexes[-1].keys) + second).dictionary_encode()
        self._pairs.append(KeyIndex(encoded.dictionary))
        return to_numpy(encoded.indices).astype(np.int64)


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
        return tuple(dict.fromkeys(name for each in self.keys for name in each.columns))

    @property
    def is_nothing(self) -> bool:
        """Whether no row of the file is deleted."""
        return not len(self.positions) and not self.keys

    def kept(self, batch: pa.RecordBatch, first: int) -> BoolArray | None:
        """Which rows are not deleted; None for all.

        Args:
            batch: Rows of the file.
            first: The place of the first in the file.
        """
        if self.is_nothing:
            return None
        kept: BoolArray = np.ones(batch.num_rows, dtype=np.bool_)
        low, high = np.searchsorted(self.positions, [first, first + batch.num_rows])
        kept[self.positions[low:high] - first] = False
        for keys in self.keys:
            kept &= ~keys.deleted(batch, self.sequence)
        return None if kept.all() else kept


@dataclass(slots=True)
class Deletes:
    """The deletes of a bucket's files, each file of them read once.

    Attributes:
        table: The table.
        files: The files of rows to which they apply.
    """

    table: Table
    files: Sequence[DataFile]
    _positions: dict[str, dict[str, Int64Array]] = field(default_factory=dict)
    _keys: dict[tuple[int, ...], Keys] = field(default_factory=dict)

    def of(self, file: DataFile) -> Applied:
        """The deletes that apply to a file."""
        by_position = [each for each in file.deletes if not each.equality_ids]
        found = [self._positions_in(each).get(file.path) for each in by_position]
        positions = [each for each in found if each is not None]
        compared = dict.fromkeys(each.equality_ids for each in file.deletes if each.equality_ids)
        return Applied(
            sequence=file.sequence,
            positions=np.unique(np.concatenate(positions)) if positions else NO_POSITIONS,
            keys=[self._keys_of(ids) for ids in compared],
        )

    def _positions_in(self, deletes: DeleteFile) -> dict[str, Int64Array]:
        if deletes.path not in self._positions:
            rows = self._read(deletes, ["file_path", "pos"])
            paths = rows.column("file_path").combine_chunks().dictionary_encode()
            positions = to_numpy(rows.column("pos").combine_chunks()).astype(np.int64)
            numbers = to_numpy(paths.indices)
            self._positions[deletes.path] = {
                path: positions[numbers == number]
                for number, path in enumerate(paths.dictionary.to_pylist())
            }
        return self._positions[deletes.path]

    def _keys_of(self, ids: tuple[int, ...]) -> Keys:
        """All keys that are deleted by these columns, whichever file they apply to."""
        if ids not in self._keys:
            every = (each for file in self.files for each in file.deletes)
            files = {each for each in every if each.equality_ids == ids}
            self._keys[ids] = self._newest(ids, sorted(files, key=lambda each: each.sequence))
        return self._keys[ids]

    def _newest(self, ids: tuple[int, ...], files: Sequence[DeleteFile]) -> Keys:
        """The keys of some files in the order of commits."""
        columns: list[list[pa.Array]] = [[] for _ in ids]
        sequences = []
        for file in files:
            rows = self._read(file)
            for into, column in zip(columns, _columns_by_id(rows, ids, file), strict=True):
                into.append(column)
            sequences.append(np.full(rows.num_rows, file.sequence, dtype=np.int64))
        schema = self.table.schema()
        return Keys(
            tuple(schema.find_field(each).name for each in ids),
            [_together(each) for each in columns],
            np.concatenate(sequences),
        )

    def _read(self, file: DeleteFile, columns: list[str] | None = None) -> pa.Table:
        with reading_file(file.path), open_file(self.table.io, file.path) as source:
            return pq.ParquetFile(source).read(columns=columns)


def _together(pieces: Sequence[pa.Array]) -> pa.Array:
    kinds: set[Any] = {each.type for each in pieces}
    if len(kinds) > 1:
        widest = _widest(kinds)
        pieces = [each.cast(widest) for each in pieces]
    return pa.concat_arrays(pieces)


def _widest(kinds: set[Any]) -> Any:
    """The common type of a column that was widened, or was written by two programs.

    In files of pyiceberg, strings and bytes have Arrow's large types; in those of Java they have
    the plain ones.
    """
    if any(pa.types.is_string(each) or pa.types.is_large_string(each) for each in kinds):
        return pa.large_string()
    if any(pa.types.is_binary(each) or pa.types.is_large_binary(each) for each in kinds):
        return pa.large_binary()
    return max(kinds, key=lambda each: each.bit_width)


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
