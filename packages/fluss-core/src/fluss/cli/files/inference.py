"""Infers the types of a table that `fluss import --create` makes from CSV or JSON lines.

A type is chosen only where every value of the sample keeps its meaning in it and is formatted as
the same text or number again:

* BOOLEAN where all are `true` or `false`;
* BIGINT where all are integers without leading zeros that fit 64 bits; DECIMAL for larger ones;
* DOUBLE where no number has more digits than a DOUBLE keeps; DECIMAL otherwise;
* DATE, TIME, TIMESTAMP and TIMESTAMP_LTZ where all are ISO 8601 of one kind;
* STRING for everything else: `007`, mixed columns, empty columns.

A quoted JSON value is never a number or a boolean; arrays and objects are ARRAY and ROW.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from fluss.cli.files.cell_parsing import CellError, value_of
from fluss.cli.files.json_file import Number

_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_TIME: Final = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,3})?")
_MOMENT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.([0-9]{1,9}))?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SIGNIFICANT_MAX: Final = 15  # digits that every DOUBLE keeps
_DECIMAL_MAX: Final = 38
_BIGINT: Final = 2**63


def type_of_texts(texts: Iterable[str | None]) -> pa.DataType:
    """Infer the type of a column of CSV."""
    found = [each for each in texts if each is not None]
    if not found:
        return pa.string()
    if all(each in {"true", "false"} for each in found):
        return pa.bool_()
    return _type_of_numbers(found) or _type_of_times(found) or pa.string()


def type_of_json(values: Iterable[Any]) -> pa.DataType:
    """Infer the type of parsed JSON values; numbers among them are `Number`."""
    found = [each for each in values if each is not None]
    if not found:
        return pa.string()
    if all(isinstance(each, bool) for each in found):
        return pa.bool_()
    if all(isinstance(each, Number) for each in found):
        return _type_of_numbers(found) or pa.string()
    if all(isinstance(each, list) for each in found):
        return pa.list_(type_of_json(element for each in found for element in each))
    if all(isinstance(each, dict) for each in found):
        return pa.struct(list(fields_of_json(found)))
    if all(isinstance(each, str) and not isinstance(each, Number) for each in found):
        return _type_of_times(found) or pa.string()
    return pa.string()


def fields_of_json(objects: Iterable[dict[str, Any]]) -> Iterator[tuple[str, pa.DataType]]:
    """Infer names and types of the fields of objects, in the order of their first occurrence."""
    columns: dict[str, list[Any]] = {}
    for fields in objects:
        for name, value in fields.items():
            columns.setdefault(name, []).append(value)
    for name, values in columns.items():
        yield name, type_of_json(values)


def _type_of_numbers(texts: list[str]) -> pa.DataType | None:
    if all(map(_INTEGER.fullmatch, texts)):
        values = [int(each) for each in texts if len(each) <= _DECIMAL_MAX + 1]
        if len(values) == len(texts) and all(-_BIGINT <= each < _BIGINT for each in values):
            return pa.int64()
        digits = max(len(each.lstrip("-")) for each in texts)
        return pa.decimal128(_DECIMAL_MAX, 0) if digits <= _DECIMAL_MAX else None
    found = [_NUMBER.fullmatch(each) for each in texts]
    if not all(found):
        return None
    if all(map(_keeps_digits, texts)):
        return pa.float64()
    return _decimal_of(texts)


def _keeps_digits(text: str) -> bool:
    """Whether a DOUBLE of this number is formatted with the same digits."""
    number = Decimal(text)
    if not number:
        return True
    value = float(text)
    if value in {0.0, float("inf"), -float("inf")}:
        return False
    if len(number.normalize().as_tuple().digits) <= _SIGNIFICANT_MAX:
        return True
    return Decimal(repr(value)) == number


def _decimal_of(texts: list[str]) -> pa.DataType | None:
    whole = scale = 0
    for text in texts:
        if "e" in text or "E" in text:
            return None
        before, _, after = text.lstrip("-").partition(".")
        whole, scale = max(whole, len(before)), max(scale, len(after))
    fits = whole + scale <= _DECIMAL_MAX
    return pa.decimal128(_DECIMAL_MAX, scale) if fits else None


def _type_of_times(texts: list[str]) -> pa.DataType | None:
    kind: pa.DataType | None = None
    if all(map(_DATE.fullmatch, texts)):
        kind = pa.date32()
    elif all(map(_TIME.fullmatch, texts)):
        kind = pa.time32("ms" if any("." in each for each in texts) else "s")
    else:
        kind = _type_of_moments(texts)
    return kind if kind is not None and _all_are(texts, kind) else None


def _type_of_moments(texts: list[str]) -> pa.DataType | None:
    found = [_MOMENT.fullmatch(each) for each in texts]
    parts = [(len(each[1] or ""), each[2] is not None) for each in found if each is not None]
    if len(parts) < len(texts) or len({zoned for _, zoned in parts}) > 1:
        return None
    digits = max(count for count, _ in parts)
    unit = "us" if digits <= 6 else "ns"  # noqa: PLR2004 - the digits of a microsecond
    return pa.timestamp(unit, "UTC" if parts[0][1] else None)


def _all_are(texts: list[str], kind: pa.DataType) -> bool:
    try:
        for text in texts:
            value_of(text, kind)
    except CellError:
        return False
    return True
