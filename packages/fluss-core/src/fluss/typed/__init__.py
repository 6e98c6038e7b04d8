"""Rows that have types: classes of Python as the rows of tables.

Rule: a class says which columns a table has and which values a row has; nothing here knows a table,
a session or a connection. The verbs of typed rows are in `session.typed_table`.
"""

from fluss.typed.class_schema import descriptor_of, schema_of
from fluss.typed.markers import (
    AutoIncrement,
    BucketKey,
    ColumnName,
    Comment,
    Key,
    NotStored,
    Partition,
    table,
)

__all__ = [
    "AutoIncrement",
    "BucketKey",
    "ColumnName",
    "Comment",
    "Key",
    "NotStored",
    "Partition",
    "descriptor_of",
    "schema_of",
    "table",
]
