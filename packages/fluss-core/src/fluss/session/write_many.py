"""A writer for many tables: `session.write_many([...])`, for routers and sinks of changes.

It accepts rows together with the name of their table, and one flush waits for all tables.
`write.many_writer` and `write.route_frames` do the work; this file resolves the ways in which
callers name tables and give rows.
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

# How callers name a table: by its name, by a table object, or by a class that names its table.
TableLike: TypeAlias = str | TablePath | Table | TypedTable[Any] | type[Any]
MergeMode: TypeAlias = Literal["default", "overwrite"]
# Types of rows that need no conversion; objects of subclasses may be rows of a class.
_PLAIN: Final[frozenset[type]] = frozenset({dict, tuple})
# A key of one column.
_VALUES: Final = (str, bytes, int, float, Decimal, date, time_of_day, timedelta)


def path_of_table(table: TableLike, path_of: Callable[[TablePath | str], TablePath]) -> TablePath:
    """Return the path of a table.

    Args:
        table: The table, in any form.
        path_of: Adds the database of the session to a name without one.

    Raises:
        InvalidNameError: The argument has none of the forms.
        InvalidSchemaError: The class does not name a table.
    """
    if isinstance(table, str | TablePath):
        return path_of(table)
    if isinstance(table, Table | TypedTable):
        return path_of(table.name)
    if isinstance(table, type):
        return path_of(table_name_of(table))
    raise InvalidNameError(
        f"A table is given by its name, a TablePath, a table or a class, not by {table!r}.",
        hint="write 'database.table'",
    )


class _RowMethods:
    """The methods that are called for each row.

    They have no decorator for the door of errors, which would cost time for each row.
    """

    def __init__(
        self,
        connection: ClientConnection,
        tables: Iterable[TableLike] | None,
        path_of: Callable[[TablePath | str], TablePath],
    ) -> None:
        self._connection = connection
        self._path_of = path_of
        paths = None if tables is None else [self._path(table) for table in _listed(tables)]
        self._core = ManyWriter(connection, paths, clock=time.monotonic)
        # Functions that accept single rows on a fast path, by the caller's name of the table.
        self._appends: dict[Any, Callable[[Any], Any]] = {}
        self._upserts: dict[Any, Callable[[Any], Any]] = {}
        self._core.when_changed = self._forget_takers
        self._until_look = ROWS_PER_LOOK

    def append(self, table: TableLike, data: Any) -> None:
        """Accept rows for a log table.

        Args:
            table: The table: its name, a table object, or its class.
            data: One row, which is a dict, a tuple in the order of the columns, or an object of a
                class; or several rows: a list of these, or anything tabular. Columns are matched
                by name, and cast if no value changes.

        Raises:
            InvalidValueError: A value does not fit its column; no row was accepted.
            SchemaMismatchError: A column is missing, unknown, or of a type that cannot be cast.
            UnsupportedOperationError: The table has a primary key.
            LimitExceededError: The memory for writes stayed full for too long.
        """
        self._take_one(self._appends, "append", table, data)

    def upsert(self, table: TableLike, data: Any, *, merge_mode: MergeMode | None = None) -> None:
        """Accept rows for a primary-key table: each is inserted, or replaces the row with its key.

        A frame with a column `_change_type` is applied as a changelog.

        Args:
            table: See `append`.
            data: See `append`.
            merge_mode: `overwrite` replaces aggregated values instead of merging them.
        """
        if merge_mode is None:
            self._take_one(self._upserts, "upsert", table, data)
        else:
            self._take("upsert", table, data, merge_mode=merge_mode)

    def delete(self, table: TableLike, keys: Any) -> None:
        """Accept the keys of rows to delete.

        Args:
            table: See `append`.
            keys: One key: a dict with the columns of the key, a tuple in key order, or the value
                of a key of one column; a list of these; or anything tabular. Other columns are
                ignored.
        """
        self._take("delete", table, keys)

    def update(self, table: TableLike, data: Any, *, columns: Sequence[str] | None = None) -> None:
        """Accept partial rows: the given columns are written, the others keep their values.

        Args:
            table: See `append`.
            data: See `append`; a row is a dict with the columns of the key and those to write.
            columns: The columns to write; by default those of the row or the frame.
        """
        self._take("update", table, data, columns)

    def write(self, table: TableLike, data: Any) -> None:
        """Accept rows for any table: a log appends them, a primary-key table upserts them.

        A primary-key table applies rows with `_change_type` as changes.

        Args:
            table: See `append`.
            data: See `append`.
        """
        if self._has_key(table):
            self.upsert(table, data)
        else:
            self.append(table, data)

    def change(self, table: TableLike, kind: ChangeType | str, row: Any) -> None:
        """Accept one change of a changelog.

        Args:
            table: See `append`.
            kind: `insert`, `update_before`, `update_after` or `delete`, or `+I`, `-U`, `+U`, `-D`.
                `update_before` is ignored, because the row of `update_after` replaces it by key.
            row: The row. For a delete only the columns of the key are used.
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
            takers[table] = self._core.taker(self._path(table), mode)
            if self._core.is_closed:
                takers.clear()  # another thread may have closed it before the line above

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
class WriteMany(_RowMethods):
    """Writes rows to many tables; `session.write_many(...)` opens it. Any thread may use it.

    Rows are accepted without waiting for a server, and sent in the background. The rows of one
    table are written in the order of the calls. A `with` block flushes and closes the writer.
    """

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables given to the writer, or else of those it has written to."""
        return tuple(map(str, self._core.tables))

    def add(self, *tables: TableLike) -> None:
        """Accept rows for more tables.

        Args:
            tables: The tables.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.
        """
        self._core.add([self._path(each) for each in tables])

    def remove(self, *tables: TableLike) -> None:
        """Accept no more rows for some tables. Accepted rows are still written and reported."""
        for table in tables:
            self._core.remove(self._path(table))

    def route(
        self,
        data: Any,
        by: str = "table",
        *,
        tables: TableNames = None,
        mode: Literal["append", "upsert", "delete", "update"] | None = None,
    ) -> dict[str, int]:
        """Accept rows of several tables: a column names the table of each row.

        All rows in memory are checked before the first one is accepted; a stream is checked batch
        by batch. A column that a table does not have is left out if all rows of that table have
        NULL in it. With `_change_type`, primary-key tables apply the rows as changes.

        Args:
            data: Dicts, or anything tabular.
            by: The column that names the tables. It is written to tables that have such a column.
            tables: Maps the values of that column to tables: a dict, or a function of one value. By
                default the values are names of tables.
            mode: How the rows are written. By default logs append and primary-key tables upsert
                them.

        Returns:
            The number of rows accepted for each table.

        Raises:
            InvalidValueError: A row names no table, or a value does not fit; no row was accepted.
            SchemaMismatchError: Rows have values in a column that their table does not have.
            TableNotFoundError: A row names a table that does not exist.
        """
        routing = Routing(by=by, mode=mode, names=tables, path_of=self._path)
        return {str(path): rows for path, rows in route(self._core, data, routing).items()}

    def flush(self) -> FlushReport:
        """Wait until all accepted rows are written.

        Returns:
            What was written to each table since the last flush.

        Raises:
            FlussError: Rows of a table could not be written; those of the other tables were. The
                attributes of the error are `table`, `progress` (which rows of that table),
                `failures` (the errors of all failed tables) and `delivered` (the report of the
                others). It is raised once, by this flush and by those that run concurrently.
        """
        raised_before = self._core.failures_raised
        self._core.seal()
        self._connection.engine.run(self._core.flush())
        return self._core.outcome(raised_before)

    def close(self) -> None:
        """Flush, and accept no more rows. Idempotent.

        Raises:
            FlussError: See `flush`.
        """
        if not self._core.is_closed:
            self._core.close()
            self.flush()

    @property
    def is_closed(self) -> bool:
        """Whether the writer has been closed."""
        return self._core.is_closed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if error is None:
            self.close()
            return
        # Accepted rows are still written, and the error of the block is raised.
        self._core.close()
        if isinstance(error, Exception):
            try:
                self.flush()
            except FlussError as failed:
                error.add_note(f"Accepted rows could not be written: {failed.message}")
        else:
            error.add_note("Accepted rows are still being sent; the writer did not wait for them.")

    def __repr__(self) -> str:
        closed = ", closed" if self.is_closed else ""
        return f"WriteMany({len(self.tables)} tables{closed})"


def _listed(tables: Iterable[TableLike]) -> Iterable[TableLike]:
    if isinstance(tables, str | TablePath | Table | TypedTable | type):
        return [tables]
    return tables


def _rows(data: Any, *, is_key: bool) -> Any:
    """Convert one row or key: an object of a class becomes a frame, a single value a key."""
    first = data[0] if isinstance(data, list) and data else data
    if kind_of(type(first)) is ClassKind.NAMED_TUPLE:
        # Fields of a named tuple are matched by name, like those of any class, not by position.
        return ClassFrame(row_class_of(type(first)), data if isinstance(data, list) else [data])
    if kind_of(type(data)) is not None:
        return [data]
    return (data,) if is_key and isinstance(data, _VALUES) else data
