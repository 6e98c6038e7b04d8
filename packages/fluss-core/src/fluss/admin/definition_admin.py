"""Changes of databases and tables, and their schemas by number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fluss.admin.alter_table import alter_table
from fluss.admin.requests import AdminRequests
from fluss.connection.arguments import table_path_of
from fluss.connection.describe_table import nearest_database_named, table_info_of
from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, InvalidValueError
from fluss.model.cluster.configs import AlterConfigOpType
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.changes import (
    DatabaseChange,
    ResetOption,
    SetOption,
    TableChange,
    UpdateComment,
)
from fluss.model.tables.database import DatabaseSummary
from fluss.model.tables.snapshots import SchemaInfo
from fluss.wire import messages
from fluss.wire.table_paths import write_table_path

_FIRST_SCHEMA_ID: Final = 1


class DefinitionAdmin(AdminRequests):
    """Alters databases and tables, and reads what `get_table_info` does not say."""

    async def alter_database(
        self,
        database_name: str,
        database_changes: Iterable[DatabaseChange],
        ignore_if_not_exists: bool | None = False,  # noqa: FBT001, FBT002 - as documented
    ) -> None:
        """Change the properties or the comment of a database; needs Fluss 1.0.

        Args:
            database_name: The database.
            database_changes: Such as `[DatabaseChange.set("owner", "ann")]`.
            ignore_if_not_exists: Whether a database that is not there is no error.

        Raises:
            DatabaseNotFoundError: There is none of this name, and that is not ignored.
            UnsupportedVersionError: The coordinator is older.
        """
        request = messages.AlterDatabaseRequest(
            database_name=database_name, ignore_if_not_exists=bool(ignore_if_not_exists)
        )
        for change in database_changes:
            _write_database_change(request, change)
        async with nearest_database_named(self._cluster, database_name):
            await self._change(request)

    async def list_database_summaries(self) -> list[DatabaseSummary]:
        """All databases with the time they were created at and how many tables they have."""
        answer = await self._cluster.ask_any(
            messages.ListDatabasesRequest(include_summary=True), messages.ListDatabasesResponse
        )
        if not answer.database_summary:  # a server that only knows names
            return [DatabaseSummary(name, None, None) for name in answer.database_name]
        return [
            DatabaseSummary(each.database_name, each.created_time, each.table_count)
            for each in answer.database_summary
        ]

    async def get_table_schema(
        self, table_path: TablePath | str, schema_id: int | None = None
    ) -> SchemaInfo:
        """A schema of a table: the newest one, or that of a number.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.
            FlussError: The table has no schema of this number.
        """
        path = table_path_of(table_path)
        # Servers answer a table or a number that is not there with an error that is retried.
        info = await table_info_of(self._cluster, path)
        if schema_id is None or schema_id == info.schema_id:
            return SchemaInfo(info.schema, info.schema_id)
        if not _FIRST_SCHEMA_ID <= schema_id < info.schema_id:
            raise FlussError(
                f"Table '{path}' has no schema {schema_id}.",
                int(ErrorCode.SCHEMA_NOT_EXIST),
                hint=f"Its schemas have the numbers {_FIRST_SCHEMA_ID} to {info.schema_id}.",
            )
        request = messages.GetTableSchemaRequest(
            table_path=write_table_path(path), schema_id=schema_id
        )
        answer = await self._cluster.ask_any(request, messages.GetTableSchemaResponse)
        return SchemaInfo(Schema.from_json(answer.schema_json), answer.schema_id)

    async def alter_table(
        self,
        table_path: TablePath | str,
        table_changes: Iterable[TableChange],
        ignore_if_not_exists: bool | None = False,  # noqa: FBT001, FBT002 - as documented
    ) -> None:
        """Change a table: its properties, its columns, or the bucket count of new partitions.

        Properties and columns take one request each, properties first. A bucket count is changed
        alone.

        Args:
            table_path: The table.
            table_changes: Such as `[TableChange.set("table.log.ttl", "3d")]`.
            ignore_if_not_exists: Whether a table that is not there is no error.

        Raises:
            TableNotFoundError: There is none of this name, and that is not ignored.
            InvalidSchemaError: A column cannot be added to this table.
            UnsupportedVersionError: The servers are too old for this change.
            FlussError: The servers do not allow this change.
        """
        await alter_table(
            self._cluster,
            table_path_of(table_path),
            list(table_changes),
            ignore_if_not_exists=bool(ignore_if_not_exists),
        )


def _write_database_change(request: messages.AlterDatabaseRequest, change: DatabaseChange) -> None:
    match change:
        case SetOption(key, value):
            request.config_changes.add(
                config_key=key, config_value=value, op_type=AlterConfigOpType.SET.code
            )
        case ResetOption(key):
            request.config_changes.add(config_key=key, op_type=AlterConfigOpType.DELETE.code)
        case UpdateComment(comment):
            request.comment = comment or ""
        case _:
            raise InvalidValueError(
                f"{change!r} is no change of a database.",
                hint="The methods of DatabaseChange make such changes.",
            )
