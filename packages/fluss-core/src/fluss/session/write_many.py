"""A writer for many tables: `session.write_many([...])`, for routers and sinks of changes.

It accepts rows with the name of their table, and a flush waits for all tables. `write.many_writer`
and `write.route_frames` implement it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import date, time as time_of_day, timedelta
from decimal import Decimal
from typing import Any, Final, Literal, Self, TypeAlias

from fluss.connection.connection import ClientConnection
from fluss.doors import at_door
from fluss.errors import FlussError, InvalidNameError
from fluss.hints import Door
from fluss.model.change_type import ChangeType
from fluss.model.paths import TablePath
from fluss.session.session_tables import table_name_of
from fluss.session.table import Table
from fluss.session.typed_table import TypedTable
from fluss.typed.class_fields import ClassKind, kind_of
from fluss.typed.field_types import row_class_of
from fluss.write.class_frames import ClassFrame
from fluss.write.flush_report import FlushReport
from fluss.write.many_writer import ROWS_PER_LOOK, ManyWriter
from fluss.write.route_frames import Routing, TableNames, route

# A table of a writer or a reader of many: its name, itself, or the class that names it.
TableLike: TypeAlias = str | TablePath | Table | TypedTable[Any] | type[Any]
MergeMode: TypeAlias = Literal["default", "overwrite"]
# Types of rows that need no conversion; objects of subclasses may be rows of a class.
_PLAIN: Final[frozenset[type]] = frozenset({dict, tuple})
# A key of one column.
_VALUES: Final = (str, bytes, int, float, Decimal, date, time_of_day, timedelta)


def path_of_table(table: TableLike, path_of: Callable[[TablePath | str], TablePath]) -> TablePath:
    """The path of a table that is given in any form.

    Args:
        table: The table.
        path_of: Completes a name by the database of the session.

    Raises:
        InvalidNameError: It is none of the forms.
        InvalidSchemaError: It is a class that names no table.
    """
    if isinstance(table, str | TablePath):
        return path_of(table)
    if isinstance(table, Table | TypedTable):
        return path_of(table.name)
    if isinstance(table, type):
        return path_of(table_name_of(table))
    raise InvalidNameError(
        f"A table is named by a text, a TablePath, a table or a class, not by {table!r}.",
        hint="write 'database.table'",
    )


class _Takes:
    """The methods that are called for each row; they add the door to errors without a decorator."""

    def __init__(
        self,
        connection: ClientConnection,
        tables: Iterable[TableLike] | None,
        path_of: Callable[[TablePath | str], TablePath],
    ) -> None:
        self._connection = connection
        self._path_of = path_of
        paths = None if tables is None else [self._path(each) for each in _listed(tables)]
        self._core = ManyWriter(connection, paths, clock=time.monotonic)
        # Functions that accept single rows on a fast path, by the table as the caller names it.
        self._appends: dict[Any, Callable[[Any], Any]] = {}
        self._upserts: dict[Any, Callable[[Any], Any]] = {}
        self._core.when_changed = self._forget_takers
        self._until_look = ROWS_PER_LOOK

    def append(self, table: TableLike, data: Any) -> None:
        """Take rows for a log table.

        Args:
            table: The table: its name, itself, or its class.
            data: One row, which is a dict, a tuple in the order of the columns, or an object of a
                class; or rows: a list of these, or anything tabular. Columns are matched by name
                and cast where no value changes.

        Raises:
            InvalidValueError: A value does not fit its column; nothing was taken.
            SchemaMismatchError: A column is missing, unknown, or of a type that cannot be cast.
            UnsupportedOperationError: The table has a primary key.
            LimitExceededError: No memory for writes came free in time.
        """
        self._take_one(self._appends, "append", table, data)

    def upsert(self, table: TableLike, data: Any, *, merge_mode: MergeMode | None = None) -> None:
        """Take rows for a primary-key table, which are inserted or replace those with their keys.

        A frame with a column `_change_type` is applied as a changelog.

        Args:
            table: See `append`.
            data: See `append`.
            merge_mode: `overwrite` to replace aggregated values.
        """
        if merge_mode is None:
            self._take_one(self._upserts, "upsert", table, data)
        else:
            self._take("upsert", table, data, merge_mode=merge_mode)

    def delete(self, table: TableLike, keys: Any) -> None:
        """Take keys of rows to delete.

        Args:
            table: See `append`.
            keys: One key: a dict with the columns of the key, a tuple in key order, or the value
                of a key of one column; a list of these; or anything tabular. Other columns of the
                table are not looked at.
        """
        self._take("delete", table, keys)

    def update(self, table: TableLike, data: Any, *, columns: Sequence[str] | None = None) -> None:
        """Take rows of which some columns are written; the others keep their values.

        Args:
            table: See `append`.
            data: See `append`; a row is a dict of the columns to write, with those of the key.
            columns: Which columns are written; those of the row or the frame by default.
        """
        self._take("update", table, data, columns)

    def write(self, table: TableLike, data: Any) -> None:
        """Take rows as the kind of the table has it: appended to a log, or upserted by key.

        Rows with `_change_type` are applied to a primary-key table as changes.

        Args:
            table: See `append`.
            data: See `append`.
        """
        if self._has_key(table):
            self.upsert(table, data)
        else:
            self.append(table, data)

    def change(self, table: TableLike, kind: ChangeType | str, row: Any) -> None:
        """Take one change, as a log of changes has it.

        Args:
            table: See `append`.
            kind: `insert`, `update_before`, `update_after` or `delete`, or `+I`, `-U`, `+U`, `-D`.
                The row before an update is left out: the one after it replaces it by key.
            row: The row; of a delete, the key counts.
        """
        change = kind if isinstance(kind, ChangeType) else ChangeType.parse(kind)
        if change is ChangeType.UpdateBefore:
            return
        if change is ChangeType.Delete:
            self.delete(table, row)
        elif change is ChangeType.UpdateAfter or self._has_key(table):
            self.upsert(table, row)
        else:
            self.append(table, row)

    def _has_key(self, table: TableLike) -> bool:
        return self._core.writer(self._path(table)).info.has_primary_key()

    def _take_one(
        self,
        takers: dict[Any, Callable[[Any], Any]],
        mode: Literal["append", "upsert"],
        table: TableLike,
        data: Any,
    ) -> None:
        if data.__class__ in _PLAIN:
            take = takers.get(table)
            if take is not None:
                self._until_look -= 1
                if self._until_look <= 0:
                    self._until_look = ROWS_PER_LOOK
                    self._core.look(ROWS_PER_LOOK)
                try:
                    take(data)
                except FlussError:
                    # The slow path refreshes the table's metadata, or raises the full error.
                    takers.pop(table, None)
                else:
                    return
        self._take(mode, table, data)
        if data.__class__ in _PLAIN:
            take = self._core.writer(self._path(table)).taker()
            if take is not None:
                takers[table] = take

    def _take(
        self,
        mode: Literal["append", "upsert", "delete", "update"],
        table: TableLike,
        data: Any,
        columns: Sequence[str] | None = None,
        *,
        merge_mode: MergeMode | None = None,
    ) -> None:
        try:
            given = _rows(data, is_key=mode == "delete")
            self._core.take(self._path(table), mode, given, columns, merge_mode)
        except FlussError as error:
            error.add_context(door=Door.SESSION)
            raise

    def _path(self, table: TableLike) -> TablePath:
        return path_of_table(table, self._path_of)

    def _forget_takers(self) -> None:
        self._appends.clear()
        self._upserts.clear()


@at_door(Door.SESSION)
class WriteMany(_Takes):
    """Writes rows to many tables; `session.write_many(...)` makes it. Any thread may use it.

    Rows are accepted without waiting for a server, and sent in the background. The rows of one
    table are written in the order of the calls. A `with` block flushes and closes the writer.
    """

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that it was given, or has written to."""
        return tuple(map(str, self._core.tables))

    def add(self, *tables: TableLike) -> None:
        """Write to more tables.

        Args:
            tables: The tables.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.
        """
        self._core.add([self._path(each) for each in tables])

    def remove(self, *tables: TableLike) -> None:
        """Take no more rows for some tables; those that were taken are written, and reported."""
        for each in tables:
            self._core.remove(self._path(each))

    def route(
        self,
        data: Any,
        by: str = "table",
        *,
        tables: TableNames = None,
        mode: Literal["append", "upsert", "delete", "update"] | None = None,
    ) -> dict[str, int]:
        """Take rows of several tables: a column names the table of each row.

        All rows in memory are checked before the first is taken; of a stream each batch is. A
        column that a table does not have is left out where its rows have no value in it. With
        `_change_type`, the rows of primary-key tables are applied as changes.

        Args:
            data: Dicts, or anything tabular.
            by: The column that names the tables. It is written to tables that have such a column.
            tables: Translates its values to tables: a dict, or a function of a value. By default
                they are names.
            mode: What happens to the rows; by default logs are appended to, and rows of
                primary-key tables are upserted.

        Returns:
            How many rows were taken for each table.

        Raises:
            InvalidValueError: A row names no table, or a value does not fit; nothing was taken.
            SchemaMismatchError: A table lacks a column in which its rows have values.
            TableNotFoundError: A row names a table that does not exist.
        """
        routing = Routing(by=by, mode=mode, names=tables, path_of=self._path)
        return {str(path): rows for path, rows in route(self._core, data, routing).items()}

    def flush(self) -> FlushReport:
        """Wait until everything taken so far is written.

        Returns:
            What was written to each table since the last flush.

        Raises:
            FlussError: Rows of a table could not be written. The other tables have theirs. The
                error has that table, `progress` (which of its rows), `failures` (the errors of all
                failed tables) and `delivered` (the report of the others); it is raised once.
        """
        self._core.seal()
        self._connection.engine.run(self._core.flush())
        return self._core.outcome()

    def close(self) -> None:
        """Flush, and take no more rows. Idempotent.

        Raises:
            FlussError: As of `flush`.
        """
        if not self._core.is_closed:
            self._core.close()
            self.flush()

    @property
    def is_closed(self) -> bool:
        """Whether it has been closed."""
        return self._core.is_closed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if error is None:
            self.close()
            return
        # Accepted rows are written nevertheless, and the error of the block is raised.
        self._core.close()
        if isinstance(error, Exception):
            try:
                self.flush()
            except FlussError as failed:
                error.add_note(f"Rows taken before could not be written: {failed.message}")
        else:
            error.add_note(
                "Rows taken before are still being sent; the writer did not wait for them."
            )

    def __repr__(self) -> str:
        closed = ", closed" if self.is_closed else ""
        return f"WriteMany({len(self.tables)} tables{closed})"


def _listed(tables: Iterable[TableLike]) -> Iterable[TableLike]:
    if isinstance(tables, str | TablePath | Table | TypedTable | type):
        return [tables]
    return tables


def _rows(data: Any, *, is_key: bool) -> Any:
    """Convert one row or key: an object of a class becomes a frame, a value becomes a key."""
    first = data[0] if isinstance(data, list) and data else data
    if kind_of(type(first)) is ClassKind.NAMED_TUPLE:
        # Its fields are matched by name, like those of any class, and not by position.
        return ClassFrame(row_class_of(type(first)), data if isinstance(data, list) else [data])
    if kind_of(type(data)) is not None:
        return [data]
    return (data,) if is_key and isinstance(data, _VALUES) else data
