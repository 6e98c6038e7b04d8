"""Writers, the same in both dialects: rows are taken without waiting, and `flush` is awaited.

Taking a row blocks only while the memory of the connection for writes is used up.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias, TypeVar

import pyarrow as pa

from fluss.connection.arguments import positions_by_name, positions_of
from fluss.connection.connection import TableHandle
from fluss.errors import InvalidValueError, SchemaMismatchError
from fluss.model.tables.table_info import TableInfo
from fluss.net.engine_thread import Engine
from fluss.write.caller_rows import naming_frame
from fluss.write.pandas_frames import arrow_of, index_names, with_index
from fluss.write.write_result import WriteResultHandle
from fluss.write.write_targets import check_appends, check_upserts
from fluss.write.writer_cores import AppendCore, UpsertCore
from fluss.write.writer_pool import append_core, upsert_core

if TYPE_CHECKING:
    import pandas as pd

Row: TypeAlias = Mapping[str, Any] | Sequence[Any]
CoreT = TypeVar("CoreT", bound=AppendCore | UpsertCore)


class _Writer(Generic[CoreT]):
    """The part that both kinds of writers share."""

    def __init__(self, engine: Engine, core: CoreT) -> None:
        self._engine = engine
        self._core = core

    def flush(self) -> Awaitable[None]:
        """Wait until everything taken so far is written.

        Raises:
            FlussError: Something could not be written since the last flush. It is raised once, by
                this flush and by those that run concurrently.
        """
        core, raised_before = self._core, self._core.failures_raised
        core.seal_if_quick()
        return self._engine.submit_and_convert(
            core.flushed(), lambda _: core.raise_failure(raised_before)
        )

    def write_arrow(self, table: pa.Table) -> None:
        """Take the rows of a table; columns are matched by name and cast where that is safe.

        Raises:
            SchemaMismatchError: A column is missing, unknown, or of a type that cannot be cast.
            InvalidValueError: A value does not fit its column; nothing was taken.
        """
        self._core.take_frame(table)

    def write_arrow_batch(self, batch: pa.RecordBatch) -> WriteResultHandle:
        """Take the rows of a batch; see `write_arrow`."""
        return self._core.take_frame(batch)

    def write_pandas(self, df: pd.DataFrame) -> None:
        """Take the rows of a DataFrame; see `write_arrow`.

        Index levels with the names of columns of the table are written.
        """
        with naming_frame(df):
            self._core.take_frame(_arrow_of(df, self._core))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: object = None, exc_value: object = None, traceback: object = None
    ) -> Literal[False]:
        if exc_type is None:
            await self.flush()
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}(table={self._core.table.table_path})"


class AppendWriter(_Writer[AppendCore]):
    """Appends rows to a table without a primary key. Any thread and event loop may use it."""

    def append(self, row: Row) -> WriteResultHandle:
        """Take one row.

        Args:
            row: A dict by column name, or a list or tuple by position.

        Raises:
            InvalidValueError: A value does not fit its column; nothing was taken.
        """
        if type(self) is AppendWriter:
            # From now on the instance calls the core's function itself: that saves 130 ns per row.
            object.__setattr__(self, "append", self._core.taker)
        return self._core.append(row)

    append_arrow_batch = _Writer.write_arrow_batch


class UpsertWriter(_Writer[UpsertCore]):
    """Inserts, replaces and deletes rows by primary key. Any thread and event loop may use it."""

    def upsert(self, row: Row) -> WriteResultHandle:
        """Take one row: a new one, or one that replaces the row with its key.

        Args:
            row: A dict by column name, or a list or tuple by position. In a partial update only
                the columns that are written.

        Raises:
            InvalidValueError: A value does not fit its column; nothing was taken.
        """
        if type(self) is UpsertWriter:
            # As in `AppendWriter.append`.
            object.__setattr__(self, "upsert", self._core.taker)
        return self._core.upsert(row)

    def delete(self, pk: Row) -> WriteResultHandle:
        """Take the key of a row to delete.

        Args:
            pk: The primary key: a dict by column name, or the values in key order.

        Raises:
            InvalidValueError: A key column is missing or does not fit; nothing was taken.
            UnsupportedOperationError: The table does not allow deletes.
        """
        return self._core.delete(pk)

    def delete_arrow(self, table: pa.Table) -> None:
        """Delete the rows with the keys in a table; its other columns are not looked at."""
        self._core.delete_arrow(table)

    def delete_arrow_batch(self, batch: pa.RecordBatch) -> WriteResultHandle:
        """Delete the rows with the keys in a batch; its other columns are not looked at."""
        return self._core.delete_arrow(batch)

    def delete_pandas(self, df: pd.DataFrame) -> None:
        """Delete the rows with the keys in a DataFrame; its other columns are not looked at."""
        with naming_frame(df):
            self._core.delete_arrow(_arrow_of(df, self._core))


class TableAppend:
    """Begins to append rows."""

    def __init__(self, core: TableHandle) -> None:
        check_appends(core.info)
        self._core = core

    def create_writer(self) -> AppendWriter:
        """Make a writer that appends rows."""
        return AppendWriter(self._core.connection.engine, append_core(self._core))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(table={self._core.info.table_path})"


class TableUpsert:
    """Begins to upsert rows. Used as a writer itself, it makes one on first use."""

    def __init__(self, core: TableHandle, columns: tuple[int, ...] | None = None) -> None:
        check_upserts(core.info)
        self._core = core
        self._columns = columns
        self._lock = threading.Lock()
        self._own: UpsertWriter | None = None

    def partial_update_by_name(self, columns: Iterable[str]) -> TableUpsert:
        """Write these columns, the primary key among them; the others keep their values.

        Raises:
            InvalidSchemaError: There is no such column; the hint names the nearest.
        """
        return TableUpsert(self._core, positions_by_name(self._core.info, columns))

    def partial_update_by_index(self, column_indices: Iterable[int]) -> TableUpsert:
        """The same by position.

        Raises:
            SchemaMismatchError: There is no column there.
        """
        return TableUpsert(self._core, positions_of(self._core.info, column_indices))

    partial_update_with_column_names = partial_update_by_name

    def partial_update(self, column_indices: Iterable[int] | None = None) -> TableUpsert:
        """The same by position; None for all columns."""
        if column_indices is None:
            return TableUpsert(self._core)
        return self.partial_update_by_index(column_indices)

    def create_writer(self) -> UpsertWriter:
        """Make a writer.

        Raises:
            SchemaMismatchError: The table cannot be written by these columns. A table with an
                auto-increment column is written by its other columns.
        """
        if self._columns is None:
            _check_whole_rows(self._core.info)
        return UpsertWriter(self._core.connection.engine, upsert_core(self._core, self._columns))

    # --- as a writer --------------------------------------------------------------------------

    def upsert(self, row: Row) -> WriteResultHandle:
        """Take one row; see `UpsertWriter.upsert`."""
        return self._writer().upsert(row)

    def delete(self, pk: Row) -> WriteResultHandle:
        """Take the key of a row to delete; see `UpsertWriter.delete`."""
        return self._writer().delete(pk)

    def flush(self) -> Awaitable[None]:
        """Wait until everything taken so far is written; see `UpsertWriter.flush`."""
        return self._writer().flush()

    def _writer(self) -> UpsertWriter:
        if self._own is not None:
            return self._own
        with self._lock:
            if self._own is None:
                self._own = self.create_writer()
            return self._own

    def __repr__(self) -> str:
        return f"{type(self).__name__}(table={self._core.info.table_path})"


def _check_whole_rows(table: TableInfo) -> None:
    """Refuse a writer of whole rows for a table with an auto-increment column.

    The clients of Java and Rust refuse it too. Frames are written by the columns that they have,
    and need no such rule.

    Raises:
        SchemaMismatchError: The table has an auto-increment column.
    """
    schema = table.schema
    for name in schema.auto_increment_columns:
        others = [each for each in schema.column_names if each not in schema.auto_increment_columns]
        raise SchemaMismatchError(
            f"{table.table_path} has the auto-increment column {name!r}, which only the server "
            "writes, so whole rows cannot be written.",
            hint=f"Write the other columns: table.new_upsert(columns={others!r})",
            table=str(table.table_path),
            column=name,
        )


def _arrow_of(frame: pd.DataFrame, core: AppendCore | UpsertCore) -> pa.Table:
    if not hasattr(frame, "iloc"):
        raise InvalidValueError(
            f"A DataFrame of pandas is written here, not {type(frame).__name__}.",
            hint="write_arrow() takes a pyarrow.Table.",
        )
    columns = core.table.schema.column_names
    return arrow_of(with_index(frame, [each for each in index_names(frame) if each in columns]))
