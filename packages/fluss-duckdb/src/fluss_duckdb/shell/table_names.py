"""Finds the names of databases, tables and columns, for statements and for completion.

Names are asked for at most every few seconds: a statement about a table that was just created
elsewhere is answered, because a name that is unknown is asked for again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from fluss.errors import FlussError, InvalidNameError
from fluss.session import Session
from fluss_duckdb.call_finder import PlainNames

AGE_MAX_S: Final = 5.0
TABLES_MAX: Final = 1_000
CACHED_MAX: Final = 200


class TableNames:
    """The names of one cluster.

    Args:
        session: The session.
        now: The time, in seconds.

    Attributes:
        database: The database in use; that of the session's URL at first.
    """

    def __init__(self, session: Session, now: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._now = now
        self._cache: dict[tuple[str, str], tuple[float, list[str]]] = {}
        try:  # the database of the session's URL, if it has one
            self.database: str | None = session.path_of("_").database_name
        except InvalidNameError:
            self.database = None

    def plain_names(self) -> PlainNames:
        """Return the names that stand for tables without `fluss` before them."""
        databases = {each.lower(): each for each in self.databases()}
        tables = {} if self.database is None else self.tables(self.database)
        return PlainNames(
            databases=databases,
            database=self.database,
            tables={each.lower(): each for each in tables},
        )

    def databases(self) -> list[str]:
        """Return the names of all databases."""
        return self._cached(("databases", ""), self._session.databases)

    def tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database; none if it does not exist."""
        return self._cached(("tables", database), lambda: self._session.tables(database))

    def columns(self, path: str) -> list[str]:
        """Return the names of the columns of a table; none if it does not exist."""
        return self._cached(("columns", path), lambda: self._session.table(path).schema.names)

    def all_tables(self) -> list[str]:
        """Return `database.table` of the tables of all databases, up to `TABLES_MAX`."""
        found: list[str] = []
        for database in self.databases():
            found += [f"{database}.{name}" for name in self.tables(database)]
            if len(found) >= TABLES_MAX:
                break
        return found[:TABLES_MAX]

    def forget(self) -> None:
        """Ask for all names again: a statement has changed them."""
        self._cache.clear()

    def _cached(self, key: tuple[str, str], ask: Callable[[], Sequence[str]]) -> list[str]:
        found = self._cache.get(key)
        if found is not None and self._now() - found[0] < AGE_MAX_S:
            return found[1]
        try:
            names = list(ask())
        except FlussError:
            if key[0] == "databases":
                raise
            return []
        if len(self._cache) >= CACHED_MAX:
            self._cache.clear()
        self._cache[key] = (self._now(), names)
        return names
