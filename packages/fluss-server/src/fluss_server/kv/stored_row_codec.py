"""The stored form of one table's rows: schema id and encoded row, across all its schemas.

Fluss only adds columns at the end, so a row of an older schema is a row of the latest one whose
last columns are NULL. Code that works row by row (merge engines, partial updates) reads and writes
with `StoredRowCodec`; whole batches go through `records.kv.value_batch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from fluss.errors import CorruptDataError
from fluss.model.schema.schema import Schema
from fluss.model.tables.table_options import KvFormat
from fluss.model.types.data_type import DataType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.kv.value_batch import batch_from_values, frames_of_values
from fluss.rows.formats.compacted_row import CompactedRowReader, CompactedRowWriter
from fluss.rows.formats.indexed_row import IndexedRowReader, IndexedRowWriter

SCHEMA_ID_BYTES: Final = 2
RowWriter = CompactedRowWriter | IndexedRowWriter
RowReader = CompactedRowReader | IndexedRowReader

_WRITERS: Mapping[KvFormat, Callable[[Sequence[DataType]], RowWriter]] = {
    KvFormat.COMPACTED: CompactedRowWriter,
    KvFormat.INDEXED: IndexedRowWriter,
}
_READERS: Mapping[KvFormat, Callable[[Sequence[DataType]], RowReader]] = {
    KvFormat.COMPACTED: CompactedRowReader,
    KvFormat.INDEXED: IndexedRowReader,
}


def schema_prefix(schema_id: int) -> bytes:
    """Return the prefix of every stored row."""
    return schema_id.to_bytes(SCHEMA_ID_BYTES, "little")


@dataclass(frozen=True, eq=False)
class StoredRowCodec:
    """Encodes and decodes the rows of one table; replaced when a schema is added.

    Args:
        schemas: All schemas of the table by id.
        kv_format: `table.kv.format`.
    """

    schemas: Mapping[int, Schema]
    kv_format: KvFormat

    @cached_property
    def latest_id(self) -> int:
        """The id of the schema of changelogs and merged rows."""
        return max(self.schemas)

    @property
    def latest(self) -> Schema:
        """The latest schema."""
        return self.schemas[self.latest_id]

    @cached_property
    def layouts(self) -> dict[int, BatchLayout]:
        """The batch layout of each schema, in wire types, so that encoding needs no cast."""
        layouts = {each: BatchLayout.of_schema(schema) for each, schema in self.schemas.items()}
        return {
            schema_id: replace(layout, user_schema=layout.wire_schema)
            for schema_id, layout in layouts.items()
        }

    @cached_property
    def _readers(self) -> dict[int, RowReader]:
        return {
            schema_id: _READERS[self.kv_format](schema.column_types)
            for schema_id, schema in self.schemas.items()
        }

    @cached_property
    def _writer(self) -> RowWriter:
        return _WRITERS[self.kv_format](self.latest.column_types)

    @cached_property
    def _prefix(self) -> bytes:
        return schema_prefix(self.latest_id)

    def read(self, value: bytes) -> list[Any]:
        """Decode a stored row to physical values of the latest schema; missing columns are None.

        Raises:
            CorruptDataError: The row has no schema of the table, or does not match it.
        """
        schema_id = int.from_bytes(value[:SCHEMA_ID_BYTES], "little")
        reader = self._readers.get(schema_id)
        if reader is None:
            raise CorruptDataError(
                f"A stored row has the schema id {schema_id}, which its table does not have.",
                schema_id=schema_id,
            )
        values = list(reader.read(value[SCHEMA_ID_BYTES:]))
        values.extend([None] * (len(self.latest.columns) - len(values)))
        return values

    def write(self, values: Sequence[Any]) -> bytes:
        """Encode physical values of the latest schema as a stored row."""
        return self._prefix + self._writer.write(values)

    def batch_of(self, values: Sequence[bytes]) -> pa.RecordBatch:
        """Return stored rows of any schemas as one batch of the latest schema, in wire types."""
        target = self.layouts[self.latest_id]
        return batch_from_values(frames_of_values(values), self.layouts, target, self.kv_format)
