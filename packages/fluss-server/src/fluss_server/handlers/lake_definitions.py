"""Creates and alters tables in the lake, consistently with the server's own catalog.

The server changes the lake first, as Fluss does, so a table that the lake refuses is not created
here either. A note in the catalog marks a creation in progress: if a crash leaves a table in the
lake, that table is removed when the table is created again. The server removes nothing else from
the lake.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.model.paths import TablePath
from fluss.model.tables.descriptor import TableDescriptor
from fluss_server.catalog.catalog_entries import TableEntry
from fluss_server.lake.server_lake import ServerLake
from fluss_server.server_errors import request_error
from fluss_server.server_node import Node


@asynccontextmanager
async def changing_tables(node: Node) -> AsyncIterator[None]:
    """Keep other requests from changing tables during a block that waits for the lake."""
    if node.lake is None:
        yield
        return
    async with node.lake.ddl:
        yield


async def create_in_lake(
    node: Node, lake: ServerLake, path: TablePath, table: TableDescriptor
) -> None:
    """Create the lake's table of a Fluss table; the caller creates the Fluss table next.

    Raises:
        FlussError: The lake refuses; the code is that of Fluss's coordinator.
    """
    if node.catalog.lake.begin_creation(path):
        await lake.discard_table(path)
    try:
        await lake.create_table(path, table)
    except FlussError as error:
        if not error.is_retriable:
            node.catalog.lake.end_creation(path)
        raise


async def alter_in_lake(
    node: Node,
    lake: ServerLake,
    known: TableEntry,
    altered: TableDescriptor,
    changes: Iterable[Any],
) -> None:
    """Apply changed properties to the lake, and create its table if it is enabled now.

    The lake's table is also altered while tiering is disabled, so that it matches the Fluss table
    when tiering is enabled again.

    Raises:
        FlussError: The lake refuses, or its table is gone.
    """
    is_enabled = altered.options.datalake_enabled
    if is_enabled and not known.descriptor.options.datalake_enabled:
        await create_in_lake(node, lake, known.path, altered)
    named = {
        each.config_key: each.config_value if each.HasField("config_value") else None
        for each in changes
    }
    if not named or known.descriptor.options.datalake_format is None:
        return
    if not await lake.alter_table(known.path, named) and is_enabled:
        raise request_error(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Lake table doesn't exist for lake-enabled table {known.path}, which shouldn't be "
            "happened. Please check if the lake table was deleted manually.",
        )
