"""JSON documents for the golden file `documents.json`, as a client might send them to a server.

They are in the form in which people write them; the golden file has Java's normalized form, with
the ids it assigns, the NOT NULL it adds to keys, and the fields it omits.
"""

from __future__ import annotations

from typing import Any

from tests.support.differential.oracle_types import DocumentKind

_FLAT: dict[str, Any] = {
    "version": 1,
    "columns": [
        {"name": "id", "data_type": {"type": "BIGINT"}},
        {"name": "name", "data_type": {"type": "STRING"}, "comment": 'who "it" is, größer'},
    ],
    "highest_field_id": 1,
}
_KEYED: dict[str, Any] = {
    "version": 1,
    "columns": [
        {"name": "id", "data_type": {"type": "INTEGER", "nullable": False}, "id": 0},
        {"name": "day", "data_type": {"type": "STRING"}, "id": 1},
        {
            "name": "place",
            "data_type": {
                "type": "ROW",
                "fields": [
                    {
                        "name": "at",
                        "field_type": {
                            "type": "ROW",
                            "nullable": False,
                            "fields": [
                                {"name": "x", "field_type": {"type": "DOUBLE"}, "field_id": 4}
                            ],
                        },
                        "description": "where",
                        "field_id": 3,
                    },
                    {
                        "name": "tags",
                        "field_type": {
                            "type": "ARRAY",
                            "element_type": {"type": "CHAR", "length": 3},
                        },
                        "field_id": 5,
                    },
                ],
            },
            "id": 2,
        },
        {
            "name": "last",
            "data_type": {"type": "TIMESTAMP_WITH_LOCAL_TIME_ZONE", "precision": 6},
            "id": 6,
        },
    ],
    "primary_key": ["id", "day"],
    "highest_field_id": 9,
}
_AGGREGATED: dict[str, Any] = {
    "version": 1,
    "columns": [
        {"name": "k", "data_type": {"type": "STRING"}, "id": 0},
        {
            "name": "total",
            "data_type": {"type": "DECIMAL", "precision": 20, "scale": 2},
            "agg_function": {"type": "sum"},
            "id": 1,
        },
        {
            "name": "names",
            "data_type": {"type": "STRING"},
            "agg_function": {"type": "listagg", "parameters": {"delimiter": ";"}},
            "id": 2,
        },
    ],
    "primary_key": ["k"],
    "highest_field_id": 2,
}
_NUMBERED: dict[str, Any] = {
    "version": 1,
    "columns": [
        {"name": "k", "data_type": {"type": "STRING"}, "id": 0},
        {"name": "n", "data_type": {"type": "BIGINT"}, "id": 1},
    ],
    "primary_key": ["k"],
    "auto_increment_column": ["n"],
    "highest_field_id": 1,
}


def _table(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    document = {
        "version": 1,
        "schema": schema,
        "partition_key": [],
        "properties": {},
        "custom_properties": {},
    }
    return document | more


DOCUMENTS: tuple[tuple[str, DocumentKind, dict[str, Any]], ...] = (
    ("a schema without ids", "schema", _FLAT),
    ("a schema with a primary key and nested rows", "schema", _KEYED),
    ("a schema with aggregations", "schema", _AGGREGATED),
    ("a schema with an auto-increment column", "schema", _NUMBERED),
    ("a log table", "table", _table(_FLAT)),
    (
        "a log table with buckets",
        "table",
        _table(_FLAT, bucket_key=["name", "id"], bucket_count=12, comment="a \U0001f600"),
    ),
    ("a log table with buckets but no key", "table", _table(_FLAT, bucket_key=[], bucket_count=3)),
    (
        "a partitioned primary key table",
        "table",
        _table(
            _KEYED,
            partition_key=["day"],
            bucket_count=4,
            bucket_key=[],
            properties={"table.log.ttl": "3 d"},
            custom_properties={"who": "me"},
        ),
    ),
    (
        "an aggregating table",
        "table",
        _table(_AGGREGATED, properties={"table.merge-engine": "aggregation"}),
    ),
    ("a table that numbers its rows", "table", _table(_NUMBERED, bucket_key=["k"])),
    ("a database", "database", {"version": 1, "custom_properties": {}}),
    (
        "a database with a comment",
        "database",
        {"version": 1, "comment": "ours", "custom_properties": {"owner": "us"}},
    ),
    (
        "offsets of buckets",
        "bucket_offsets",
        {"version": 1, "table_id": 7, "bucket_offsets": [5, -1, 9]},
    ),
    (
        "offsets of partitions",
        "bucket_offsets",
        {
            "version": 1,
            "table_id": 7,
            "partition_offsets": [
                {"partition_id": 3, "bucket_offsets": [10]},
                {"partition_id": 4, "bucket_offsets": [-1, 2**40]},
            ],
        },
    ),
)
