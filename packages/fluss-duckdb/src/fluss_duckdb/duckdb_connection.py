"""A DuckDB connection in which `fluss('db.events')` and `fluss.db.events` are tables.

It is a proxy: DuckDB's own connection does everything, and members that are not defined here are
passed through. Statements that run through it can be interrupted, and errors of Fluss keep their
types.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from types import FrameType, TracebackType
from typing import Any, Literal, Self, Unpack

import duckdb

from fluss.errors import UnsupportedOperationError
from fluss.scan import Scan, ScanArguments, TableName, open_scan, shows_options
from fluss.session import Session
from fluss_duckdb.call_finder import PlainNames
from fluss_duckdb.proxy import call_in_frame, plain, wrapped
from fluss_duckdb.query_dataset import PinnedTable
from fluss_duckdb.statement_rewriter import Rewritten, rewritten
from fluss_duckdb.statements import Statement
from fluss_duckdb.table_reference import reference_of
from fluss_duckdb.view_catalog import Catalog
from fluss_duckdb.write_refusals import check_creates_nothing, explained_name, explained_write

_MISSING = (duckdb.CatalogException, duckdb.BinderException)


class Connection:
    """A connection to DuckDB that knows the tables of Fluss; `fluss_duckdb.connect` makes it.

    Like DuckDB's own, it is for one thread at a time; `cursor()` gives another thread its own.

    Args:
        connection: DuckDB's connection.
        catalog: The tables.
        on_close: Called when the connection has been closed.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        catalog: Catalog,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._connection = connection
        self._catalog = catalog
        self._on_close = on_close
        if on_close is not None:
            catalog.statements.interrupt = connection.interrupt

    # --- statements ---------------------------------------------------------------------------

    def execute(self, query: Any, parameters: Any = None) -> Self:
        """Run statements; see DuckDB's `execute`.

        Raises:
            FlussError: A table of Fluss that they name does not exist, or cannot be read.
        """
        self.call_in_frame(_caller(), "execute", query, parameters)
        return self

    def executemany(self, query: Any, parameters: Any = None) -> Self:
        """Run a statement once for each list of parameters; see DuckDB's `executemany`."""
        self.call_in_frame(_caller(), "executemany", query, parameters)
        return self

    def sql(self, query: Any, *, alias: str = "", params: Any = None) -> Any:
        """Return a relation over a query, which runs when its rows are read; see DuckDB's `sql`."""
        return self.call_in_frame(_caller(), "sql", query, params, alias=alias)

    def query(self, query: Any, *, alias: str = "", params: Any = None) -> Any:
        """The same as `sql`."""
        return self.call_in_frame(_caller(), "sql", query, params, alias=alias)

    def from_query(self, query: Any, *, alias: str = "", params: Any = None) -> Any:
        """The same as `sql`."""
        return self.call_in_frame(_caller(), "sql", query, params, alias=alias)

    def table(self, table_name: str) -> Any:
        """Return a relation over a table: `con.table("fluss.db.events")`."""
        return self.call_in_frame(_caller(), "table", table_name)

    def view(self, view_name: str) -> Any:
        """Return a relation over a view."""
        return self.call_in_frame(_caller(), "view", view_name)

    @shows_options()
    def fluss(self, table: TableName | Scan, **options: Unpack[ScanArguments]) -> Any:
        """Return a relation over a table, like a call of `fluss(...)` in SQL.

        Args:
            table: `"database.table"`, a URL with a table in it, a `Table`, or a `Scan`. Every query
                of a `Scan` reads the same rows, and `scan.cursor()` is where they end.
            **options: The options of the scan.

        Raises:
            FlussError: There is no such table, or these options do not fit it.
        """
        if isinstance(table, Scan):
            dataset = PinnedTable(open_scan(table, **options), self._catalog.statements)
            return wrapped(self._connection.from_arrow(dataset), self._catalog)
        given = {name: value for name, value in options.items() if value is not None}
        with self._catalog.statements.running() as statement:
            reference = reference_of(table, self._catalog.session, given)
            name = self._catalog.attach(reference, statement)
            try:
                relation = self._connection.table(name)
            except _MISSING as error:
                raise self._explained(error, Rewritten(sql=name, has_references=True)) from None
            return wrapped(relation, self._catalog)

    def extract_statements(self, query: str) -> list[duckdb.Statement]:
        """Return the statements of a text; the tables they name are looked up now."""
        with self._catalog.statements.running() as statement:
            text = rewritten(self._catalog, query, None, statement).sql
            return self._connection.extract_statements(text)

    # --- connections --------------------------------------------------------------------------

    @property
    def plain(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's own connection, which knows the attached tables, but not `fluss(...)`."""
        return self._connection

    @property
    def session(self) -> Session:
        """The session, for creating, writing and looking up tables."""
        return self._catalog.session

    @property
    def catalog(self) -> str:
        """The name under which the tables of Fluss are attached."""
        return self._catalog.name

    def cursor(self) -> Connection:
        """Return another connection to the same data, for another thread or concurrent query."""
        return Connection(self._connection.cursor(), self._catalog)

    duplicate = cursor

    def attach_plain_names(self, names: Callable[[], PlainNames | None]) -> None:
        """Attach tables that statements name without `fluss`: `db.events`.

        DuckDB finds their views by its search path, which the caller sets.

        Args:
            names: Returns the names that stand for tables; called for each statement.
        """
        self._catalog.plain_names = names

    def interrupt(self) -> None:
        """Cancel the statements of this catalog, also while they wait for Fluss. Thread-safe."""
        self._catalog.statements.cancel()
        self._connection.interrupt()

    def close(self) -> None:
        """Close the connection; the first one of `connect` closes the session, too. Idempotent."""
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            self._catalog.close()
        self._connection.close()
        if on_close is not None:
            on_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        self.close()
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._connection, name)
        return wrapped(found, self._catalog, self, self._connection)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._connection)})

    def __repr__(self) -> str:
        return f"Connection({self._catalog.name}: {self._catalog.session})"

    def _repr_html_(self) -> str:
        how = f"fluss('database.table') and {self._catalog.name}.database.table are tables"
        return f"<strong>Connection of DuckDB</strong>: {escape(how)}{self.session._repr_html_()}"

    # --- shared -------------------------------------------------------------------------------

    def call_in_frame(
        self,
        frame: FrameType,
        method: str,
        query: Any,
        parameters: Any = None,
        *,
        params: Any = None,
        **options: Any,
    ) -> Any:
        """Call a method of DuckDB's connection that takes SQL, as if `frame` called it."""
        parameters = params if parameters is None else parameters
        with self._catalog.statements.running() as statement:
            asked = self._rewritten(
                query, parameters, statement, is_repeated=method == "executemany"
            )
            name = "parameters" if method.startswith("execute") else "params"
            given = {} if asked.parameters is None else {name: plain(asked.parameters)}
            if asked.missing:
                check_creates_nothing(asked.sql, self.catalog)
            text = asked.sql if isinstance(query, str) or asked.has_references else query
            function = getattr(self._connection, method)
            try:
                found = call_in_frame(frame, function, text, **given, **options)
            except _MISSING as error:
                raise self._explained(error, asked) from None
            return wrapped(found, self._catalog, self, self._connection)

    def _rewritten(
        self, query: Any, parameters: Any, statement: Statement, *, is_repeated: bool
    ) -> Rewritten:
        text = query.query if isinstance(query, duckdb.Statement) else query
        if not isinstance(text, str):
            return Rewritten(sql=text, parameters=parameters)
        return rewritten(self._catalog, text, parameters, statement, is_repeated=is_repeated)

    def _explained(self, error: Exception, asked: Rewritten) -> Exception:
        if asked.missing:
            return asked.missing[0]
        if asked.has_references and (refused := explained_write(error)):
            return refused
        if not asked.has_references and (named := explained_name(error, self._catalog)):
            return named
        if not asked.has_references or "does not exist" not in str(error):
            return error
        # An unfinished result keeps its transaction, which does not see newer views, open.
        unfinished = self._unfinished()
        if unfinished is not None:
            return unfinished
        if self._is_in_transaction():
            return UnsupportedOperationError(
                "A table of Fluss was first named inside a transaction of DuckDB, which does not "
                f"see tables attached after it began: {str(error).partition(chr(10))[0]}",
                hint="end the transaction, or name the table before it begins",
            )
        return error

    def _unfinished(self) -> duckdb.Error | None:
        """Return DuckDB's error about a result of the connection that is not read to its end."""
        try:
            self._connection.sql("SELECT 1").fetchall()
        except duckdb.ResourceInUseException as error:
            return error
        except duckdb.Error:
            return None  # a transaction that has failed, for example
        return None

    def _is_in_transaction(self) -> bool:
        try:
            self._connection.begin()
        except duckdb.Error:
            return True
        self._connection.rollback()
        return False


def _caller() -> FrameType:
    """Return the frame that called the public method: DuckDB finds tables among its variables."""
    return sys._getframe(2)  # noqa: SLF001 - there is no other way to them
