"""Schemas as text, in the words of SQL: `id BIGINT NOT NULL, name STRING, PRIMARY KEY (id)`.

Columns are separated by commas. Each is a name, a type (`model.types.type_text`), and optionally
`NOT NULL`, `PRIMARY KEY` and `COMMENT '...'`. Names that are more than one word stand between
backquotes. A comment from `--` to the end of its line is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fluss.errors import InvalidSchemaError
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.types.type_text import parse_type

TEXT_LENGTH_MAX: Final = 1_000_000

_EXAMPLE: Final = "write it as 'id BIGINT NOT NULL, name STRING, PRIMARY KEY (id)'"
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`")
_REMARK: Final = re.compile(r"--[^\n]*")
_KEY: Final = re.compile(
    r"PRIMARY\s+KEY\s*\(([^()]*)\)(?:\s+NOT\s+ENFORCED)?", re.IGNORECASE | re.DOTALL
)
_NAME: Final = re.compile(r"`((?:[^`]|``)*)`\s*|([^\s`'(),<>:]+)(?:\s+|$)")
_IS_KEY: Final = re.compile(r"\s+PRIMARY\s+KEY(?:\s+NOT\s+ENFORCED)?\s*$", re.IGNORECASE)
_COMMENT: Final = re.compile(r"\s+COMMENT\s+'((?:[^']|'')*)'\s*$", re.IGNORECASE | re.DOTALL)
_OPEN: Final = "<("
_CLOSE: Final = ">)"


def parse_schema(text: str) -> Schema:
    """Return the schema that a text describes.

    Raises:
        InvalidSchemaError: The text is not a list of columns, or they contradict each other.
    """
    columns, keys = _parsed(text)
    return Schema(columns, keys or None)


def parse_columns(text: str) -> tuple[Column, ...]:
    """Return the columns that a text describes, such as those to add to a table.

    Raises:
        InvalidSchemaError: The text is not a list of columns, or names a primary key.
    """
    columns, keys = _parsed(text)
    if keys:
        raise InvalidSchemaError(
            "The primary key of a table cannot be changed.", hint="leave PRIMARY KEY out"
        )
    return tuple(columns)


def _parsed(text: str) -> tuple[list[Column], list[str]]:
    if len(text) > TEXT_LENGTH_MAX:
        raise InvalidSchemaError(
            f"A schema of {len(text)} characters is too long, {TEXT_LENGTH_MAX} are allowed."
        )
    columns: list[Column] = []
    keys: list[str] = []
    for part in _parts(_unwrapped(_without_remarks(text).strip())):
        constraint = _KEY.fullmatch(part)
        found = None if constraint else _column(part)
        named = [] if found is None or not found.is_key else [found.column.name]
        if constraint is not None:
            named = [_bare(each) for each in constraint[1].split(",")]
        if named and keys:
            raise InvalidSchemaError(
                f"The schema names a primary key twice: ({', '.join(keys)}) and "
                f"({', '.join(named)}).",
                hint="write PRIMARY KEY (a, b) for a key of several columns",
            )
        keys += named
        if found is not None:
            columns.append(found.column)
    return columns, keys


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    column: Column
    is_key: bool


def _column(part: str) -> _Found:
    name = _NAME.match(part)
    if name is None:
        raise InvalidSchemaError(f"{_shown(part)} is not a column.", hint=_EXAMPLE)
    rest = part[name.end() :]
    comment = _COMMENT.search(f" {rest}")
    if comment is not None:
        rest = f" {rest}"[: comment.start()]
    key = _IS_KEY.search(rest)
    if key is not None:
        rest = rest[: key.start()]
    column = name[2] if name[1] is None else name[1].replace("``", "`")
    if not rest.strip():
        raise InvalidSchemaError(
            f"The column {column!r} has no type.", hint=_EXAMPLE, column=column
        )
    try:
        data_type = parse_type(rest.strip())
    except InvalidSchemaError as error:
        raise error.with_context(column=column, hint=error.hints or _EXAMPLE) from None
    note = None if comment is None else comment[1].replace("''", "'")
    return _Found(column=Column(column, data_type, note), is_key=key is not None)


def _parts(text: str) -> Iterator[str]:
    """Split at the commas that are not within brackets or quotes."""
    depth = start = place = 0
    while place < len(text):
        quoted = _QUOTED.match(text, place)
        if quoted is not None:
            place = quoted.end()
            continue
        depth += (text[place] in _OPEN) - (text[place] in _CLOSE)
        if text[place] == "," and depth == 0:
            yield _part(text[start:place])
            start = place + 1
        place += 1
    if text[start:].strip() or not start:  # a comma at the end is none too many
        yield _part(text[start:])


def _part(text: str) -> str:
    if not text.strip():
        raise InvalidSchemaError("The schema lacks a column between two commas.", hint=_EXAMPLE)
    return text.strip()


def _without_remarks(text: str) -> str:
    """Leave out comments, but not what looks like one within quotes."""
    kept: list[str] = []
    place = 0
    for quoted in _QUOTED.finditer(text):
        kept += [_REMARK.sub("", text[place : quoted.start()]), quoted[0]]
        place = quoted.end()
    return "".join([*kept, _REMARK.sub("", text[place:])])


def _unwrapped(text: str) -> str:
    """Leave out brackets around the whole."""
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _bare(name: str) -> str:
    text = name.strip()
    if len(text) > 1 and text.startswith("`") and text.endswith("`"):
        return text[1:-1].replace("``", "`")
    return text


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")  # noqa: PLR2004 - a line
