"""The tables of Fluss as views in a database of DuckDB's, `fluss.<database>.<table>`.

A view stands over a source that is registered with DuckDB; it is made when a statement speaks of
its table for the first time, and made anew when the table is another or has other columns. Views,
and not names of one connection, because cursors and other threads see them.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb

from fluss.errors import DatabaseNotFoundError, FlussError, InvalidNameError, TableNotFoundError
from fluss.session import Session, Table
from fluss.waiting import InterruptibleLock
from fluss_duckdb.call_finder import Dotted, find_references, quoted, speaks_of
from fluss_duckdb.query_dataset import ScannedTable, version_of
from fluss_duckdb.statements import Run, Statements
from fluss_duckdb.table_reference import Reference, reference_of, reference_of_name

# Views with options are made for a statement or two; beyond this, the oldest goes.
OPTIONED_MAX = 1_000


@dataclass(slots=True, kw_only=True, eq=False)
class _Attached:
    """A view, and what it reads; the relation keeps the source registered."""

    reference: Reference
    place: tuple[str, str]
    source: ScannedTable
    relation: duckdb.DuckDBPyRelation
    is_kept: bool = False


class Catalog:
    """The tables of one cluster in one DuckDB. Any thread may use it.

    Args:
        connection: A connection to the DuckDB; a cursor of it is used, and not itself.
        session: Gives the way to Fluss, when it is first needed.
        name: What the database is called.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, session: Callable[[], Session], name: str
    ) -> None:
        self.name = name
        self.runs = Statements()
        self._session = session
        self._lock = InterruptibleLock()
        self._own = connection.cursor()
        self._attached: OrderedDict[tuple[str, str], _Attached] = OrderedDict()
        _attach_database(self._own, name)
        self._restore()

    @property
    def session(self) -> Session:
        """The way to Fluss."""
        return self._session()

    def value(self, sql: str, parameters: Any = None) -> Any:
        """What a constant of SQL is, as an Arrow scalar."""
        with self._lock:
            found = self._own.sql(f"SELECT {sql}", params=parameters).to_arrow_table()
        if found.num_columns != 1 or found.num_rows != 1:
            raise duckdb.BinderException(f"{sql} is not one value")
        return found.column(0)[0]

    def attach(self, reference: Reference, run: Run | None = None, *, keep: bool = False) -> str:
        """Have a view for a reference, which sees the table as it is now; returns its name in SQL.

        Args:
            reference: The table and the options.
            run: The statement that it is for.
            keep: Whether the view is to stay, because others may be made over it.

        Raises:
            FlussError: There is no such table, or it cannot be read so.
        """
        table = reference.source.open()
        with self._lock:
            place = self._free_place(reference.place)
            found = self._attached.get(_folded(place))
            if found is None or found.source.version != version_of(table):
                found = self._make(reference, table, place)
            self._attached.move_to_end(_folded(place))
            found.is_kept |= keep or not reference.given
            if run is not None:
                run.checked.add(id(found.source))
            self._forget_oldest()
        return ".".join(map(quoted, (self.name, *place)))

    def _free_place(self, place: tuple[str, str]) -> tuple[str, str]:
        """The place, or another where a table has it whose name differs in case alone."""
        while (there := self._attached.get(_folded(place))) is not None and there.place != place:
            place = (f"{place[0]}'", place[1])
        return place

    def attach_all(self, database: str | None = None) -> list[str]:
        """Have a view for each table there is, in a database or in all; returns their names."""
        session = self.session
        attached: list[str] = []
        for each in session.databases() if database is None else [database]:
            with contextlib.suppress(DatabaseNotFoundError):  # dropped meanwhile
                for name in session.tables(each):
                    with contextlib.suppress(TableNotFoundError):  # as above
                        path = f"{each}.{name}"
                        self.attach(reference_of(path, session, {}))
                        attached.append(path)
        return attached

    def close(self) -> None:
        """Give back what was opened for it; its views can be read no more."""
        self.runs.cancel()
        with self._lock:
            self._attached.clear()
            self._own.close()

    def _make(self, reference: Reference, table: Table, place: tuple[str, str]) -> _Attached:
        source = ScannedTable(
            table, reference.source.options, self.runs, look_again=reference.source.open
        )
        relation = self._own.from_arrow(source)
        schema, view = map(quoted, place)
        catalog = quoted(self.name)
        self._own.execute(f"CREATE SCHEMA IF NOT EXISTS {catalog}.{schema}")
        self._own.execute(
            f"CREATE OR REPLACE VIEW {catalog}.{schema}.{view} AS {relation.sql_query()}"
        )
        made = _Attached(reference=reference, place=place, source=source, relation=relation)
        before = self._attached.get(_folded(place))
        made.is_kept = before is not None and before.is_kept
        self._attached[_folded(place)] = made
        return made

    def _forget_oldest(self) -> None:
        optioned = [each for each in self._attached.values() if not each.is_kept]
        for each in optioned[: max(0, len(optioned) - OPTIONED_MAX)]:
            name = ".".join(map(quoted, (self.name, *each.place)))
            self._own.execute(f"DROP VIEW IF EXISTS {name}")
            del self._attached[_folded(each.place)]

    def _restore(self) -> None:
        """Have what the views of a database on disk read; what is gone, DuckDB will miss."""
        views = self._own.execute(
            "SELECT sql FROM duckdb_views() WHERE NOT internal AND database_name <> ?", [self.name]
        ).fetchall()
        for (sql,) in views:
            if not speaks_of(sql, self.name):
                continue
            for each in find_references(sql, self.name):
                if isinstance(each, Dotted):
                    with contextlib.suppress(FlussError):
                        self.attach(reference_of_name(each, self.session), keep=True)


def _attach_database(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    found = connection.execute(
        "SELECT path FROM duckdb_databases() WHERE lower(database_name) = lower(?)", [name]
    ).fetchone()
    if found is None:
        connection.execute(f"ATTACH ':memory:' AS {quoted(name)}")
    elif found[0] is not None:
        raise InvalidNameError(
            f"DuckDB has a database {name!r} already, in the file {found[0]}.",
            hint="choose another name for the tables of Fluss: connect(..., catalog='stream')",
            name=name,
        )


def _folded(place: tuple[str, str]) -> tuple[str, str]:
    """DuckDB's names are the same in capitals; Fluss's are not."""
    return place[0].lower(), place[1].lower()
