"""The door for lake formats: what a package offers so that scans read tables of its format.

A package names an object with the methods of `LakeFormat` in the entry point group `fluss.lakes`,
under the name that `table.datalake.format` has: `iceberg = "fluss_lake.iceberg:ICEBERG"`. A scan
asks it for the files of a snapshot (`open`) in the process that plans. Workers read them (`read`):
a part is small and picklable, and has no secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from fluss.errors import MissingExtraError
from fluss.hints import Hint, HintKey
from fluss.install_hints import how_to_install
from fluss.lake.file_decoder import FileDecoder
from fluss.lake.formats_not_read import what_it_needs
from fluss.model.predicates.predicate import Predicate
from fluss.model.tables.table_info import TableInfo
from fluss.rows.buffers.columns import Int64Array

GROUP: Final = "fluss.lakes"
EXTRA: Final = "fluss-core[lake]"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakePart:
    """The files of one bucket in a snapshot.

    Attributes:
        format: The format, as `table.datalake.format` has it.
        snapshot_id: The snapshot.
        partition_name: The partition; None where there are none.
        bucket_id: The bucket.
        first_offset: The least offset of its rows, those of files that were left out included.
        end: One past the greatest.
        files: The files that are read; only the format knows what they are.
        files_left_out: How many files no row of which fulfils the condition.
        rows_left_out: How many rows those have.
        size_bytes_left_out: Their size.
        rows_max: An upper bound of their rows.
        is_whole: Whether that bound is the number of the bucket's rows.
        size_bytes: The size of the files.
    """

    format: str
    snapshot_id: int
    partition_name: str | None
    bucket_id: int
    first_offset: int
    end: int
    files: tuple[Any, ...]
    files_left_out: int
    rows_max: int
    is_whole: bool
    size_bytes: int
    rows_left_out: int = 0
    size_bytes_left_out: int = 0

    @property
    def start_of_state(self) -> int:
        """The first offset of the rows by key.

        Fluss's job in Flink begins a table with the rows of its KV snapshots, which have the offset
        -1 (`ScanRecord.INVALID` in Java).
        """
        return min(0, self.first_offset)


def _no_places() -> Int64Array:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LakeRows:
    """Some rows of a lake.

    Attributes:
        batch: The requested columns, in the table's Arrow types.
        offsets: The offset of each row in its bucket; none where places are not requested.
        timestamps: When each row was committed, in milliseconds; none likewise.
    """

    batch: pa.RecordBatch
    offsets: Int64Array = field(default_factory=_no_places)
    timestamps: Int64Array = field(default_factory=_no_places)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSnapshot:
    """A snapshot that a lake still has.

    Attributes:
        snapshot_id: Its id.
        timestamp_ms: When it was committed.
    """

    snapshot_id: int
    timestamp_ms: int


class LakeContents(Protocol):
    """The files of one snapshot of a table, as one reading of its catalog found them."""

    @property
    def partition_names(self) -> frozenset[str]:
        """The partitions that have files; empty where the table has no partitions."""
        ...

    @property
    def is_cut(self) -> bool:
        """Whether parts that have no row to give were passed over unseen."""
        ...

    @property
    def left_out(self) -> str:
        """What was passed over unseen and why, for people; empty for nothing."""
        ...

    def parts(self, predicate: Predicate | None) -> list[LakePart]:
        """The files by bucket, in the order of partitions and buckets.

        Args:
            predicate: A condition on the table's own columns, by which files are left out. Rows
                that do not fulfil it may remain.
        """
        ...


class LakeFormat(Protocol):
    """What a format offers. All methods block; any thread may call them."""

    def open(
        self,
        table: TableInfo,
        snapshot_id: int,
        settings: Mapping[str, str],
        *,
        predicate: Predicate | None = None,
    ) -> LakeContents:
        """Find the files of a snapshot.

        Args:
            table: The table.
            snapshot_id: The snapshot.
            settings: What the user has set for lakes (`lake.*`, without that prefix); it has
                secrets, which must not be in what is returned.
            predicate: A condition on partition keys; partitions that cannot fulfil it may be
                missing from the contents.

        Raises:
            FlussError: The catalog cannot be reached, or does not have the table or the snapshot.
        """
        ...

    def snapshots(self, table: TableInfo, settings: Mapping[str, str]) -> list[PastSnapshot]:
        """The snapshots that the lake still has, the newest first, of all writers.

        Raises:
            FlussError: The catalog cannot be reached, or does not have the table.
        """
        ...

    def read(
        self,
        table: TableInfo,
        part: LakePart,
        *,
        columns: Sequence[str],
        start: int,
        stop: int,
        settings: Mapping[str, str],
        predicate: Predicate | None = None,
        with_places: bool = True,
        as_views: bool = False,
        dictionaries: Collection[str] = (),
        decoder: FileDecoder | None = None,
        note: Callable[[int], None] | None = None,
    ) -> Iterator[LakeRows]:
        """Read rows of a part; deleted rows are not given.

        Args:
            table: The table.
            part: What to read.
            columns: The table's columns that are needed.
            start: The first offset that is needed; rows before it may be given.
            stop: One past the last offset that is needed; rows after it may be given.
            settings: What the user has set for lakes.
            predicate: A condition on the table's own columns, by which pieces of files are left
                out. Rows that do not fulfil it may be given.
            with_places: Whether offsets and times are needed. Rows then come in the order of
                offsets, and otherwise in any.
            as_views: Whether strings and bytes may be views (`string_view`, `binary_view`), where
                views are cheaper than the table's types. Only without places.
            dictionaries: The columns whose strings may be dictionaries
                (`dictionary<int32, string>`), where files have them so. Only without places.
            decoder: May decode files in place of pyarrow, where rows may have views.
            note: Is called with how many pieces of files were left out by the condition.

        Raises:
            FlussError: A file cannot be read.
        """
        ...


@cache
def find_format(name: str) -> LakeFormat | None:
    """Return the format of a name, or None where no installed package offers it."""
    for entry in entry_points(group=GROUP, name=name):
        found: LakeFormat = entry.load()
        return found
    return None


def the_format(name: str, table: TableInfo) -> LakeFormat:
    """Return the format of a name.

    Args:
        name: The format, as `table.datalake.format` has it.
        table: The table whose lake is to be read.

    Raises:
        MissingExtraError: No installed package reads the format.
    """
    found = find_format(name)
    if found is None:
        raise MissingExtraError(
            f"The lake of {table.table_path} has the format {name!r}, which no installed package "
            "reads.",
            hint=how_to_install(EXTRA) if name == "iceberg" else _without_package(name, table),
            table=str(table.table_path),
        )
    return found


def _without_package(name: str, table: TableInfo) -> Hint:
    return without_lake(what_it_needs(name, table.properties))


def without_lake(advice: str = "") -> Hint:
    """Return the hint of an error of a lake: some advice, and how to read without the lake."""
    return Hint(HintKey.READ_WITHOUT_LAKE, advice=f"{advice} ".lstrip())
