"""The results of polls: records by bucket, single or as batches.

`ScanRecords` is both a sequence of records and a mapping from buckets to their records. It keeps
the decoded batches; the values of a batch become Python objects, column by column, when the first
of its records is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from fluss.log.decode import DecodedBatch
from fluss.model.change_type import ChangeType
from fluss.model.paths import TableBucket
from fluss.model.types.data_type import DataType
from fluss.records.convert.python_rows import PythonRows
from fluss.records.convert.row_dicts import row_dicts

_CHANGE_TYPES = tuple(ChangeType)


class ScanRecord:
    """One record: a row, its offset, its timestamp and its change type.

    Attributes:
        row: Its values by column name.
    """

    # A poll makes one of these per row, so they are as small as possible, and `_Batch` makes them
    # without `__init__`. `row` is set once the rows of the batch exist: found in a slot, it takes
    # 10 ns, and found by a property 60.
    __slots__ = ("_batch", "_index", "row")
    _batch: _Batch
    _index: int
    row: dict[str, Any]

    @property
    def offset(self) -> int:
        """Its offset in the log of its bucket."""
        return self._batch.offsets[self._index]

    @property
    def timestamp(self) -> int:
        """When the server took it, in milliseconds since 1970."""
        return self._batch.timestamp

    @property
    def change_type(self) -> ChangeType:
        """The change that it made to the table."""
        changes = self._batch.changes
        return ChangeType.AppendOnly if changes is None else _CHANGE_TYPES[changes[self._index]]

    if not TYPE_CHECKING:  # checkers shall not take it for a class with any attribute

        def __getattr__(self, name: str) -> Any:
            if name != "row":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self.row = row = self._batch.rows()[self._index]
            return row

    def __repr__(self) -> str:
        return (
            f"ScanRecord(offset={self.offset}, timestamp={self.timestamp}, "
            f"change_type={self.change_type.short_string()}, row={self.row})"
        )


class RecordBatch:
    """An Arrow batch of one bucket, with the offsets of its rows."""

    __slots__ = ("_decoded",)

    def __init__(self, decoded: DecodedBatch) -> None:
        self._decoded = decoded

    @property
    def batch(self) -> pa.RecordBatch:
        """The rows."""
        return self._decoded.batch

    @property
    def bucket(self) -> TableBucket:
        """Their bucket."""
        return self._decoded.bucket

    @property
    def base_offset(self) -> int:
        """The offset of the first row."""
        return self._decoded.base_offset

    @property
    def last_offset(self) -> int:
        """The offset of the last row."""
        return self._decoded.last_offset

    @property
    def num_records(self) -> int:
        """How many rows there are."""
        return self._decoded.num_rows

    @property
    def timestamp(self) -> int:
        """When the server took them, in milliseconds since 1970; 0 where it is not known."""
        return self._decoded.timestamp

    @property
    def change_types(self) -> list[ChangeType]:
        """The change that each row made to the table."""
        types = self._decoded.change_types
        if types is None:
            return [ChangeType.AppendOnly] * self.num_records
        return [_CHANGE_TYPES[each] for each in types.tolist()]

    def __repr__(self) -> str:
        return (
            f"RecordBatch(bucket={self.bucket}, base_offset={self.base_offset}, "
            f"last_offset={self.last_offset}, rows={self.num_records})"
        )


ScanBatch = RecordBatch


class ScanRecords:
    """The records of one poll, in a stable order."""

    __slots__ = ("_batches", "_by_bucket", "_count", "_flat", "_shared", "_types")

    def __init__(self, batches: Sequence[DecodedBatch], types: Sequence[DataType]) -> None:
        self._types = tuple(types)
        self._batches: dict[TableBucket, list[DecodedBatch]] = {}
        for batch in batches:
            self._batches.setdefault(batch.bucket, []).append(batch)
        self._count = sum(batch.num_rows for batch in batches)
        self._shared: dict[TableBucket, list[_Batch]] = {}
        self._by_bucket: dict[TableBucket, list[ScanRecord]] = {}
        self._flat: list[ScanRecord] | None = None

    # --- by bucket ----------------------------------------------------------------------------

    def buckets(self) -> list[TableBucket]:
        """The buckets that have records."""
        return list(self._batches)

    def records(self, bucket: TableBucket) -> list[ScanRecord]:
        """The records of a bucket, in order; an empty list for a bucket without records."""
        found = self._by_bucket.get(bucket)
        if found is None:
            if bucket not in self._batches:
                return []
            found = self._by_bucket[bucket] = list(self._made(bucket))
        return list(found)

    def _made(self, bucket: TableBucket) -> Iterator[ScanRecord]:
        """The records of a bucket, made one by one; their rows are shared."""
        shared = self._shared.get(bucket)
        if shared is None:
            shared = [_Batch(each, self._types) for each in self._batches[bucket]]
            self._shared[bucket] = shared
        return chain.from_iterable(map(_Batch.records, shared))

    def keys(self) -> list[TableBucket]:
        """The buckets that have records."""
        return self.buckets()

    def values(self) -> Iterator[list[ScanRecord]]:
        """The records of each bucket, one list per bucket, made lazily."""
        return (self.records(bucket) for bucket in self._batches)

    def items(self) -> Iterator[tuple[TableBucket, list[ScanRecord]]]:
        """Buckets and their records, made lazily."""
        return ((bucket, self.records(bucket)) for bucket in self._batches)

    def records_by_buckets(self) -> dict[TableBucket, list[ScanRecord]]:
        """All records by their buckets."""
        return dict(self.items())

    # --- as a sequence ------------------------------------------------------------------------

    def count(self) -> int:
        """How many records there are."""
        return self._count

    def is_empty(self) -> bool:
        """Whether there are none."""
        return not self._count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ScanRecord]:
        # A loop holds one record at a time, so records are kept only where a list was asked for.
        kept = self._by_bucket
        return chain.from_iterable(
            iter(kept[bucket]) if bucket in kept else self._made(bucket) for bucket in self._batches
        )

    def __contains__(self, bucket: object) -> bool:
        return bucket in self._batches

    @overload
    def __getitem__(self, index: int) -> ScanRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[ScanRecord]: ...
    @overload
    def __getitem__(self, index: TableBucket) -> list[ScanRecord]: ...

    def __getitem__(self, index: int | slice | TableBucket) -> ScanRecord | list[ScanRecord]:
        if isinstance(index, TableBucket):
            if index not in self._batches:
                raise KeyError(index)
            return self.records(index)
        if isinstance(index, bool) or not isinstance(index, int | slice):
            raise TypeError(
                f"records are found by number, slice or bucket, not {type(index).__name__}"
            )
        if self._flat is None:
            self._flat = list(self)
        return self._flat[index]

    def __repr__(self) -> str:
        return f"ScanRecords(records={self._count}, buckets={len(self._batches)})"


class _Batch:
    """The batch that its records share; its rows are made when the first is used."""

    __slots__ = ("_count", "_names", "_python", "_rows", "changes", "offsets", "timestamp")

    def __init__(self, decoded: DecodedBatch, types: Sequence[DataType]) -> None:
        self._count = decoded.num_rows
        self._names: Sequence[str] = decoded.batch.schema.names
        python = decoded.python or PythonRows.of(decoded.batch, types)
        self._python: PythonRows | None = python
        self.offsets = decoded.row_offsets()
        self.timestamp = decoded.timestamp
        changes = decoded.change_types
        self.changes: list[int] | None = None if changes is None else changes.tolist()
        self._rows: list[dict[str, Any]] | None = None

    def records(self) -> Iterator[ScanRecord]:
        """Make the records; those after the first whose row was used have their row already."""
        for index in range(self._count):
            if self._rows is not None:
                yield from self._records_with_rows(index, self._rows)
                return
            record = ScanRecord()
            record._batch = self  # noqa: SLF001 - in place of `__init__`
            record._index = index  # noqa: SLF001
            yield record

    def _records_with_rows(self, first: int, rows: list[dict[str, Any]]) -> Iterator[ScanRecord]:
        for index in range(first, self._count):
            record = ScanRecord()
            record._batch = self  # noqa: SLF001 - in place of `__init__`
            record._index = index  # noqa: SLF001
            record.row = rows[index]
            yield record

    def rows(self) -> list[dict[str, Any]]:
        """The rows, which are made at the first call."""
        # In this order: another thread that is here sets the one before it clears the other.
        python, rows = self._python, self._rows
        if rows is None:
            if python is None:
                raise AssertionError("the values are there until the rows are")
            columns = python.columns(self._count) if self._names else ()
            rows = row_dicts(self._names, columns) if columns else [{} for _ in self.offsets]
            self._rows = rows
            self._python = None
        return rows
