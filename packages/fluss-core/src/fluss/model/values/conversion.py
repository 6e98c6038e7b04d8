"""Converts users' values to the physical values that codecs read and write, and back.

======================  ============================================  ==========================
type                    taken                                         given back
======================  ============================================  ==========================
BOOLEAN                 bool                                          bool
TINYINT … BIGINT        int, if it fits                               int
FLOAT, DOUBLE           float, Decimal; int, if it is held exactly    float
DECIMAL(p, s)           Decimal and int, if all digits have a place   Decimal
CHAR(n), STRING         str, of at most n characters                  str
BINARY(n), BYTES        bytes, bytearray, memoryview; exactly n       bytes
DATE                    date, not datetime                            date
TIME(p)                 time without a zone                           time
TIMESTAMP(p)            datetime without a zone                       datetime without a zone
TIMESTAMP_LTZ(p)        datetime; without a zone it is UTC            datetime in UTC
ARRAY                   list, tuple, another sequence, numpy array    list
MAP                     mapping, or pairs of key and value            list of (key, value)
ROW                     mapping by name, sequence by position         dict
======================  ============================================  ==========================

numpy's scalars and pandas's Timestamp count as their values; None, NA and NaT are NULL. A
value that does not fit is refused with its column, never rounded, cut off or wrapped around; only
FLOAT and DOUBLE take the nearest number (decision 0004). On the way back nanoseconds are cut off to
microseconds, because `datetime` ends there.

A converter is made once for a type and then called for each value, so the type is inspected once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fluss.errors import InvalidValueError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.types import data_type as t
from fluss.model.types.data_type import ArrayType, DataType, MapType, RowType
from fluss.model.types.per_type import PerType
from fluss.model.values.limits import NO_LIMITS, ValueLimits
from fluss.model.values.numbers import (
    boolean_to_physical,
    decimal_from_physical,
    decimal_to_physical,
    double_to_physical,
    float_to_physical,
    integer_to_physical,
)
from fluss.model.values.target import Converter, Target, give_back, is_nothing
from fluss.model.values.texts import bytes_to_physical, text_to_physical
from fluss.model.values.times import (
    date_from_physical,
    date_to_physical,
    time_from_physical,
    time_to_physical,
    timestamp_from_physical,
    timestamp_ltz_to_physical,
    timestamp_to_physical,
)


def to_physical(data_type: DataType, column: str, *, limits: ValueLimits = NO_LIMITS) -> Converter:
    """Return a function that converts a value to the physical value of a type.

    Args:
        data_type: The type.
        column: The name of the column, for the error.
        limits: What its table adds to the limits of the type (`TableInfo.value_limits`).

    Returns:
        The function. It raises `InvalidValueError` for a value that does not fit.
    """
    return _CONVERTERS[data_type].to_physical(Target(data_type, column, limits), data_type)


def from_physical(data_type: DataType) -> Converter:
    """Return a function that converts a physical value of a type to a Python value.

    Returns:
        The function. It raises `InvalidValueError` for times that `datetime` cannot hold.
    """
    return _CONVERTERS[data_type].from_physical(data_type)


# --- ARRAY, MAP, ROW ----------------------------------------------------------------------------


def _array_to_physical(target: Target, data_type: ArrayType) -> Converter:
    convert_element = _inner(target, data_type.element, "[]")

    def convert(value: Any) -> Any:
        if type(value) is list or type(value) is tuple:
            return [convert_element(each) for each in value]
        if is_nothing(value):
            return target.nothing()
        return [convert_element(each) for each in _elements(target, value, "write a list")]

    return convert


def _map_to_physical(target: Target, data_type: MapType) -> Converter:
    convert_key = _inner(target, data_type.key, ".key")
    convert_value = _inner(target, data_type.value, ".value")
    hint = "write a dict, or a list of (key, value)"

    def convert(value: Any) -> Any:
        if is_nothing(value):
            return target.nothing()
        pairs: Iterable[Any] = (
            value.items() if isinstance(value, Mapping) else _elements(target, value, hint)
        )
        done: list[tuple[Any, Any]] = []
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2:  # noqa: PLR2004 - a pair
                raise target.refuse(value, "it holds something that is not a pair", hint)
            done.append((convert_key(pair[0]), convert_value(pair[1])))
        return done

    return convert


def _row_to_physical(target: Target, data_type: RowType) -> Converter:
    point = "." if target.column else ""
    names = data_type.field_names
    converters = [_inner(target, each.data_type, point + each.name) for each in data_type.fields]
    by_name = list(zip(names, converters, strict=True))
    known = frozenset(names)

    def convert(value: Any) -> Any:
        if type(value) is dict or isinstance(value, Mapping):
            if not known.issuperset(value):
                raise _unknown_field(target, value, names)
            get = value.get
            return tuple([convert_field(get(name)) for name, convert_field in by_name])
        if is_nothing(value):
            return target.nothing()
        fields = list(_elements(target, value, "write a dict by name or a list by position"))
        if len(fields) != len(converters):
            why = f"it has {len(fields)} values for {len(converters)} fields"
            raise target.refuse(value, why, f"the fields are {', '.join(names)}")
        return tuple([c(each) for c, each in zip(converters, fields, strict=True)])

    return convert


def _inner(target: Target, data_type: DataType, name: str) -> Converter:
    return to_physical(data_type, target.column + name, limits=target.limits)


def _unknown_field(
    target: Target, value: Mapping[Any, Any], names: Sequence[str]
) -> InvalidValueError:
    unknown = next(each for each in value if each not in names)
    where = f"in the column {target.column!r}" if target.column else "in the table"
    return InvalidValueError(
        f"There is no field {unknown!r} {where}; the fields are {', '.join(names)}.",
        hint=did_you_mean(str(unknown), names),
        column=f"{target.column}.{unknown}" if target.column else str(unknown),
    )


def _elements(target: Target, value: Any, hint: str) -> Sequence[Any]:
    """Return the elements of a value that counts as a list."""
    if isinstance(value, str | bytes | bytearray | memoryview):
        raise target.refuse(value, hint=hint)
    if hasattr(value, "tolist") and not isinstance(value, type):  # numpy, array.array, pandas
        # `tolist` of numpy turns times into plain numbers, so those are read one by one.
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        is_list = kind in {"M", "m"} and getattr(value, "ndim", 0) > 0
        return list(value) if is_list else _listed(target, value.tolist(), hint)
    return _listed(target, value, hint)


def _listed(target: Target, value: Any, hint: str) -> Sequence[Any]:
    if not isinstance(value, Sequence):
        raise target.refuse(value, hint=hint)
    return value


def _array_from_physical(data_type: ArrayType) -> Converter:
    convert_element = from_physical(data_type.element)
    if convert_element is give_back:
        return give_back

    def convert(value: Any) -> Any:
        return None if value is None else [convert_element(each) for each in value]

    return convert


def _map_from_physical(data_type: MapType) -> Converter:
    convert_key, convert_value = from_physical(data_type.key), from_physical(data_type.value)
    if convert_key is give_back and convert_value is give_back:
        return give_back

    def convert(value: Any) -> Any:
        if value is None:
            return None
        return [(convert_key(key), convert_value(each)) for key, each in value]

    return convert


def _row_from_physical(data_type: RowType) -> Converter:
    names = data_type.field_names
    converters = [from_physical(each) for each in data_type.field_types]
    if all(each is give_back for each in converters):
        return lambda value: None if value is None else dict(zip(names, value, strict=True))
    fields = list(zip(names, converters, strict=True))

    def convert(value: Any) -> Any:
        if value is None:
            return None
        return {name: back(each) for (name, back), each in zip(fields, value, strict=True)}

    return convert


# --- by type --------------------------------------------------------------------------------------


class _Converters(NamedTuple):
    """How values of a type become physical values, and back."""

    to_physical: Callable[[Target, Any], Converter]
    from_physical: Callable[[Any], Converter] = lambda _: give_back


_CONVERTERS = PerType[_Converters](
    {
        t.BooleanType: _Converters(boolean_to_physical),
        t.IntegerFamily: _Converters(integer_to_physical),
        t.FloatType: _Converters(float_to_physical),
        t.DoubleType: _Converters(double_to_physical),
        t.DecimalType: _Converters(decimal_to_physical, decimal_from_physical),
        t.CharType: _Converters(lambda target, kind: text_to_physical(target, kind.length)),
        t.StringType: _Converters(lambda target, _: text_to_physical(target, None)),
        t.BinaryType: _Converters(lambda target, kind: bytes_to_physical(target, kind.length)),
        t.BytesType: _Converters(lambda target, _: bytes_to_physical(target, None)),
        t.DateType: _Converters(date_to_physical, lambda _: date_from_physical),
        t.TimeType: _Converters(time_to_physical, time_from_physical),
        t.TimestampType: _Converters(timestamp_to_physical, timestamp_from_physical),
        t.TimestampLtzType: _Converters(timestamp_ltz_to_physical, timestamp_from_physical),
        t.ArrayType: _Converters(_array_to_physical, _array_from_physical),
        t.MapType: _Converters(_map_to_physical, _map_from_physical),
        t.RowType: _Converters(_row_to_physical, _row_from_physical),
    }
)
