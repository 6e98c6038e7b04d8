"""The metadata columns of rows: built only where they are requested, in Fluss's own words.

=====================  =========================  ==================================================
`_log_offset`          int64                      the row's offset in its bucket
`_commit_timestamp`    timestamp[ms, UTC]         when the server took it in
`_bucket`              int32                      its bucket
`_partition`           string                     its partition's name; NULL where there are none
`_change_type`         string                     insert, update_before, update_after or delete
=====================  =========================  ==================================================
"""

from __future__ import annotations

from functools import cache
from typing import Any, Self

import numpy as np
import pyarrow as pa

from fluss.log.decode import DecodedBatch
from fluss.model.change_type import ChangeType
from fluss.model.metadata_columns import METADATA_TYPES, metadata_types
from fluss.model.options.scan_options import PARTITION
from fluss.model.predicates.predicate import Predicate
from fluss.model.schema.schema import Schema
from fluss.model.types.type_to_arrow import to_arrow_type
from fluss.records.arrow.numpy_arrays import from_numpy, texts
from fluss.records.filter.row_filter import RowFilter
from fluss.scan.plan_scan import Output
from fluss.scan.split import ScanSplit


@cache
def metadata_type(name: str) -> pa.DataType:
    """The Arrow type of a metadata column."""
    return to_arrow_type(METADATA_TYPES[name])


def output_schema(output: Output, table_schema: pa.Schema) -> pa.Schema:
    """The Arrow schema of a scan's rows."""
    fields = []
    for name, metadata in zip(output.names, output.metadata, strict=True):
        if metadata is None:
            fields.append(table_schema.field(name))
        else:
            nullable = metadata == PARTITION
            fields.append(pa.field(name, metadata_type(metadata), nullable=nullable))
    return pa.schema(fields)


class OutputBuilder:
    """Puts a scan's columns together: those that were read, and those that are made here.

    Args:
        output: The columns of the scan.
        schema: Their Arrow schema.
        partition_name: The partition that the rows are of.
    """

    def __init__(self, output: Output, schema: pa.Schema, partition_name: str | None) -> None:
        self.schema = schema
        self.partition_name = partition_name
        self._metadata = output.metadata
        self._is_plain = all(each is None for each in output.metadata)
        self._count = sum(each is None for each in output.metadata)

    def finish(self, decoded: DecodedBatch) -> pa.RecordBatch:
        """The rows in the columns of the scan."""
        batch = decoded.batch
        if self._is_plain:
            if batch.num_columns > self._count:
                # The others were read for a condition, or so that rows can be counted.
                return batch.select(range(self._count))
            return batch
        read = iter(batch.columns)
        columns = [
            next(read) if each is None else metadata_column(each, decoded, self.partition_name)
            for each in self._metadata
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class MetadataFilter:
    """Applies the conditions of a scan that need metadata columns to rows that have been read.

    Args:
        predicate: The conditions.
        schema: The table's columns.
        prefix: The prefix of the names of metadata columns.
    """

    def __init__(self, predicate: Predicate, schema: Schema, *, prefix: str) -> None:
        known = schema.column_names
        self._names = {
            prefix + each[1:]: each for each in METADATA_TYPES if prefix + each[1:] not in known
        }
        self._filter = RowFilter(predicate, schema, metadata_types(self._names))
        self.columns = tuple(known[each] for each in self._filter.columns)

    @classmethod
    def of(cls, split: ScanSplit, schema: Schema) -> Self | None:
        """The filter of a split; None where it has no such conditions."""
        predicate = split.metadata_filter
        return None if predicate is None else cls(predicate, schema, prefix=split.metadata_prefix)

    def kept(self, decoded: DecodedBatch, partition_name: str | None) -> DecodedBatch | None:
        """The rows that fulfil the conditions; None where no row does."""
        batch = decoded.batch
        arrays, names = list(batch.columns), list(batch.schema.names)
        for name in self._filter.metadata:
            arrays.append(metadata_column(self._names[name], decoded, partition_name))
            names.append(name)
        rows = self._filter.matching(pa.RecordBatch.from_arrays(arrays, names=names))
        if not len(rows):
            return None
        if len(rows) == decoded.num_rows:
            return decoded
        return decoded.take(rows, batch.take(from_numpy(rows)))


def columns_to_read(split: ScanSplit, schema: Schema) -> list[str]:
    """The table's columns that a split reads: its output, then those its conditions look at."""
    names = list(split.output.table_columns)
    conditions = MetadataFilter.of(split, schema)
    if conditions is not None:
        names += [each for each in conditions.columns if each not in names]
    return names


def metadata_column(name: str, decoded: DecodedBatch, partition_name: str | None) -> pa.Array:
    """One metadata column of some rows."""
    count = decoded.num_rows
    match name:
        case "_log_offset":
            offsets = decoded.offsets
            if offsets is None:
                first = decoded.base_offset
                offsets = np.arange(first, first + count, dtype=np.int64)
            return from_numpy(offsets)
        case "_commit_timestamp":
            listed = decoded.timestamps
            if listed is None:
                listed = np.full(count, decoded.timestamp, dtype=np.int64)
            times = from_numpy(listed)
            return times.cast(metadata_type(name))
        case "_bucket":
            return from_numpy(np.full(count, decoded.bucket.bucket_id, dtype=np.int32))
        case "_partition":
            return pa.repeat(texts([partition_name])[0], count)
        case _:
            return change_names(decoded.change_types, count)


def change_names(change_types: Any, count: int) -> pa.Array:
    """The long names of change types; all are inserts where there are none."""
    names = _long_names()
    if change_types is None:
        return pa.repeat(names[int(ChangeType.Insert)], count)
    return names.take(from_numpy(np.asarray(change_types, dtype=np.int8)))


@cache
def _long_names() -> pa.Array:
    return texts(each.long_name for each in ChangeType)
