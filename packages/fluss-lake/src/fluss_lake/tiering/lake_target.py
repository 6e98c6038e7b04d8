"""Where the files of a lake's table are written, and how: what a writing process must know.

A target is small and picklable, and holds no secret: the writing process opens the files itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import StringType

from fluss.errors import UnsupportedOperationError
from fluss.model.tables.table_info import TableInfo
from fluss_lake.file_plan import BUCKET, OFFSET, TIMESTAMP
from fluss_lake.iceberg_writes import FORMAT_VERSION, data_path
from fluss_lake.lake_errors import LakeMismatchError

SYSTEM: Final = (BUCKET, OFFSET, TIMESTAMP)
_FORMAT: Final = "write.format.default"


@dataclass(frozen=True)
class LakeTarget:
    """A table of a lake, as the writers of its files see it.

    Attributes:
        location: The table's location.
        properties: The table's properties; some of them configure how files are written.
        schema_json: Its columns, in Iceberg's JSON.
        spec_json: Its partition spec, in Iceberg's JSON.
    """

    location: str
    properties: tuple[tuple[str, str], ...]
    schema_json: str
    spec_json: str

    @staticmethod
    def of(table: Table, info: TableInfo) -> LakeTarget:
        """Check that a table is the one that Fluss made, and describe it.

        Raises:
            LakeMismatchError: The table has other columns or partitions.
            UnsupportedOperationError: The table has a format that this package does not write.
        """
        _check_format(table, info)
        _check_columns(table.schema(), info)
        _check_spec(table, info)
        return LakeTarget(
            location=table.location(),
            properties=tuple(sorted(table.properties.items())),
            schema_json=table.schema().model_dump_json(),
            spec_json=table.spec().model_dump_json(),
        )

    @cached_property
    def schema(self) -> Schema:
        """The columns."""
        return Schema.model_validate_json(self.schema_json)

    @cached_property
    def spec(self) -> PartitionSpec:
        """The partitions."""
        return PartitionSpec.model_validate_json(self.spec_json)

    @cached_property
    def key_schema(self) -> Schema:
        """The columns of the primary key, by which rows are deleted."""
        return self.schema.select(*self.schema.identifier_field_names())

    def path(self, record: tuple[Any, ...], name: str) -> str:
        """The path of a file of a partition."""
        return data_path(self.location, dict(self.properties), self.schema, self.spec, record, name)


def file_partition(partition_name: str | None, bucket_id: int) -> tuple[Any, ...]:
    """The partition values of a bucket's files: the Fluss partition's values, then the bucket."""
    names = [] if partition_name is None else partition_name.split("$")
    return (*names, bucket_id)


def _check_format(table: Table, info: TableInfo) -> None:
    version = table.metadata.format_version
    if version != FORMAT_VERSION:
        raise UnsupportedOperationError(
            f"The lake's table of {info.table_path} is of Iceberg's version {version}, and only "
            f"version {FORMAT_VERSION} is written.",
            hint="Fluss 0.9.1 makes tables of version 2; another program has upgraded this one.",
            table=str(info.table_path),
        )
    written = table.properties.get(_FORMAT, "parquet")
    if written.lower() != "parquet":
        raise UnsupportedOperationError(
            f"The lake's table of {info.table_path} is written as {written}, and only Parquet is.",
            hint=f"remove its property {_FORMAT}",
            table=str(info.table_path),
        )


def _check_columns(schema: Schema, info: TableInfo) -> None:
    found = tuple(column.name for column in schema.fields)
    expected = (*info.schema.column_names, *SYSTEM)
    if found != expected:
        raise _mismatch(info, "columns", ", ".join(found), ", ".join(expected))
    keys = {schema.find_field(field_id).name for field_id in schema.identifier_field_ids}
    if keys != set(info.primary_keys):
        raise _mismatch(info, "identifier fields", sorted(keys), sorted(info.primary_keys))


def _check_spec(table: Table, info: TableInfo) -> None:
    schema, spec = table.schema(), table.spec()
    found = [(schema.find_field(part.source_id).name, part.transform) for part in spec.fields]
    if [name for name, _ in found[:-1]] != list(info.partition_keys) or not all(
        isinstance(transform, IdentityTransform) for _, transform in found[:-1]
    ):
        raise _mismatch(info, "partitions", spec, f"the columns {', '.join(info.partition_keys)}")
    for key in info.partition_keys:
        if not isinstance(schema.find_field(key).field_type, StringType):
            raise _mismatch(info, "a partition column that is not a string", key, "strings")
    name, transform = found[-1] if found else ("", None)
    is_key = (
        isinstance(transform, BucketTransform)
        and transform.num_buckets == info.num_buckets
        and info.bucket_keys == (name,)
    )
    if not is_key and not (name == BUCKET and isinstance(transform, IdentityTransform)):
        requested = f"{info.num_buckets} buckets of {', '.join(info.bucket_keys) or BUCKET}"
        raise _mismatch(info, "a bucket", f"{transform} of {name!r}", requested)


def _mismatch(info: TableInfo, what: str, found: Any, expected: Any) -> LakeMismatchError:
    return LakeMismatchError(
        f"The lake's table of {info.table_path} is not the one that Fluss makes: it has as {what} "
        f"{found}, and not {expected}.",
        hint="Another program may have created or altered it. Drop it in the lake, or give the "
        "Fluss table another name.",
        table=str(info.table_path),
    )


def properties_of(target: LakeTarget) -> Mapping[str, str]:
    """The table's properties."""
    return dict(target.properties)
