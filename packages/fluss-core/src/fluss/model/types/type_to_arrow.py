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

from collections.abc import Callable
from typing import TYPE_CHECKING

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

# The names of the invisible fields; only Java's ARRAY reader needs one, `element`.
ELEMENT_NAME = "element"
KEY_NAME = "key"
VALUE_NAME = "value"


def to_arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type for users; nested fields carry metadata."""
    return _Writer(for_wire=False).type_of(data_type)


def to_wire_arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type of the bytes in a log batch: no zones, no metadata."""
    return _Writer(for_wire=True).type_of(data_type)


def to_arrow_field(column: Column) -> pa.Field:
    """Return the Arrow field of a column, its name, comment, id and aggregation included."""
    return _Writer(for_wire=False).column_field(column)


def to_arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema for users.

    It has ids only where they differ from those that would be assigned anyway, so the usual schema
    has no metadata.
    """
    import pyarrow as pa

    columns = schema.columns
    plain = without_field_ids(columns)
    if with_field_ids(plain) == columns:
        columns = plain
    return pa.schema([to_arrow_field(each) for each in columns])


class _Writer:
    """Walks a Fluss type and builds the Arrow type, for users or for the wire."""

    def __init__(self, *, for_wire: bool) -> None:
        self.for_wire = for_wire

    def type_of(self, data_type: DataType) -> pa.DataType:
        import pyarrow as pa

        match data_type:
            case ArrayType():
                return pa.list_(self.field(ELEMENT_NAME, data_type.element))
            case MapType():
                key = self.field(KEY_NAME, data_type.key)
                return pa.map_(key, self.field(VALUE_NAME, data_type.value))
            case RowType():
                return pa.struct([self.row_field(each) for each in data_type.fields])
            case _:
                make = getattr(pa, data_type.arrow_name)
                return make(*data_type.arrow_arguments(for_wire=self.for_wire))

    def column_field(self, column: Column) -> pa.Field:
        extra: dict[bytes, bytes] = {}
        if column.aggregation is not None and not self.for_wire:
            extra[AGGREGATION_KEY] = json_text(agg_function_to_json(column.aggregation)).encode()
        return self.field(
            column.name,
            column.data_type,
            comment=column.comment,
            field_id=column.column_id,
            extra=extra,
        )

    def row_field(self, field: DataField) -> pa.Field:
        return self.field(
            field.name, field.data_type, comment=field.description, field_id=field.field_id
        )

    def field(
        self,
        name: str,
        data_type: DataType,
        *,
        comment: str | None = None,
        field_id: int | None = None,
        extra: dict[bytes, bytes] | None = None,
    ) -> pa.Field:
        import pyarrow as pa

        metadata: dict[bytes, bytes] = dict(extra or {})
        if not self.for_wire:
            if not data_type.arrow_is_exact:
                metadata[TYPE_KEY] = str(data_type.as_nullable()).encode()
            if comment is not None:
                metadata[COMMENT_KEY] = comment.encode()
            if field_id is not None:
                metadata[FIELD_ID_KEY] = str(field_id).encode()
        arrow_type = self.type_of(data_type)
        return pa.field(name, arrow_type, nullable=data_type.nullable, metadata=metadata or None)


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
