"""What a poll gives back: records by bucket, single or as batches, made only when looked at.

`ScanRecords` is a sequence of records and a mapping from buckets to their records at once. It keeps
the decoded batches; the values of a batch become Python objects, column by column, when the first
of its records is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import pyarrow as pa

from fluss.client.decode import DecodedBatch
from fluss.client.python_values import python_values
from fluss.model.change_type import ChangeType
from fluss.model.paths import TableBucket
from fluss.model.types import DataType

_CHANGE_TYPES = tuple(ChangeType)


class ScanRecord:
    """One record: a row, its offset, when it was written, and what it did."""

    __slots__ = ("_change", "_index", "_offset", "_rows", "_timestamp")

    def __init__(
        self, rows: _Rows, index: int, offset: int, timestamp: int, change: ChangeType
    ) -> None:
        self._rows = rows
        self._index = index
        self._offset = offset
        self._timestamp = timestamp
        self._change = change

    @property
    def offset(self) -> int:
        """Its place in the log of its bucket."""
        return self._offset

    @property
    def timestamp(self) -> int:
        """When the server took it in, in milliseconds since 1970."""
        return self._timestamp

    @property
    def change_type(self) -> ChangeType:
        """What it did to the table."""
        return self._change

    @property
    def row(self) -> dict[str, Any]:
        """Its values by column name."""
        return self._rows[self._index]

    def __repr__(self) -> str:
        return (
            f"ScanRecord(offset={self._offset}, timestamp={self._timestamp}, "
            f"change_type={self._change.short_string()}, row={self.row})"
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
        """The bucket they are of."""
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
        """When the server took them in, in milliseconds since 1970; 0 where it did not say."""
        return self._decoded.timestamp

    @property
    def change_types(self) -> list[ChangeType]:
        """What each row did to the table."""
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
    """The records of one poll, in one order for as long as it lives."""

    __slots__ = ("_batches", "_by_bucket", "_count", "_flat", "_types")

    def __init__(self, batches: Sequence[DecodedBatch], types: Sequence[DataType]) -> None:
        self._types = tuple(types)
        self._batches: dict[TableBucket, list[DecodedBatch]] = {}
        for batch in batches:
            self._batches.setdefault(batch.bucket, []).append(batch)
        self._count = sum(batch.num_rows for batch in batches)
        self._by_bucket: dict[TableBucket, list[ScanRecord]] = {}
        self._flat: list[ScanRecord] | None = None

    # --- by bucket ----------------------------------------------------------------------------

    def buckets(self) -> list[TableBucket]:
        """The buckets that have records."""
        return list(self._batches)

    def records(self, bucket: TableBucket) -> list[ScanRecord]:
        """The records of a bucket, in order; none for a bucket that has none."""
        found = self._by_bucket.get(bucket)
        if found is None:
            batches = self._batches.get(bucket)
            if batches is None:
                return []
            found = [record for batch in batches for record in _records(batch, self._types)]
            self._by_bucket[bucket] = found
        return list(found)

    def keys(self) -> list[TableBucket]:
        """The buckets that have records."""
        return self.buckets()

    def values(self) -> Iterator[list[ScanRecord]]:
        """The records of each bucket, one list per bucket, made as they are asked for."""
        return (self.records(bucket) for bucket in self._batches)

    def items(self) -> Iterator[tuple[TableBucket, list[ScanRecord]]]:
        """Buckets and their records, made as they are asked for."""
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
        for bucket in self._batches:
            yield from self.records(bucket)

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


class _Rows:
    """The rows of one batch as dictionaries, made when the first is looked at."""

    __slots__ = ("_batch", "_rows", "_types")

    def __init__(self, batch: pa.RecordBatch, types: Sequence[DataType]) -> None:
        self._batch: pa.RecordBatch | None = batch
        self._types = types
        self._rows: list[dict[str, Any]] = []

    def __getitem__(self, index: int) -> dict[str, Any]:
        batch = self._batch
        if batch is not None:
            names = batch.schema.names
            columns = [
                python_values(batch.column(place), data_type)
                for place, data_type in enumerate(self._types)
            ]
            rows = zip(*columns, strict=True) if columns else iter([()] * batch.num_rows)
            self._rows = [dict(zip(names, row, strict=True)) for row in rows]
            self._batch = None
        return self._rows[index]


def _records(decoded: DecodedBatch, types: Sequence[DataType]) -> Iterator[ScanRecord]:
    rows = _Rows(decoded.batch, types)
    offsets, timestamp = decoded.row_offsets(), decoded.timestamp
    if decoded.change_types is None:
        append = ChangeType.AppendOnly
        for index, offset in enumerate(offsets):
            yield ScanRecord(rows, index, offset, timestamp, append)
        return
    changes = decoded.change_types.tolist()
    for index, (offset, change) in enumerate(zip(offsets, changes, strict=True)):
        yield ScanRecord(rows, index, offset, timestamp, _CHANGE_TYPES[change])
