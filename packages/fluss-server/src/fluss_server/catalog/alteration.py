"""The rules of ALTER TABLE and ALTER DATABASE: properties, columns at the end, bucket counts.

Java: `MetadataManager.alterTableProperties`, `SchemaUpdate`, `FlussConfigUtils`. Pure functions: a
descriptor and a request in, a descriptor out. Error codes follow Fluss: -1 for schema changes that
it does not support, 56 for options that cannot change.
"""

from __future__ import annotations

from typing import Any, Final

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.model.json_values import parse_json
from fluss.model.schema.aggregation import AggFunction
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.tables.database import DatabaseDescriptor
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_options import (
    ALTERABLE,
    LAKE_ALTERABLE,
    PREFIX,
    DataLakeFormat,
    MergeEngine,
    TableOptions,
)
from fluss.model.types.type_json import type_from_json
from fluss.wire import messages as pb
from fluss_server.catalog.creation import check_table, with_properties
from fluss_server.server_errors import request_error, with_code

_SET, _DELETE = range(2)  # of PbAlterConfig.op_type
_LAST: Final = 0


def changes_nothing(request: pb.AlterTableRequest) -> bool:
    """Whether a request has no changes."""
    return not (
        _changes_schema(request)
        or request.config_changes
        or request.HasField("modify_bucket_count")
    )


def _changes_schema(request: pb.AlterTableRequest) -> bool:
    return any(
        (
            request.add_columns,
            request.drop_columns,
            request.rename_columns,
            request.modify_columns,
        )
    )


def altered_table(
    table: TableDescriptor, request: pb.AlterTableRequest, *, lake_format: str | None = None
) -> TableDescriptor:
    """Return the table after the request; the identical object where nothing changes.

    Args:
        table: The table.
        request: The request.
        lake_format: The format of the cluster's lake; None where it has none.

    Raises:
        FlussError: The change is not allowed or not possible.
    """
    changes_schema = _changes_schema(request)
    if request.HasField("modify_bucket_count"):
        if changes_schema or request.config_changes:
            raise request_error(
                ErrorCode.INVALID_ALTER_TABLE_EXCEPTION,
                "The bucket count cannot be changed together with other changes.",
            )
        return _rescaled(table, request.modify_bucket_count.new_bucket_count)
    if changes_schema and request.config_changes:
        raise request_error(
            ErrorCode.INVALID_ALTER_TABLE_EXCEPTION,
            "Table alteration can only be applied to one of the following: table properties or "
            "table schema.",
        )
    if changes_schema:
        made = _with_schema(table, _altered_schema(table, request), lake_format)
        if table.options.datalake_enabled:
            raise request_error(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "Unsupported table change: columns of a table with a lake cannot be added.",
                hint="Create a table with the new columns, or set table.datalake.enabled to false; "
                "such a table cannot be given back to its lake.",
            )
        return made
    return _with_changes(table, request.config_changes, lake_format)


# --- buckets --------------------------------------------------------------------------------------


def _rescaled(table: TableDescriptor, count: int) -> TableDescriptor:
    """Return the table with another bucket count for partitions that are created from now on."""
    if not table.is_partitioned:
        why = "only partitioned tables can be rescaled: their new partitions get the new count"
    elif count < 1:
        why = f"a table has at least one bucket, not {count}"
    elif table.options.datalake_format not in {None, DataLakeFormat.PAIMON}:
        why = f"the buckets of a table for a lake of {table.options.datalake_format} are fixed"
    elif _aggregates(table):
        why = "a table with the merge engine aggregation cannot be rescaled"
    else:
        if count == table.bucket_count:
            return table
        made = table.with_bucket_count(count)
        check_table(made)
        return made
    raise request_error(
        ErrorCode.INVALID_ALTER_TABLE_EXCEPTION, f"The bucket count cannot be changed: {why}."
    )


# --- properties -----------------------------------------------------------------------------------


def _with_changes(table: TableDescriptor, changes: Any, lake_format: str | None) -> TableDescriptor:
    own, custom = dict(table.properties), dict(table.custom_properties)
    for change in changes:
        target = own if change.config_key.startswith(PREFIX) else custom
        if target is own:
            _check_alterable(change.config_key, table, has_lake=lake_format is not None)
        else:
            _check_custom(change.config_key, table)
        _apply(change, target)
    if own == dict(table.properties) and custom == dict(table.custom_properties):
        return table
    made = with_properties(table, properties=own, custom_properties=custom)
    check_table(made, lake_format=lake_format)
    return made


def _check_custom(key: str, table: TableDescriptor) -> None:
    options = table.options
    if options.datalake_enabled and key.startswith(f"{options.datalake_format}."):
        raise request_error(
            ErrorCode.INVALID_CONFIG_EXCEPTION,
            f"Property '{key}' is not supported to alter which is for datalake table.",
        )


def _check_alterable(key: str, table: TableDescriptor, *, has_lake: bool) -> None:
    allowed = key in ALTERABLE or (has_lake and key in LAKE_ALTERABLE)
    if key == TableOptions.standby_replica.key and not table.has_primary_key:
        allowed = False
    if not allowed:
        raise request_error(
            ErrorCode.INVALID_ALTER_TABLE_EXCEPTION,
            f"The option {key!r} is not supported to alter yet.",
        )
    if key == TableOptions.datalake_enabled.key and table.options.datalake_format is None:
        raise request_error(
            ErrorCode.INVALID_ALTER_TABLE_EXCEPTION,
            f"The option {key!r} cannot be altered for tables that were created before the Fluss "
            "cluster enabled datalake.",
        )


def _apply(change: pb.PbAlterConfig, properties: dict[str, str]) -> None:
    if change.op_type == _SET and change.HasField("config_value"):
        properties[change.config_key] = change.config_value
    elif change.op_type == _DELETE:
        properties.pop(change.config_key, None)
    else:
        raise request_error(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"The property {change.config_key!r} can be set or deleted; the operation "
            f"{change.op_type} is neither, or has no value.",
        )


def altered_database(
    database: DatabaseDescriptor, request: pb.AlterDatabaseRequest
) -> DatabaseDescriptor:
    """Return the database after the request; an equal one where nothing changes."""
    properties = dict(database.custom_properties)
    for change in request.config_changes:
        _apply(change, properties)
    comment = database.comment
    if request.HasField("comment"):
        comment = request.comment or None
    return DatabaseDescriptor(comment, properties)


# --- columns --------------------------------------------------------------------------------------


def _altered_schema(table: TableDescriptor, request: pb.AlterTableRequest) -> Schema:
    for refused, what in (
        (request.drop_columns, "drop"),
        (request.rename_columns, "rename"),
        (request.modify_columns, "modify"),
    ):
        if refused:
            raise request_error(ErrorCode.UNKNOWN_SERVER_ERROR, f"Not support {what} column now.")
    schema = table.schema
    for added in request.add_columns:
        schema = _with_column(schema, added, merges=_aggregates(table))
    return schema


def _with_column(schema: Schema, added: pb.PbAddColumn, *, merges: bool) -> Schema:
    name = added.column_name
    if name in schema.column_names:
        raise request_error(
            ErrorCode.INVALID_ALTER_TABLE_EXCEPTION, f"Column {name} already exists."
        )
    if added.column_position_type != _LAST:
        raise request_error(
            ErrorCode.UNKNOWN_SERVER_ERROR, "Only support addColumn column at last now."
        )
    data_type = type_from_json(parse_json(added.data_type_json, "data type"))
    if not data_type.nullable:
        raise request_error(ErrorCode.UNKNOWN_SERVER_ERROR, f"Column {name} must be nullable.")
    column = Column(
        name,
        data_type,
        added.comment if added.HasField("comment") else None,
        aggregation=_aggregation(added, merges=merges),
    )
    try:
        return schema.with_column(column)
    except FlussError as error:
        raise with_code(error, ErrorCode.INVALID_TABLE_EXCEPTION) from error


def _aggregation(added: pb.PbAddColumn, *, merges: bool) -> AggFunction | None:
    if not added.HasField("agg_function_type"):
        return None
    if not merges:
        raise request_error(
            ErrorCode.INVALID_CONFIG_EXCEPTION,
            f"The column {added.column_name!r} has an aggregation function, but the table has not "
            "the merge engine aggregation.",
        )
    parameters = {each.key: each.value for each in added.agg_function_params}
    return AggFunction.of(added.agg_function_type, **parameters)


def _aggregates(table: TableDescriptor) -> bool:
    return table.options.merge_engine is MergeEngine.AGGREGATION


def _with_schema(
    table: TableDescriptor, schema: Schema, lake_format: str | None
) -> TableDescriptor:
    made = TableDescriptor(
        schema,
        partition_keys=table.partition_keys,
        bucket_count=table.bucket_count,
        bucket_keys=table.bucket_keys,
        comment=table.comment,
        properties=table.properties,
        custom_properties=table.custom_properties,
    )
    check_table(made, lake_format=lake_format)
    return made
