"""Connections, tables and scans of the awaited dialect, where they differ."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Literal, Self

from fluss.admin.admin import admin_of
from fluss.dialects.awaited_scanners import BatchScanner, LogScanner
from fluss.dialects.fluss_admin import FlussAdmin
from fluss.dialects.fluss_connection import FlussConnectionBase
from fluss.dialects.fluss_table import FlussTableBase
from fluss.dialects.table_scan import TableScanBase


class TableScan(TableScanBase[LogScanner, BatchScanner]):
    """Describes what to read of a table."""

    _log_scanner = LogScanner
    _batch_scanner = BatchScanner


class FlussTable(FlussTableBase[TableScan]):
    """A table to read and write."""

    _scan = TableScan


class FlussConnection(FlussConnectionBase[FlussTable]):
    """A connection to a cluster; `async with` and `with` close it."""

    _table = FlussTable

    def get_admin(self) -> FlussAdmin:
        """The administrator of the cluster."""
        return FlussAdmin(self._engine, admin_of(self._core))

    def close(self) -> Awaitable[None]:
        """Deliver what was written, and close the connection."""
        return self._engine.submit(self._core.close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: object = None, exc_value: object = None, traceback: object = None
    ) -> Literal[False]:
        await self.close()
        return False
