"""Connections: the part that both dialects share, and the documented one."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Generic, Literal, Self, TypeVar

from fluss.admin.admin import admin_of
from fluss.connection.arguments import config_of, table_path_of
from fluss.connection.connection import ClientConnection, TableHandle
from fluss.dialects.fluss_admin import FlussAdmin
from fluss.dialects.fluss_table import FlussTable, FlussTableBase
from fluss.model.options.config import Config
from fluss.model.paths import TablePath
from fluss.net.engine_thread import engine

TableT = TypeVar("TableT", bound="FlussTableBase[Any]")


class FlussConnectionBase(Generic[TableT]):
    """The part that both dialects share. Any thread and any event loop may use one."""

    _table: type[TableT]

    def __init__(self, core: ClientConnection) -> None:
        self._core = core
        self._engine = core.engine

    @classmethod
    def create(cls, config: Config | Mapping[str, Any]) -> Awaitable[Self]:
        """Connect to a cluster.

        Args:
            config: The settings, which are copied.

        Raises:
            ConfigError: Settings contradict each other.
            ConnectError: No bootstrap server can be reached.
            AuthenticationError: The server did not accept the user.
        """
        return engine().submit(cls._open(config_of(config)))

    connect = create
    new = create

    @classmethod
    async def _open(cls, config: Config) -> Self:
        return cls(await ClientConnection.open(engine(), config))

    def get_table(self, table_path: TablePath | str) -> Awaitable[TableT]:
        """A table, as it is now.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.
        """
        return self._engine.submit(self._get_table(table_path_of(table_path)))

    async def _get_table(self, path: TablePath) -> TableT:
        core: TableHandle = await self._core.table(path)
        return self._table(core)

    def config(self) -> Config:
        """A copy of its settings."""
        return self._core.config.copy()

    def counters(self) -> dict[str, object]:
        """Its counters: requests, bytes, batches, retries, latencies."""
        return self._core.counters()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: object = None, exc_value: object = None, traceback: object = None
    ) -> Literal[False]:
        self._engine.run(self._core.close())
        return False

    def __repr__(self) -> str:
        closed = ", closed" if self._core.is_closed else ""
        return f"{type(self).__name__}({self._core.config.bootstrap_servers}{closed})"


class FlussConnection(FlussConnectionBase[FlussTable]):
    """A connection to a cluster. Opening it and getting its admin and tables is awaited.

    Example:
        >>> with await FlussConnection.create(config) as connection:  # doctest: +SKIP
        ...     table = await connection.get_table("fluss.events")
    """

    _table = FlussTable

    def get_admin(self) -> Awaitable[FlussAdmin]:
        """The administrator of the cluster."""
        return self._engine.submit(self._get_admin())

    async def _get_admin(self) -> FlussAdmin:
        return FlussAdmin(self._engine, admin_of(self._core))

    def close(self) -> None:
        """Deliver what was written, and close the connection. Blocks the calling thread."""
        self._engine.run(self._core.close())
