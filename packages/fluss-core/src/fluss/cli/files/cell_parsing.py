"""Parses texts as values of a type: cells of CSV, tokens of JSON, and keys that users type.

The type decides, never the text: `007` is a text in a STRING column and 7 in a BIGINT. A value that
the type cannot hold exactly is refused; only FLOAT and DOUBLE take the nearest number, and refuse a
number that would become infinite. The texts of `cell_texts` are parsed as the same values.

A whole column goes through one of Arrow's casts. Where that fails, the column is parsed value by
value, by rules that accept more (spaces around a number, years beyond 9999) and that find the value
that is wrong.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable
from decimal import Decimal, DecimalException
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fluss.model.types.arrow_to_type import from_arrow_type
from fluss.model.types.data_type import UNITS_PER_SECOND
from fluss.model.types.type_to_arrow import with_leaves
from fluss.model.values.time_zones import ZONE_WOULD_BE_LOST
from fluss.rows.formats.civil import days_from_civil, is_civil

_SECONDS_PER_DAY: Final = 86_400
_DATE: Final = re.compile(r"([+-]?[0-9]{4,9})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?")
_MOMENT: Final = re.compile(
    rf"{_DATE.pattern}(?:[Tt ](?:([0-9]{{2}})|{_TIME.pattern}))?"
    r"(?: ?([Zz]|UTC|[+-][0-9]{2}(?::?[0-9]{2})?))?"
)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_EXPONENT_MAX: Final = 1_000  # of a decimal; no number with a larger one fits any type


class CellError(Exception):
    """A text that is not a value of its type.

    Attributes:
        index: The row in the column.
        text: The text.
        why: What is wrong, after the text: `is not BIGINT`.
        hint: What to write instead.
        inside: Its path within a nested value: `[]`, `.name`.
    """

    def __init__(
        self, text: str, why: str, hint: str | None = None, *, index: int = 0, inside: str = ""
    ) -> None:
        super().__init__(text, why)
        self.text, self.why, self.hint = text, why, hint
        self.index, self.inside = index, inside

    def at(self, index: int, inside: str = "") -> CellError:
        """The same error, one level further out."""
        return CellError(
            self.text, self.why, self.hint, index=index, inside=f"{inside}{self.inside}"
        )


def text_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with texts for leaves, which `values_of` takes."""
    return with_leaves(kind, lambda _: pa.string())


def values_of(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Parse a column of texts.

    Args:
        column: Texts; in a nested column, its leaves. A leaf that has its type already is kept.
        kind: The type, as in `Table.schema`.

    Raises:
        CellError: A text is not a value of its type.
    """
    if pa.types.is_struct(kind):
        children = column.flatten()  # with NULL for the fields of a ROW that is NULL
        fields = [_field_values(*each) for each in zip(children, kind, strict=True)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=column.is_null())
    if pa.types.is_map(kind):
        keys = _element_values(column, column.keys, kind.key_type, ".key")
        items = _element_values(column, column.items, kind.item_type, ".value")
        return pa.MapArray.from_arrays(
            column.offsets, keys, items, type=kind, mask=column.is_null()
        )
    if pa.types.is_list(kind):
        elements = _element_values(column, column.values, kind.value_type, "[]")
        return pa.ListArray.from_arrays(column.offsets, elements, type=kind, mask=column.is_null())
    if not pa.types.is_string(column.type) or pa.types.is_string(kind):
        return column
    return _leaf_values(column, kind)


def value_of(text: str, kind: pa.DataType) -> Any:
    """Parse one text as a value of a type that is not nested.

    Raises:
        CellError: The text is not a value of the type.
    """
    return _reader_of(kind)(text)


def _field_values(child: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return values_of(child, field.type)
    except CellError as error:
        raise error.at(error.index, f".{field.name}") from None


def _element_values(
    column: pa.Array, elements: pa.Array, kind: pa.DataType, inside: str
) -> pa.Array:
    try:
        return values_of(elements, kind)
    except CellError as error:
        offsets = column.offsets.to_numpy()
        row = int(np.searchsorted(offsets, error.index, side="right")) - 1
        raise error.at(row, inside) from None


# --- a whole column -------------------------------------------------------------------------------


def _leaf_values(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return _cast(texts, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _one_by_one(texts, kind)


def _cast(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Parse a column with Arrow's cast, which fails or gives the same as `value_of`."""
    if pa.types.is_floating(kind):
        values = pc.cast(texts, kind)
        if pc.any(pc.is_inf(values)).as_py():  # `Infinity`, or a number that is too large
            raise pa.ArrowInvalid
        return values
    if pa.types.is_integer(kind):
        if pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
            raise pa.ArrowInvalid  # Arrow reads 0x10
        return pc.cast(texts, kind)
    if pa.types.is_time(kind):
        if not pc.all(pc.match_substring_regex(texts, "^[0-9]{2}:[0-9]{2}")).as_py():
            raise pa.ArrowInvalid
        moments = pc.binary_join_element_wise("1970-01-01T", texts, "")
        return pc.cast(pc.cast(moments, pa.timestamp(kind.unit)), kind)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return _cast_moments(texts, kind)
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        raise pa.ArrowInvalid  # the cast would take the bytes of the text
    return pc.cast(texts, kind)


def _cast_moments(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return pc.cast(texts, kind)
    except pa.ArrowInvalid:  # a text has no zone; if no text has one, all are in UTC
        return pc.cast(texts, pa.timestamp(kind.unit)).cast(kind)


def _one_by_one(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    read = _reader_of(kind)
    values: list[Any] = []
    try:
        for text in texts.to_pylist():
            values.append(None if text is None else read(text))  # noqa: PERF401 - its length is the row that failed
    except CellError as error:
        raise error.at(len(values)) from None
    return _array(values, kind)


def _array(values: Iterable[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_date(kind) or pa.types.is_time32(kind):
        return pa.array(values, pa.int32()).view(kind)
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int64()).view(kind)
    return pa.array(values, kind)


# --- one value ------------------------------------------------------------------------------------


def _reader_of(kind: pa.DataType) -> Callable[[str], Any]:
    """Return the parser of a type; it gives times as counts of their unit."""
    for matches, reader in _READERS:
        if matches(kind):
            return lambda text: reader(text, kind)
    return lambda text: text


def _read_boolean(text: str, kind: pa.DataType) -> bool:
    word = text.strip().lower()
    if word not in _BOOLEANS:
        _refuse(text, kind, hint="write true or false")
    return _BOOLEANS[word]


_BOOLEANS: Final = {"true": True, "false": False, "1": True, "0": False}


def _read_integer(text: str, kind: pa.DataType) -> int:
    word = text.strip()
    if _INTEGER.fullmatch(word) and len(word) <= _EXPONENT_MAX:
        value = int(word)
    else:
        number = _decimal(text, kind)
        value = int(number)
        if value != number:
            _refuse(text, kind)
    bits = kind.bit_width - 1
    if not -(2**bits) <= value < 2**bits:
        _refuse(text, kind, f"is not between {-(2**bits)} and {2**bits - 1}, as {_name(kind)} is")
    return value


def _read_float(text: str, kind: pa.DataType) -> float:
    word = text.strip()
    if _NOT_FINITE.fullmatch(word):
        return float(word)
    if not _NUMBER.fullmatch(word):
        _refuse(text, kind)
    value = float(pc.cast(pa.scalar(word), kind).as_py())
    if value in {float("inf"), -float("inf")}:
        _refuse(text, kind, f"is too large for {_name(kind)}")
    return value


def _read_decimal(text: str, kind: pa.DataType) -> Decimal:
    value = _decimal(text, kind)
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    shift = int(exponent) + kind.scale
    if shift < 0:
        unscaled, left = divmod(unscaled, 10**-shift)
        if left:
            _refuse(text, kind, f"has more than {kind.scale} digits after the point")
    else:
        unscaled *= 10**shift
    if unscaled >= 10**kind.precision:
        whole = kind.precision - kind.scale
        _refuse(text, kind, f"has more than {whole} digits before the point")
    return Decimal((sign, tuple(map(int, str(unscaled))), -kind.scale))


def _decimal(text: str, kind: pa.DataType) -> Decimal:
    word = text.strip()
    if not _NUMBER.fullmatch(word) or len(word) > _EXPONENT_MAX:
        _refuse(text, kind)
    try:
        value = Decimal(word)
    except DecimalException:
        _refuse(text, kind)
    if abs(value.adjusted()) > _EXPONENT_MAX and value:
        _refuse(text, kind)
    return value or Decimal(0)


def _read_bytes(text: str, kind: pa.DataType) -> bytes:
    try:
        value = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        _refuse(text, kind, f"is not base64, the text form of {_name(kind)}")
    if pa.types.is_fixed_size_binary(kind) and len(value) != kind.byte_width:
        _refuse(text, kind, f"has {len(value)} bytes, and {_name(kind)} has {kind.byte_width}")
    return value


def _read_date(text: str, kind: pa.DataType) -> int:
    found = _DATE.fullmatch(text.strip())
    if found is None:
        _refuse(text, kind, hint="write a date as 2026-01-31")
    days = _days(text, kind, *found.groups())
    if not -(2**31) <= days < 2**31:
        _refuse(text, kind, "is out of range")
    return days


def _read_time(text: str, kind: pa.DataType) -> int:
    found = _TIME.fullmatch(text.strip())
    if found is None:
        _refuse(text, kind, hint="write a time as 23:59:59")
    return _time_count(text, kind, *found.groups())


def _read_timestamp(text: str, kind: pa.DataType) -> int:
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        _refuse(text, kind, hint="write a time as 2026-01-31T23:59:59")
    year, month, day, only_hour, hour, minute, second, fraction, zone = found.groups()
    count = _days(text, kind, year, month, day) * _SECONDS_PER_DAY * UNITS_PER_SECOND[kind.unit]
    count += _time_count(text, kind, only_hour or hour or "00", minute, second, fraction)
    count -= _zone_count(text, kind, zone)
    if not -(2**63) <= count < 2**63:
        _refuse(text, kind, "is out of range")
    return count


def _days(text: str, kind: pa.DataType, year: str, month: str, day: str) -> int:
    date = (int(year), int(month), int(day))
    if not is_civil(*date):
        _refuse(text, kind, "is not a day of the calendar")
    return days_from_civil(*date)


def _time_count(
    text: str,
    kind: pa.DataType,
    hour: str,
    minute: str | None,
    second: str | None,
    fraction: str | None,
) -> int:
    hours, minutes, seconds = (int(each or 0) for each in (hour, minute, second))
    if hours > 23 or minutes > 59 or seconds > 59:  # noqa: PLR2004 - the clock's
        _refuse(text, kind, "is not a time of day")
    per_second = UNITS_PER_SECOND[kind.unit]
    digits = len(str(per_second)) - 1
    after = (fraction or "").rstrip("0")
    if len(after) > digits:
        _refuse(text, kind, f"has more than {digits} digits after the second, for {_name(kind)}")
    return (hours * 3600 + minutes * 60 + seconds) * per_second + int(after.ljust(digits, "0") or 0)


def _zone_count(text: str, kind: pa.DataType, zone: str | None) -> int:
    """Return the offset of a zone from UTC, in the unit of the type.

    The rule is that of `model.values.time_zones`: a timestamp without a zone is in UTC.
    """
    if zone is not None and kind.tz is None:
        _refuse(
            text,
            kind,
            f"has a zone, and the column is {_name(kind)}: {ZONE_WOULD_BE_LOST}",
            hint="write it without the zone, or keep it in a column of TIMESTAMP_LTZ",
        )
    if zone is None or zone in {"Z", "z", "UTC"}:
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[3:].removeprefix(":") or 0)
    return (-1 if zone[0] == "-" else 1) * minutes * 60 * UNITS_PER_SECOND[kind.unit]


_READERS: Final[tuple[tuple[Callable[[Any], bool], Callable[[str, Any], Any]], ...]] = (
    (pa.types.is_boolean, _read_boolean),
    (pa.types.is_integer, _read_integer),
    (pa.types.is_floating, _read_float),
    (pa.types.is_decimal, _read_decimal),
    (pa.types.is_binary, _read_bytes),
    (pa.types.is_fixed_size_binary, _read_bytes),
    (pa.types.is_date, _read_date),
    (pa.types.is_time, _read_time),
    (pa.types.is_timestamp, _read_timestamp),
)


def _refuse(
    text: str, kind: pa.DataType, why: str | None = None, *, hint: str | None = None
) -> NoReturn:
    raise CellError(text, why or f"is not {_name(kind)}", hint)


def _name(kind: pa.DataType) -> str:
    """Fluss's name of a type."""
    return str(from_arrow_type(kind))
