"""Tables: where reads, writes and lookups begin, in both dialects."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any, Generic, TypeVar

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.dialects.lookupers import TableLookup
from fluss.dialects.table_scan import TableScan, TableScanBase
from fluss.dialects.writers import AppendWriter, TableAppend, TableUpsert
from fluss.model.paths import TablePath
from fluss.model.tables.table_info import TableInfo

ScanT = TypeVar("ScanT", bound="TableScanBase[Any, Any]")


class FlussTableBase(Generic[ScanT]):
    """The part that both dialects share. Any thread and any event loop may use one."""

    _scan: type[ScanT]

    def __init__(self, core: TableHandle) -> None:
        self._core = core

    def new_scan(self) -> ScanT:
        """Begin to describe what to read."""
        return self._scan(self._core)

    def new_append(self) -> TableAppend:
        """Begin to append rows to a table without a primary key.

        Raises:
            UnsupportedOperationError: The table has a primary key.
        """
        return TableAppend(self._core)

    def new_append_writer(self) -> Awaitable[AppendWriter]:
        """A writer that appends rows; the same as `new_append().create_writer()`, awaited."""
        return self._core.connection.engine.submit(self._new_append_writer())

    async def _new_append_writer(self) -> AppendWriter:
        return self.new_append().create_writer()

    def new_upsert(self, columns: Iterable[str] | None = None) -> TableUpsert:
        """Begin to insert, replace and delete rows, of a table with a primary key.

        Args:
            columns: The columns to write, the primary key among them; the others keep their
                values. None for all.

        Raises:
            UnsupportedOperationError: The table has no primary key.
        """
        upsert = TableUpsert(self._core)
        return upsert if columns is None else upsert.partial_update_by_name(columns)

    def new_lookup(self) -> TableLookup:
        """Begin to look up rows by primary key.

        Raises:
            FlussError: The table has no primary key.
        """
        return TableLookup(self._core)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return self._core.info.schema.to_arrow()

    @property
    def table_path(self) -> TablePath:
        """The name of the table."""
        return self._core.info.table_path

    def get_table_path(self) -> TablePath:
        """The name of the table."""
        return self._core.info.table_path

    def get_table_info(self) -> TableInfo:
        """The facts of the table at the time of `get_table`."""
        return self._core.info

    def has_primary_key(self) -> bool:
        """Whether rows are identified by a primary key."""
        return self._core.info.has_primary_key()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(path={self._core.info.table_path})"


class FlussTable(FlussTableBase[TableScan]):
    """A table to read and write."""

    _scan = TableScan
