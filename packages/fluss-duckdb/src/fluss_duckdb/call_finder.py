"""Where a text of SQL speaks of Fluss: `fluss('db.events', tail := 9)`, and `fluss.db.events`.

DuckDB's own tokens tell code from comments and strings. Nothing is parsed beyond that: what a call
stands for is decided in `catalog`, and a call that is never closed is left for DuckDB to refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import duckdb

from fluss.errors import InvalidValueError

CALL = "fluss"
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_ASSIGNED = frozenset({":=", "=>", "="})
_DEFINING = frozenset({"macro", "function"})
# A statement whose text DuckDB keeps; what it speaks of must be there as long as it is.
_KEEPING = re.compile(r"\b(create|prepare)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter inside a call: its name, or its number among the question marks from 0 on."""

    name: str | int
    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of a call, as SQL; `name` is None for what is given by position."""

    name: str | None
    sql: str
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of `fluss(...)`, and where in the text it stands, in bytes."""

    start: int
    stop: int
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dotted:
    """A name of three parts that begins with the catalog's; a column's, perhaps."""

    start: int
    stop: int
    database: str
    table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    text: str
    kind: object
    start: int
    stop: int

    @property
    def is_name(self) -> bool:
        return self.kind in {duckdb.token_type.identifier, duckdb.token_type.keyword}


def speaks_of(sql: str, catalog: str) -> bool:
    """Whether a text might: most do not, and are spared the rest."""
    folded = sql.lower()
    return CALL in folded or catalog.lower() in folded


def keeps_text(sql: str) -> bool:
    """Whether views or prepared statements may come of a text."""
    return _KEEPING.search(sql) is not None


def find_references(sql: str, catalog: str) -> list[Call | Dotted]:
    """Everything in a text that speaks of Fluss, in the order of the text.

    Args:
        sql: One statement or several.
        catalog: The name under which the tables are attached.

    Raises:
        InvalidValueError: A call is written in a way that no call can be.
    """
    tokens = list(_tokens(sql))
    found: list[Call | Dotted] = []
    index = 0
    while index < len(tokens):
        reference = _reference_at(tokens, index, catalog)
        if reference is None:
            index += 1
            continue
        found.append(reference)
        while index < len(tokens) and tokens[index].start < reference.stop:
            index += 1
    return found


def substituted(sql: str, pieces: Sequence[tuple[int, int, str]]) -> str:
    """The text with spans of its bytes replaced."""
    data = sql.encode()
    for start, stop, text in sorted(pieces, reverse=True):
        data = data[:start] + text.encode() + data[stop:]
    return data.decode()


def parameters_of(sql: str) -> list[Parameter]:
    """All parameters of a text, in its order."""
    return list(_parameters(list(_tokens(sql)), 0, None))


def _tokens(sql: str) -> Iterator[_Token]:
    data = sql.encode()
    places = duckdb.tokenize(sql)
    ends = [*(place for place, _ in places[1:]), len(data)]
    for (start, kind), end in zip(places, ends, strict=False):
        if kind == duckdb.token_type.comment:
            continue
        text = data[start:end].decode()
        bare = text.rstrip()
        yield _Token(text=bare, kind=kind, start=start, stop=start + len(bare.encode()))


def _reference_at(tokens: Sequence[_Token], index: int, catalog: str) -> Call | Dotted | None:
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


def _call_at(tokens: Sequence[_Token], index: int) -> Call | None:
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


def _argument(tokens: Sequence[_Token], begin: int, end: int) -> Argument:
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


def _spelled(tokens: Sequence[_Token], begin: int, end: int) -> str:
    """The text of some tokens, with blanks where something stood between them, also a comment."""
    parts: list[str] = []
    last = tokens[begin].start if begin < end else 0
    for each in tokens[begin:end]:
        parts.append(" " if each.start > last else "")
        parts.append(each.text)
        last = each.stop
    return "".join(parts)


def _parameters(tokens: Sequence[_Token], begin: int, end: int | None) -> Iterator[Parameter]:
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


def _text(tokens: Sequence[_Token], index: int) -> str:
    return tokens[index].text if index < len(tokens) else ""


def _unquoted(text: str) -> str:
    if len(text) > 1 and text.startswith('"') and text.endswith('"'):
        return text[1:-1].replace('""', '"')
    return text


def quoted(name: str) -> str:
    """A name as SQL writes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
