"""Keeps tables of Fluss as views in a database of DuckDB, `fluss.<database>.<table>`.

A view selects from a dataset that is registered with DuckDB. It is created when a statement first
names its table, and again when the table was dropped and created or has other columns. Views are
used because cursors and other threads see them, unlike objects registered with one connection.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb

from fluss.errors import DatabaseNotFoundError, FlussError, InvalidNameError, TableNotFoundError
from fluss.scan import Progress, Scan
from fluss.session import Session
from fluss.waiting import InterruptibleLock
from fluss_duckdb.call_finder import Dotted, PlainNames, find_references, may_reference, quoted
from fluss_duckdb.query_dataset import ScannedTable, version_of
from fluss_duckdb.statements import Statement, Statements
from fluss_duckdb.table_reference import Reference, reference_of, reference_of_name

# Views with options serve a statement or two; the oldest beyond this number is dropped.
OPTIONED_MAX = 1_000


@dataclass(slots=True, kw_only=True, eq=False)
class _Attached:
    """A view and its dataset; the relation keeps the dataset registered."""

    reference: Reference
    name: tuple[str, str]
    dataset: ScannedTable
    relation: duckdb.DuckDBPyRelation
    is_kept: bool = False


class Catalog:
    """The tables of one cluster in one DuckDB. Any thread may use it.

    Args:
        connection: A connection to the DuckDB; only a cursor of it is used.
        session: Returns the session, when it is first needed.
        name: The name of the database.
        progress: Whether and how the progress of scans is shown.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        session: Callable[[], Session],
        name: str,
        progress: Progress = None,
    ) -> None:
        self.name = name
        self.statements = Statements(progress)
        # Returns the names that stand for tables without the catalog's; asked for each statement.
        self.plain_names: Callable[[], PlainNames | None] = lambda: None
        self._session = session
        self._lock = InterruptibleLock()
        self._own = connection.cursor()
        self._attached: OrderedDict[tuple[str, str], _Attached] = OrderedDict()
        _attach_database(self._own, name)
        self._restore()

    @property
    def session(self) -> Session:
        """The session."""
        return self._session()

    def value(self, sql: str, parameters: Any = None) -> Any:
        """Evaluate a constant expression of SQL to an Arrow scalar."""
        with self._lock:
            found = self._own.sql(f"SELECT {sql}", params=parameters).to_arrow_table()
        if found.num_columns != 1 or found.num_rows != 1:
            raise duckdb.BinderException(f"{sql} is not one value")
        return found.column(0)[0]

    def attach(
        self, reference: Reference, statement: Statement | None = None, *, keep: bool = False
    ) -> str:
        """Create the view for a reference if necessary, and return its name in SQL.

        Args:
            reference: The table and the options.
            statement: The running statement.
            keep: Whether the view must stay, because others may be defined over it.

        Raises:
            FlussError: There is no such table, or the options do not fit it.
        """
        scan = reference.source.scan()
        with self._lock:
            name = self._free_name(reference.view_name)
            found = self._attached.get(_folded(name))
            if found is None or found.dataset.version != version_of(scan):
                found = self._create_view(reference, scan, name)
            self._attached.move_to_end(_folded(name))
            found.is_kept |= keep or not reference.given
            if statement is not None:
                statement.checked.add(id(found.dataset))
            self._drop_oldest()
        return ".".join(map(quoted, (self.name, *name)))

    def _free_name(self, name: tuple[str, str]) -> tuple[str, str]:
        """Return the name, or another if a view has it whose name differs only in case."""
        while (found := self._attached.get(_folded(name))) is not None and found.name != name:
            name = (f"{name[0]}'", name[1])
        return name

    def attach_all(self, database: str | None = None) -> list[str]:
        """Create views for all tables, of one database or of all, and return their names."""
        session = self.session
        attached: list[str] = []
        for database_name in session.databases() if database is None else [database]:
            with contextlib.suppress(DatabaseNotFoundError):  # dropped concurrently
                for name in session.tables(database_name):
                    with contextlib.suppress(TableNotFoundError):  # dropped concurrently
                        path = f"{database_name}.{name}"
                        self.attach(reference_of(path, session, {}))
                        attached.append(path)
        return attached

    def close(self) -> None:
        """Cancel its statements and forget its datasets; its views can be read no more."""
        self.statements.cancel()
        with self._lock:
            self._attached.clear()
            self._own.close()

    def _create_view(self, reference: Reference, scan: Scan, name: tuple[str, str]) -> _Attached:
        dataset = ScannedTable(reference.source, scan, self.statements)
        relation = self._own.from_arrow(dataset)
        schema, view = map(quoted, name)
        catalog = quoted(self.name)
        self._own.execute(f"CREATE SCHEMA IF NOT EXISTS {catalog}.{schema}")
        self._own.execute(
            f"CREATE OR REPLACE VIEW {catalog}.{schema}.{view} AS {relation.sql_query()}"
        )
        created = _Attached(reference=reference, name=name, dataset=dataset, relation=relation)
        before = self._attached.get(_folded(name))
        created.is_kept = before is not None and before.is_kept
        self._attached[_folded(name)] = created
        return created

    def _drop_oldest(self) -> None:
        optioned = [each for each in self._attached.values() if not each.is_kept]
        for view in optioned[: max(0, len(optioned) - OPTIONED_MAX)]:
            name = ".".join(map(quoted, (self.name, *view.name)))
            self._own.execute(f"DROP VIEW IF EXISTS {name}")
            del self._attached[_folded(view.name)]

    def _restore(self) -> None:
        """Attach the tables that views of a database on disk select from, as far as they exist."""
        views = self._own.execute(
            "SELECT sql FROM duckdb_views() WHERE NOT internal AND database_name <> ?", [self.name]
        ).fetchall()
        for (sql,) in views:
            if not may_reference(sql, self.name):
                continue
            for reference in find_references(sql, self.name):
                if isinstance(reference, Dotted):
                    with contextlib.suppress(FlussError):
                        self.attach(reference_of_name(reference, self.session), keep=True)


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


def _folded(name: tuple[str, str]) -> tuple[str, str]:
    """Return a key for a name: DuckDB's names ignore case, those of Fluss do not."""
    return name[0].lower(), name[1].lower()
