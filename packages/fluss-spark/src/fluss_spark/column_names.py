"""Columns as Spark names them, and as a table has them.

Spark does not tell names apart by case. So a name means the column of exactly this name, or the
only one that differs from it in case. A column that a frame lacks is NULL in the table, as it is
for INSERT with some of the columns: a table that gains one does not stop those who write to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from fluss.model.options.scan_options import CHANGE_TYPE
from fluss.session.table import Table
from fluss_spark.spark_options import Operation


def matched(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Names as they are known; those that are not known stay as they are.

    Args:
        names: The names, as they were written.
        known: The names that there are.
    """
    written = list(names)
    count = Counter(each.lower() for each in known)
    by_case = {each.lower(): each for each in known if count[each.lower()] == 1}
    found = []
    for name in written:
        other = by_case.get(name.lower(), name)
        # Two columns of a frame are not one of the table.
        is_taken = other in written or other in found
        found.append(name if name in known or is_taken else other)
    return found


@dataclass(frozen=True)
class Layout:
    """How the columns of a frame become those of a table.

    Args:
        names: The frame's columns, as the table has them.
        missing: Columns of the table that the frame lacks, and that are NULL.
    """

    names: tuple[str, ...]
    missing: tuple[pa.Field, ...]

    @classmethod
    def of(cls, table: Table, operation: Operation, names: Sequence[str]) -> Self:
        """How a frame is written.

        Args:
            table: The table.
            operation: What is done with the rows.
            names: The frame's columns.
        """
        schema = table.schema
        found = matched(names, [*schema.names, CHANGE_TYPE])
        if operation not in {"append", "upsert"}:
            return cls(tuple(found), ())
        info = table.info
        # Where a row goes is not left to a column that nobody gave.
        needed = {*info.schema.auto_increment_columns, *info.bucket_keys, *info.partition_keys}
        missing = [
            each
            for each in schema
            if each.nullable and each.name not in found and each.name not in needed
        ]
        return cls(tuple(found), tuple(missing))

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of the frame, with the columns of the table."""
        arrays = [*batch.columns, *(pa.nulls(batch.num_rows, each.type) for each in self.missing)]
        fields = [
            field.with_name(name) for field, name in zip(batch.schema, self.names, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*fields, *self.missing]))

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The frame's schema, with the columns of the table."""
        arrays = [pa.nulls(0, each.type) for each in schema]
        nullable = pa.schema([each.with_nullable(True) for each in schema])
        return self.batch(pa.RecordBatch.from_arrays(arrays, schema=nullable)).schema
