"""Tables, and files of tables, for the tests of the lake's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.string_map import StringMap
from fluss.model.tables.table_info import TableInfo
from fluss.model.types.type_text import parse_type


def schema_of(**columns: str) -> Schema:
    """A schema of columns by name and type."""
    builder = Schema.builder()
    for name, text in columns.items():
        builder = builder.column(name, parse_type(text))
    return builder.build()


def table_of(
    schema: Schema,
    partition_by: tuple[str, ...] = (),
    properties: dict[str, str] | None = None,
) -> TableInfo:
    """A table with this schema."""
    return TableInfo(
        table_path=TablePath("db", "t"),
        table_id=1,
        schema_id=1,
        schema=schema,
        bucket_keys=(),
        partition_keys=partition_by,
        num_buckets=2,
        properties=StringMap(properties or {}, what="properties"),
        custom_properties=StringMap({}, what="custom properties"),
    )


def write_parquet(
    path: Path, columns: Mapping[str, pa.Array], ids: Sequence[int] = (), **options: Any
) -> str:
    """Write a file whose columns have these field ids, or none; return its path.

    Args:
        path: The file.
        columns: The columns by name.
        ids: The field id of each column; 0 for a column without one.
        **options: Those of `pyarrow.parquet.write_table`.
    """
    fields = [
        pa.field(name, array.type, metadata={"PARQUET:field_id": str(number)} if number else None)
        for (name, array), number in zip(columns.items(), ids or [0] * len(columns), strict=True)
    ]
    rows = pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
    pq.write_table(rows, path, **options)
    return str(path)
