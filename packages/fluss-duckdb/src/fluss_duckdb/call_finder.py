"""Finds references to Fluss in SQL: `fluss('db.events', tail := 9)`, and `fluss.db.events`.

Where a catalog has plain names, `db.events` is one as well, and `events` in the database in use.

DuckDB's tokenizer separates code from comments and strings. Nothing else is parsed: what a
reference means is decided in `table_reference`, and a call that is never closed is left for DuckDB
to refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import duckdb

from fluss.errors import InvalidValueError

CALL = "fluss"
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_ASSIGNED = frozenset({":=", "=>", "="})
_DEFINING = frozenset({"macro", "function"})
# A statement whose text DuckDB keeps; the tables that it names must exist as long.
_KEEPING = re.compile(r"\b(create|prepare)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter inside a call: its name, or its index among the question marks."""

    name: str | int
    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of a call, as SQL; `name` is None for a positional argument."""

    name: str | None
    sql: str
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of `fluss(...)`, and its byte range in the text."""

    start: int
    stop: int
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dotted:
    """A name that may be that of a table of Fluss, or that of a column, an alias, a field."""

    start: int
    stop: int
    database: str
    table: str
    is_plain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainNames:
    """The names that stand for tables of Fluss without `fluss` before them.

    Args:
        databases: The databases, by their names in lower case.
        database: The database in use, if there is one.
        tables: Its tables, by their names in lower case.
    """

    databases: Mapping[str, str]
    database: str | None = None
    tables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A part of a text that is no comment, and its byte range."""

    text: str
    kind: object
    start: int
    stop: int

    @property
    def is_name(self) -> bool:
        """Whether it may be a name: quoted, or a word."""
        return self.kind in {duckdb.token_type.identifier, duckdb.token_type.keyword}

    @property
    def name(self) -> str:
        """The name, without quotes."""
        return _unquoted(self.text)

    @property
    def word(self) -> str:
        """The word in upper case; empty if it is quoted."""
        return "" if self.text.startswith(('"', "'")) else self.text.upper()


def may_reference(sql: str, catalog: str) -> bool:
    """Return whether a text might reference Fluss; most do not and are not tokenized."""
    folded = sql.lower()
    return CALL in folded or catalog.lower() in folded


def keeps_text(sql: str) -> bool:
    """Return whether a text may create views or prepared statements."""
    return _KEEPING.search(sql) is not None


def find_references(sql: str, catalog: str, plain: PlainNames | None = None) -> list[Call | Dotted]:
    """Return all references to Fluss in a text, in its order.

    Args:
        sql: One statement or several.
        catalog: The name under which the tables are attached.
        plain: The names that stand for tables without the catalog's name before them.

    Raises:
        InvalidValueError: A call has a syntax error.
    """
    tokens = list(tokens_of(sql))
    found: list[Call | Dotted] = []
    index = 0
    while index < len(tokens):
        reference = _reference_at(tokens, index, catalog)
        is_known = plain is None or _names_database(reference, plain)
        if plain is not None and not is_known:
            reference = _plain_at(tokens, index, plain) or reference
        if reference is None:
            index += 1
            continue
        found.append(reference)
        while index < len(tokens) and tokens[index].start < reference.stop:
            index += 1
    return found


def substituted(sql: str, pieces: Sequence[tuple[int, int, str]]) -> str:
    """Return the text with byte ranges replaced."""
    data = sql.encode()
    for start, stop, text in sorted(pieces, reverse=True):
        data = data[:start] + text.encode() + data[stop:]
    return data.decode()


def parameters_of(sql: str) -> list[Parameter]:
    """Return all parameters of a text, in its order."""
    return list(_parameters(list(tokens_of(sql)), 0, None))


def tokens_of(sql: str) -> Iterator[Token]:
    """Cut a text into its tokens, without comments."""
    data = sql.encode()
    places = duckdb.tokenize(sql)
    ends = [*(place for place, _ in places[1:]), len(data)]
    for (start, kind), end in zip(places, ends, strict=False):
        if kind == duckdb.token_type.comment:
            continue
        text = data[start:end].decode()
        bare = text.rstrip()
        yield Token(text=bare, kind=kind, start=start, stop=start + len(bare.encode()))


def _reference_at(tokens: Sequence[Token], index: int, catalog: str) -> Call | Dotted | None:
    token = tokens[index]
    if not token.is_name or (index and tokens[index - 1].text == "."):
        return None
    word = _unquoted(token.text).lower()
    if word == CALL and _text(tokens, index + 1) == "(":
        if index and tokens[index - 1].text.lower() in _DEFINING:
            return None
        return _call_at(tokens, index)
    if word == catalog.lower() and _text(tokens, index + 1) == _text(tokens, index + 3) == ".":
        parts = tokens[index + 2 : index + 5 : 2]
        if len(parts) == 2 and all(each.is_name for each in parts):  # noqa: PLR2004 - database, table
            database, table = (_unquoted(each.text) for each in parts)
            return Dotted(start=token.start, stop=parts[1].stop, database=database, table=table)
    return None


def _names_database(reference: Call | Dotted | None, plain: PlainNames) -> bool:
    if isinstance(reference, Dotted):
        return reference.database.lower() in plain.databases
    return reference is not None


def _plain_at(tokens: Sequence[Token], index: int, plain: PlainNames) -> Dotted | None:
    token = tokens[index]
    if not token.is_name or (index and tokens[index - 1].text == "."):
        return None
    following = tokens[index + 2] if index + 2 < len(tokens) else None
    database = plain.databases.get(token.name.lower())
    if database is not None and _text(tokens, index + 1) == "." and following is not None:
        if following.is_name:
            return Dotted(
                start=token.start,
                stop=following.stop,
                database=database,
                table=following.name,
                is_plain=True,
            )
        return None
    table = plain.tables.get(token.name.lower())
    if plain.database is None or table is None:
        return None
    return Dotted(start=token.start, stop=token.stop, database=plain.database, table=table)


def _call_at(tokens: Sequence[Token], index: int) -> Call | None:
    depth = 0
    commas: list[int] = []
    for place in range(index + 1, len(tokens)):
        text = tokens[place].text
        if text in _OPENING:
            depth += 1
        elif text in _CLOSING:
            depth -= 1
            if depth == 0:
                bounds = [index + 1, *commas, place]
                arguments = tuple(
                    _argument(tokens, begin + 1, end) for begin, end in pairwise(bounds)
                )
                stop = tokens[place].stop
                return Call(start=tokens[index].start, stop=stop, arguments=arguments)
        elif text == "," and depth == 1:
            commas.append(place)
    return None


def _argument(tokens: Sequence[Token], begin: int, end: int) -> Argument:
    name = None
    if _text(tokens[:end], begin + 1) in _ASSIGNED and tokens[begin].is_name:
        name = _unquoted(tokens[begin].text).lower()
        begin += 2
    if name is not None and begin == end:
        raise InvalidValueError(
            "A call of fluss(...) has an argument without a value.",
            hint="write fluss('database.table', start := 'earliest')",
        )
    parameters = tuple(_parameters(tokens, begin, end))
    return Argument(name=name, sql=_spelled(tokens, begin, end), parameters=parameters)


def _spelled(tokens: Sequence[Token], begin: int, end: int) -> str:
    """Return the text of some tokens, with blanks in place of comments and white space."""
    parts: list[str] = []
    last = tokens[begin].start if begin < end else 0
    for token in tokens[begin:end]:
        parts.append(" " if token.start > last else "")
        parts.append(token.text)
        last = token.stop
    return "".join(parts)


def _parameters(tokens: Sequence[Token], begin: int, end: int | None) -> Iterator[Parameter]:
    marks = sum(each.text == "?" for each in tokens[:begin])
    stop = len(tokens) if end is None else end
    for index in range(begin, stop):
        token = tokens[index]
        if token.text == "?":
            yield Parameter(name=marks, start=token.start, stop=token.stop)
            marks += 1
        elif token.text == "$" and index + 1 < stop:
            name = tokens[index + 1]
            yield Parameter(name=name.text, start=token.start, stop=name.stop)


def _text(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].text if index < len(tokens) else ""


def _unquoted(text: str) -> str:
    if len(text) > 1 and text.startswith('"') and text.endswith('"'):
        return text[1:-1].replace('""', '"')
    return text


def quoted(name: str) -> str:
    """Return a name in double quotes, escaped."""
    return '"' + name.replace('"', '""') + '"'
