"""Refuses columns of Python objects that Arrow would read as other values.

Arrow reads a column by the type of its first values. It keeps the day of a datetime among dates,
reads numbers among times as microseconds, takes times without a zone as UTC among those with one,
and encodes texts among bytes; it crashes on integers of numpy among its datetimes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from types import NoneType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fluss.errors import InvalidValueError
from fluss.hints import Hint, HintKey

_NUMBER: Final = "number"
_DATETIME: Final = "datetime"
# The first one that fits is the kind of a type: a bool is an int, and a datetime is a date.
_KINDS: Final = (
    ((bool, np.bool_), "bool"),
    ((np.datetime64,), "datetime64"),
    ((timedelta, np.timedelta64), "timedelta"),
    ((int, float, Decimal, np.number), _NUMBER),
    ((datetime,), _DATETIME),
    ((date,), "date"),
    ((time,), "time"),
    ((str,), "str"),
    ((bytes, bytearray, memoryview), "bytes"),
    ((list, tuple, np.ndarray), "list"),
    ((Mapping,), "dict"),
)
_NULLS_OF_PANDAS: Final = frozenset({"NaTType", "NAType"})
_DEPTH_MAX: Final = 200


def holds_objects(dtype: Any) -> bool:
    """Whether values of this dtype are objects of Python."""
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def may_be_mixed(values: Any) -> bool:
    """Whether values have to be checked before Arrow reads them.

    A column that begins with a text does not: Arrow makes a column of texts of it only if all are.
    """
    return len(values) > 0 and not isinstance(values[0], str)


def check_one_kind(name: str, values: Any) -> None:
    """Refuse values of several kinds in one column; numbers are one kind.

    Raises:
        InvalidValueError: There are several, or times with and without a zone. `row` is the first
            row of the second kind.
    """
    types = set(map(type, values))
    nulls = {each for each in types if _is_null(each)}
    kinds = {_kind_of(each) for each in types - nulls}
    if len(kinds) < 2 and (kinds != {_DATETIME} or _has_one_zone(values, nulls)):  # noqa: PLR2004 - one kind
        return
    places: Iterable[tuple[int, Any]] = enumerate(values)
    if nulls or _NUMBER in kinds:
        places = [each for each in places if not (type(each[1]) in nulls or _is_nan(each[1]))]
    if len(kinds) > 1:
        _refuse_mixed(name, places)
    if _DATETIME in kinds:
        _check_zones(name, places)


def check_nested(name: str, values: Any) -> None:
    """Refuse values on which Arrow would crash, in lists and dicts too.

    These are values that are nested deeply or contain themselves, and datetimes of numpy among its
    other scalars.

    Raises:
        InvalidValueError: There are some.
    """
    types = set(map(type, values))
    found = set(types)
    level: Any = values
    for _ in range(_DEPTH_MAX):
        if not any(map(_may_nest, types)):
            break
        # Each object once: what contains itself may contain itself twice.
        nested = {id(each): each for each in level if _may_nest(type(each)) and _is_nested(each)}
        level = [*chain.from_iterable(map(_members, nested.values()))]
        types = set(map(type, level))
        found |= types
    else:
        raise InvalidValueError(
            f"The column {name!r} holds values that are nested in more than {_DEPTH_MAX} others.",
            hint="Write them as text, for example of JSON.",
            column=name,
        )
    if np.datetime64 in found and any(map(_is_other_scalar, found)):
        _check_scalars(name, list(enumerate(values)))


def _may_nest(given: type) -> bool:
    return issubclass(given, list | tuple | dict | np.ndarray)


def _is_nested(value: Any) -> bool:
    return not isinstance(value, np.ndarray) or holds_objects(value.dtype)


def _members(nested: Any) -> Iterable[Any]:
    if isinstance(nested, np.ndarray):
        return list(nested.flat)
    return nested.values() if isinstance(nested, dict) else nested


def _is_other_scalar(given: type) -> bool:
    return issubclass(given, np.generic) and given is not np.datetime64


def _check_scalars(name: str, places: list[tuple[int, Any]]) -> None:
    """Refuse datetimes of numpy among its other scalars in one place of the rows.

    Args:
        name: The column.
        places: The values of the place, with their rows.
    """
    types = {type(value) for _, value in places}
    others = {each for each in types if _is_other_scalar(each)}
    if np.datetime64 in types and others:
        first = type(next(each for _, each in places if isinstance(each, np.generic)))
        row, value = next(
            each
            for each in places
            if isinstance(each[1], np.generic) and type(each[1]) is not first
        )
        names = " and ".join(sorted({first.__name__, type(value).__name__}))
        raise _several_kinds(name, names).with_context(row=row)
    lists: list[tuple[int, Any]] = []
    fields: dict[Any, list[tuple[int, Any]]] = {}
    for row, value in places:
        if isinstance(value, dict):
            for field, within in value.items():
                fields.setdefault(field, []).append((row, within))
        elif _may_nest(type(value)) and _is_nested(value):
            lists += [(row, within) for within in _members(value)]
    for group in (lists, *fields.values()):
        if group:
            _check_scalars(name, group)


def check_read(name: str, values: Any, kind: pa.DataType) -> None:
    """Refuse values that were mixed, by the type that Arrow has found.

    Args:
        name: The column.
        values: Its values; those that are not nested were checked unless they `may_be_mixed`.
        kind: What Arrow has made of them.

    Raises:
        InvalidValueError: There are several kinds of values.
    """
    if not pa.types.is_nested(kind):
        if not may_be_mixed(values) and not _is_text(kind):
            check_one_kind(name, values)
        return
    for number, within in enumerate(_within(values, kind)):
        try:
            check_one_kind(name, within)
        except InvalidValueError as error:
            row = _row_of(error.facts["row"], values, kind, number)
            raise error.with_context(row=row) from None


def _within(values: Any, kind: pa.DataType) -> Iterator[list[Any]]:
    """Yield the values inside of lists and dicts that Arrow may have mixed, place by place."""
    if not _may_mix(kind):
        return
    if pa.types.is_struct(kind):
        dicts = [each for each in values if isinstance(each, Mapping)]
        for field in kind:
            yield from _within([each.get(field.name) for each in dicts], field.type)
    elif pa.types.is_nested(kind):
        lists = (each for each in values if isinstance(each, list | tuple | np.ndarray))
        yield from _within(list(chain.from_iterable(lists)), kind.value_type)
    else:
        yield values


def _row_of(index: int, values: Any, kind: pa.DataType, number: int) -> int:
    """Return the row of a value, by its index among those that `_within` yields for a place."""
    row = -1
    while index >= 0:
        row += 1
        index -= len(list(_within([values[row]], kind))[number])
    return row


def _may_mix(kind: pa.DataType) -> bool:
    """Whether Arrow makes this of values of several kinds: of times, and of bytes."""
    if pa.types.is_struct(kind):
        return any(_may_mix(each.type) for each in kind)
    if pa.types.is_nested(kind):
        return _may_mix(kind.value_type)
    types = pa.types
    return bool(types.is_temporal(kind) or types.is_binary(kind) or types.is_large_binary(kind))


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind))


def _is_null(given: type) -> bool:
    return given is NoneType or given.__name__ in _NULLS_OF_PANDAS


def _kind_of(given: type) -> str:
    return next((name for types, name in _KINDS if issubclass(given, types)), given.__name__)


def _is_nan(value: Any) -> bool:
    # NaN is NULL, as everywhere in pandas.
    return isinstance(value, float | Decimal | np.floating) and value != value  # noqa: PLR0124


def _refuse_mixed(name: str, places: Iterable[tuple[int, Any]]) -> None:
    first: tuple[str, type] | None = None
    for row, value in places:
        kind = _kind_of(type(value))
        if first is None:
            first = kind, type(value)
        elif first[0] != kind:
            names = " and ".join(sorted({first[1].__name__, type(value).__name__}))
            raise _several_kinds(name, names).with_context(row=row)


def _several_kinds(name: str, names: str) -> InvalidValueError:
    return InvalidValueError(
        f"The column {name!r} holds values of several kinds: {names}. A column of Fluss has one "
        "type, which Arrow must know.",
        hint=Hint(HintKey.ONE_KIND, column=name),
        column=name,
    )


def _has_one_zone(values: Any, nulls: set[type]) -> bool:
    """Whether all of these times have a zone, or none has; False if some are NULL."""
    return not nulls and len({each.tzinfo is None for each in values}) == 1


def _check_zones(name: str, places: Iterable[tuple[int, Any]]) -> None:
    first: bool | None = None
    for row, value in places:
        has_zone = value.tzinfo is not None
        if first is None:
            first = has_zone
        elif first is not has_zone:
            raise InvalidValueError(
                f"The column {name!r} holds times with and without a time zone.",
                hint="give all of the times a time zone, or none of them",
                column=name,
            ).with_context(row=row)
