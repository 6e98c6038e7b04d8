"""Predicates on floating-point columns with the meaning that Spark gives them.

In Spark a NaN is greater than every number, and a FLOAT is compared as a DOUBLE, so that none
equals 0.1. In Fluss, as in IEEE 754, a NaN is neither greater nor less, and a constant has the type
of its column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fluss.scan import ColumnRef, Predicate

_ABOVE: Final = (">", ">=")
SIGNS: Final[Mapping[str, Callable[[ColumnRef, Any], Predicate]]] = {
    "=": ColumnRef.equal,
    "<>": ColumnRef.not_equal,
    "<": ColumnRef.less_than,
    "<=": ColumnRef.less_or_equal,
    ">": ColumnRef.greater_than,
    ">=": ColumnRef.greater_or_equal,
}
# A number between two FLOATs is replaced by the nearest FLOAT, with the comparison that gives the
# same rows: by whether that FLOAT is below the number.
_ADJUSTED: Final = {
    True: {"<": "<=", "<=": "<=", ">": ">", ">=": ">"},
    False: {"<": "<", "<=": "<", ">": ">=", ">=": ">="},
}


def float_condition(column: ColumnRef, sign: str, value: float, kind: pa.DataType) -> Predicate:
    """Compare a column with a constant.

    Args:
        column: The column.
        sign: One of `= <> < <= > >=`.
        value: The constant.
        kind: The type of the column.
    """
    nearest = _nearest(value, kind)
    if nearest != value:
        if sign in {"=", "<>"}:
            return _no_row(column) if sign == "=" else ~_no_row(column)
        sign = _ADJUSTED[nearest < value][sign]
    predicate = SIGNS[sign](column, nearest)
    return predicate | ~column.less_or_equal(math.inf) if sign in _ABOVE else predicate


def float_in(column: ColumnRef, values: Sequence[float], kind: pa.DataType) -> Predicate:
    """Compare a column with a list of constants."""
    exact = [value for value in values if _nearest(value, kind) == value]
    return column.is_in(exact) if exact else _no_row(column)


def _nearest(value: float, kind: pa.DataType) -> float:
    """Return the nearest number of the column's type."""
    if not pa.types.is_float32(kind):
        return value
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _no_row(column: ColumnRef) -> Predicate:
    """Return a predicate that is true of no row, and unknown where the column is NULL."""
    return column.less_than(-math.inf)
