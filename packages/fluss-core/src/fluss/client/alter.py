"""Changing a table that exists: properties, and columns at its end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from fluss.client.describe import missing_table, table_info_of
from fluss.engine.cluster import Cluster
from fluss.errors import TableNotFoundError
from fluss.model.column import Column
from fluss.model.paths import TablePath
from fluss.model.type_json import type_to_json
from fluss.wire import messages
from fluss.wire.api import ApiKey
from fluss.wire.paths import write_table_path

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
    """Change a table; properties and columns are changed one after the other.

    Raises:
        TableNotFoundError: There is no such table, and that is not ignored.
        FlussError: The servers do not allow this change.
    """
    if add_columns:
        info = await table_info_of(cluster, path)
        schema = info.schema
        for column in add_columns:
            schema = schema.with_column(column)  # refuses what cannot be added
    requests = []
    if set_properties or reset_properties:
        request = _request(path, ignore_if_not_exists=ignore_if_not_exists)
        for key, value in set_properties.items():
            request.config_changes.add(config_key=key, config_value=value, op_type=SET)
        for key in reset_properties:
            request.config_changes.add(config_key=key, op_type=DELETE)
        requests.append(request)
    if add_columns:
        # The servers take either properties or columns in one request.
        request = _request(path, ignore_if_not_exists=ignore_if_not_exists)
        for column in add_columns:
            request.add_columns.add(
                column_name=column.name,
                data_type_json=json.dumps(type_to_json(column.data_type)).encode(),
                comment=column.comment,
                column_position_type=LAST,
            )
        requests.append(request)
    for request in requests:
        try:
            await cluster.ask_coordinator(
                ApiKey.ALTER_TABLE, request, messages.AlterTableResponse, repeatable=False
            )
        except TableNotFoundError as error:
            raise await missing_table(cluster, path) from error


def _request(path: TablePath, *, ignore_if_not_exists: bool) -> messages.AlterTableRequest:
    return messages.AlterTableRequest(
        table_path=write_table_path(path), ignore_if_not_exists=ignore_if_not_exists
    )
