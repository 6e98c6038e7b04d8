"""The core of one connection to a cluster: what its admin, tables, scanners and writers share.

Made by `ConnectionCore.open` on the engine's loop, closed there, and at the latest when the process
ends. What users hold are the doors' objects over it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from fluss.client.admin import AdminCore
from fluss.client.describe import table_info_of
from fluss.client.scan import LogScanCore, ScanSource
from fluss.client.settings import connection_settings, fetch_limits
from fluss.engine.cluster import Cluster
from fluss.engine.lookups import LookupQueue
from fluss.engine.remote_files import RemoteFiles
from fluss.engine.remote_log import RemoteLogReader
from fluss.engine.schemas import SchemaBook
from fluss.engine.thread import Engine
from fluss.errors import FlussError
from fluss.model.config import Config
from fluss.model.paths import TablePath
from fluss.model.table_info import TableInfo
from fluss.records.log_header import Magic1
from fluss.wire.api import ApiKey

log = logging.getLogger("fluss.client")

VERSION = "0.1.0"


class ConnectionCore:
    """One connection. Plain methods from any thread; coroutines on the engine's loop."""

    def __init__(self, engine: Engine, config: Config) -> None:
        self.engine = engine
        self.config = config.copy()
        self.cluster = Cluster(connection_settings(config), version=VERSION)
        self.admin = AdminCore(self.cluster)
        self.lookups = LookupQueue(self.cluster)
        self._limits = fetch_limits(config)
        self._magic_1: Magic1 = "statistics"
        self._remote: RemoteLogReader
        self._closed = False
        self._forget_farewell: Callable[[], None] = lambda: None

    @classmethod
    async def open(cls, engine: Engine, config: Config) -> ConnectionCore:
        """Connect to the first bootstrap server that answers.

        Raises:
            ConnectError: None can be reached.
            AuthenticationError: The server did not accept the user.
        """
        core = cls(engine, config)
        try:
            await core.cluster.open()
            # Servers of the 1.0 line mean something else by a magic byte of 1 than 0.9.1 does,
            # and are known by an API that came with it.
            if not await core.cluster.offers(ApiKey.SCAN_KV):
                core._magic_1 = "leader_epoch"
        except BaseException:
            await core.cluster.close()
            raise
        core._remote = RemoteLogReader(
            RemoteFiles(core.cluster),
            reads_at_once_max=config.remote_file_download_thread_num,
            magic_1=core._magic_1,
        )
        core._forget_farewell = engine.at_exit(core.close)
        return core

    @property
    def is_closed(self) -> bool:
        """Whether it has been closed."""
        return self._closed

    async def table(self, path: TablePath) -> TableCore:
        """A table as it is now.

        Raises:
            TableNotFoundError: There is no such table; the error names the nearest.
        """
        return TableCore(self, await table_info_of(self.cluster, path))

    def counters(self) -> dict[str, object]:
        """What the connection has done so far, in numbers."""
        return self.cluster.counters.snapshot()

    async def close(self) -> None:
        """Close it. Twice is once."""
        if self._closed:
            return
        self._closed = True
        self._forget_farewell()
        self.lookups.close()
        try:
            await self.cluster.close()
        except FlussError as error:
            log.warning("closing the connection: %s", error.message)


class TableCore:
    """One table of a connection, as it was when it was asked for."""

    def __init__(self, connection: ConnectionCore, info: TableInfo) -> None:
        self.connection = connection
        self.info = info
        self.book = SchemaBook(
            connection.cluster, info.table_path, schema_id=info.schema_id, schema=info.schema
        )

    def log_scan(self, columns: list[int] | None = None) -> LogScanCore:
        """A scanner of its log; `columns` are positions, in the order wanted."""
        connection = self.connection
        return LogScanCore(
            ScanSource(
                engine=connection.engine,
                cluster=connection.cluster,
                table=self.info,
                book=self.book,
                remote=connection._remote,  # noqa: SLF001 - one unit with its connection
                limits=connection._limits,  # noqa: SLF001
                magic_1=connection._magic_1,  # noqa: SLF001
            ),
            columns,
        )
