"""Reduces many changes to one per key: the last, or the first where history is undone.

Changes are collected as Arrow tables and reduced whenever they have doubled, so memory follows the
number of keys, not the number of changes. Changes that outgrow the budget are divided by key among
files (`Spill`), which are reduced one after the other, together with the stored rows that
they change.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from fluss.records.arrow.key_index import KeyIndex
from fluss.records.arrow.numpy_arrays import empty_batch, from_numpy, to_numpy
from fluss.rows.buffers.columns import BoolArray, Int64Array
from fluss.state.key_column import parts_of

Counting = Literal["last", "first"]

BATCH_ROWS_MAX: Final = 65_536
# Reducing holds a table twice, and its keys once more: a quarter of the budget may fill up.
_SHARE_COLLECTED: Final = 4
_SHARE_REDUCED: Final = 8
# Arrow counts the bytes of a text column with 32 bits, and pieces become one column.
_COLLECTED_MAX: Final = 1 << 30

_KEY: Final = "key"
_IS_THERE: Final = "is_there"
_ROW: Final = "row"
_OWN_COLUMNS: Final = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class ReducedChanges:
    """One change per key: the keys, and the rows of those that are there afterwards.

    Attributes:
        keys: The keys.
        rows: The rows.
    """

    keys: pa.Array
    rows: pa.Table

    def untouched(self, rows: pa.RecordBatch, keys: pa.Array) -> pa.RecordBatch:
        """The rows whose keys have no change."""
        if not len(self.keys):
            return rows
        kept = ~self._index.has(keys)
        return rows if kept.all() else rows.filter(from_numpy(kept))

    @cached_property
    def _index(self) -> KeyIndex:
        """The keys, prepared to be found: not made where there are no stored rows."""
        return KeyIndex(self.keys)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows that are there, in batches of useful size."""
        yield from self.rows.to_batches(max_chunksize=BATCH_ROWS_MAX)


class Changes:
    """The changes of one bucket between two offsets.

    Args:
        schema: The columns of the rows.
        counts: Which change of a key counts.
        memory_bytes_max: How much may be held in memory, temporary copies included.
    """

    def __init__(self, schema: pa.Schema, *, counts: Counting, memory_bytes_max: int) -> None:
        self._schema = schema
        self._counts = counts
        self._collected_max = min(memory_bytes_max // _SHARE_COLLECTED, _COLLECTED_MAX)
        self._reduced_max = min(memory_bytes_max // _SHARE_REDUCED, _COLLECTED_MAX // 2)
        self._pieces: list[pa.Table] = []
        self._bytes = 0
        self._spill: Spill | None = None

    def add(self, keys: pa.Array, rows: pa.RecordBatch, is_there: BoolArray) -> None:
        """Add changes, later than those before.

        Args:
            keys: The key of each.
            rows: The row that each change leaves, or removes.
            is_there: Whether it leaves a row.
        """
        piece = _piece(keys, rows, is_there)
        self._pieces.append(piece)
        self._bytes += piece.nbytes
        if self._bytes > self._collected_max:
            self._reduce()

    def over(self, stored: Iterable[tuple[pa.Array, pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """Apply the changes to stored rows, which come with their keys; works once."""
        if self._spill is None:
            reduced = self._reduced_changes(self._pieces)
            self._pieces = []
            for keys, rows in stored:
                yield reduced.untouched(rows, keys)
            yield from reduced.batches()
        else:
            yield from self._part_by_part(self._spill, stored)

    def close(self) -> None:
        """Free everything, files included."""
        self._pieces = []
        if self._spill is not None:
            self._spill.close()

    # --- within memory ------------------------------------------------------------------------

    def _reduce(self) -> None:
        if self._spill is None:
            reduced = self._reduced(self._pieces)
            self._pieces, self._bytes = [reduced], reduced.nbytes
            if self._bytes <= self._reduced_max:
                return
            self._spill = Spill()
        self._write_pieces(self._spill)
        pa.default_memory_pool().release_unused()

    def _reduced(self, pieces: list[pa.Table]) -> pa.Table:
        together = pa.concat_tables(pieces).combine_chunks()
        return _taken(together, self._counting_rows(together.column(_KEY)))

    def _counting_rows(self, keys: pa.ChunkedArray) -> Int64Array:
        """The row of each key that counts, in their order."""
        numbered = keys.combine_chunks().dictionary_encode()
        numbers = to_numpy(numbered.indices)
        rows = np.arange(len(numbers), dtype=np.int64)
        found = np.empty(len(numbered.dictionary), dtype=np.int64)
        if self._counts == "first":
            numbers, rows = numbers[::-1], rows[::-1]
        found[numbers] = rows  # of rows with the same key the last one stays
        found.sort()
        return found

    def _reduced_changes(self, pieces: list[pa.Table]) -> ReducedChanges:
        if not pieces:
            return ReducedChanges(
                keys=pa.nulls(0), rows=pa.Table.from_batches([empty_batch(self._schema)])
            )
        together = pa.concat_tables(pieces).combine_chunks()
        counting = self._counting_rows(together.column(_KEY))
        keys = _taken(together.select([_KEY]), counting).column(_KEY).combine_chunks()
        is_there = to_numpy(together.column(_IS_THERE).combine_chunks())
        # Rows are copied once, without those that are not there.
        rows = _taken(together.drop_columns([_KEY, _IS_THERE]), counting[is_there[counting]])
        return ReducedChanges(
            keys=keys, rows=pa.Table.from_arrays(rows.columns, schema=self._schema)
        )

    # --- on disk ----------------------------------------------------------------------------

    def _write_pieces(self, spill: Spill) -> None:
        for piece in self._pieces:
            spill.write(piece, parts_of(piece.column(_KEY), PARTS))
        self._pieces, self._bytes = [], 0

    def _part_by_part(
        self, spill: Spill, stored: Iterable[tuple[pa.Array, pa.RecordBatch]]
    ) -> Iterator[pa.RecordBatch]:
        self._write_pieces(spill)
        beneath = Spill()
        try:
            for keys, rows in stored:
                piece = _piece(keys, rows, np.ones(rows.num_rows, dtype=np.bool_))
                beneath.write(piece, parts_of(keys, PARTS))
            for part in range(PARTS):
                reduced = self._reduced_changes(list(spill.read(part)))
                for piece in beneath.read(part):
                    for batch in piece.to_batches(max_chunksize=BATCH_ROWS_MAX):
                        rows = pa.RecordBatch.from_arrays(
                            batch.columns[_OWN_COLUMNS:], schema=self._schema
                        )
                        yield reduced.untouched(rows, batch.column(_KEY))
                yield from reduced.batches()
        finally:
            beneath.close()


def _taken(table: pa.Table, rows: Int64Array) -> pa.Table:
    return table if len(rows) == table.num_rows else table.take(from_numpy(rows))


def _piece(keys: pa.Array, rows: pa.RecordBatch, is_there: BoolArray) -> pa.Table:
    # The table's own names might be ours, or occur twice.
    columns = {str(place): each for place, each in enumerate(rows.columns)}
    return pa.table({_KEY: keys, _IS_THERE: from_numpy(is_there), **columns})


PARTS: Final = 32


class Spill:
    """`PARTS` files, written first and then read, by one thread."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="fluss-spill-")
        self._writers: dict[int, _FileWriter] = {}

    def write(self, table: pa.Table, parts: Int64Array) -> None:
        """Append rows to their parts."""
        if not table.num_rows:
            return
        # numpy sorts numbers of 16 bits in linear time.
        order = np.argsort(parts.astype(np.uint16), kind="stable")
        ordered = table.take(from_numpy(order))
        edges = np.searchsorted(parts[order], np.arange(PARTS + 1))
        for part in range(PARTS):
            start, stop = int(edges[part]), int(edges[part + 1])
            if start < stop:
                self._writer(part, table.schema).write_table(ordered.slice(start, stop - start))

    def read(self, part: int) -> Iterator[pa.Table]:
        """Read the rows of one part, to which nothing can be written afterwards."""
        writer = self._writers.get(part)
        if writer is None:
            return
        writer.close()
        with pa.OSFile(str(self._path(part))) as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                yield pa.Table.from_batches([batch])

    def close(self) -> None:
        """Remove the files. Idempotent."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        self._directory.cleanup()

    def _writer(self, part: int, schema: pa.Schema) -> _FileWriter:
        if part not in self._writers:
            self._writers[part] = _FileWriter(str(self._path(part)), schema)
        return self._writers[part]

    def _path(self, part: int) -> Path:
        return Path(self._directory.name) / f"{part}.arrow"


class _FileWriter:
    """A stream of batches into a file; `close` is idempotent."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self._file = pa.OSFile(path, "wb")
        self._stream = pa.ipc.new_stream(self._file, schema, options=_options())
        self._is_open = True

    def write_table(self, table: pa.Table) -> None:
        self._stream.write_table(table)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._stream.close()
            self._file.close()


def _options() -> Any:
    fast = "lz4" if pa.Codec.is_available("lz4") else None
    return pa.ipc.IpcWriteOptions(compression=fast)
