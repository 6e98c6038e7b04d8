"""The schemas of a table by their ids, each asked for once.

Rows and batches carry the id of the schema they were written with, and each is read with its own.
Old schemas never change, so what has been loaded stays valid as long as the table exists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.net.cluster_client import Cluster
from fluss.wire import messages
from fluss.wire.table_paths import write_table_path


class SchemaCache:
    """The schemas of one table seen so far. Reading needs no lock: only the engine writes.

    Args:
        cluster: The cluster to ask.
        path: The table.
        schemas: The schemas that are known already, by their ids; what is loaded is added.
        keeper: What must live as long as the cache: a connection without references is closed.
    """

    def __init__(
        self, cluster: Cluster, path: TablePath, schemas: dict[int, Schema], keeper: object
    ) -> None:
        self._cluster = cluster
        self._keeper = keeper
        self._path = path
        self._schemas = schemas

    def get(self, schema_id: int) -> Schema | None:
        """A schema, or None if it has not been loaded. Any thread may call it."""
        return self._schemas.get(schema_id)

    async def load(self, schema_ids: Iterable[int]) -> None:
        """Ask the cluster for those of the schemas that are missing."""
        missing = {each for each in schema_ids if each not in self._schemas}
        await asyncio.gather(*(self._ask(each) for each in missing))

    async def _ask(self, schema_id: int) -> None:
        request = messages.GetTableSchemaRequest(
            table_path=write_table_path(self._path), schema_id=schema_id
        )
        answer = await self._cluster.ask_any(request, messages.GetTableSchemaResponse)
        self._schemas[schema_id] = Schema.from_json(answer.schema_json)
