"""Converts Arrow types to the Fluss types of a table for such data.

Types that Fluss lacks become the next larger one that holds every value (unsigned integers, half
floats); where there is none, the error names the column and an alternative. The metadata that
`model.types.type_to_arrow` writes is used only where it agrees with the Arrow type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from fluss.errors import FlussError, InvalidSchemaError, UnsupportedTypeError
from fluss.hints import Hint, HintKey
from fluss.model.json_values import parse_json
from fluss.model.schema.aggregation import AggFunction
from fluss.model.schema.column import Column
from fluss.model.schema.field_ids import refuse_duplicate_ids, without_field_ids
from fluss.model.schema.schema_json import agg_function_from_json
from fluss.model.types import data_type as t
from fluss.model.types.type_text import parse_type
from fluss.model.types.type_to_arrow import (
    AGGREGATION_KEY,
    COMMENT_KEY,
    FIELD_ID_KEY,
    TYPE_KEY,
    to_arrow_type,
)

if TYPE_CHECKING:
    import pyarrow as pa

ARROW_DEPTH_MAX = 64
# Extension types whose storage is not their value: the number of a period, a library's own bytes.
OPAQUE_EXTENSIONS = frozenset({"pandas.period", "arrow.opaque"})

_PRECISION_OF_UNIT = {"s": 0, "ms": 3, "us": 6, "ns": 9}
# Enough digits for every unsigned 64-bit integer.
_UINT64_DIGITS = 20


def from_arrow_type(
    arrow_type: pa.DataType, *, nullable: bool = True, column: str = ""
) -> t.DataType:
    """Return the Fluss type that holds every value of this Arrow type.

    Args:
        arrow_type: The Arrow type.
        nullable: Whether the values may be NULL.
        column: The column of that type, for the error.

    Raises:
        UnsupportedTypeError: When Fluss has no such type.
    """
    data_type = _natural(arrow_type, column or "the value", 0)
    return data_type if nullable else data_type.not_null()


def from_arrow_field(field: pa.Field) -> t.DataType:
    """Return the Fluss type of an Arrow field, with what its metadata adds to the Arrow type.

    Raises:
        UnsupportedTypeError: When Fluss has no such type.
    """
    return _type_of_field(field, field.name, 0)


def from_arrow_schema(schema: pa.Schema) -> tuple[Column, ...]:
    """Return the columns of a table for data of this Arrow schema.

    Ids in the metadata are kept if every column has one and all differ; otherwise the schema is not
    the one they were written for, and they are dropped.

    Raises:
        UnsupportedTypeError: When Fluss has no type for a column.
    """
    columns = tuple(_column(each) for each in schema)
    try:
        refuse_duplicate_ids(columns)
    except InvalidSchemaError:
        return without_field_ids(columns)
    if any(each.column_id is None for each in columns):
        return without_field_ids(columns)
    return columns


def _column(field: pa.Field) -> Column:
    return Column(
        field.name,
        from_arrow_field(field),
        _comment(field),
        column_id=_field_id(field),
        aggregation=_aggregation(field),
    )


def _type_of_field(field: pa.Field, path: str, depth: int) -> t.DataType:
    natural = _natural(field.type, path, depth)
    data_type = _hinted(field, natural) or natural
    return data_type if field.nullable else data_type.not_null()


def _hinted(field: pa.Field, natural: t.DataType) -> t.DataType | None:
    """Return the type in the field's metadata, if it agrees with the field's Arrow type."""
    text = _metadata(field, TYPE_KEY)
    if text is None:
        return None
    try:
        hinted = parse_type(text)
    except InvalidSchemaError:
        return None
    if hinted.arrow_is_exact or _natural(to_arrow_type(hinted), "", 0) != natural:
        return None
    return hinted.as_nullable()


def _natural(arrow_type: Any, path: str, depth: int) -> t.DataType:
    """Return the Fluss type of an Arrow type by itself, nullable."""
    import pyarrow as pa

    if depth > ARROW_DEPTH_MAX:
        raise UnsupportedTypeError(
            f"The type of the column {path[:80]!r} is nested more than {ARROW_DEPTH_MAX} levels deep.",
            column=path,
        )
    bare = _bare_types().get(arrow_type)
    if bare is not None:
        return bare
    for matches, convert in _parametric_types():
        if matches(arrow_type):
            return convert(arrow_type, path, depth)
    if isinstance(arrow_type, pa.BaseExtensionType):
        if arrow_type.extension_name in OPAQUE_EXTENSIONS:
            raise _unsupported(arrow_type, path, "cast it where it comes from, for example to text")
        return _natural(arrow_type.storage_type, path, depth + 1)
    raise _unsupported(arrow_type, path)


@cache
def _bare_types() -> dict[Any, t.DataType]:
    import pyarrow as pa

    plain = (each() for each in t.DATA_TYPES if not issubclass(each, t.NestedType | t.CharType))
    return {to_arrow_type(each): each for each in plain if not each.parameters} | {
        pa.uint8(): t.SmallIntType(),
        pa.uint16(): t.IntType(),
        pa.uint32(): t.BigIntType(),
        pa.uint64(): t.DecimalType(_UINT64_DIGITS, 0),
        pa.float16(): t.FloatType(),
        pa.large_string(): t.StringType(),
        pa.string_view(): t.StringType(),
        pa.large_binary(): t.BytesType(),
        pa.binary_view(): t.BytesType(),
        pa.date64(): t.DateType(),
    }


_Convert = Callable[[Any, str, int], t.DataType]


@cache
def _parametric_types() -> tuple[tuple[Callable[[Any], bool], _Convert], ...]:
    from pyarrow import types

    return (
        (types.is_timestamp, _timestamp),
        (types.is_time, lambda kind, _path, _depth: t.TimeType(_PRECISION_OF_UNIT[kind.unit])),
        (types.is_decimal, _decimal),
        (types.is_fixed_size_binary, _fixed_binary),
        (types.is_dictionary, lambda kind, path, depth: _natural(kind.value_type, path, depth + 1)),
        (types.is_list, _list),
        (types.is_large_list, _list),
        (types.is_fixed_size_list, _list),
        (types.is_list_view, _list),
        (types.is_large_list_view, _list),
        (types.is_map, _map),
        (types.is_struct, _struct),
    )


def _timestamp(arrow_type: Any, _path: str, _depth: int) -> t.DataType:
    precision = _PRECISION_OF_UNIT[arrow_type.unit]
    return t.TimestampType(precision) if arrow_type.tz is None else t.TimestampLtzType(precision)


def _decimal(arrow_type: Any, path: str, _depth: int) -> t.DataType:
    precision, scale = arrow_type.precision, arrow_type.scale
    if precision > t.PRECISION_MAX_DECIMAL:
        raise _unsupported(
            arrow_type, path, f"cast it to decimal128 of at most {t.PRECISION_MAX_DECIMAL} digits"
        )
    if not 0 <= scale <= precision:
        raise _unsupported(
            arrow_type, path, "cast it to a decimal128 whose scale is between 0 and its precision"
        )
    return t.DecimalType(precision, scale)


def _fixed_binary(arrow_type: Any, path: str, _depth: int) -> t.DataType:
    if arrow_type.byte_width == 0:
        raise _unsupported(arrow_type, path, "cast it to binary, or leave the column out")
    return t.BinaryType(arrow_type.byte_width)


def _list(arrow_type: Any, path: str, depth: int) -> t.DataType:
    return t.ArrayType(_type_of_field(arrow_type.value_field, f"{path}[]", depth + 1))


def _map(arrow_type: Any, path: str, depth: int) -> t.DataType:
    return t.MapType(
        _type_of_field(arrow_type.key_field, f"{path}.key", depth + 1),
        _type_of_field(arrow_type.item_field, f"{path}.value", depth + 1),
    )


def _struct(arrow_type: Any, path: str, depth: int) -> t.DataType:
    fields = (arrow_type.field(index) for index in range(arrow_type.num_fields))
    return t.RowType(
        tuple(
            t.DataField(
                each.name,
                _type_of_field(each, f"{path}.{each.name}", depth + 1),
                _comment(each),
                field_id=_field_id(each),
            )
            for each in fields
        )
    )


_INSTEAD = {
    "duration": "cast it to int64 (the count of its unit), or to a time or timestamp",
    "month_day_nano_interval": "keep months, days and nanoseconds in columns of their own",
    "run_end_encoded": "decode it with pyarrow.compute.run_end_decode",
    "dense_union": "split it into one column for each type",
    "sparse_union": "split it into one column for each type",
}


def _unsupported(arrow_type: Any, path: str, instead: str | None = None) -> UnsupportedTypeError:
    name = str(arrow_type).partition("[")[0].partition("<")[0]
    return UnsupportedTypeError(
        f"Fluss has no type for the column {path!r} of the Arrow type {arrow_type}.",
        hint=instead or _instead_of(name, path),
        column=path,
        type=str(arrow_type),
    )


def _instead_of(name: str, path: str) -> str | Hint:
    if name == "null":
        return Hint(HintKey.GIVE_TYPE, column=path)
    return _INSTEAD.get(name, "cast the column to another type")


# --- metadata -----------------------------------------------------------------------------------


def _metadata(field: Any, key: bytes) -> str | None:
    found = (field.metadata or {}).get(key)
    return None if found is None else found.decode("utf-8", errors="replace")


def _comment(field: Any) -> str | None:
    return _metadata(field, COMMENT_KEY)


def _field_id(field: Any) -> int | None:
    text = _metadata(field, FIELD_ID_KEY)
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= len(str(2**31))):
        return None
    return int(text)


def _aggregation(field: Any) -> AggFunction | None:
    text = _metadata(field, AGGREGATION_KEY)
    if text is None:
        return None
    try:
        return agg_function_from_json(parse_json(text, "aggregation function"))
    except FlussError:
        return None
