"""Alters a table: properties, and new columns at its end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from fluss.connection.describe_table import nearest_named, table_info_of
from fluss.errors import (
    InvalidSchemaError,
    InvalidValueError,
    TableNotFoundError,
    UnsupportedVersionError,
)
from fluss.model.did_you_mean import did_you_mean
from fluss.model.paths import TablePath
from fluss.model.schema.column import Column
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import MergeEngine, TableOptions
from fluss.model.types.type_json import type_to_json
from fluss.net.cluster_client import Cluster
from fluss.wire import messages
from fluss.wire.api import ApiKey
from fluss.wire.table_paths import write_table_path

SET, DELETE = 0, 1
LAST = 0


async def alter_table(
    cluster: Cluster,
    path: TablePath,
    *,
    set_properties: Mapping[str, str],
    reset_properties: Sequence[str],
    add_columns: Sequence[Column],
    ignore_if_not_exists: bool,
) -> None:
    """Alter a table. Properties are changed first, then columns are added.

    Raises:
        TableNotFoundError: There is no such table, and that is not ignored.
        InvalidSchemaError: A column cannot be added to this table.
        UnsupportedVersionError: The servers would drop the aggregation of a column.
        FlussError: The servers do not allow this change.
    """
    for key in (*set_properties, *reset_properties):
        _check_key(key)
    if add_columns:
        try:
            info = await table_info_of(cluster, path)
        except TableNotFoundError:
            if ignore_if_not_exists:
                return
            raise
        schema = info.schema
        for column in add_columns:
            schema = schema.with_column(column)  # refuses columns that cannot be added
        await _check_aggregations(cluster, info, add_columns)
    requests = []
    if set_properties or reset_properties:
        request = _request(path, ignore_if_not_exists=ignore_if_not_exists)
        for key, value in set_properties.items():
            request.config_changes.add(config_key=key, config_value=value, op_type=SET)
        for key in reset_properties:
            request.config_changes.add(config_key=key, op_type=DELETE)
        requests.append(request)
    if add_columns:
        # A request may change either properties or columns.
        request = _request(path, ignore_if_not_exists=ignore_if_not_exists)
        for column in add_columns:
            _write_column(request, column)
        requests.append(request)
    for request in requests:
        async with nearest_named(cluster, path):
            await cluster.ask_coordinator(request, messages.AlterTableResponse, repeatable=False)


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


def _write_column(request: messages.AlterTableRequest, column: Column) -> None:
    added = request.add_columns.add(
        column_name=column.name,
        data_type_json=json.dumps(type_to_json(column.data_type)).encode(),
        comment=column.comment,
        column_position_type=LAST,
    )
    if column.aggregation is not None:
        added.agg_function_type = column.aggregation.type.value
        for key, value in column.aggregation.parameters.items():
            added.agg_function_params.add(key=key, value=value)


def _request(path: TablePath, *, ignore_if_not_exists: bool) -> messages.AlterTableRequest:
    return messages.AlterTableRequest(
        table_path=write_table_path(path), ignore_if_not_exists=ignore_if_not_exists
    )
