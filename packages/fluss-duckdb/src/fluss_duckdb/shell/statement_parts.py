"""Takes statements about tables apart: INSERT, DELETE, UPDATE, and the names in others.

Only the frame of a statement is read here, from tokens: names, lists in parentheses, and the text
of expressions and queries, which DuckDB evaluates. What a statement means is in `fluss_statements`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fluss.errors import InvalidValueError, UnsupportedOperationError
from fluss_duckdb.call_finder import Token, tokens_of

_OPENING, _CLOSING = frozenset("(["), frozenset(")]")
_QUERY: Final = frozenset({"SELECT", "VALUES", "FROM", "WITH", "TABLE", "("})


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetName:
    """The name of what a statement changes, in its parts; `is_call` for `fluss('db.table')`."""

    parts: tuple[str, ...]
    is_call: bool = False

    def __str__(self) -> str:
        return ".".join(self.parts)


class StatementReader:
    """Reads the tokens of a statement from front to back.

    Args:
        sql: The statement.
    """

    def __init__(self, sql: str) -> None:
        self._data = sql.encode()
        self.tokens: Sequence[Token] = list(tokens_of(sql))
        self.at = 0

    @property
    def is_at_end(self) -> bool:
        """Whether all tokens are read."""
        return self.at >= len(self.tokens)

    def peek(self, ahead: int = 0) -> str:
        """Return the word of a token, or its sign; empty at the end."""
        place = self.at + ahead
        if place >= len(self.tokens):
            return ""
        token = self.tokens[place]
        return token.word or token.text

    def take(self, *words: str) -> bool:
        """Read these words, if they come next."""
        if any(self.peek(ahead) != word for ahead, word in enumerate(words)):
            return False
        self.at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Read these words.

        Raises:
            InvalidValueError: Something else comes next.
        """
        if not self.take(*words):
            raise self.unexpected(" ".join(words))

    def unexpected(self, expected: str) -> InvalidValueError:
        """Return the error for a statement that goes on in another way."""
        found = self.tokens[self.at].text if not self.is_at_end else "the end"
        return InvalidValueError(
            f"The statement has {found} where {expected} is expected.", hint=".help shows examples"
        )

    def name(self) -> str:
        """Read a name."""
        if self.is_at_end or not self.tokens[self.at].is_name:
            raise self.unexpected("a name")
        self.at += 1
        return self.tokens[self.at - 1].name

    def target(self) -> TargetName:
        """Read the name of a table: `a.b`, `a.b.c`, or `fluss('a.b')`."""
        if self.peek().lower() == "fluss" and self.peek(1) == "(" and self.peek(3) == ")":
            text = self.tokens[self.at + 2].text
            if text.startswith("'"):
                self.at += 4
                path = text[1:-1].replace("''", "'")
                return TargetName(parts=tuple(path.split(".")), is_call=True)
        parts = [self.name()]
        while self.peek() == ".":
            self.at += 1
            parts.append(self.name())
        return TargetName(parts=tuple(parts))

    def names_in_parentheses(self) -> list[str]:
        """Read `(a, b, c)`."""
        self.expect("(")
        names = [self.name()]
        while self.take(","):
            names.append(self.name())
        self.expect(")")
        return names

    def text(self, begin: int | None = None, end: int | None = None) -> str:
        """Return the text from one token to before another; by default all that is left."""
        first = self.at if begin is None else begin
        last = len(self.tokens) if end is None else end
        if first >= last:
            return ""
        return self._data[self.tokens[first].start : self.tokens[last - 1].stop].decode()

    def until(self, *words: str) -> str:
        """Read to one of these words outside of parentheses, or to the end, and return the text."""
        begin, depth = self.at, 0
        while not self.is_at_end:
            word = self.peek()
            if depth == 0 and word in words:
                break
            depth += (word in _OPENING) - (word in _CLOSING)
            if depth < 0:
                break
            self.at += 1
        return self.text(begin, self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """`INSERT INTO table [(columns)] [BY NAME] query`."""

    target: TargetName
    columns: list[str] | None
    by_name: bool
    query: str


def read_insert(reader: StatementReader) -> Insert:
    """Read an INSERT after its first word.

    Raises:
        UnsupportedOperationError: It has a part that Fluss does not have.
    """
    reader.take("OR", "REPLACE")
    if reader.peek() == "OR":
        raise _unsupported("INSERT OR IGNORE", "rows with the same key replace each other")
    reader.expect("INTO")
    target = reader.target()
    columns = reader.names_in_parentheses() if _has_columns(reader) else None
    by_name = reader.take("BY", "NAME")
    reader.take("BY", "POSITION")
    if reader.peek() not in _QUERY:
        if reader.take("DEFAULT", "VALUES"):
            raise _unsupported("DEFAULT VALUES", "columns of Fluss have no defaults: VALUES (...)")
        raise reader.unexpected("VALUES or a query")
    begin = reader.at
    query = reader.until("RETURNING", "ON")
    while reader.take("ON") and reader.peek() != "CONFLICT":
        reader.until("RETURNING", "ON")  # the condition of a join
        query = reader.text(begin, reader.at)
    if not reader.is_at_end:
        raise _unsupported(
            "RETURNING" if reader.peek() == "RETURNING" else "ON CONFLICT",
            "rows with the same key replace each other; read the table afterwards",
        )
    return Insert(target=target, columns=columns, by_name=by_name, query=query)


def _has_columns(reader: StatementReader) -> bool:
    return reader.peek() == "(" and reader.peek(1) not in {"SELECT", "VALUES", "FROM", "WITH", "("}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`DELETE FROM table` or `UPDATE table SET ...`, with the text of its condition.

    Args:
        target: The table.
        alias: Its name in the expressions.
        values: Which columns get which expression; empty for DELETE.
        where: The condition; None for all rows.
    """

    target: TargetName
    alias: str | None
    values: dict[str, str]
    where: str | None


def read_delete(reader: StatementReader) -> Change:
    """Read a DELETE after its first word."""
    reader.expect("FROM")
    target = reader.target()
    alias = _alias(reader, "WHERE", "USING", "RETURNING")
    where = _condition(reader)
    return Change(target=target, alias=alias, values={}, where=where)


def read_update(reader: StatementReader) -> Change:
    """Read an UPDATE after its first word."""
    target = reader.target()
    alias = _alias(reader, "SET")
    reader.expect("SET")
    values: dict[str, str] = {}
    while True:
        name = reader.name()
        reader.expect("=")
        if name.lower() in {each.lower() for each in values}:
            raise InvalidValueError(f"The column {name!r} is set twice.")
        values[name] = reader.until(",", "WHERE", "FROM", "RETURNING")
        if not values[name]:
            raise reader.unexpected("a value")
        if not reader.take(","):
            break
    where = _condition(reader)
    return Change(target=target, alias=alias, values=values, where=where)


def _alias(reader: StatementReader, *following: str) -> str | None:
    if reader.take("AS"):
        return reader.name()
    if reader.is_at_end or reader.peek() in following:
        return None
    return reader.name()


def _condition(reader: StatementReader) -> str | None:
    if reader.peek() in {"USING", "FROM", "RETURNING"}:
        raise _unsupported(
            reader.peek(),
            "name the rows by a subquery: WHERE id IN (SELECT ...); read the table afterwards",
        )
    if reader.is_at_end:
        return None
    reader.expect("WHERE")
    where = reader.until("RETURNING")
    if reader.peek():
        raise _unsupported("RETURNING", "read the table afterwards")
    return where


def _unsupported(what: str, hint: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(f"Tables of Fluss are not written with {what}.", hint=hint)
