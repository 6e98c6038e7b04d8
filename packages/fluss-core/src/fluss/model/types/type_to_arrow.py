"""Converts Fluss types to Arrow types; field metadata keeps what Arrow's types cannot express.

Arrow has no CHAR(n), counts time in four units where Fluss has ten precisions, and knows no field
ids. These facts are kept in the metadata of the Arrow field:

=========================  ================================================================
`fluss.type`               the Fluss type, where the Arrow type alone would mean another one
`fluss.field_id`           the column's or field's id, where it is not the one given in order
`fluss.aggregation`        the aggregation function of a column, as in Fluss's JSON
`comment`                  the comment of a column, the description of a field
=========================  ================================================================

Metadata that contradicts its Arrow type is ignored, because users cast columns and keep the field.
A Fluss type has two Arrow types: the one for users, where TIMESTAMP_LTZ is in UTC, and the one on
the wire, where no timestamp has a zone and nothing carries metadata (Java: `ArrowUtils`).
`model.types.arrow_to_type` converts back. pyarrow is loaded by the first call, not
by this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fluss.model.json_values import json_text
from fluss.model.schema.column import Column
from fluss.model.schema.field_ids import with_field_ids, without_field_ids
from fluss.model.schema.schema_json import agg_function_to_json
from fluss.model.types.data_type import ArrayType, DataField, DataType, MapType, RowType

if TYPE_CHECKING:
    import pyarrow as pa

    from fluss.model.schema.schema import Schema

TYPE_KEY = b"fluss.type"
FIELD_ID_KEY = b"fluss.field_id"
AGGREGATION_KEY = b"fluss.aggregation"
COMMENT_KEY = b"comment"  # the key under which comments have always been read from Arrow

# How many schemas are kept in their Arrow form.
SCHEMAS_KEPT_MAX: Final = 64

# The names of the invisible fields; only Java's ARRAY reader needs one, `element`.
ELEMENT_NAME = "element"
KEY_NAME = "key"
VALUE_NAME = "value"


def to_arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type for users; nested fields carry metadata."""
    return _type(data_type, for_wire=False)


def to_wire_arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type of the bytes in a log batch: no zones, no metadata."""
    return _type(data_type, for_wire=True)


def to_arrow_field(column: Column) -> pa.Field:
    """Return the Arrow field of a column, its name, comment, id and aggregation included."""
    metadata = _metadata(column.comment, column.column_id)
    if column.aggregation is not None:
        metadata[AGGREGATION_KEY] = json_text(agg_function_to_json(column.aggregation)).encode()
    return _field(column.name, column.data_type, for_wire=False, metadata=metadata)


def to_arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema for users.

    It has ids only where they differ from those that would be assigned anyway, so the usual schema
    has no metadata.
    """
    return _schema_of(schema.columns)


# One scan needs it two to five times. Of 500 columns, making it takes 5.4 ms of processor time, and
# finding it 0.06 ms.
@lru_cache(maxsize=SCHEMAS_KEPT_MAX)
def _schema_of(columns: tuple[Column, ...]) -> pa.Schema:
    import pyarrow as pa

    plain = without_field_ids(columns)
    if with_field_ids(plain) == columns:
        columns = plain
    return pa.schema([to_arrow_field(each) for each in columns])


def _type(data_type: DataType, *, for_wire: bool) -> pa.DataType:
    import pyarrow as pa

    match data_type:
        case ArrayType():
            return pa.list_(_field(ELEMENT_NAME, data_type.element, for_wire=for_wire))
        case MapType():
            key = _field(KEY_NAME, data_type.key, for_wire=for_wire)
            return pa.map_(key, _field(VALUE_NAME, data_type.value, for_wire=for_wire))
        case RowType(fields=fields):
            return pa.struct([_row_field(each, for_wire=for_wire) for each in fields])
        case _:
            make = getattr(pa, data_type.arrow_name)
            return make(*data_type.arrow_arguments(for_wire=for_wire))


def _row_field(field: DataField, *, for_wire: bool) -> pa.Field:
    metadata = _metadata(field.description, field.field_id)
    return _field(field.name, field.data_type, for_wire=for_wire, metadata=metadata)


def _field(
    name: str,
    data_type: DataType,
    *,
    for_wire: bool,
    metadata: Mapping[bytes, bytes] = MappingProxyType({}),
) -> pa.Field:
    """Return a field; the metadata are for users alone."""
    import pyarrow as pa

    kept: dict[bytes, bytes] = {} if for_wire else dict(metadata)
    if not for_wire and not data_type.arrow_is_exact:
        kept[TYPE_KEY] = str(data_type.as_nullable()).encode()
    arrow_type = _type(data_type, for_wire=for_wire)
    return pa.field(name, arrow_type, nullable=data_type.nullable, metadata=kept or None)


def _metadata(comment: str | None, field_id: int | None) -> dict[bytes, bytes]:
    given = {COMMENT_KEY: comment, FIELD_ID_KEY: field_id}
    return {key: str(value).encode() for key, value in given.items() if value is not None}


def with_leaves(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return the same type with its leaves changed.

    Args:
        kind: The type, nested or not.
        change: Returns the new type of a leaf.
    """
    import pyarrow as pa

    if pa.types.is_map(kind):
        return pa.map_(with_leaves(kind.key_type, change), with_leaves(kind.item_type, change))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(with_leaves(kind.value_type, change)))
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(with_leaves(each.type, change)) for each in kind])
    return change(kind)
