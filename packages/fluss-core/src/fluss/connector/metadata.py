"""The metadata columns of rows: built only where they are wanted, in Fluss's own words.

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
from typing import Any

import numpy as np
import pyarrow as pa

from fluss.client.decode import DecodedBatch
from fluss.model.change_type import ChangeType
from fluss.model.scan_options import (
    BUCKET,
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    LOG_OFFSET,
    PARTITION,
)
from fluss.plan.scan import Output


@cache
def metadata_type(name: str) -> pa.DataType:
    """The Arrow type of a metadata column."""
    return {
        LOG_OFFSET: pa.int64(),
        COMMIT_TIMESTAMP: pa.timestamp("ms", tz="UTC"),
        BUCKET: pa.int32(),
        PARTITION: pa.string(),
        CHANGE_TYPE: pa.string(),
    }[name]


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


class Dresser:
    """Puts a scan's columns together: those that were read, and those that are made here.

    Args:
        output: The columns wanted.
        schema: Their Arrow schema.
        partition_name: The partition that the rows are of.
    """

    def __init__(self, output: Output, schema: pa.Schema, partition_name: str | None) -> None:
        self.schema = schema
        self._partition_name = partition_name
        self._metadata = output.metadata
        self._is_plain = all(each is None for each in output.metadata)

    def dress(self, decoded: DecodedBatch) -> pa.RecordBatch:
        """The rows in the columns of the scan."""
        batch = decoded.batch
        if self._is_plain:
            if batch.num_columns > len(self._metadata):
                # A column read so that rows can be counted, where none is wanted.
                return batch.select(range(len(self._metadata)))
            return batch
        read = iter(batch.columns)
        columns = [
            next(read) if each is None else metadata_column(each, decoded, self._partition_name)
            for each in self._metadata
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def metadata_column(name: str, decoded: DecodedBatch, partition_name: str | None) -> pa.Array:
    """One metadata column of some rows."""
    count = decoded.num_rows
    match name:
        case "_log_offset":
            offsets = decoded.offsets
            if offsets is None:
                first = decoded.base_offset
                offsets = np.arange(first, first + count, dtype=np.int64)
            return pa.array(offsets)
        case "_commit_timestamp":
            return _repeated(pa.scalar(decoded.timestamp, metadata_type(name)), count)
        case "_bucket":
            return _repeated(pa.scalar(decoded.bucket.bucket_id, pa.int32()), count)
        case "_partition":
            return _repeated(pa.scalar(partition_name, pa.string()), count)
        case _:
            return change_names(decoded.change_types, count)


def change_names(change_types: Any, count: int) -> pa.Array:
    """The long names of change types; all are inserts where there are none."""
    names = _long_names()
    if change_types is None:
        return _repeated(names[int(ChangeType.Insert)], count)
    return names.take(pa.array(np.asarray(change_types, dtype=np.int8)))


@cache
def _long_names() -> pa.Array:
    return pa.array([each.long_name for each in ChangeType])


def _repeated(scalar: pa.Scalar, count: int) -> pa.Array:
    return pa.repeat(scalar, count)
