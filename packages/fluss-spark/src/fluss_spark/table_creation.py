"""Creates missing tables for a write: `createIfNotExists`.

Everything that can be refused is refused before the table exists: keys and partitions that are no
columns, a delivery guarantee that cannot be given, and the first rows of a task, which are known
only when it runs. So the driver plans with a table that does not exist yet, and the first task that
has rows creates it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa
from pyspark.sql.types import StructType

from fluss import TablePath
from fluss.errors import InvalidValueError, ServerError, TableNotFoundError
from fluss.model.options.secrets import shown_value
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_rules import check_new_table
from fluss.scan import CHANGE_TYPE
from fluss.session import Session, Table
from fluss.write.table_from_frame import schema_of_frame
from fluss_spark.column_names import Layout, match_names
from fluss_spark.error_context import should_log
from fluss_spark.spark_options import FlussOptions, Operation
from fluss_spark.spark_types import arrow_schema, type_of_new_column

_BY_KEY: Final = frozenset({"upsert", "update", "delete"})
_HOW: Final = ("primaryKey", "partitionBy", "bucketNum")
_NODE_EXISTS: Final = "NodeExists"
_LOOKS_MAX: Final = 50
_LOOK_EVERY_S: Final = 0.1
_LOG = logging.getLogger("fluss.spark")


@dataclass(frozen=True)
class NewTable:
    """A table that a write creates. Picklable: tasks get it.

    Args:
        path: The table.
        described: Its description, as JSON.
    """

    path: TablePath
    described: str

    @classmethod
    def of(cls, options: FlussOptions, path: TablePath, columns_of: StructType) -> Self:
        """Return the table that the options describe.

        Args:
            options: The options of the format.
            path: The table.
            columns_of: The columns of the frame.

        Raises:
            InvalidSchemaError: The description contradicts itself, or Fluss's rules.
            InvalidValueError: The operation needs a key, and none is named.
        """
        key, operation = options.names("primaryKey"), options.spark.get("operation")
        if key is None and operation is not None and operation.lower() in _BY_KEY:
            raise InvalidValueError(
                f"{path} would be created without a primary key, and then allows no {operation}.",
                hint="option('primaryKey', 'id') names its columns",
                option="primaryKey",
            )
        # A literal is NOT NULL in Spark, which means nothing for later rows.
        columns = [
            pa.field(each.name, type_of_new_column(of.dataType, each.type))
            for of, each in zip(columns_of, arrow_schema(columns_of), strict=True)
            if each.name != CHANGE_TYPE
        ]
        names = [each.name for each in columns]
        partitions = options.names("partitionBy")
        described = schema_of_frame(
            pa.schema(columns),
            primary_key=None if key is None else match_names(key, names),
            partition_by=None if partitions is None else match_names(partitions, names),
            buckets=options.number("bucketNum", 1) if "bucketNum" in options.spark else None,
            properties=options.properties or None,
        )
        path.check_new()
        check_new_table(described)
        return cls(path, described.to_json())

    def planned(self, session: Session) -> Table:
        """Return the table as it would be, for checks; it is never written to.

        Raises:
            DatabaseNotFoundError: There is no database for it; the hint names the nearest.
        """
        return session.planned_table(self.path, self._descriptor())

    def create(self, session: Session) -> None:
        """Create the table, unless another task has done so.

        Where two tasks create it concurrently, Fluss 0.9.1 answers one of them with ZooKeeper's
        error NodeExists. The table exists then, or is about to exist.
        """
        try:
            session.create_table(self.path, self._descriptor(), ignore_if_exists=True)
        except ServerError as error:
            if _NODE_EXISTS not in error.message:
                raise
            for _ in range(_LOOKS_MAX):
                with suppress(TableNotFoundError):
                    session.table(self.path)
                    return
                time.sleep(_LOOK_EVERY_S)
            raise

    def check_rows(self, session: Session, operation: Operation, rows: pa.RecordBatch) -> None:
        """Refuse rows that the table would not accept.

        Raises:
            InvalidValueError: A key is NULL, or a value names no partition.
        """
        table = self.planned(session)
        layout = Layout.of(table, operation, rows.schema.names)
        batch = layout.batch(rows)
        if operation == "delete":
            batch = batch.select(list(table.primary_key))
        table.check(batch, mode=operation)

    def _descriptor(self) -> TableDescriptor:
        return TableDescriptor.from_json(self.described)


def creates_table(options: FlussOptions) -> bool:
    """Return whether a missing table is created.

    Raises:
        InvalidValueError: It is not, and an option describes it.
    """
    is_created = options.flag("createIfNotExists", default=False)
    for name in (*_HOW, *options.properties):
        if not is_created and (name in options.spark or name in options.properties):
            raise InvalidValueError(
                f"{name} describes a table to create, and createIfNotExists is not true.",
                hint="option('createIfNotExists', True), or leave it out",
                option=name,
            )
    return is_created


def check_matches(options: FlussOptions, table: Table) -> None:
    """Refuse an existing table that differs from the options.

    Properties may have been changed since on purpose; a difference is logged.
    """
    found: Sequence[tuple[str, Sequence[str]]] = (
        ("primaryKey", table.primary_key),
        ("partitionBy", table.partition_by),
    )
    for option, has in found:
        named = options.names(option)
        if named is not None and set(match_names(named, table.schema.names)) != set(has):
            raise _differs(table, option, ", ".join(named), ", ".join(has) or "none")
    if "bucketNum" in options.spark and options.number("bucketNum", 1) != table.buckets:
        raise _differs(table, "bucketNum", options.spark["bucketNum"], str(table.buckets))
    for name, value in options.properties.items():
        has_value = table.info.properties.get(name)
        if has_value != value and should_log(table.name, name, value):
            _LOG.warning(
                "%s exists and has %s=%s; it stays so, although the option is %s",
                table.name,
                name,
                None if has_value is None else shown_value(name, has_value),
                shown_value(name, value),
            )


def _differs(table: Table, option: str, given: Any, has: str) -> InvalidValueError:
    return InvalidValueError(
        f"{table.name} exists and has {has}, but {option} is {given}.",
        hint=f"leave {option} out to write to it as it is, or name another table",
        option=option,
    )
