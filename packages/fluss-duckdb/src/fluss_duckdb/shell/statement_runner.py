"""Runs one statement: through the session if it is about writing tables of Fluss, or in DuckDB.

Plain names work here: `shop.orders` is a table of Fluss if there is a database `shop`, and `orders`
after `USE shop`. DuckDB's own tables come first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import duckdb
import pyarrow as pa

from fluss.errors import InvalidNameError
from fluss.model.did_you_mean import did_you_mean, nearest
from fluss_duckdb.call_finder import quoted
from fluss_duckdb.duckdb_connection import Connection
from fluss_duckdb.shell.fluss_statements import FlussStatements, Result, counted
from fluss_duckdb.shell.table_names import TableNames

SCHEMAS_MAX: Final = 500
_UNKNOWN: Final = re.compile(r"Table with name (\S+) does not exist")
_COUNT: Final = "Count"  # DuckDB's name for the number of changed rows


class StatementRunner:
    """Runs the statements of one shell.

    Args:
        connection: The connection.
    """

    def __init__(self, connection: Connection) -> None:
        self.names = TableNames(connection.session)
        self._connection = connection
        self._statements = FlussStatements(connection, self.names)
        own = connection.plain.execute("SELECT current_database(), current_schema()").fetchall()
        self._own: tuple[str, str] = own[0]
        self._path: list[str] = []
        # A variable of this program is no table of the user's.
        connection.plain.execute("SET python_enable_replacements = false")
        connection.attach_plain_names(self.names.plain_names)

    def run(self, sql: str) -> Result:
        """Run a statement; the rows of a query are read by the caller.

        Raises:
            FlussError: A table does not exist, or cannot be read or written.
            duckdb.Error: DuckDB refuses the statement.
            KeyboardInterrupt: Ctrl-C.
        """
        self._set_search_path()
        result = self._statements.run(sql)
        self._set_search_path()
        if result is not None:
            return result
        try:
            return self._by_duckdb(sql)
        except duckdb.CatalogException as error:
            raise self._explained(error) from None

    def _by_duckdb(self, sql: str) -> Result:
        """Run a statement in DuckDB; one that is no query runs now."""
        parsed = duckdb.extract_statements(sql)
        kinds = parsed[-1].expected_result_type if parsed else []
        if kinds == [duckdb.ExpectedResultType.QUERY_RESULT]:
            return Result(rows=self._connection.sql(sql))
        done = self._connection.execute(sql)
        names = [each[0] for each in done.description or ()]
        if duckdb.ExpectedResultType.CHANGED_ROWS not in kinds or not names:
            return Result()
        found = done.fetchall()
        if names == [_COUNT]:
            return Result(message=f"{counted(sum(count for (count,) in found))} written.")
        columns = zip(*found, strict=True) if found else [()] * len(names)
        return Result(rows=pa.table(dict(zip(names, map(list, columns), strict=True))))

    def _explained(self, error: duckdb.CatalogException) -> Exception:
        """Return an error about an unknown table with the names that Fluss has."""
        found = _UNKNOWN.search(str(error))
        if found is None:
            return error
        name = found[1]
        hint = _nearest_table(name, self.names.all_tables()) or "SHOW TABLES lists the tables"
        return InvalidNameError(f"There is no table {name!r}.", hint=hint, name=name)

    def _set_search_path(self) -> None:
        """Let DuckDB find the views of tables by the names of their databases."""
        used = self.names.database
        databases = self.names.databases()[:SCHEMAS_MAX]
        ordered = [used, *databases] if used is not None else databases
        catalog = self._connection.catalog
        path = [".".join(map(quoted, self._own))]
        path += [f"{quoted(catalog)}.{quoted(each)}" for each in dict.fromkeys(ordered)]
        if path == self._path:
            return
        for database in databases:
            self._connection.plain.execute(
                f"CREATE SCHEMA IF NOT EXISTS {quoted(catalog)}.{quoted(database)}"
            )
        joined = ",".join(path).replace("'", "''")
        self._connection.plain.execute(f"SET search_path = '{joined}'")
        self._path = path


def _nearest_table(name: str, tables: Sequence[str]) -> str | None:
    """Name the nearest table. A name without a database is compared with names without one."""
    if "." in name:
        return did_you_mean(name, tables)
    by_short = {each.partition(".")[2]: each for each in reversed(tables)}
    found = nearest(name, by_short)
    return None if found is None else f"did you mean {by_short[found]!r}?"
