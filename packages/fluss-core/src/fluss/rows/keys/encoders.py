"""The encoders of primary keys and bucket keys, and the choice of a table's encoder.

The table's `table.datalake.format` and `table.kv.format-version` decide, even where the lake is
switched off (Java: `KeyEncoder.ofPrimaryKeyEncoder`, `ofBucketKeyEncoder`). A table without a
version has version 1.

================  ===========  =====================  ================  ==============
lake format       KV format    bucket key is the      primary key       bucket key
                  version      whole primary key
================  ===========  =====================  ================  ==============
none, lance       1, 2         any                    compacted         compacted
paimon, iceberg   1            any                    lake              lake
paimon, iceberg   2            yes                    lake              lake
paimon, iceberg   2            no                     compacted         lake
hudi              any          any                    compacted         lake
================  ===========  =====================  ================  ==============

The columns are those of the physical key: without the partition's, in key order. Prefix lookups
work where both keys are compacted, and need the primary key to begin with the bucket key. Buckets
are computed from bucket keys in `rows.keys.bucketing`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from fluss.errors import InvalidValueError, UnsupportedTypeError, UnsupportedVersionError
from fluss.model.types.data_type import DataType
from fluss.rows.buffers.columns import Column, RowBytes
from fluss.rows.formats.aligned import write_aligned_rows
from fluss.rows.formats.aligned_row import AlignedRowWriter
from fluss.rows.formats.compacted import write_compacted_keys
from fluss.rows.formats.compacted_row import CompactedRowWriter
from fluss.rows.formats.nulls import naming_column
from fluss.rows.keys.bucketing import of_lake
from fluss.rows.keys.hudi_keys import (
    HUDI_KEY_TYPES,
    hudi_key_writer,
    hudi_part_writers,
    write_hudi_keys,
)
from fluss.rows.keys.iceberg_keys import ICEBERG_KEY_TYPES, iceberg_key_writer, write_iceberg_keys
from fluss.rows.row_errors import UNFIT, null_field, unfit_row

KV_FORMAT_VERSION_DEFAULT = 1


def primary_key_encoder(
    types: Sequence[DataType],
    *,
    lake_format: str | None,
    kv_format_version: int = KV_FORMAT_VERSION_DEFAULT,
    is_default_bucket_key: bool,
) -> KeyEncoder:
    """Return the encoder of a table's primary keys.

    Args:
        types: The types of the physical key's columns.
        lake_format: The table's `table.datalake.format`.
        kv_format_version: The table's `table.kv.format-version`.
        is_default_bucket_key: Whether the bucket key is the whole physical primary key.

    Raises:
        ConfigError: The lake format is unknown.
        UnsupportedVersionError: The version is unknown.
        UnsupportedTypeError: The lake has no such keys.
    """
    required = [each.not_null() for each in types]
    encoder = of_lake(_ENCODERS, lake_format)
    if encoder is HudiKeyEncoder:  # a hash, of which two keys may have the same
        return CompactedKeyEncoder(required)
    if kv_format_version not in {1, 2}:
        raise UnsupportedVersionError(
            f"The table's KV format has version {kv_format_version}; 1 and 2 are known here.",
            hint="A newer fluss-core may know it.",
            kv_format_version=kv_format_version,
        )
    if kv_format_version == 2 and not is_default_bucket_key:
        return CompactedKeyEncoder(required)
    return encoder(required)


def bucket_key_encoder(types: Sequence[DataType], *, lake_format: str | None) -> KeyEncoder:
    """Return the encoder of a table's bucket keys; `rows.keys.bucketing` hashes their bytes.

    It equals the encoder of the primary keys where a key has the same bytes for both.

    Args:
        types: The types of the bucket key's columns.
        lake_format: The table's `table.datalake.format`.

    Raises:
        ConfigError: The lake format is unknown.
        UnsupportedTypeError: The lake has no such keys.
    """
    return of_lake(_ENCODERS, lake_format)(types)


class KeyEncoder(ABC):
    """Makes keys out of the key columns of one table.

    Encoders of one class and of the same types are equal. Any thread may use them.
    """

    __slots__ = ("types",)

    takes_null: ClassVar[bool] = False
    """Whether a nullable column may be NULL."""

    def __init__(self, types: Sequence[DataType]) -> None:
        """Prepares for key columns of these types.

        Raises:
            UnsupportedTypeError: There are no such keys.
        """
        self.types = tuple(types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyEncoder) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(str, self.types))})"

    def encode_rows(self, columns: Sequence[Column]) -> RowBytes:
        """Return the key of every row.

        Raises:
            InvalidValueError: A value is NULL where it must not be, or no value of its type;
                `column` and `row` name it.
        """
        if len(columns) != len(self.types):
            raise ValueError(f"a key of {len(self.types)} columns was given {len(columns)}")
        for index, (column, data_type) in enumerate(zip(columns, self.types, strict=True)):
            if column.type.as_nullable() != data_type.as_nullable():
                raise ValueError(f"key column {index} is {data_type}, not {column.type}")
            self._check_null(column, index)
        return self._encode_columns(columns)

    @abstractmethod
    def encode_row(self, values: Sequence[Any]) -> bytes:
        """Return the key of one row of physical values.

        Raises:
            InvalidValueError: A value is NULL where it must not be, or no value of its type;
                `column` names it.
        """

    @abstractmethod
    def _encode_columns(self, columns: Sequence[Column]) -> RowBytes:
        """Encodes columns that are as many as the types, of these types, and rightly NULL."""

    def _check_null(self, column: Column, index: int) -> None:
        if column.valid is None or (self.takes_null and self.types[index].nullable):
            return
        nulls = np.flatnonzero(~column.valid)
        if len(nulls):
            row = int(nulls[0])
            raise InvalidValueError(
                f"Column {index} of the key is NULL.",
                hint="A key is complete: fill the column, or leave out the row.",
                column=index,
            ).add_context(row=row)

    def _identity(self) -> tuple[type[KeyEncoder], tuple[DataType, ...]]:
        return type(self), self.types


class RowKeyEncoder(KeyEncoder):
    """Keys that are rows of a format."""

    __slots__ = ("_writer",)
    _writer: CompactedRowWriter | AlignedRowWriter

    def encode_row(self, values: Sequence[Any]) -> bytes:
        return self._writer.write(values)


class CompactedKeyEncoder(RowKeyEncoder):
    """Fluss's own keys: the fields of a compacted row."""

    __slots__ = ()

    def __init__(self, types: Sequence[DataType]) -> None:
        """Prepares for key columns of these types."""
        super().__init__(types)
        self._writer = CompactedRowWriter(self.types, is_key=True)

    def _encode_columns(self, columns: Sequence[Column]) -> RowBytes:
        return write_compacted_keys(columns)


class PaimonKeyEncoder(RowKeyEncoder):
    """Keys of tables tiered to Paimon: its `BinaryRow`s."""

    __slots__ = ()

    takes_null: ClassVar[bool] = True

    def __init__(self, types: Sequence[DataType]) -> None:
        """Prepares for key columns of these types.

        Raises:
            UnsupportedTypeError: A type is nested.
        """
        super().__init__(types)
        self._writer = AlignedRowWriter(self.types)

    def _encode_columns(self, columns: Sequence[Column]) -> RowBytes:
        return write_aligned_rows(columns)


class IcebergKeyEncoder(KeyEncoder):
    """Keys of tables tiered to Iceberg: what its bucket transform hashes."""

    __slots__ = ("_write",)

    def __init__(self, types: Sequence[DataType]) -> None:
        """Prepares for one key column.

        Raises:
            UnsupportedTypeError: There is another number of columns, or Iceberg does not bucket
                by this type.
        """
        super().__init__(types)
        if len(self.types) != 1:
            raise UnsupportedTypeError(
                f"A table tiered to Iceberg has one bucket key column, not {len(self.types)}: "
                f"{', '.join(map(str, self.types))}.",
                hint="Set one bucket key, or another table.datalake.format.",
            )
        _check_types(self.types, ICEBERG_KEY_TYPES, "Iceberg")
        self._write = iceberg_key_writer(self.types[0])

    def encode_row(self, values: Sequence[Any]) -> bytes:
        if len(values) == 1 and values[0] is None:
            raise null_field(self.types, values, is_key=True)
        try:
            (value,) = values
            return self._write(value)
        except UNFIT as error:
            raise unfit_row(self.types, (self._write,), values) from error

    def _encode_columns(self, columns: Sequence[Column]) -> RowBytes:
        with naming_column(0):
            return write_iceberg_keys(columns[0])


class HudiKeyEncoder(KeyEncoder):
    """Bucket keys of tables tiered to Hudi: a hash of the columns' texts."""

    __slots__ = ("_write",)

    takes_null: ClassVar[bool] = True

    def __init__(self, types: Sequence[DataType]) -> None:
        """Prepares for key columns of these types.

        Raises:
            UnsupportedTypeError: Hudi has no text for a type.
        """
        super().__init__(types)
        _check_types(self.types, HUDI_KEY_TYPES, "Hudi")
        self._write = hudi_key_writer(self.types)

    def encode_row(self, values: Sequence[Any]) -> bytes:
        for value, data_type in zip(values, self.types, strict=False):  # the writer counts them
            if value is None and not data_type.nullable:
                raise null_field(self.types, values, is_key=False)
        try:
            return self._write(values)
        except UNFIT as error:
            raise unfit_row(self.types, hudi_part_writers(self.types), values) from error

    def _encode_columns(self, columns: Sequence[Column]) -> RowBytes:
        return write_hudi_keys(columns)


def _check_types(
    types: Sequence[DataType], supported: tuple[type[DataType], ...], lake: str
) -> None:
    for index, data_type in enumerate(types):
        if not isinstance(data_type, supported):
            names = sorted({each.root.partition("_W")[0] for each in supported})
            raise UnsupportedTypeError(
                f"Column {index} of the key is {data_type}, which is no bucket key in {lake}.",
                hint=f"Set a bucket key of {', '.join(names)}, or another table.datalake.format.",
                column=index,
                type=str(data_type),
            )


_ENCODERS: dict[str | None, type[KeyEncoder]] = {
    None: CompactedKeyEncoder,
    "lance": CompactedKeyEncoder,
    "paimon": PaimonKeyEncoder,
    "iceberg": IcebergKeyEncoder,
    "hudi": HudiKeyEncoder,
}
