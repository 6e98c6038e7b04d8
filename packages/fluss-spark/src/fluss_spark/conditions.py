"""Parses conditions of the option `filter`: `id >= 90 AND kind IN ('a', 'b')`.

A condition compares columns with constants and joins comparisons by AND, OR and NOT. It is a small
part of SQL with the meaning of SQL; everything else belongs into `.where(...)`, which Spark
evaluates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from fluss.errors import InvalidSchemaError, InvalidValueError
from fluss.model.did_you_mean import did_you_mean
from fluss.scan import ColumnRef, Predicate, col
from fluss_spark.column_names import match_names
from fluss_spark.float_conditions import SIGNS, float_condition, float_in
from fluss_spark.time_conditions import has_nanoseconds, time_condition, time_in, zone_of

CHARS_MAX: Final = 64 * 1024
DEPTH_MAX: Final = 50
_DIGITS_MAX: Final = 40
_ELSE: Final = "numbers, texts, days and times can be compared; use .where(...) for the rest"
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')"
    r"|(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<quoted>`(?:[^`]|``)+`)|(?P<word>[^\W\d]\w*)|(?P<sign><=|>=|<>|!=|==|[=<>(),]))"
)
_DAY: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
_IS_DAY, _IS_TIME, _IS_MOMENT = (
    re.compile(each)
    for each in (_DAY, _TIME, f"{_DAY}(?:[T ]{_TIME}(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})?)?")
)
# Spark takes a number with an exponent for a DOUBLE. Above this one, a DOUBLE equals several whole
# numbers.
_EXACT_MAX: Final = 2**53
# Which columns can be compared with `DATE '...'` and its like.
_WORDS: Final[Mapping[str, tuple[Callable[[pa.DataType], bool], ...]]] = {
    "DATE": (pa.types.is_date, pa.types.is_timestamp),
    "TIMESTAMP": (pa.types.is_timestamp,),
    "TIME": (pa.types.is_time,),
}
_SAME_SIGN: Final = {"==": "=", "!=": "<>"}
# How constants are written, by the type of their column.
_WRITTEN: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (
        pa.types.is_timestamp,
        (
            "a time is '2026-01-31T12:00:00.123456', no finer; where the column has a zone, with "
            "'Z', or in the zone that the option timeZone names"
        ),
    ),
    (pa.types.is_date, "a day is '2026-01-31'"),
    (pa.types.is_time, "a time of day is '12:00:00.123456', and no finer"),
    (
        pa.types.is_string,
        "a text stands in quotes, 'a', without \\; Spark reads that in .where(...)",
    ),
    (
        pa.types.is_integer,
        "a whole number is written without quotes, without a fraction and without an exponent",
    ),
    (pa.types.is_decimal, "a number is written without quotes and without an exponent"),
    (pa.types.is_boolean, "true or false"),
)


def parse_condition(text: str, schema: pa.Schema, *, zone: str | None = None) -> Predicate:
    """Parse a condition.

    Args:
        text: The condition.
        schema: The columns that it may name, metadata columns among them.
        zone: The time zone of Spark's session; times without a zone are in it.

    Raises:
        InvalidValueError: The text is no condition; the message has the position.
        InvalidSchemaError: It names an unknown column; the hint names the nearest.
    """
    if len(text) > CHARS_MAX:
        raise InvalidValueError(f"filter has {len(text)} characters; the most is {CHARS_MAX}.")
    return _Parser(text, schema, zone).whole()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind in {"word", "sign"} else ""


class _Parser:
    """A recursive-descent parser over one text."""

    def __init__(self, text: str, schema: pa.Schema, zone: str | None) -> None:
        self._text, self._schema, self._zone = text, schema, zone
        self._tokens = list(self._split())
        self._at = 0
        self._depth = 0

    def whole(self) -> Predicate:
        found = self._either()
        if self._next.kind != "end":
            raise self._missing("AND, OR or the end")
        return found

    # --- AND, OR, NOT -----------------------------------------------------------------------------

    def _either(self) -> Predicate:
        found = self._both()
        while self._take("OR"):
            found = found | self._both()
        return found

    def _both(self) -> Predicate:
        found = self._negated()
        while self._take("AND"):
            found = found & self._negated()
        return found

    def _negated(self) -> Predicate:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise InvalidValueError(f"filter is nested more than {DEPTH_MAX} deep.")
        if self._take("NOT"):
            found = ~self._negated()
        elif self._take("("):
            found = self._either()
            self._expect(")")
        else:
            found = self._compared()
        self._depth -= 1
        return found

    # --- comparisons ------------------------------------------------------------------------------

    def _compared(self) -> Predicate:
        name, kind = self._column()
        column = col(name)
        word = self._next.word
        if (sign := _SAME_SIGN.get(word, word)) in SIGNS:
            self._at += 1
            return _test(column, sign, self._value(kind), kind)
        if self._take("IS"):
            is_not = self._take("NOT")
            self._expect("NULL")
            return column.is_not_null() if is_not else column.is_null()
        is_not = self._take("NOT")
        found = self._listed(column, kind)
        return ~found if is_not else found

    def _listed(self, column: ColumnRef, kind: pa.DataType) -> Predicate:
        if self._take("IN"):
            self._expect("(")
            values = [self._value(kind)]
            while self._take(","):
                values.append(self._value(kind))
            self._expect(")")
            if pa.types.is_floating(kind):
                return float_in(column, values, kind)
            if has_nanoseconds(kind):
                return time_in(column, values)
            return column.is_in(values)
        if self._take("BETWEEN"):
            low = self._value(kind)
            self._expect("AND")
            high = self._value(kind)
            return _test(column, ">=", low, kind) & _test(column, "<=", high, kind)
        if self._take("LIKE"):
            return self._like(column, self._value(kind))
        raise self._missing("a comparison, IN, BETWEEN, LIKE or IS NULL")

    def _like(self, column: ColumnRef, pattern: Any) -> Predicate:
        is_text = isinstance(pattern, str)
        if not is_text or "_" in pattern or "\\" in pattern or "%" in pattern[1:-1]:
            raise InvalidValueError(
                f"filter has LIKE {pattern!r}; % may stand at its start and its end only, and _ and "
                "\\ nowhere.",
                hint=".where(...) on the frame",
                option="filter",
            )
        inner = pattern.removeprefix("%").removesuffix("%")
        is_start, is_end = not pattern.startswith("%"), not pattern.endswith("%")
        if is_start and is_end:
            return column.equal(pattern)
        if is_start:
            return column.starts_with(inner)
        return column.ends_with(inner) if is_end else column.contains(inner)

    def _column(self) -> tuple[str, pa.DataType]:
        token = self._next
        if token.kind not in {"word", "quoted"}:
            raise self._missing("a column")
        self._at += 1
        is_quoted = token.kind == "quoted"
        written = token.text[1:-1].replace("``", "`") if is_quoted else token.text
        names = self._schema.names
        [name] = match_names([written], names)
        if name not in names:
            if self._next.word == "(":
                raise InvalidValueError(
                    f"filter calls {name!r}; it supports columns and constants only.",
                    hint=".where(...) on the frame",
                    option="filter",
                )
            raise InvalidSchemaError(
                f"filter names the column {name!r}, which does not exist.",
                hint=did_you_mean(name, names) or f"the columns are {', '.join(names[:20])}",
                column=name,
            )
        return name, self._schema.field(name).type

    def _value(self, kind: pa.DataType) -> Any:
        word, token = "", self._next
        if token.word in _WORDS:
            self._at += 1
            word, token = token.word, self._next
        kinds = {"text"} if word else {"text", "number"}
        if token.kind not in kinds and (word or token.word not in {"TRUE", "FALSE"}):
            raise self._missing("a constant")
        self._at += 1
        value = token.text[1:-1].replace("''", "'") if token.kind == "text" else token.text
        try:
            _check_word(word, kind)
            return _constant(value, token.kind, kind, self._zone)
        except (ValueError, ArithmeticError):
            raise InvalidValueError(
                f"filter compares a column of type {kind} with "
                f"{f'{word} {token.text[:80]}'.lstrip()}, at character {token.at}.",
                hint=next((how for is_one, how in _WRITTEN if is_one(kind)), _ELSE),
                option="filter",
            ) from None

    # --- tokens -----------------------------------------------------------------------------------

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, word: str) -> bool:
        if self._next.word != word:
            return False
        self._at += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._missing(word)

    def _missing(self, expected: str) -> InvalidValueError:
        token = self._next
        return InvalidValueError(
            f"filter: {expected} is missing at character {token.at}, "
            + (f"where {token.text[:40]!r} stands." if token.text else "where it ends."),
            hint="write id >= 90 AND kind IN ('a', 'b'); use .where(...) for more than that",
            option="filter",
        )

    def _split(self) -> list[_Token]:
        tokens, at = [], 0
        end = len(self._text.rstrip())
        while at < end:
            found = _TOKEN.match(self._text, at)
            if found is None or found.lastgroup is None:
                raise InvalidValueError(
                    f"filter cannot be parsed from character {at} on: {self._text[at : at + 40]!r}.",
                    option="filter",
                )
            kind = found.lastgroup
            tokens.append(_Token(kind=kind, text=found.group(kind), at=found.start(kind)))
            at = found.end()
        return [*tokens, _Token(kind="end", text="", at=end)]


def _test(column: ColumnRef, sign: str, value: Any, kind: pa.DataType) -> Predicate:
    if pa.types.is_floating(kind):
        return float_condition(column, sign, value, kind)
    if has_nanoseconds(kind):
        return time_condition(column, sign, value)
    return SIGNS[sign](column, value)


def _check_word(word: str, kind: pa.DataType) -> None:
    """Raise ValueError if the word before a constant is of another type than its column."""
    if word and not any(is_one(kind) for is_one in _WORDS[word]):
        raise ValueError(word)


def _constant(text: str, written_as: str, kind: pa.DataType, zone: str | None) -> Any:
    """Return a constant as a value of its column's type, or raise ValueError."""
    types = pa.types
    if types.is_boolean(kind):
        return _boolean(text)
    if types.is_integer(kind) and written_as == "number":
        return _integer(text)
    if types.is_decimal(kind) and written_as == "number" and not _has_exponent(text):
        return Decimal(text)
    if types.is_floating(kind) and written_as == "number":
        return float(text)
    if written_as == "text":
        if types.is_string(kind) and "\\" not in text:
            return text
        if types.is_date(kind) and _IS_DAY.fullmatch(text):
            return date.fromisoformat(text)
        if types.is_time(kind) and _IS_TIME.fullmatch(text):
            return time.fromisoformat(text)
        if types.is_timestamp(kind) and _IS_MOMENT.fullmatch(text):
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None and kind.tz is not None and zone is not None:
                moment = moment.replace(tzinfo=zone_of(zone))
            if (moment.tzinfo is None) is (kind.tz is None):
                return moment
    raise ValueError(text)


def _integer(text: str) -> int:
    number = Decimal(text)
    if number != number.to_integral_value() or number.adjusted() > _DIGITS_MAX:
        raise ValueError(text)
    if _has_exponent(text) and abs(number) >= _EXACT_MAX:
        raise ValueError(text)
    return int(number)


def _has_exponent(text: str) -> bool:
    return "e" in text.lower()


def _boolean(text: str) -> bool:
    known = {"TRUE": True, "FALSE": False}
    if text.upper() not in known:
        raise ValueError(text)
    return known[text.upper()]
