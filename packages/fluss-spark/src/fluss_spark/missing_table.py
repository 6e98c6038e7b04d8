"""Tables that are made where they are not there: `createIfNotExists`.

What can be refused is refused before there is a table: keys and partitions that are no columns, a
promise that cannot be kept, and the first rows of a task, of which nobody knows before it runs. So
the driver plans with a table that is not there yet, and the first task that has rows makes it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa
from pyspark.sql.types import StructType

from fluss.admin.admin import admin_of
from fluss.connection.connection import ClientConnection, TableHandle
from fluss.errors import InvalidValueError, ServerError
from fluss.model.options.scan_options import CHANGE_TYPE
from fluss.model.paths import TablePath
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_rules import check_new_table
from fluss.session.table import Table
from fluss.write.table_from_frame import schema_of_frame
from fluss_spark.column_names import Layout, matched
from fluss_spark.error_context import is_news
from fluss_spark.spark_options import FlussOptions, Operation
from fluss_spark.spark_types import arrow_schema, made_as

# How many buckets and which id a table has that is not there; nothing is sent by them.
_PLANNED_BUCKETS: Final = 1
_PLANNED_ID: Final = 0
_BY_KEY: Final = frozenset({"upsert", "update", "delete"})
_HOW: Final = ("primaryKey", "partitionBy", "bucketNum")
_NODE_EXISTS: Final = "NodeExists"
_LOOKS_MAX: Final = 50
_LOOK_EVERY_S: Final = 0.1
_LOG = logging.getLogger("fluss.spark")


@dataclass(frozen=True)
class Making:
    """A table that a write makes.

    Args:
        path: The table.
        described: What it is to be, as JSON: tasks are told.
    """

    path: TablePath
    described: str

    @classmethod
    def of(cls, options: FlussOptions, path: TablePath, columns_of: StructType) -> Self:
        """The table that the options describe.

        Args:
            options: What was written beside the format.
            path: The table.
            columns_of: The columns of the frame.

        Raises:
            InvalidSchemaError: The description contradicts itself, or Fluss's rules.
            InvalidValueError: The operation needs a key, and none is named.
        """
        key, said = options.names("primaryKey"), options.spark.get("operation")
        if key is None and said is not None and said.lower() in _BY_KEY:
            raise InvalidValueError(
                f"{path} would be made without a primary key, and takes no {said} then.",
                hint="option('primaryKey', 'id') names its columns",
                option="primaryKey",
            )
        # A literal is NOT NULL in Spark, which says nothing of the rows to come.
        columns = [
            pa.field(each.name, made_as(of.dataType, each.type))
            for of, each in zip(columns_of, arrow_schema(columns_of), strict=True)
            if each.name != CHANGE_TYPE
        ]
        names = [each.name for each in columns]
        partitions = options.names("partitionBy")
        described = schema_of_frame(
            pa.schema(columns),
            primary_key=None if key is None else matched(key, names),
            partition_by=None if partitions is None else matched(partitions, names),
            buckets=options.number("bucketNum", 1) if "bucketNum" in options.spark else None,
            properties=options.properties or None,
        )
        path.check_new()
        check_new_table(described)
        return cls(path, described.to_json())

    def planned(self, connection: ClientConnection) -> Table:
        """The table as it would be, to be asked and never written to.

        Raises:
            DatabaseNotFoundError: There is no database for it; the hint names the nearest.
        """
        connection.engine.run(admin_of(connection).get_database_info(self.path.database_name))
        descriptor = self._descriptor()
        if descriptor.bucket_count is None:
            descriptor = descriptor.with_bucket_count(_PLANNED_BUCKETS)
        info = TableInfo.of(
            descriptor, table_path=self.path, table_id=_PLANNED_ID, schema_id=_PLANNED_ID
        )
        return Table(TableHandle(connection, info))

    def make(self, connection: ClientConnection) -> None:
        """Create the table, unless another task has done so.

        Where two tasks create it concurrently, Fluss 0.9.1 answers one of them with ZooKeeper's
        error NodeExists. The table is there then, or is about to be.
        """
        admin, run = admin_of(connection), connection.engine.run
        try:
            run(admin.create_table(self.path, self._descriptor(), ignore_if_exists=True))
        except ServerError as error:
            if _NODE_EXISTS not in error.message:
                raise
            for _ in range(_LOOKS_MAX):
                if run(admin.table_exists(self.path)):
                    return
                time.sleep(_LOOK_EVERY_S)
            raise

    def check_rows(
        self, connection: ClientConnection, operation: Operation, rows: pa.RecordBatch
    ) -> None:
        """Refuse rows that the table would not take.

        Raises:
            InvalidValueError: A key is NULL, or a value names no partition.
        """
        table = self.planned(connection)
        layout = Layout.of(table, operation, rows.schema.names)
        batch = layout.batch(rows)
        if operation == "delete":
            batch = batch.select(list(table.primary_key))
        table.check(batch, mode=operation)

    def _descriptor(self) -> TableDescriptor:
        return TableDescriptor.from_json(self.described)


def check_made(options: FlussOptions) -> bool:
    """Whether a table is made where it is not there.

    Raises:
        InvalidValueError: It is not, and an option says how.
    """
    is_made = options.flag("createIfNotExists", default=False)
    for each in (*_HOW, *options.properties):
        if not is_made and (each in options.spark or each in options.properties):
            raise InvalidValueError(
                f"{each} says how a table is made, and createIfNotExists is not true.",
                hint="option('createIfNotExists', True), or leave it out",
                option=each,
            )
    return is_made


def check_as_said(options: FlussOptions, table: Table) -> None:
    """Refuse a table that is there, and not as it would have been made.

    Properties may have been changed since on purpose; where they differ, the log says so.
    """
    found: Sequence[tuple[str, Sequence[str]]] = (
        ("primaryKey", table.primary_key),
        ("partitionBy", table.partition_by),
    )
    for option, has in found:
        said = options.names(option)
        if said is not None and set(matched(said, table.schema.names)) != set(has):
            raise _other(table, option, ", ".join(said), ", ".join(has) or "none")
    if "bucketNum" in options.spark and options.number("bucketNum", 1) != table.buckets:
        raise _other(table, "bucketNum", options.spark["bucketNum"], str(table.buckets))
    for name, value in options.properties.items():
        has_value = table.info.properties.get(name)
        if has_value != value and is_news(table.name, name, value):
            _LOG.warning(
                "%s is there, and has %s=%s; it stays so, whatever the options say (%s)",
                table.name,
                name,
                has_value,
                value,
            )


def _other(table: Table, option: str, said: Any, has: str) -> InvalidValueError:
    return InvalidValueError(
        f"{table.name} is there, and has {has} where {option} says {said}.",
        hint=f"leave {option} out to write to it as it is, or name another table",
        option=option,
    )
