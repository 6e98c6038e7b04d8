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

from typing import Final, NamedTuple

from fluss.model.types import data_type as t
from fluss.model.types.data_type import DataType
from fluss.model.types.per_type import PerType


class _Spelling(NamedTuple):
    """A type's code in each library, with fields for what the type is made of.

    Where pandas has no type of its own, Arrow's is used. Arrow's code follows from the type's facts
    where the type has no children.
    """

    polars: str
    duckdb: str
    spark: str
    pandas: str = ""
    arrow: str = ""


_BINARY: Final = _Spelling("pl.Binary", "BLOB", "binary")
_STRING: Final = _Spelling("pl.String", "VARCHAR", "string", "'string'")
_SPELLINGS: Final = PerType[_Spelling](
    {
        t.BooleanType: _Spelling("pl.Boolean", "BOOLEAN", "boolean", "'boolean'"),
        t.TinyIntType: _Spelling("pl.Int8", "TINYINT", "tinyint", "'Int8'"),
        t.SmallIntType: _Spelling("pl.Int16", "SMALLINT", "smallint", "'Int16'"),
        t.IntType: _Spelling("pl.Int32", "INTEGER", "int", "'Int32'"),
        t.BigIntType: _Spelling("pl.Int64", "BIGINT", "bigint", "'Int64'"),
        t.FloatType: _Spelling("pl.Float32", "FLOAT", "float", "'Float32'"),
        t.DoubleType: _Spelling("pl.Float64", "DOUBLE", "double", "'Float64'"),
        t.TextFamily: _STRING,
        t.BinaryFamily: _BINARY,
        t.DecimalType: _Spelling(
            "pl.Decimal({type.precision}, {type.scale})",
            "DECIMAL({type.precision}, {type.scale})",
            "decimal({type.precision},{type.scale})",
        ),
        t.DateType: _Spelling("pl.Date", "DATE", "date"),
        t.TimeType: _Spelling("pl.Time", "TIME", "time"),
        t.TimestampType: _Spelling("pl.Datetime({unit!r})", "TIMESTAMP", "timestamp_ntz"),
        t.TimestampLtzType: _Spelling("pl.Datetime({unit!r}, 'UTC')", "TIMESTAMPTZ", "timestamp"),
        t.ArrayType: _Spelling(
            "pl.List({element})",
            "{element}[]",
            "array<{element}>",
            arrow="pa.list_({element})",
        ),
        t.MapType: _Spelling(
            "pl.List(pl.Struct({{'key': {key}, 'value': {value}}}))",
            "MAP({key}, {value})",
            "map<{key},{value}>",
            arrow="pa.map_({key}, {value})",
        ),
        t.RowType: _Spelling(
            "pl.Struct({{{fields}}})",
            "STRUCT({fields})",
            "struct<{fields}>",
            arrow="pa.struct([{fields}])",
        ),
    }
)
_FIELDS: Final = _Spelling(
    "{name!r}: {code}, ", '"{name}" {code}, ', "{name}:{code},", arrow="({name!r}, {code}), "
)


def code_of(data_type: DataType) -> dict[str, str]:
    """Return the type as code of arrow, pandas, polars, duckdb and spark; `type` is Fluss's."""
    arrow = _code(data_type, "arrow")
    return {
        "type": str(data_type.as_nullable()),
        "arrow": arrow,
        "pandas": _SPELLINGS[data_type].pandas or f"pd.ArrowDtype({arrow})",
        **{each: _code(data_type, each) for each in ("polars", "duckdb", "spark")},
    }


def _code(data_type: DataType, library: str) -> str:
    spelling: str = getattr(_SPELLINGS[data_type], library)
    if not spelling:
        arguments = ", ".join(map(repr, data_type.arrow_arguments()))
        return f"pa.{data_type.arrow_name}({arguments})"
    match data_type:
        case t.TimestampFamily(unit=unit):  # Polars does not count seconds
            return spelling.format(unit="ms" if unit == "s" else unit)
        case t.ArrayType(element=element):
            return spelling.format(element=_code(element, library))
        case t.MapType(key=key, value=value):
            return spelling.format(key=_code(key, library), value=_code(value, library))
        case t.RowType(fields=fields):
            one: str = getattr(_FIELDS, library)
            codes = (one.format(name=e.name, code=_code(e.data_type, library)) for e in fields)
            return spelling.format(fields="".join(codes).rstrip(", "))
        case _:
            return spelling.format(type=data_type)
