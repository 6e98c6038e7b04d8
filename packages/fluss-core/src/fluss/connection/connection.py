"""The core of one connection to a cluster: what its admin, tables, scanners and writers share.

Made by `ClientConnection.open` on the engine's loop, closed there, and at the latest when the
process ends. What users hold are the doors' objects over it.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence

from fluss.admin.admin import AdminCore
from fluss.connection.config_to_settings import (
    connection_settings,
    fetch_limits,
    lookup_settings,
    without_markers,
)
from fluss.connection.describe_table import table_info_of
from fluss.errors import FlussError
from fluss.log.log_scan import LogScanCore, ScanSource
from fluss.log.remote_log import RemoteLogReader
from fluss.lookup.lookup_cores import LookupCore, PrefixLookupCore
from fluss.lookup.lookup_queue import LookupQueue
from fluss.model.options.config import Config
from fluss.model.paths import TableBucket, TablePath
from fluss.model.predicates.predicate import Predicate
from fluss.model.tables.table_info import TableInfo
from fluss.net.cluster_client import Cluster
from fluss.net.engine_thread import INTERRUPTED_WAIT_S_MAX, Engine
from fluss.net.remote_files import RemoteFiles
from fluss.net.schema_cache import SchemaBook
from fluss.records.log.log_header import Magic1
from fluss.state.limit_scan import LimitScanCore
from fluss.waiting import was_interrupted
from fluss.wire.api import ApiKey
from fluss.write.write_batch import WriterSettings
from fluss.write.writer_cores import CLOSE_WAIT_S, AppendCore, UpsertCore, WriterPool

log = logging.getLogger("fluss.client")

VERSION = "0.1.0"


class ClientConnection:
    """One connection. Plain methods from any thread; coroutines on the engine's loop.

    What users hold of it (tables, scanners, writers, admins) refers to it. When the last of that is
    gone, it is closed by itself, after delivering what was written.
    """

    def __init__(self, engine: Engine, config: Config) -> None:
        self.engine = engine
        self.config = config.copy()
        # The same without markers, for us; users are shown the markers and not what they stand for.
        self.options = options = without_markers(config)
        self.cluster = Cluster(connection_settings(config), version=VERSION)
        self.lookups = LookupQueue(self.cluster, lookup_settings(options))
        self.writers = WriterPool(
            self.cluster, WriterSettings.of(options), engine=engine, keeper=weakref.ref(self)
        )
        self._limits = fetch_limits(options)
        self._magic_1: Magic1 = "statistics"
        self._remote: RemoteLogReader
        # What closes must not refer to what it is to outlive.
        self._closing = _Closing(self.cluster, self.lookups, self.writers)
        finalizer = weakref.finalize(self, engine.let_run, self._closing.close)
        finalizer.atexit = False  # the engine does it then, and waits

    @property
    def admin(self) -> AdminCore:
        """What administers the cluster."""
        return AdminCore(self.cluster, keeper=self)

    @classmethod
    async def open(cls, engine: Engine, config: Config) -> ClientConnection:
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
            reads_at_once_max=core.options.remote_file_download_thread_num,
            parts_ahead_max=core.options.scanner_remote_log_read_concurrency,
            segments_ahead_max=core.options.scanner_remote_log_prefetch_num,
        )
        core._closing.forget_farewell = engine.at_exit(core._closing.close)
        return core

    @property
    def is_closed(self) -> bool:
        """Whether it has been closed."""
        return self._closing.has_begun

    async def table(self, path: TablePath) -> TableHandle:
        """A table as it is now.

        Raises:
            TableNotFoundError: There is no such table; the error names the nearest.
        """
        info = await self.cluster.in_one_call(table_info_of(self.cluster, path))
        return TableHandle(self, info)

    def counters(self) -> dict[str, object]:
        """What the connection has done so far, in numbers."""
        return self.cluster.counters.snapshot()

    async def close(self, delivery_s: float = CLOSE_WAIT_S) -> None:
        """Deliver what was written, within a time, and close it. Idempotent."""
        await self._closing.close(delivery_s)


class _Closing:
    """The end of one connection."""

    def __init__(self, cluster: Cluster, lookups: LookupQueue, writers: WriterPool) -> None:
        self._cluster, self._lookups, self._writers = cluster, lookups, writers
        self.has_begun = False
        self.forget_farewell: Callable[[], None] = lambda: None

    async def close(self, delivery_s: float = CLOSE_WAIT_S) -> None:
        """Deliver what was written, within a time, and close it. Idempotent.

        Args:
            delivery_s: How long delivering may take. After Ctrl-C it is much less: servers that
                answer need no more, and the user does not wait for the others.
        """
        if was_interrupted():
            delivery_s = min(delivery_s, INTERRUPTED_WAIT_S_MAX)
        if self.has_begun:
            return
        self.has_begun = True
        self.forget_farewell()
        self._lookups.close()
        try:
            await self._writers.close(timeout_s=delivery_s)
        except FlussError as error:
            log.warning("closing the connection: %s", error.message)
        finally:
            await self._cluster.close()


class TableHandle:
    """One table of a connection, as it was when it was asked for."""

    def __init__(self, connection: ClientConnection, info: TableInfo) -> None:
        self.connection = connection
        self.info = info
        self.book = SchemaBook(
            connection.cluster,
            info.table_path,
            schema_id=info.schema_id,
            schema=info.schema,
            keeper=connection,
        )

    def log_scan(
        self, columns: Sequence[int] | None = None, predicate: Predicate | None = None
    ) -> LogScanCore:
        """A scanner of its log.

        Args:
            columns: Positions, in the order wanted; None for all.
            predicate: Which rows are wanted; None for all.
        """
        return LogScanCore(self.scan_source(), columns, predicate)

    def limit_scan(
        self,
        bucket: TableBucket,
        limit: int,
        columns: Sequence[int] | None = None,
        predicate: Predicate | None = None,
    ) -> LimitScanCore:
        """A few rows of one bucket; see `log_scan` and `LimitScanCore`."""
        return LimitScanCore(self.scan_source(), bucket, limit, columns, predicate)

    def lookup(self, *, insert_if_not_exists: bool = False) -> LookupCore:
        """Finds rows by primary key.

        Raises:
            FlussError: The table has no primary key.
        """
        connection = self.connection
        return LookupCore(
            connection.engine,
            connection.lookups,
            self.info,
            self.book,
            insert_if_not_exists=insert_if_not_exists,
        )

    def prefix_lookup(self, columns: Sequence[str]) -> PrefixLookupCore:
        """Finds rows by the beginning of their primary keys.

        Raises:
            FlussError: The table has no primary key, or cannot be asked by these columns.
        """
        connection = self.connection
        return PrefixLookupCore(
            connection.engine, connection.lookups, self.info, self.book, columns=columns
        )

    def append(self) -> AppendCore:
        """A writer of a log table."""
        return self.connection.writers.append_core(self.info)

    def upsert(self, columns: Sequence[int] | None = None) -> UpsertCore:
        """A writer of a table with a primary key; `columns` are the positions it writes."""
        return self.connection.writers.upsert_core(self.info, target_columns=columns)

    def scan_source(self) -> ScanSource:
        """What its scanners read with."""
        connection = self.connection
        return ScanSource(
            engine=connection.engine,
            cluster=connection.cluster,
            table=self.info,
            book=self.book,
            remote=connection._remote,  # noqa: SLF001 - one unit with its connection
            limits=connection._limits,  # noqa: SLF001
            magic_1=connection._magic_1,  # noqa: SLF001
            checks_crc=connection.options.scanner_log_check_crc,
        )
