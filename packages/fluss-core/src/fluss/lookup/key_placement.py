"""Computes the partition and the bytes of a user's key, and from these its bucket.

A key is a mapping from column names to values, or the values alone in key order. Frames of
keys have a vectorised path (`lookup.key_frames`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from fluss.errors import FlussError, InvalidSchemaError, InvalidValueError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.paths import PhysicalTablePath
from fluss.model.tables.partitions import PartitionSpec, partition_name
from fluss.model.tables.table_info import TableInfo
from fluss.rows.keys.bucketing import bucket_function
from fluss.rows.keys.encoders import bucket_key_encoder
from fluss.rows.keys.partition_text import partition_text
from fluss.write.placement import key_encoder
from fluss.write.value_source import ValueSource, indented


class PlacedKey(NamedTuple):
    """A key, ready to be looked up.

    Attributes:
        path: Its table or partition.
        bucket_key: The bytes that decide its bucket; see `KeyPlacer.bucket`.
        key: The key.
    """

    path: PhysicalTablePath
    bucket_key: bytes
    key: bytes


class KeyPlacer:
    """Places the keys of one table; made once, used by any thread.

    Args:
        table: The table.
        columns: The columns of a key: the primary key, or for prefixes the columns given.
    """

    def __init__(self, table: TableInfo, columns: Sequence[str], *, is_prefix: bool) -> None:
        self._table = table
        self._columns = tuple(columns)
        schema = table.schema
        types = {name: schema.column(name).data_type.not_null() for name in self._columns}
        self._types = [types[name] for name in self._columns]
        # Returns the physical values of a key.
        self._physical: Callable[[Any], Sequence[Any]] = self._first_physical
        self._partition_types = [(name, types[name]) for name in table.partition_keys]
        lake = table.options.datalake_format
        bucket_keys = table.bucket_keys
        self._bucket_positions = [self._columns.index(name) for name in bucket_keys]
        self._bucket_encoder = bucket_key_encoder(
            [types[name] for name in bucket_keys], lake_format=lake
        )
        key_names = bucket_keys if is_prefix else table.physical_primary_keys
        self._key_positions = [self._columns.index(name) for name in key_names]
        self._key_encoder = key_encoder(table, [types[name] for name in key_names])
        self._is_whole_key = self._key_positions == list(range(len(self._columns)))
        same_columns = self._key_positions == self._bucket_positions
        self._one_encoding = same_columns and self._key_encoder == self._bucket_encoder
        self._bucket_function = bucket_function(lake)
        self._path = PhysicalTablePath(table.table_path)
        self._partition_positions = [self._columns.index(name) for name in table.partition_keys]

    def place(self, key: Mapping[str, Any] | Sequence[Any]) -> PlacedKey:
        """Place a key.

        Raises:
            InvalidValueError: A key column is missing, unknown, NULL or of another type.
        """
        values = self._physical(key)
        key_values = values
        if not self._is_whole_key:
            key_values = [values[position] for position in self._key_positions]
        key_bytes = self._key_encoder.encode_row(key_values)
        bucket_bytes = key_bytes
        if not self._one_encoding:
            bucket_bytes = self._bucket_encoder.encode_row(
                [values[position] for position in self._bucket_positions]
            )
        path = self._path_of(values) if self._partition_types else self._path
        return PlacedKey(path, bucket_bytes, key_bytes)

    def bucket(self, bucket_key: bytes, bucket_count: int) -> int:
        """The bucket of a key in a table or partition of so many buckets."""
        return self._bucket_function.bucket(bucket_key, bucket_count)

    def _values(self, key: Mapping[str, Any] | Sequence[Any]) -> Sequence[Any]:
        if isinstance(key, Mapping):
            try:
                values = [key[name] for name in self._columns]
            except KeyError:
                raise self._refuse_names(key) from None
            if len(key) != len(values):
                raise self._refuse_names(key)
            return values
        if isinstance(key, str | bytes) or not isinstance(key, Sequence):
            raise InvalidValueError(
                f"A key of {self._table.table_path} is a dict, list or tuple, not {key!r}.",
                hint=f"Give {self._example()}.",
            )
        if len(key) != len(self._columns):
            raise InvalidValueError(
                f"A key of {self._table.table_path} has {len(self._columns)} values "
                f"({', '.join(self._columns)}), not {len(key)}.",
                hint=f"Give {self._example()}, or the values in that order.",
            )
        return key

    def _refuse_names(self, key: Mapping[str, Any]) -> FlussError:
        missing = [name for name in self._columns if name not in key]
        unknown = [name for name in key if name not in self._columns]
        if missing:
            suggestion = did_you_mean(missing[0], [str(each) for each in unknown])
            what = f"lacks {', '.join(map(repr, missing))}"
        else:
            suggestion = did_you_mean(str(unknown[0]), self._columns)
            what = f"does not have {', '.join(repr(each) for each in unknown)}"
        return InvalidValueError(
            f"The key of {self._table.table_path} {what}.",
            hint=suggestion or f"Give {self._example()}.",
            column=(missing or unknown)[0],
        )

    def _example(self) -> str:
        return "{" + ", ".join(f"{name!r}: ..." for name in self._columns) + "}"

    def _first_physical(self, key: Any) -> Sequence[Any]:
        self._physical = physical = self._compiled()
        return physical(key)

    def _compiled(self) -> Callable[[Any], Sequence[Any]]:
        """Compile the function for keys of these columns, as `write.row_function` does for rows.

        Measured, a key of one BIGINT in a dict: 0.25 instead of 1.5 µs.
        """
        source = ValueSource(self._table.value_limits)
        count = len(self._columns)
        values = "".join(f"v{index}, " for index in range(count))
        lines = [
            "def physical(key):",
            "    kind = type(key)",
            f"    if kind is dict and len(key) == {count}:",
            "        try:",
            # `itemgetter` returns a tuple, or the value itself where there is one column.
            f"            {values if count > 1 else 'v0'} = pick(key)",
            "        except KeyError:",
            f"            {values} = otherwise(key)",
            f"    elif (kind is list or kind is tuple) and len(key) == {count}:",
            f"        {values} = key",
            "    else:",
            f"        {values} = otherwise(key)",
            "    size = 0",
        ]
        for index, (name, data_type) in enumerate(zip(self._columns, self._types, strict=True)):
            lines += indented(source.conversion(f"v{index}", data_type, name))
        lines.append(f"    return ({values})")
        names = source.names | {"pick": itemgetter(*self._columns), "otherwise": self._values}
        exec("\n".join(lines), names)  # noqa: S102 - made of numbers and names of this package only
        made: Callable[[Any], Sequence[Any]] = names["physical"]
        return made

    def _path_of(self, values: Sequence[Any]) -> PhysicalTablePath:
        texts = {
            name: partition_text(values[position], data_type)
            for (name, data_type), position in zip(
                self._partition_types, self._partition_positions, strict=True
            )
        }
        name = partition_name(PartitionSpec(texts), self._table.partition_keys)
        return PhysicalTablePath(self._table.table_path, name)


def prefix_placer(table: TableInfo, columns: Sequence[str]) -> KeyPlacer:
    """Make the placer of prefixes of primary keys.

    Raises:
        InvalidSchemaError: The table has no prefix lookups by these columns.
    """
    physical = table.physical_primary_keys
    bucket_keys = table.bucket_keys
    schema = table.schema
    for name in columns:
        schema.column_index(name)
    if physical[: len(bucket_keys)] != bucket_keys or len(bucket_keys) == len(physical):
        raise InvalidSchemaError(
            f"{table.table_path} cannot be asked by a prefix: its bucket key "
            f"({', '.join(bucket_keys)}) is not a shorter beginning of its primary key "
            f"({', '.join(physical)}).",
            hint="Create the table with bucket_keys that begin its primary key.",
        )
    without_partition = tuple(name for name in columns if name not in table.partition_keys)
    missing = [name for name in table.partition_keys if name not in columns]
    if without_partition != bucket_keys or missing:
        expected = ", ".join([*table.partition_keys, *bucket_keys])
        raise InvalidSchemaError(
            f"{table.table_path} is asked by a prefix of ({expected}), not of "
            f"({', '.join(columns)}).",
            hint="A prefix is the partition columns and the whole bucket key, in its order.",
        )
    return KeyPlacer(table, columns, is_prefix=True)
