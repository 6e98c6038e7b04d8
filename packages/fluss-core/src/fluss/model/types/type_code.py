"""Fluss's types as the code of dataframe libraries and SQL dialects, for hints such as "cast it".

=============  ==============  ===========  =====================  ===========  =============
Fluss          pyarrow         pandas       Polars                 DuckDB       Spark
=============  ==============  ===========  =====================  ===========  =============
BIGINT         pa.int64()      'Int64'      pl.Int64               BIGINT       bigint
STRING         pa.string()     'string'     pl.String              VARCHAR      string
ARRAY<BIGINT>  pa.list_(...)   ArrowDtype   pl.List(pl.Int64)      BIGINT[]     array<bigint>
=============  ==============  ===========  =====================  ===========  =============
"""

from __future__ import annotations

from typing import Final

from fluss.model.types.data_type import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    BytesType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    MapType,
    RowType,
    SmallIntType,
    StringType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    TinyIntType,
)

# pyarrow, pandas, Polars, DuckDB, Spark; where pandas has no type of its own, Arrow's is used.
_SIMPLE: Final[dict[type[DataType], tuple[str, str, str, str, str]]] = {
    BooleanType: ("pa.bool_()", "'boolean'", "pl.Boolean", "BOOLEAN", "boolean"),
    TinyIntType: ("pa.int8()", "'Int8'", "pl.Int8", "TINYINT", "tinyint"),
    SmallIntType: ("pa.int16()", "'Int16'", "pl.Int16", "SMALLINT", "smallint"),
    IntType: ("pa.int32()", "'Int32'", "pl.Int32", "INTEGER", "int"),
    BigIntType: ("pa.int64()", "'Int64'", "pl.Int64", "BIGINT", "bigint"),
    FloatType: ("pa.float32()", "'Float32'", "pl.Float32", "FLOAT", "float"),
    DoubleType: ("pa.float64()", "'Float64'", "pl.Float64", "DOUBLE", "double"),
    CharType: ("pa.string()", "'string'", "pl.String", "VARCHAR", "string"),
    StringType: ("pa.string()", "'string'", "pl.String", "VARCHAR", "string"),
    BytesType: ("pa.binary()", "", "pl.Binary", "BLOB", "binary"),
    DateType: ("pa.date32()", "", "pl.Date", "DATE", "date"),
}


def code_of(data_type: DataType) -> dict[str, str]:
    """The type as code: by `arrow`, `pandas`, `polars`, `duckdb` and `spark`; `type` is Fluss's."""
    arrow = arrow_code(data_type)
    pandas = _SIMPLE[type(data_type)][1] if type(data_type) in _SIMPLE else ""
    return {
        "type": str(data_type.as_nullable()),
        "arrow": arrow,
        "pandas": pandas or f"pd.ArrowDtype({arrow})",
        "polars": polars_code(data_type),
        "duckdb": duckdb_code(data_type),
        "spark": spark_code(data_type),
    }


def arrow_code(data_type: DataType) -> str:
    """The type as one writes it with pyarrow."""
    match data_type:
        case BinaryType(length=length):
            return f"pa.binary({length})"
        case DecimalType(precision=precision, scale=scale):
            return f"pa.decimal128({precision}, {scale})"
        case TimeType(unit=unit):
            return f"pa.time{32 if unit in {'s', 'ms'} else 64}({unit!r})"
        case TimestampType(unit=unit):
            return f"pa.timestamp({unit!r})"
        case TimestampLtzType(unit=unit):
            return f"pa.timestamp({unit!r}, 'UTC')"
        case ArrayType(element=element):
            return f"pa.list_({arrow_code(element)})"
        case MapType(key=key, value=value):
            return f"pa.map_({arrow_code(key)}, {arrow_code(value)})"
        case RowType(fields=fields):
            inner = ", ".join(f"({each.name!r}, {arrow_code(each.data_type)})" for each in fields)
            return f"pa.struct([{inner}])"
        case _:
            return _SIMPLE[type(data_type)][0]


def polars_code(data_type: DataType) -> str:
    """The type as one writes it with Polars."""
    match data_type:
        case BinaryType():
            return "pl.Binary"
        case DecimalType(precision=precision, scale=scale):
            return f"pl.Decimal({precision}, {scale})"
        case TimeType():
            return "pl.Time"
        case TimestampType(unit=unit):
            return f"pl.Datetime({_polars_unit(unit)!r})"
        case TimestampLtzType(unit=unit):
            return f"pl.Datetime({_polars_unit(unit)!r}, 'UTC')"
        case ArrayType(element=element):
            return f"pl.List({polars_code(element)})"
        case MapType(key=key, value=value):
            inner = f"'key': {polars_code(key)}, 'value': {polars_code(value)}"
            return f"pl.List(pl.Struct({{{inner}}}))"
        case RowType(fields=fields):
            inner = ", ".join(f"{each.name!r}: {polars_code(each.data_type)}" for each in fields)
            return f"pl.Struct({{{inner}}})"
        case _:
            return _SIMPLE[type(data_type)][2]


def _polars_unit(unit: str) -> str:
    return "ms" if unit == "s" else unit


def duckdb_code(data_type: DataType) -> str:
    """The type as one writes it in DuckDB's SQL."""
    match data_type:
        case BinaryType():
            return "BLOB"
        case DecimalType(precision=precision, scale=scale):
            return f"DECIMAL({precision}, {scale})"
        case TimeType():
            return "TIME"
        case TimestampType():
            return "TIMESTAMP"
        case TimestampLtzType():
            return "TIMESTAMPTZ"
        case ArrayType(element=element):
            return f"{duckdb_code(element)}[]"
        case MapType(key=key, value=value):
            return f"MAP({duckdb_code(key)}, {duckdb_code(value)})"
        case RowType(fields=fields):
            inner = ", ".join(f'"{each.name}" {duckdb_code(each.data_type)}' for each in fields)
            return f"STRUCT({inner})"
        case _:
            return _SIMPLE[type(data_type)][3]


def spark_code(data_type: DataType) -> str:
    """The type as one writes it in Spark's SQL."""
    match data_type:
        case BinaryType():
            return "binary"
        case DecimalType(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case TimeType():
            return "time"
        case TimestampType():
            return "timestamp_ntz"
        case TimestampLtzType():
            return "timestamp"
        case ArrayType(element=element):
            return f"array<{spark_code(element)}>"
        case MapType(key=key, value=value):
            return f"map<{spark_code(key)},{spark_code(value)}>"
        case RowType(fields=fields):
            inner = ",".join(f"{each.name}:{spark_code(each.data_type)}" for each in fields)
            return f"struct<{inner}>"
        case _:
            return _SIMPLE[type(data_type)][4]
