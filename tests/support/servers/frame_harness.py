"""Creates, writes and reads tables of a cluster, for the tests of frame writes."""

from __future__ import annotations

import asyncio
from typing import Any

from fluss.admin.admin import admin_of
from fluss.connection.connection import ClientConnection, TableHandle
from fluss.model.json_values import json_text
from fluss.model.offsets import OffsetSpec
from fluss.model.options.config import Config
from fluss.model.paths import TablePath
from fluss.model.types.data_type import DataType
from fluss.model.types.type_json import type_to_json
from fluss.net.engine_thread import engine
from fluss.wire import messages as pb
from fluss.write.table_from_frame import schema_of_frame
from tests.support.servers.raw_client import COORDINATOR, RawClient

LEADER_WAIT_S = 5
TRIES_MAX = 3


class FrameHarness:
    """One connection, and tables in the test's database."""

    def __init__(self, bootstrap: str, database: str, **settings: Any) -> None:
        self.engine = engine()
        self.bootstrap = bootstrap
        self.database = database
        config = Config({"bootstrap.servers": bootstrap} | settings)
        self.connection = self.engine.run(ClientConnection.open(self.engine, config))
        self._names = 0

    def close(self) -> None:
        self.engine.run(self.connection.close())

    def table(self, like: Any, **facts: Any) -> TableHandle:
        """Create a table from a frame or schema, and wait for the leaders of its buckets."""
        descriptor = schema_of_frame(like, **{"buckets": 3} | facts)
        admin = admin_of(self.connection)
        for _ in range(TRIES_MAX):
            self._names += 1
            path = TablePath(self.database, f"t{self._names}")
            self.engine.run(admin.create_table(path, descriptor, ignore_if_exists=False))
            if descriptor.partition_keys or self._has_leaders(path, descriptor.bucket_count):
                return self.again(path)
        raise AssertionError("the servers elect no leaders for new tables")

    def again(self, path: TablePath) -> TableHandle:
        """The table as it is now."""
        return self.engine.run(self.connection.table(path))

    def _has_leaders(self, path: TablePath, buckets: int) -> bool:
        # The coordinator of 0.9.1 misses about one new table in 500, and never elects leaders.
        asked = admin_of(self.connection).list_offsets(path, range(buckets), OffsetSpec.latest())
        try:
            self.engine.run(asyncio.wait_for(asked, LEADER_WAIT_S))
        except TimeoutError:
            return False
        return True

    def add_column(self, path: TablePath, name: str, data_type: DataType) -> None:
        """Add a column to a table."""
        request = pb.AlterTableRequest(ignore_if_not_exists=False)
        request.table_path.database_name = path.database_name
        request.table_path.table_name = path.table_name
        document = json_text(type_to_json(data_type)).encode()
        request.add_columns.add(column_name=name, data_type_json=document, column_position_type=0)
        with RawClient(self.bootstrap) as raw:
            raw.call(request, to=COORDINATOR)
