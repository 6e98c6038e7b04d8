"""Alters a table: its properties, its columns, and the bucket count of new partitions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from fluss.connection.describe_table import nearest_named, table_info_of
from fluss.errors import (
    InvalidSchemaError,
    InvalidValueError,
    ServerError,
    TableNotFoundError,
    UnsupportedOperationError,
    UnsupportedVersionError,
)
from fluss.model.did_you_mean import did_you_mean
from fluss.model.paths import TablePath
from fluss.model.schema.column import Column
from fluss.model.tables.changes import (
    AddColumn,
    DropColumn,
    ModifyBucketCount,
    ModifyColumn,
    RenameColumn,
    ResetOption,
    SetOption,
    TableChange,
)
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import MergeEngine, TableOptions
from fluss.model.types.data_type import DataType
from fluss.model.types.type_json import type_to_json
from fluss.net.cluster_client import UNKNOWN_SERVER_ERROR_CODE, Cluster
from fluss.wire import messages
from fluss.wire.api import ApiKey
from fluss.wire.table_paths import write_table_path

SET, DELETE = 0, 1
LAST = 0
# The changes that one request may have, in the order of the requests.
# A part of the servers' sentence; they have no code of its own for it.
_OLDER_THAN_LAKE: Final = "before the Fluss cluster enabled datalake"
_KINDS: Final = (
    (SetOption, ResetOption),
    (AddColumn, DropColumn, RenameColumn, ModifyColumn),
    (ModifyBucketCount,),
)


async def alter_table(
    cluster: Cluster,
    path: TablePath,
    changes: Sequence[TableChange],
    *,
    ignore_if_not_exists: bool,
) -> None:
    """Alter a table. Properties are changed first, then columns.

    Raises:
        TableNotFoundError: There is no such table, and that is not ignored.
        InvalidSchemaError: A column cannot be added to this table.
        UnsupportedVersionError: The servers are too old for this change.
        FlussError: The servers do not allow this change.
    """
    requests = _requests(path, changes, ignore_if_not_exists=ignore_if_not_exists)
    await _check(cluster, path, changes, ignore_if_not_exists=ignore_if_not_exists)
    for request in requests:
        async with nearest_named(cluster, path), _explained(request):
            await cluster.ask_coordinator(
                request,
                messages.AlterTableResponse,
                repeatable=False,
                version_min=int(request.HasField("modify_bucket_count")),
            )


def _requests(
    path: TablePath, changes: Sequence[TableChange], *, ignore_if_not_exists: bool
) -> list[messages.AlterTableRequest]:
    """Write the requests: one changes either properties or columns, or the bucket count."""
    requests: dict[int, messages.AlterTableRequest] = {}
    for change in changes:
        place = next((at for at, kinds in enumerate(_KINDS) if isinstance(change, kinds)), 0)
        if place not in requests:
            requests[place] = messages.AlterTableRequest(
                table_path=write_table_path(path), ignore_if_not_exists=ignore_if_not_exists
            )
        _write_change(requests[place], change)
    return [requests[place] for place in sorted(requests)]


async def _check(
    cluster: Cluster,
    path: TablePath,
    changes: Sequence[TableChange],
    *,
    ignore_if_not_exists: bool,
) -> None:
    for change in changes:
        if isinstance(change, SetOption | ResetOption):
            _check_key(change.key)
    if len(changes) > 1 and any(isinstance(each, ModifyBucketCount) for each in changes):
        raise InvalidValueError(
            "The bucket count of a table is changed alone, and not together with other changes.",
            hint="Make two calls.",
        )
    added = [
        Column(each.name, each.data_type, each.comment, aggregation=each.aggregation)
        for each in changes
        if isinstance(each, AddColumn)
    ]
    if not added:
        return
    try:
        info = await table_info_of(cluster, path)
    except TableNotFoundError:
        if ignore_if_not_exists:
            return
        raise
    schema = info.schema
    for column in added:
        schema = schema.with_column(column)  # refuses columns that cannot be added
    await _check_aggregations(cluster, info, added)


@asynccontextmanager
async def _explained(request: messages.AlterTableRequest) -> AsyncIterator[None]:
    """Add to the error of a change that servers cannot make yet what users do instead."""
    try:
        yield
    except UnsupportedOperationError as error:
        if _OLDER_THAN_LAKE in error.message:
            error.add_context(
                hint="Create a table with the same columns and this property, and copy the rows "
                "into it."
            )
        raise
    except ServerError as error:
        changed = (request.drop_columns, request.rename_columns, request.modify_columns)
        if error.error_code != UNKNOWN_SERVER_ERROR_CODE or not any(changed):
            raise
        raise UnsupportedOperationError(
            f"The servers do not drop, rename or modify columns: {error.message}",
            error.error_code,
            hint="Create a table with the columns you want, and copy the rows into it.",
        ) from error


def _check_key(key: str) -> None:
    """Refuse a misspelled option; one that only the servers know is theirs to judge."""
    if key.startswith("table.") and key not in TableOptions.OPTIONS:
        hint = did_you_mean(key, TableOptions.OPTIONS)
        if hint is not None:
            raise InvalidValueError(f"A table has no option {key!r}.", hint=hint, option=key)


async def _check_aggregations(cluster: Cluster, info: TableInfo, columns: Sequence[Column]) -> None:
    """Refuse aggregations that the table or its servers do not support."""
    aggregated = [
        (column, column.aggregation) for column in columns if column.aggregation is not None
    ]
    for column, aggregation in aggregated:
        if info.options.merge_engine is not MergeEngine.AGGREGATION:
            raise InvalidSchemaError(
                f"The column {column.name!r} has the aggregation {aggregation}, and "
                f"{info.table_path} does not aggregate.",
                hint=f"Leave the aggregation out; {TableOptions.merge_engine.key!r} is chosen "
                "when a table is created.",
                column=column.name,
            )
        aggregation.check_parameters()
        aggregation.check_type(column.name, column.data_type)
    # Servers before 1.0 ignore the field, and would add the column with their default,
    # last_value_ignore_nulls. SCAN_KV came with 1.0.
    if aggregated and not await cluster.offers(ApiKey.SCAN_KV):
        column, aggregation = aggregated[0]
        raise UnsupportedVersionError(
            f"The servers would add the column {column.name!r} without its aggregation "
            f"{aggregation}: only servers of Fluss 1.0 or later take one in a new column.",
            hint="Add the column without an aggregation, which keeps the last value that is not "
            "NULL, or create a table that has it from the start.",
            column=column.name,
        )


def _write_change(request: messages.AlterTableRequest, change: TableChange) -> None:
    match change:
        case SetOption(key, value):
            request.config_changes.add(config_key=key, config_value=value, op_type=SET)
        case ResetOption(key):
            request.config_changes.add(config_key=key, op_type=DELETE)
        case AddColumn():
            _write_column(request, change)
        case DropColumn(name):
            request.drop_columns.add(column_name=name)
        case RenameColumn(existing, new):
            request.rename_columns.add(old_column_name=existing, new_column_name=new)
        case ModifyColumn(name, data_type, comment):
            request.modify_columns.add(
                column_name=name, data_type_json=_type_json(data_type), comment=comment
            )
        case ModifyBucketCount(bucket_count):
            request.modify_bucket_count.new_bucket_count = bucket_count
        case _:
            raise InvalidValueError(
                f"{change!r} is no change of a table.",
                hint="The methods of TableChange make such changes.",
            )


def _write_column(request: messages.AlterTableRequest, column: AddColumn) -> None:
    added = request.add_columns.add(
        column_name=column.name,
        data_type_json=_type_json(column.data_type),
        comment=column.comment,
        column_position_type=LAST,
    )
    if column.aggregation is not None:
        added.agg_function_type = column.aggregation.type.value
        for key, value in column.aggregation.parameters.items():
            added.agg_function_params.add(key=key, value=value)


def _type_json(data_type: DataType) -> bytes:
    return json.dumps(type_to_json(data_type)).encode()
