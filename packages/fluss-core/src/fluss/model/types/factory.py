"""`DataTypes`, the types for programs by their names: `DataTypes.array(DataTypes.int())`.

The names stand for the classes of `model.types.data_type`, and calling one makes a type, which
allows NULL unless `.not_null()` is called. As in the tables of `model.types.per_type`, a type that
is forgotten fails at import.
"""

from __future__ import annotations

from collections.abc import Iterable

from fluss.model.types import data_type as t


class DataTypes:
    """The data types by their names."""

    boolean = t.BooleanType
    tinyint = t.TinyIntType
    smallint = t.SmallIntType
    int = t.IntType
    bigint = t.BigIntType
    float = t.FloatType
    double = t.DoubleType
    char = t.CharType
    string = t.StringType
    decimal = t.DecimalType
    date = t.DateType
    time = t.TimeType
    timestamp = t.TimestampType
    timestamp_ltz = t.TimestampLtzType
    time_with_precision = time  # these names stand in Fluss's Rust client
    timestamp_with_precision = timestamp
    timestamp_ltz_with_precision = timestamp_ltz
    binary = t.BinaryType
    bytes = t.BytesType
    array = t.ArrayType
    map = t.MapType
    field = t.DataField

    @staticmethod
    def row(fields: Iterable[t.DataField]) -> t.RowType:
        """A record of named fields."""
        return t.RowType(tuple(fields))


_MISSING = [each.__name__ for each in t.DATA_TYPES if not hasattr(DataTypes, each.sql_name.lower())]
if _MISSING:
    raise TypeError(f"data types without an entry: {_MISSING}")
