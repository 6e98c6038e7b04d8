"""Reads the files that a lake has of a bucket, when some of them are rewritten.

Deletes of earlier rounds are applied to the rows. A delete file is removed together with the last
file that it applies to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table import Table

from fluss.lake.lake_format import LakePart, LakeRows
from fluss.model.tables.table_info import TableInfo
from fluss.net.cancellation import Cancellation
from fluss.records.arrow.numpy_arrays import to_numpy
from fluss.rows.buffers.columns import Int64Array
from fluss.state.key_column import RowKeys
from fluss_lake.file_plan import DataFile
from fluss_lake.file_reader import PartReader
from fluss_lake.tiering.change_reader import with_place


@dataclass(slots=True, eq=False)
class ChangedKeys:
    """The keys of changed rows, as long as they fit into memory.

    Args:
        bytes_max: How much memory they may take.
    """

    bytes_max: int
    is_known: bool = True
    _pieces: list[pa.Array] = field(default_factory=list)
    _bytes: int = 0
    _numbers: Int64Array | None = None

    def add(self, keys: pa.Array) -> None:
        """Add keys."""
        if not self.is_known:
            return
        self._pieces.append(keys)
        self._bytes += keys.nbytes
        if self._bytes > self.bytes_max:
            self._pieces = [pc.unique(pa.concat_arrays(self._pieces))]
            self._bytes = self._pieces[0].nbytes
            if self._bytes > self.bytes_max // 2:
                self.is_known, self._pieces = False, []

    def has_any(self, keys: pa.Array) -> bool:
        """Whether one of these keys may have been changed."""
        if not self.is_known:
            return True
        if len(self._pieces) > 1:
            self._pieces = [pc.unique(pa.concat_arrays(self._pieces))]
        if not self._pieces:
            return False
        changed = self._pieces[0]
        if not pa.types.is_integer(changed.type):
            return bool(pc.any(pc.is_in(keys, value_set=changed)).as_py())
        if self._numbers is None:
            self._numbers = np.sort(to_numpy(changed))
        numbers = to_numpy(keys)
        places = np.searchsorted(self._numbers, numbers)
        places[places == len(self._numbers)] = 0
        return bool((self._numbers[places] == numbers).any())


@dataclass(frozen=True, slots=True)
class _FilesAlone:
    """The part of pyiceberg's `Table` that file readers use, without a catalog."""

    io: FileIO
    columns: IcebergSchema

    def schema(self) -> IcebergSchema:
        return self.columns


@dataclass(frozen=True, slots=True)
class PresentFiles:
    """Reads the files of a bucket that are part of the lake's table.

    Args:
        info: The table.
        io: The file system of the lake.
        schema: The columns of the lake's table.
        cancellation: Cancels reading from another thread.
    """

    info: TableInfo
    io: FileIO
    schema: IcebergSchema
    cancellation: Cancellation

    def with_keys(self, part: LakePart | None, changed: ChangedKeys) -> LakePart | None:
        """The files that have a row with one of these keys; None if there are none."""
        if part is None:
            return None
        files = tuple(file for file in part.files if self._has_key(part, file, changed))
        return replace(part, files=files) if files else None

    def rows(self, part: LakePart | None) -> Iterator[pa.RecordBatch]:
        """The rows of these files without the deleted ones, with the columns that a lake adds."""
        if part is None:
            return
        for rows in self._read(part, self.info.schema.column_names):
            yield with_place(rows.batch, part.bucket_id, rows.offsets, rows.timestamps)

    def rows_in_order(self, part: LakePart) -> Iterator[pa.RecordBatch]:
        """The same rows, in the order of offsets."""
        reader = self._reader(self.info.schema.column_names)
        for rows in reader.read(part, 0, part.end):
            self.cancellation.check()
            yield with_place(rows.batch, part.bucket_id, rows.offsets, rows.timestamps)

    def _has_key(self, part: LakePart, file: DataFile, changed: ChangedKeys) -> bool:
        if not changed.is_known:
            return True
        schema = self.info.schema
        names = list(self.info.physical_primary_keys)
        keys = RowKeys(self.info, schema.column_indexes(names))
        alone = replace(part, files=(file,))
        return any(changed.has_any(keys.of(rows.batch)) for rows in self._read(alone, names))

    def _read(self, part: LakePart, columns: Sequence[str]) -> Iterator[LakeRows]:
        for rows in self._reader(columns).read_unordered(part):
            self.cancellation.check()
            yield rows

    def _reader(self, columns: Sequence[str]) -> PartReader:
        table = cast("Table", _FilesAlone(self.io, self.schema))
        return PartReader(table=table, schema=self.info.schema, columns=columns)


def paths_of(written_again: LakePart | None, present: LakePart | None) -> frozenset[str]:
    """The paths of replaced files, and of delete files that apply to no remaining file.

    Args:
        written_again: The files that are rewritten.
        present: All files of the bucket.
    """
    if written_again is None or present is None:
        return frozenset()
    files: tuple[DataFile, ...] = written_again.files
    gone = {file.path for file in files}
    kept = {
        delete.path for file in present.files if file.path not in gone for delete in file.deletes
    }
    deletes = {delete.path for file in files for delete in file.deletes}
    return frozenset(gone | (deletes - kept))
