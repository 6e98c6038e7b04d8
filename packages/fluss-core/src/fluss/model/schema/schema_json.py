"""Columns and schemas as Fluss's JSON (Java: `SchemaJsonSerde`, `ColumnJsonSerde`).

Only the form is known here; `model.schema.schema` checks schemas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluss.model.json_values import (
    Json,
    as_integer,
    as_list,
    as_object,
    as_text,
    as_text_map,
    as_texts,
    corrupt,
)
from fluss.model.schema.aggregation import AggFunction
from fluss.model.schema.column import Column
from fluss.model.schema.schema_rules import SchemaParts
from fluss.model.string_map import StringMap
from fluss.model.types.type_json import type_from_json, type_to_json

if TYPE_CHECKING:
    from fluss.model.schema.schema import Schema

SCHEMA_VERSION = 1


def schema_to_json(schema: Schema) -> Json:
    """Return the JSON object of a schema, keys in Fluss's order."""
    written: Json = {
        "version": SCHEMA_VERSION,
        "columns": [column_to_json(each) for each in schema.columns],
    }
    if schema.primary_keys:
        written["primary_key"] = list(schema.primary_keys)
    if schema.auto_increment_columns:
        written["auto_increment_column"] = list(schema.auto_increment_columns)
    written["highest_field_id"] = schema.highest_field_id
    return written


def schema_from_json(value: object) -> SchemaParts:
    """Return the parts of a schema in a JSON object.

    Raises:
        CorruptDataError: When it is not what Fluss writes.
    """
    node = as_object(value, "schema")
    highest = as_integer(node, "highest_field_id", "schema") if "highest_field_id" in node else None
    return SchemaParts(
        columns=tuple(column_from_json(each) for each in as_list(node, "columns", "schema")),
        primary_keys=tuple(as_texts(node, "primary_key", "schema")),
        auto_increment_columns=tuple(as_texts(node, "auto_increment_column", "schema")),
        highest_field_id=highest,
    )


def column_to_json(column: Column) -> Json:
    """Return the JSON object of a column."""
    written: Json = {"name": column.name, "data_type": type_to_json(column.data_type)}
    if column.comment is not None:
        written["comment"] = column.comment
    if column.aggregation is not None:
        written["agg_function"] = agg_function_to_json(column.aggregation)
    if column.column_id is not None:
        written["id"] = column.column_id
    return written


def column_from_json(value: object) -> Column:
    """Return the column that a JSON object stands for."""
    node = as_object(value, "column")
    # Java writes -1 for no id.
    column_id = as_integer(node, "id", "column") if "id" in node else -1
    if column_id < -1:
        raise corrupt("column", f"'id' is {column_id}")
    aggregation = node.get("agg_function")
    return Column(
        as_text(node, "name", "column"),
        type_from_json(node.get("data_type")),
        None if node.get("comment") is None else as_text(node, "comment", "column"),
        column_id=None if column_id == -1 else column_id,
        aggregation=None if aggregation is None else agg_function_from_json(aggregation),
    )


def agg_function_to_json(function: AggFunction) -> Json:
    """Return the JSON object of an aggregation function."""
    written: Json = {"type": function.type.value}
    if function.parameters:
        written["parameters"] = dict(function.parameters)
    return written


def agg_function_from_json(value: object) -> AggFunction | None:
    """Return the function of a JSON object; None for an unknown one, as in Java."""
    node = as_object(value, "aggregation function")
    known = AggFunction.find(as_text(node, "type", "aggregation function"))
    if known is None:
        return None
    return AggFunction(known, StringMap(as_text_map(node, "parameters", "aggregation function")))
