"""Tables of Iceberg in a catalog of SQLite, as Fluss's coordinator makes them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestamptzType

from fluss_lake.iceberg_writes import ParquetFile, arrow_schema

SYSTEM = (
    ("__bucket", IntegerType()),
    ("__offset", LongType()),
    ("__timestamp", TimestamptzType()),
)


def lake_table(directory: Any, *, has_key: bool = True, **more: Any) -> Any:
    """A table of `id` and `name`; with a key its bucket is that of `id`."""
    catalog = SqlCatalog(
        "test", uri=f"sqlite:///{directory / 'catalog.db'}", warehouse=directory.as_uri()
    )
    catalog.create_namespace_if_not_exists("db")
    fields = [
        NestedField(1, "id", LongType(), required=has_key),
        NestedField(2, "name", StringType()),
        *(NestedField(3 + n, name, kind, required=True) for n, (name, kind) in enumerate(SYSTEM)),
    ]
    schema = Schema(*fields, identifier_field_ids=[1] if has_key else [])
    transform = BucketTransform(2) if has_key else IdentityTransform()
    source, name = (1, "id_bucket") if has_key else (3, "__bucket")
    spec = PartitionSpec(PartitionField(source, 1000, transform, name))
    return catalog.create_table("db.t", schema, partition_spec=spec, **more)


def rows_file(table: Any, path: str, ids: list[int], bucket: int = 0) -> Any:
    """Write a file of rows, whose offsets are their ids."""
    columns = {
        "id": ids,
        "name": [f"name {each}" for each in ids],
        "__bucket": [bucket] * len(ids),
        "__offset": ids,
        "__timestamp": [0] * len(ids),
    }
    return _written(table, path, table.schema(), columns, bucket)


def deletes_file(table: Any, path: str, ids: list[int], bucket: int = 0) -> Any:
    """Write a file of deletes by key."""
    return _written(table, path, table.schema().select("id"), {"id": ids}, bucket, [1])


def _written(
    table: Any, path: str, schema: Any, columns: Any, bucket: int, equality_ids: Any = ()
) -> Any:
    requested = arrow_schema(schema)
    arrays = [pa.array(columns[each.name], each.type) for each in requested]
    location = f"{table.location()}/data/{path}.parquet"
    file = ParquetFile(table.io, location, schema, table.properties)
    file.write(pa.Table.from_arrays(arrays, schema=requested))
    spec_id = table.spec().spec_id
    return file.finish(partition=[bucket], spec_id=spec_id, equality_ids=equality_ids)
