"""Creates and changes tables in the lake, in step with the server's own catalog.

The lake comes first, as in Fluss: what it refuses is not created here either. A note in the catalog
marks a creation that is in progress, so a table that a crash left in the lake is removed when the
table is created again. Nothing else in the lake is ever removed.
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
    """Keep others from changing tables during a block that waits for the lake."""
    if node.lake is None:
        yield
        return
    async with node.lake.ddl:
        yield


async def create_in_lake(
    node: Node, lake: ServerLake, path: TablePath, table: TableDescriptor
) -> None:
    """Create the table of a table of Fluss; the caller creates that one next.

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
    """Apply changes of properties to the lake, and create its table where it is enabled now.

    The table in the lake follows while it is disabled, so that it fits when it is enabled again.

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
