"""Data types as text: `int`, `decimal(10,2) NOT NULL`, `ROW<a INT>`.

Two spellings exist. `str(data_type)` is SQL's, as Fluss's Java classes print it; `type_name` is
the lower-case one that `Schema.get_column_types()` has always shown. `parse_type` takes both, but
neither quotes the names of fields. `quoted_text` does, so that any name is read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from fluss.errors import InvalidSchemaError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.types import data_type as t

TEXT_LENGTH_MAX = 100_000
TEXT_DEPTH_MAX = 64

_SCALARS: dict[str, type[t.DataType]] = {
    **{each.sql_name: each for each in t.DATA_TYPES if not issubclass(each, t.NestedType)},
    "INTEGER": t.IntType,
}
_NESTED = ("ARRAY", "MAP", "ROW")

_WORD = re.compile(r"[^\s<>(),:`]+")
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|([^\s<>(),:`]+)|([<>(),:]))")


def type_name(data_type: t.DataType) -> str:
    """Return the lower-case name: `int`, `timestamp(3)`, `map<string NOT NULL,int> NOT NULL`."""
    match data_type:
        case t.TimeType(precision=0) | t.TimestampFamily(precision=6):  # the default precision
            text = data_type.sql_name.lower()
        case t.DecimalType():
            text = f"decimal({data_type.precision},{data_type.scale})"
        case t.ArrayType():
            text = f"array<{type_name(data_type.element)}>"
        case t.MapType():
            text = f"map<{type_name(data_type.key)},{type_name(data_type.value)}>"
        case t.RowType():
            fields = (f"{each.name}: {type_name(each.data_type)}" for each in data_type.fields)
            text = f"row<{', '.join(fields)}>"
        case _:
            text = str(data_type.as_nullable()).lower()
    return text if data_type.nullable else f"{text} NOT NULL"


def quoted_text(data_type: t.DataType) -> str:
    """Return SQL's text with quoted names of fields; `parse_type` reads the same type from it."""
    match data_type:
        case t.ArrayType():
            text = f"ARRAY<{quoted_text(data_type.element)}>"
        case t.MapType():
            text = f"MAP<{quoted_text(data_type.key)}, {quoted_text(data_type.value)}>"
        case t.RowType():
            fields = (
                f"{_quoted(each.name)} {quoted_text(each.data_type)}" for each in data_type.fields
            )
            text = f"ROW<{', '.join(fields)}>"
        case _:
            return str(data_type)
    return text if data_type.nullable else f"{text} NOT NULL"


def _quoted(name: str) -> str:
    return name if _WORD.fullmatch(name) else f"`{name.replace('`', '``')}`"


def parse_type(text: str) -> t.DataType:
    """Return the type that this text names, in either spelling and in any case.

    Field names that are more than one word stand between backquotes, doubled where they are
    part of the name.

    Raises:
        InvalidSchemaError: When the text names no type.
    """
    if len(text) > TEXT_LENGTH_MAX:
        raise InvalidSchemaError(
            f"A data type's text has {len(text)} characters, {TEXT_LENGTH_MAX} are allowed."
        )
    words = _Words(text, list(_tokens(text)))
    parsed = _read_type(words, depth=0)
    if words.current:
        words.refuse(f"{words.current!r} is left over")
    return parsed


@dataclass(slots=True)
class _Words:
    """The words of a type's text, and how far they have been read."""

    text: str
    words: list[tuple[str, int]]
    index: int = 0

    @property
    def current(self) -> str:
        return self.words[self.index][0] if self.index < len(self.words) else ""

    def take(self) -> str:
        word = self.current
        self.index += 1
        return word

    def accept(self, word: str) -> bool:
        """Read the next word if it is this one; return whether it was."""
        if self.current.upper() != word:
            return False
        self.index += 1
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self.refuse(f"{word!r} expected, {self.current or 'the end'!r} found")

    def refuse(self, why: str, hint: str | None = None) -> NoReturn:
        at = self.words[self.index][1] if self.index < len(self.words) else len(self.text)
        shown = self.text if len(self.text) <= 100 else f"{self.text[:100]}…"  # noqa: PLR2004 - a line
        raise InvalidSchemaError(
            f"{shown!r} is no data type: {why} at position {at}.", hint=hint, text=self.text, at=at
        )


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    position = 0
    end = len(text.rstrip())
    while position < end:
        found = _TOKEN.match(text, position)
        if found is None:  # only a backquote that is never closed
            raise InvalidSchemaError(
                f"{text[:100]!r} is no data type: the backquote at position {position} is not closed."
            )
        yield found.group().strip(), found.end() - len(found.group().lstrip())
        position = found.end()


def _read_type(words: _Words, *, depth: int) -> t.DataType:
    if depth > TEXT_DEPTH_MAX:
        words.refuse(f"types are nested more than {TEXT_DEPTH_MAX} levels deep")
    name = words.current.upper()
    if name in _NESTED:
        words.take()
        words.expect("<")
        parsed = _read_nested(name, words, depth + 1)
        words.expect(">")
    elif name in _SCALARS:
        words.take()
        parsed = _read_scalar(name, words)
    else:
        known = [*_SCALARS, *_NESTED]
        words.refuse(f"{words.current!r} is not a type", did_you_mean(name, known))
    if words.accept("NOT"):
        words.expect("NULL")
        return parsed.not_null()
    words.accept("NULL")
    return parsed


def _read_nested(name: str, words: _Words, depth: int) -> t.DataType:
    if name == "ARRAY":
        return t.ArrayType(_read_type(words, depth=depth))
    if name == "MAP":
        key = _read_type(words, depth=depth)
        words.expect(",")
        return t.MapType(key, _read_type(words, depth=depth))
    fields: list[t.DataField] = []
    while words.current != ">":
        if fields:
            words.expect(",")
        field_name = words.take()
        if not field_name or field_name in "<>(),:":
            words.index -= 1
            words.refuse("a field name expected")
        if field_name.startswith("`"):
            field_name = field_name[1:-1].replace("``", "`")
        words.accept(":")
        fields.append(t.DataField(field_name, _read_type(words, depth=depth)))
    return t.RowType(tuple(fields))


def _read_scalar(name: str, words: _Words) -> t.DataType:
    made = _SCALARS[name]
    numbers_max = len(made.parameters)
    numbers: list[int] = []
    if words.accept("("):
        while not numbers or words.accept(","):
            digits = words.current
            if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):  # noqa: PLR2004 - 2^31 has ten
                words.refuse(f"a number expected, {digits or 'the end'!r} found")
            numbers.append(int(words.take()))
        words.expect(")")
    if len(numbers) > numbers_max:
        words.refuse(f"{name} takes {numbers_max or 'no'} numbers")
    return made(*numbers)
