"""Completes words at the prompt: commands, SQL keywords, databases, tables and columns.

A server that does not answer within a moment costs that moment once, and not the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Final

import duckdb

from fluss.errors import FlussError
from fluss.waiting import in_thread, is_done, result_of
from fluss_duckdb.shell.table_names import TableNames

DELIMITERS: Final = " \t\n()[],;:'\"=<>+-*/%|&"
MATCHES_MAX: Final = 500
WAIT_S: Final = 1.0
_TABLE: Final = re.compile(r"[A-Za-z_][\w$]*\.[A-Za-z_][\w$]*|[A-Za-z_][\w$]*")


class Completer:
    """Completes a word in a text.

    Args:
        names: The names of databases, tables and columns.
        commands: The commands that begin with a dot.
    """

    def __init__(self, names: TableNames, commands: Sequence[str]) -> None:
        self._names = names
        self._commands = commands

    def matches(self, word: str, line: str, before: str = "") -> list[str]:
        """Return what a word may become.

        Args:
            word: The beginning of the word.
            line: The line that it is in.
            before: The lines of the statement before it.
        """
        if line.lstrip().startswith(".") and not before:
            return [each for each in self._commands if each.startswith(line.lstrip())]
        found = [*self._within_moment(lambda: self._table_names(f"{before}\n{line}"))]
        words = [*found, *_in_case_of(word, self._keywords)]
        folded = word.lower()
        matching = [each for each in words if each.lower().startswith(folded)]
        return list(dict.fromkeys(matching))[:MATCHES_MAX]

    def _table_names(self, text: str) -> list[str]:
        """Return the columns of the tables that a text names, then databases and tables."""
        names = self._names
        tables = names.all_tables()
        own = [] if names.database is None else names.tables(names.database)
        known = {each.lower(): each for each in tables}
        known |= {each.lower(): f"{names.database}.{each}" for each in own}
        named = {known[each.lower()] for each in _TABLE.findall(text) if each.lower() in known}
        columns = [column for path in sorted(named) for column in names.columns(path)]
        return [*columns, *own, *names.databases(), *tables]

    @cached_property
    def _keywords(self) -> list[str]:
        with duckdb.connect() as connection:
            found = connection.execute("SELECT DISTINCT keyword_name FROM duckdb_keywords()")
            return sorted(each.upper() for (each,) in found.fetchall())

    @staticmethod
    def _within_moment(ask: Callable[[], list[str]]) -> Iterable[str]:
        asked = in_thread(ask, "completion")
        if not is_done(asked, WAIT_S):
            return []
        try:
            return result_of(asked)
        except FlussError:
            return []


def _in_case_of(word: str, keywords: Sequence[str]) -> Iterable[str]:
    """Return keywords in lower case after a word in lower case."""
    return keywords if word[:1].isupper() or not word else (each.lower() for each in keywords)
