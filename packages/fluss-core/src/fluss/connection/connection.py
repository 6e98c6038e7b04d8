"""One connection to a cluster, and handles of its tables, which every verb works with.

A connection knows no verbs. A room that keeps something per connection (the sender of writers, the
queue of lookups) makes it on first use through `ClientConnection.service`; the connection ends it.
Made by `ClientConnection.open` on the engine's loop, closed there, and at the latest when the
process ends.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from fluss.connection.config_to_settings import (
    connection_settings,
    lake_settings,
    without_markers,
)
from fluss.connection.table_cache import TableCache
from fluss.errors import FlussError
from fluss.model.options.config import Config
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.table_info import TableInfo
from fluss.net.cluster_client import Cluster
from fluss.net.engine_thread import INTERRUPTED_WAIT_S_MAX, Engine
from fluss.net.schema_cache import SchemaCache
from fluss.waiting import was_interrupted
from fluss.wire.api import ApiKey

if TYPE_CHECKING:  # so that a connection for names alone loads no Arrow
    from fluss.records.log.log_header import Magic1

log = logging.getLogger("fluss.client")

# Less than the engine has at the end of the process.
CLOSE_WAIT_S: Final = 25.0

T = TypeVar("T")
ServiceFactory: TypeAlias = "Callable[[ClientConnection], T]"
ServiceCloser: TypeAlias = Callable[[float], Awaitable[object]]


class ClientConnection:
    """One connection. Plain methods from any thread; coroutines on the engine's loop.

    Objects that users hold (tables, scanners, writers, admins) refer to it. When the last of them
    is gone, it closes by itself, after delivering what was written.
    """

    def __init__(self, engine: Engine, config: Config) -> None:
        self.engine = engine
        self.config = config.copy()
        # The same without markers. Users are shown the markers and not their values.
        self.options = without_markers(config)
        self.cluster = Cluster(connection_settings(config))
        # How this cluster's servers lay out log batches whose magic byte is 1.
        self.magic_1: Magic1 = "statistics"
        self._tables = TableCache(self.cluster)
        self._services: dict[ServiceFactory[Any], Any] = {}
        self._lock = threading.RLock()
        # Closing must not refer to the connection: it runs after the connection is gone.
        self._closing = _Closing(self.cluster)
        finalizer = weakref.finalize(self, engine.run_in_background, self._closing.close)
        finalizer.atexit = False  # the engine's exit hook does it then

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
            # A magic byte of 1 means another layout to servers of the 1.0 line than to 0.9.1. They
            # are recognised by an API that came with 1.0.
            if not await core.cluster.offers(ApiKey.SCAN_KV):
                core.magic_1 = "leader_epoch"
        except BaseException:
            await core.cluster.close()
            raise
        core._closing.forget_exit_hook = engine.at_exit(core._closing.close)
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
        table = await self.cluster.in_one_call(self._tables.current(path))
        return TableHandle(self, table.info, table.schemas)

    async def recent_table(
        self, path: TablePath, accepts: Callable[[TableInfo], bool] = lambda _: True
    ) -> TableHandle:
        """A table as it was a moment ago (`table_cache.REUSED_S`), for calls that come in numbers.

        Args:
            path: The table.
            accepts: Whether facts that are kept will do; the cluster is asked if not.

        Raises:
            TableNotFoundError: There is no such table; the error names the nearest.
        """
        table = await self.cluster.in_one_call(self._tables.recent(path, accepts))
        return TableHandle(self, table.info, table.schemas)

    def forget_table(self, path: TablePath) -> None:
        """Have `recent_table` ask again, where what it gave proved wrong. Any thread may call."""
        self.engine.post_cleanup(lambda: self._tables.forget(path))

    def service(self, make: ServiceFactory[T]) -> T:
        """Return what a room keeps once per connection; made on first use, by any thread.

        Args:
            make: Makes it, and is the key under which it is kept.
        """
        with self._lock:
            if make not in self._services:
                self._services[make] = make(self)
            service: T = self._services[make]
            return service

    def at_close(self, close: ServiceCloser) -> None:
        """End a service with the connection, in the reverse order of these calls.

        Args:
            close: Ends it; gets the seconds that delivering may take. It must not refer to the
                connection, which would then never be freed.
        """
        self._closing.add(close)

    def lake_settings(self) -> dict[str, str]:
        """What the user has set for lakes; it has secrets, so it is neither kept nor shown.

        Raises:
            ConfigError: A marker has no value.
        """
        return lake_settings(self.config)

    def counters(self) -> dict[str, object]:
        """What the connection has done so far, in numbers."""
        return self.cluster.counters.snapshot()

    async def close(self, delivery_s: float = CLOSE_WAIT_S) -> None:
        """Deliver what was written, within a time, and close it. Idempotent."""
        await self._closing.close(delivery_s)


def service(make: ServiceFactory[T]) -> ServiceFactory[T]:
    """Decorates a function that makes what a room keeps once per connection: calls return that."""

    @wraps(make)
    def kept(connection: ClientConnection) -> T:
        return connection.service(make)

    return kept


class _Closing:
    """The end of one connection."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._closers: list[ServiceCloser] = []
        self.has_begun = False
        self.forget_exit_hook: Callable[[], None] = lambda: None

    def add(self, close: ServiceCloser) -> None:
        """End a service before the cluster's connections are closed."""
        self._closers.append(close)

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
        self.forget_exit_hook()
        try:
            for close in self._closers[::-1]:
                try:
                    await close(delivery_s)
                except FlussError as error:
                    log.warning("closing the connection: %s", error.message)
        finally:
            await self._cluster.close()


class TableHandle:
    """One table of a connection, as it was when it was asked for.

    Args:
        connection: The connection.
        info: The facts of the table.
        schemas: The schemas of the table that are known already, by their ids; grows.
    """

    def __init__(
        self,
        connection: ClientConnection,
        info: TableInfo,
        schemas: dict[int, Schema] | None = None,
    ) -> None:
        self.connection = connection
        self.info = info
        known = {info.schema_id: info.schema} if schemas is None else schemas
        self.schemas = SchemaCache(connection.cluster, info.table_path, known, keeper=connection)

    def __fluss_table__(self) -> TableHandle:
        # So that what takes a `Table` of a session takes this as well.
        return self
