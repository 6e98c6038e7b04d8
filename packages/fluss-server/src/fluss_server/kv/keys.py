"""Keys of one table: made of rows when a changelog is replayed, read by lookups that insert."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from fluss.errors import UnsupportedOperationError
from fluss.model.table_info import TableInfo
from fluss.records.columns import to_columns
from fluss.rows.columns import RowBytes
from fluss.rows.compacted_row import CompactedRowReader
from fluss.rows.keys import CompactedKeyEncoder, primary_key_encoder
from fluss_server.kv.rows import TableRows


class TableKeys:
    """The physical primary key: its columns without those of the partition."""

    def __init__(self, info: TableInfo) -> None:
        columns = {each.name: each for each in info.schema.columns}
        names = info.schema.column_names
        self._info = info
        self._types = [columns[each].data_type for each in info.physical_primary_keys]
        self._positions = [names.index(each) for each in info.physical_primary_keys]
        lake = info.options.datalake_format
        self._encoder = primary_key_encoder(
            self._types,
            lake_format=None if lake is None else str(lake),
            kv_format_version=info.options.kv_format_version or 1,
            is_default_bucket_key=info.is_default_bucket_key,
        )

    def of_batch(self, batch: pa.RecordBatch) -> RowBytes:
        """The key of each row of a whole batch."""
        chosen = batch.select(self._positions)
        return self._encoder.encode_rows(to_columns(chosen, self._types))

    def rows_of(self, keys: Sequence[bytes], rows: TableRows) -> list[bytes]:
        """For each key the stored row that has nothing else.

        Raises:
            UnsupportedOperationError: The key does not tell the values of all key columns.
        """
        if self._info.partition_keys or not isinstance(self._encoder, CompactedKeyEncoder):
            why = "partitions" if self._info.partition_keys else "keys in the format of a lake"
            raise UnsupportedOperationError(
                f"The table {self._info.table_path} has {why}; "
                "a lookup cannot insert what is missing there.",
                hint="look up first, and upsert what is missing",
            )
        reader = CompactedRowReader(self._types, is_key=True)
        stored = []
        for key in keys:
            values: list[object] = [None] * len(rows.latest.columns)
            for position, value in zip(self._positions, reader.read(key), strict=True):
                values[position] = value
            stored.append(rows.write(values))
        return stored
