"""The keys of one table: encoded from rows in a replay, decoded by lookups that insert."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from fluss.errors import UnsupportedOperationError
from fluss.model.tables.partitions import parse_partition_name
from fluss.model.tables.table_info import TableInfo
from fluss.records.convert.numpy_columns import to_columns
from fluss.rows.buffers.columns import RowBytes
from fluss.rows.formats.compacted_row import CompactedRowReader
from fluss.rows.keys.encoders import CompactedKeyEncoder, primary_key_encoder
from fluss.rows.keys.partition_text import partition_value
from fluss_server.kv.stored_row_codec import StoredRowCodec


class KeyCodec:
    """Encodes and decodes the physical primary key: its columns without the partition keys.

    Args:
        info: The table.
        partition_name: The bucket's partition, where the table has partitions.
    """

    def __init__(self, info: TableInfo, partition_name: str | None = None) -> None:
        columns = {each.name: each for each in info.schema.columns}
        names = info.schema.column_names
        self._info = info
        self._of_partition = _partition_columns(info, partition_name)
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
        """Return the key of each row of a batch."""
        chosen = batch.select(self._positions)
        return self._encoder.encode_rows(to_columns(chosen, self._types))

    def rows_of(self, keys: Sequence[bytes], rows: StoredRowCodec) -> list[bytes]:
        """Return for each key a stored row with only the key's and the partition's columns set.

        Fluss reads partition columns from the key, too, which does not have them, and fails with
        -1.

        Raises:
            UnsupportedOperationError: The values of the key columns cannot be decoded from the
                key.
        """
        if not isinstance(self._encoder, CompactedKeyEncoder):
            raise UnsupportedOperationError(
                f"The table {self._info.table_path} has keys in the format of a lake; "
                "a lookup cannot insert missing rows.",
                hint="look up first, and upsert what is missing",
            )
        reader = CompactedRowReader(self._types, is_key=True)
        stored = []
        for key in keys:
            values: list[object] = [None] * len(rows.latest.columns)
            for position, value in self._of_partition:
                values[position] = value
            for position, value in zip(self._positions, reader.read(key), strict=True):
                values[position] = value
            stored.append(rows.write(values))
        return stored


def _partition_columns(info: TableInfo, partition_name: str | None) -> list[tuple[int, object]]:
    """Return the positions and the values of the partition columns."""
    if partition_name is None:
        return []
    names = info.schema.column_names
    spec = parse_partition_name(partition_name, info.partition_keys).spec_map
    positions = [names.index(each) for each in info.partition_keys]
    return [
        (position, partition_value(spec[names[position]], info.schema.columns[position].data_type))
        for position in positions
    ]
