"""Lookups in both dialects: each call is awaited.

A lookup needs no task of its own: ten thousand concurrent ones of a lookuper are a few requests.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Iterable
from typing import Generic

from fluss.connection.connection import TableHandle
from fluss.lookup.lookup_cores import (
    AnswerT,
    Key,
    LookupCore,
    Row,
    check_lookups,
    key_lookup,
    prefix_lookup,
)
from fluss.net.handoff import as_awaitable


class _Lookuper(Generic[AnswerT]):
    """The part that both kinds of lookupers share."""

    def __init__(self, core: LookupCore[AnswerT]) -> None:
        self._core = core

    def _ask(self, key: Key) -> Awaitable[AnswerT]:
        return as_awaitable(lambda caller: self._core.ask(key, caller), self._core.decode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Lookuper(_Lookuper[Row | None]):
    """Finds rows by primary key. Any thread and any event loop may use it, at the same time."""

    def lookup(self, pk: Key) -> Awaitable[Row | None]:
        """The row with this key, or None.

        Args:
            pk: The whole primary key, partition columns included: a dict by column name, or the
                values in key order.

        Raises:
            InvalidValueError: A key column is missing, unknown, or of another type.
        """
        return self._ask(pk)


class PrefixLookuper(_Lookuper[list[Row]]):
    """Finds all rows whose primary keys begin with the given columns."""

    def lookup(self, prefix: Key) -> Awaitable[list[Row]]:
        """The rows, in the order of their keys' bytes; an empty list where there are none.

        Raises:
            InvalidValueError: A column of the prefix is missing, unknown, or of another type.
        """
        return self._ask(prefix)


class TableLookup:
    """Begins lookups. Used as a lookuper itself, it makes one on first use."""

    def __init__(self, core: TableHandle) -> None:
        check_lookups(core.info)
        self._core = core
        self._lock = threading.Lock()
        self._own: Lookuper | None = None

    def create_lookuper(self) -> Lookuper:
        """Make a lookuper by primary key."""
        return Lookuper(key_lookup(self._core))

    def lookup_by(self, column_names: Iterable[str]) -> TablePrefixLookup:
        """Look up by a prefix of the key: the partition columns and the whole bucket key."""
        return TablePrefixLookup(self._core, tuple(column_names))

    def lookup(self, pk: Key) -> Awaitable[Row | None]:
        """The row with this key, or None; see `Lookuper.lookup`."""
        with self._lock:
            if self._own is None:
                self._own = self.create_lookuper()
        return self._own.lookup(pk)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(table={self._core.info.table_path})"


class TablePrefixLookup:
    """Begins lookups by a prefix of the primary key."""

    def __init__(self, core: TableHandle, columns: tuple[str, ...]) -> None:
        self._core = core
        self._columns = columns

    def create_lookuper(self) -> PrefixLookuper:
        """Make a lookuper by these columns.

        Raises:
            FlussError: The table has no prefix lookups by these columns.
        """
        return PrefixLookuper(prefix_lookup(self._core, self._columns))

    def __repr__(self) -> str:
        columns = ", ".join(self._columns)
        return f"{type(self).__name__}(table={self._core.info.table_path}, columns=[{columns}])"
