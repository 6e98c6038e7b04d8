"""Data types as Fluss's JSON: `{"type": "CHAR", "length": 3}` (Java: `DataTypeJsonSerde`).

The JSON comes from a server or client and is not trusted: malformed JSON is a `CorruptDataError`, a
type that only a newer Fluss knows is an `UnsupportedTypeError`.
"""

from __future__ import annotations

from fluss.errors import CorruptDataError, InvalidSchemaError, UnsupportedTypeError
from fluss.model.json_values import Json, as_integer, as_list, as_object, as_text, corrupt
from fluss.model.types import data_type as t

# No real type is this deep; without a limit a few kilobytes of brackets exhaust the stack.
TYPE_DEPTH_MAX = 64

_SCALARS = {each.root: each for each in t.DATA_TYPES if not issubclass(each, t.NestedType)}


def type_to_json(data_type: t.DataType) -> Json:
    """Return the JSON object of a type, keys in Fluss's order."""
    written: Json = {"type": data_type.root}
    if not data_type.nullable:
        written["nullable"] = False
    written |= {each: getattr(data_type, each) for each in data_type.parameters}
    match data_type:
        case t.ArrayType():
            written["element_type"] = type_to_json(data_type.element)
        case t.MapType():
            written["key_type"] = type_to_json(data_type.key)
            written["value_type"] = type_to_json(data_type.value)
        case t.RowType():
            written["fields"] = [_field_to_json(each) for each in data_type.fields]
        case _:
            pass  # a scalar type is its name and its parameters
    return written


def _field_to_json(field: t.DataField) -> Json:
    written: Json = {"name": field.name, "field_type": type_to_json(field.data_type)}
    if field.description is not None:
        written["description"] = field.description
    if field.field_id is not None:
        written["field_id"] = field.field_id
    return written


def type_from_json(value: object, *, depth: int = 0) -> t.DataType:
    """Return the type of a JSON object.

    Raises:
        CorruptDataError: When the JSON is not what Fluss writes.
        UnsupportedTypeError: When the JSON names a type that this client does not know.
    """
    if depth > TYPE_DEPTH_MAX:
        raise CorruptDataError(
            f"A data type is nested more than {TYPE_DEPTH_MAX} levels deep.",
            what="data type",
            why="nested too deeply",
        )
    node = as_object(value, "data type")
    nullable = node.get("nullable", True)
    if not isinstance(nullable, bool):
        raise corrupt("data type", f"'nullable' is {nullable!r}, not true or false")
    try:
        data_type = _without_nullability(node, depth)
    except InvalidSchemaError as error:  # a length or precision out of range
        raise corrupt("data type", error.message) from None
    return data_type if nullable else data_type.not_null()


def _without_nullability(node: Json, depth: int) -> t.DataType:
    root = as_text(node, "type", "data type")
    scalar = _SCALARS.get(root)
    if scalar is not None:
        return scalar(*(as_integer(node, each, root) for each in scalar.parameters))
    below = depth + 1
    match root:
        case t.ArrayType.root:
            return t.ArrayType(type_from_json(node.get("element_type"), depth=below))
        case t.MapType.root:
            return t.MapType(
                type_from_json(node.get("key_type"), depth=below),
                type_from_json(node.get("value_type"), depth=below),
            )
        case t.RowType.root:
            fields = as_list(node, "fields", root)
            return t.RowType(tuple(_field_from_json(each, below) for each in fields))
        case _:
            raise UnsupportedTypeError(
                f"The data type {root[:60]!r} is not known to this client.",
                hint="a newer server may have types that need a newer client",
                type=root,
            )


def _field_from_json(value: object, depth: int) -> t.DataField:
    node = as_object(value, "ROW field")
    # Java writes -1 for no id.
    field_id = as_integer(node, "field_id", "ROW field") if "field_id" in node else -1
    return t.DataField(
        as_text(node, "name", "ROW field"),
        type_from_json(node.get("field_type"), depth=depth),
        None if node.get("description") is None else as_text(node, "description", "ROW field"),
        field_id=None if field_id == -1 else field_id,
    )
