"""Spark's filters as Fluss's: what they can say in the same sense, and nothing else.

All filters are given back to Spark, too, which applies them again: what is pushed only spares
reading. Comparisons of floating point numbers are left to Spark, for which NaN equals itself and
is the greatest number; so are those of times with nanoseconds, which Spark sees cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import and_
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from fluss.model.predicate import ColumnRef, Predicate, col

_COMPARISONS: Final = {
    EqualTo: ColumnRef.equal,
    GreaterThan: ColumnRef.greater_than,
    GreaterThanOrEqual: ColumnRef.greater_or_equal,
    LessThan: ColumnRef.less_than,
    LessThanOrEqual: ColumnRef.less_or_equal,
    In: ColumnRef.is_in,
}
_SEARCHES: Final = {
    StringStartsWith: ColumnRef.starts_with,
    StringEndsWith: ColumnRef.ends_with,
    StringContains: ColumnRef.contains,
}
_NULLS: Final = {IsNull: ColumnRef.is_null, IsNotNull: ColumnRef.is_not_null}


def pushed(filters: Sequence[Filter], schema: pa.Schema) -> Predicate | None:
    """All of the filters that Fluss understands, as one.

    Args:
        filters: What Spark offers; all of them must hold.
        schema: The columns of the scan.
    """
    understood = [each for each in (_predicate(one, schema) for one in filters) if each is not None]
    return reduce(and_, understood) if understood else None


def _predicate(one: Filter, schema: pa.Schema) -> Predicate | None:
    if isinstance(one, Not):
        inner = _predicate(one.child, schema)
        return None if inner is None else ~inner
    attribute: tuple[str, ...] = getattr(one, "attribute", ())
    if len(attribute) != 1 or attribute[0] not in schema.names:
        return None
    column, kind = col(attribute[0]), schema.field(attribute[0]).type
    if (about_null := _NULLS.get(type(one))) is not None:
        return about_null(column)
    if not _is_compared_alike(kind):
        return None
    if (search := _SEARCHES.get(type(one))) is not None:
        return search(column, getattr(one, "value", "")) if pa.types.is_string(kind) else None
    compare, value = _COMPARISONS.get(type(one)), getattr(one, "value", None)
    if compare is None or value is None:
        return None
    if isinstance(one, In):
        if any(each is None for each in value):
            return None
        return compare(column, [_literal(each, kind) for each in value])
    return compare(column, _literal(value, kind))


def _is_compared_alike(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_timestamp(kind):
        return bool(kind.unit != "ns")
    return not (types.is_floating(kind) or types.is_nested(kind) or types.is_time(kind))


def _literal(value: Any, kind: pa.DataType) -> Any:
    """Spark gives every timestamp a zone; a column without one compares with none."""
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, datetime) and pa.types.is_timestamp(kind) and kind.tz is None:
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return value
