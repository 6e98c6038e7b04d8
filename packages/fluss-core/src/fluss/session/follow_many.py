"""A reader of many tables: `session.follow_many([...])`, with one poll and one cursor.

`scan.follow_many` reads the tables. This file finds the options and the start of each table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NoReturn, Self, TypeAlias, Unpack

import pyarrow as pa

from fluss.connection.connection import ClientConnection
from fluss.doors import at_door
from fluss.errors import ClosedError, ConfigError, InvalidValueError, UnsupportedOperationError
from fluss.hints import Door
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.argument_types import Place
from fluss.model.options.bounds import EARLIEST, LATEST, Bound, bound_of
from fluss.model.options.many_cursor import ManyCursor
from fluss.model.options.scan_arguments import FollowArguments
from fluss.model.options.scan_options import FOLLOW_OPTIONS, Mode, scan_options
from fluss.model.options.signatures import shows_options
from fluss.model.paths import TablePath
from fluss.scan.follow import WAIT_S
from fluss.scan.follow_many import FollowManyCore, TableBatch
from fluss.scan.scan_stats import ScanStats
from fluss.session.table import Table
from fluss.session.typed_table import TypedTable
from fluss.session.write_many import TableLike, path_of_table
from fluss.write.many_writer import opened_tables

# Where a reader begins: one place for all tables, one for each, or the cursor of another reader.
Places: TypeAlias = Place | ManyCursor | Mapping[Any, Place]
_NAMES: Final = (str, TablePath, Table, TypedTable, type)


@at_door(Door.SESSION)
class FollowMany:
    """Reads the logs of many tables as they grow. One thread at a time may use it.

    `session.follow_many(...)` opens it. Iterating gives batches with the names of their tables.
    """

    def __init__(
        self,
        connection: ClientConnection,
        tables: Iterable[TableLike] | Mapping[TableLike, Mapping[str, Any]],
        path_of: Callable[[TablePath | str], TablePath],
        start: Places,
        options: Mapping[str, Any],
    ) -> None:
        self._connection = connection
        self._path_of = path_of
        self._options = _checked(options)
        self._core = FollowManyCore(connection)
        if isinstance(tables, _NAMES):
            tables = [tables]
        self._add({table: dict(_given(tables, table)) for table in tables}, start)

    # --- tables -------------------------------------------------------------------------------

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return self._core.names

    def schema(self, table: TableLike) -> pa.Schema:
        """The columns of the rows of a table."""
        return self._core.schema_of(self._name(table))

    @property
    def stats(self) -> dict[str, ScanStats]:
        """How much was read of each table."""
        return self._core.stats()

    @shows_options(FOLLOW_OPTIONS)
    def add(
        self, table: TableLike, *, start: Place = "latest", **options: Unpack[FollowArguments]
    ) -> None:
        """Follow one more table.

        Args:
            table: The table: its name, a table object, or a class of its rows.
            start: Where to begin; by default at the end of its log.
            **options: The options of the scan; by default those of the reader.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.
            InvalidValueError: The table is followed already.
        """
        given: dict[str, Any] = dict(options)
        self._add({table: given}, start)

    def remove(self, *tables: TableLike) -> None:
        """Stop following some tables. Their fetched rows that were not returned are dropped.

        Raises:
            InvalidValueError: A table is not followed.
        """
        for table in tables:
            self._core.remove(self._name(table))

    def _add(self, tables: Mapping[TableLike, dict[str, Any]], start: Places) -> None:
        self._core.check_open()
        names = {table: self._name(table) for table in tables}
        starts = _starts(start, set(names.values()), self._name)
        handles = self._connection.engine.run(
            opened_tables(self._connection, [self._path(table) for table in tables])
        )
        members = []
        for (table, own), core in zip(tables.items(), handles, strict=True):
            given = {"start": starts[names[table]], **self._options, **_checked(own)}
            given["start"] = bound_of(given["start"], "start")
            if core.info.has_primary_key():
                given.setdefault("mode", Mode.CHANGELOG)
            cls = _class_of(table)
            if cls is not None:
                given["columns"] = TypedTable(Table(core), cls).columns
                given["with_metadata"] = True
            members.append((core, scan_options(given)))
        self._core.add(members)

    def _path(self, table: TableLike) -> TablePath:
        return path_of_table(table, self._path_of)

    def _name(self, table: TableLike) -> str:
        return str(self._path(table))

    # --- rows ---------------------------------------------------------------------------------

    def poll(self, timeout_s: float = WAIT_S) -> list[TableBatch]:
        """Return the batches that have arrived since the last call, or wait for some.

        Args:
            timeout_s: The longest wait.

        Raises:
            ClosedError: The reader has been closed.
            FlussError: A table cannot be read; the attribute `table` is its name. The other tables
                are read on: poll again. A later call raises the error again only if no rows have
                arrived within its timeout; `remove` the table to end that.
        """
        return self._core.poll(timeout_s)

    def poll_tables(self, timeout_s: float = WAIT_S) -> dict[str, pa.Table]:
        """Return the rows that have arrived since the last call, as one Arrow table for each table.

        Args:
            timeout_s: See `poll`.
        """
        batches: dict[str, list[pa.RecordBatch]] = {}
        for name, batch in self._core.poll(timeout_s):
            batches.setdefault(name, []).append(batch)
        return {name: pa.Table.from_batches(found) for name, found in batches.items()}

    def __iter__(self) -> Iterator[TableBatch]:
        while not self._core.is_closed:
            try:
                batch = self._core.next_batch(WAIT_S)
            except ClosedError:
                if self.is_closed:  # another thread closed it while this one waited
                    return
                raise
            if batch is not None:
                yield batch

    def cursor(self) -> ManyCursor:
        """The position after the returned rows; `follow_many(start=cursor)` continues from it."""
        return self._core.cursor()

    def to_arrow(self) -> NoReturn:
        """Refuse: a reader without an end cannot be collected."""
        raise UnsupportedOperationError(
            "follow_many() never ends, so its rows cannot be collected.",
            hint="poll_tables() returns the rows that have arrived; iterating gives each batch.",
        )

    # --- life ---------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether the reader has been closed."""
        return self._core.is_closed

    def close(self) -> None:
        """Stop reading. A thread that iterates over the reader leaves its loop. Idempotent."""
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self.is_closed else ""
        return f"FollowMany({len(self.tables)} tables{closed})"


def _given(tables: Any, table: TableLike) -> Mapping[str, Any]:
    options = tables[table] if isinstance(tables, Mapping) else {}
    if not isinstance(options, Mapping):
        raise InvalidValueError(
            f"The options of {table} are a dict, not {options!r}.",
            hint="follow_many({'db.a': {'columns': ['id']}, 'db.b': {}})",
        )
    return options


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in FOLLOW_OPTIONS:
            raise ConfigError(
                f"follow_many() has no option {name!r}.",
                hint=did_you_mean(name, FOLLOW_OPTIONS) or f"it has {', '.join(FOLLOW_OPTIONS)}",
                key=name,
            )
    return dict(options)


def _class_of(table: TableLike) -> type | None:
    if isinstance(table, TypedTable):
        return table.row_class
    return table if isinstance(table, type) else None


def _starts(
    start: Places, names: set[str], name_of: Callable[[TableLike], str]
) -> dict[str, Place | Bound]:
    """Return where each table is read from.

    A table that the cursor does not name was added later, and is read from its beginning.

    Raises:
        InvalidValueError: A place is given for a table that is not followed.
    """
    if isinstance(start, str) and '"tables"' in start:
        start = ManyCursor.from_json(start)
    if isinstance(start, ManyCursor):
        return {name: start.tables.get(name, EARLIEST) for name in names}
    if isinstance(start, Mapping) and start and all(isinstance(key, _NAMES) for key in start):
        by_name = {name_of(table): place for table, place in start.items()}
        unknown = [name for name in by_name if name not in names]
        if unknown:
            raise InvalidValueError(
                f"start has a place for {unknown[0]}, which is not followed.",
                hint=did_you_mean(unknown[0], names) or "Add it to the tables.",
                table=unknown[0],
            )
        return {name: by_name.get(name, LATEST) for name in names}
    place: Any = start
    return dict.fromkeys(names, place)
