"""Says what to do instead where a statement writes a table of Fluss, or leaves out `fluss`.

To DuckDB a table of Fluss is a view: its own errors speak of views and base tables. It would create
a table of its own in the attached catalog, which is lost when the connection closes.
"""

from __future__ import annotations

import re
from typing import Final

import duckdb

from fluss.errors import FlussError, InvalidNameError, UnsupportedOperationError
from fluss.hints import Door
from fluss_duckdb.view_catalog import Catalog

_OF_VIEWS: Final = re.compile(
    r"is not an table|Can only (update|delete from|merge into) base table|is of type View|"
    r"Can only modify view"
)
_NO_SCHEMA: Final = re.compile(r'because schema "([^"]+)" does not exist')
_WRITE: Final = (
    "write with fluss_duckdb.append(table, con.sql('SELECT ...')), or fluss_duckdb.upsert(...); "
    "con.session has delete, create_table and alter_table; `fluss sql` also has INSERT, UPDATE and "
    "DELETE"
)
_CREATE: Final = "fluss_duckdb.append(table, con.sql('SELECT ...'), create=True) creates a table"


def check_creates_nothing(sql: str, catalog: str) -> None:
    """Refuse to create a table in the catalog of Fluss.

    Args:
        sql: A statement.
        catalog: The name of the catalog.

    Raises:
        UnsupportedOperationError: The statement would create one.
    """
    creates = (
        rf"""\s*create\s+(or\s+replace\s+)?table\s+(if\s+not\s+exists\s+)?"?{catalog}"?\s*\."""
    )
    if re.match(creates, sql, re.IGNORECASE):
        raise UnsupportedOperationError(
            f"DuckDB would keep a table of {catalog} in its own memory, and lose it.", hint=_CREATE
        )


def explained_write(error: Exception) -> FlussError | None:
    """Return what to do instead of the write that DuckDB refused; None for other errors."""
    if not _OF_VIEWS.search(str(error)):
        return None
    text = str(error).partition("\n")[0]
    return UnsupportedOperationError(
        f"DuckDB's SQL only reads tables of Fluss, which are views to it: {text}", hint=_WRITE
    ).add_context(door=Door.DUCKDB)


def explained_name(error: Exception, catalog: Catalog) -> FlussError | None:
    """Return how to name a table of a database of Fluss; None for other names and errors."""
    found = _NO_SCHEMA.search(str(error))
    if found is None or not isinstance(error, duckdb.CatalogException):
        return None
    try:
        databases = catalog.session.databases()
    except FlussError:
        return None
    if found[1] not in databases:
        return None
    name = catalog.name
    return InvalidNameError(
        f"DuckDB has no schema {found[1]!r}; it is a database of Fluss.",
        hint=f"write {name}.{found[1]}.table, or fluss('{found[1]}.table')",
    ).add_context(door=Door.DUCKDB)
