"""Maps column names of Spark, which ignores case, to those of a table, which do not.

A name means the column of exactly this name, or the only one that differs from it in case. A
column that a frame lacks is NULL in the table, as for INSERT with some of the columns: a column
added to a table does not stop the queries that write to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from fluss.scan import CHANGE_TYPE
from fluss.session import Table
from fluss_spark.spark_options import Operation


def match_names(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Return names in the case of the known ones; unknown names stay as they are.

    Args:
        names: The names as the user wrote them.
        known: The names that exist.
    """
    written = list(names)
    count = Counter(name.lower() for name in known)
    by_case = {name.lower(): name for name in known if count[name.lower()] == 1}
    found = []
    for name in written:
        other = by_case.get(name.lower(), name)
        # Two columns of a frame never become one of the table.
        is_taken = other in written or other in found
        found.append(name if name in known or is_taken else other)
    return found


@dataclass(frozen=True)
class Layout:
    """How the columns of a frame become those of a table.

    Args:
        names: The frame's columns, as the table names them.
        missing: Columns of the table that the frame lacks; they are NULL.
    """

    names: tuple[str, ...]
    missing: tuple[pa.Field, ...]

    @classmethod
    def of(cls, table: Table, operation: Operation, names: Sequence[str]) -> Self:
        """Return the layout for writing a frame.

        Args:
            table: The table.
            operation: How the rows are written.
            names: The frame's columns.
        """
        schema = table.schema
        found = match_names(names, [*schema.names, CHANGE_TYPE])
        if operation not in {"append", "upsert"}:
            return cls(tuple(found), ())
        info = table.info
        # A column that decides where a row goes is never filled with NULL.
        needed = {*info.schema.auto_increment_columns, *info.bucket_keys, *info.partition_keys}
        missing = [
            each
            for each in schema
            if each.nullable and each.name not in found and each.name not in needed
        ]
        return cls(tuple(found), tuple(missing))

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of the frame with the columns of the table."""
        arrays = [*batch.columns, *(pa.nulls(batch.num_rows, each.type) for each in self.missing)]
        fields = [
            field.with_name(name) for field, name in zip(batch.schema, self.names, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*fields, *self.missing]))

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the frame's schema with the columns of the table."""
        arrays = [pa.nulls(0, each.type) for each in schema]
        nullable = pa.schema([each.with_nullable(True) for each in schema])
        return self.batch(pa.RecordBatch.from_arrays(arrays, schema=nullable)).schema
