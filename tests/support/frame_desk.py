"""Tables of a real cluster for the tests of `client.frames`: made, written, and looked into."""

from __future__ import annotations

import asyncio
from typing import Any

from fluss.client.connection import ConnectionCore, TableCore
from fluss.client.frames.creation import schema_of_frame
from fluss.engine.thread import engine
from fluss.model.config import Config
from fluss.model.offsets import OffsetSpec
from fluss.model.paths import TablePath

LEADER_WAIT_S = 5
TRIES_MAX = 3


class FrameDesk:
    """One connection, and tables in a database of the test's own."""

    def __init__(self, bootstrap: str, database: str) -> None:
        self.engine = engine()
        self.database = database
        config = Config({"bootstrap.servers": bootstrap})
        self.connection = self.engine.run(ConnectionCore.open(self.engine, config))
        self._names = 0

    def close(self) -> None:
        self.engine.run(self.connection.close())

    def table(self, like: Any, **facts: Any) -> TableCore:
        """Make a table of a frame or schema, with a leader for every bucket."""
        descriptor = schema_of_frame(like, **{"buckets": 3} | facts)
        admin = self.connection.admin
        for _ in range(TRIES_MAX):
            self._names += 1
            path = TablePath(self.database, f"t{self._names}")
            self.engine.run(admin.create_table(path, descriptor, ignore_if_exists=False))
            if descriptor.partition_keys or self._has_leaders(path, descriptor.bucket_count):
                return self.again(path)
        raise AssertionError("the servers elect no leaders for new tables")

    def again(self, path: TablePath) -> TableCore:
        """The table as it is now."""
        return self.engine.run(self.connection.table(path))

    def _has_leaders(self, path: TablePath, buckets: int) -> bool:
        # The coordinator of 0.9.1 overlooks about one new table in 500, and never elects leaders.
        asked = self.connection.admin.list_offsets(path, range(buckets), OffsetSpec.latest())
        try:
            self.engine.run(asyncio.wait_for(asked, LEADER_WAIT_S))
        except TimeoutError:
            return False
        return True
