"""Conditions on floating-point numbers, as Spark answers them.

To Spark a NaN is greater than every number, and a FLOAT is compared as the DOUBLE that it is, so
that none equals 0.1; to Fluss, as in IEEE 754, a NaN is neither greater nor less, and a constant is
of the type of its column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fluss.model.predicates.predicate import ColumnRef, Predicate

_ABOVE: Final = (">", ">=")
SIGNS: Final[Mapping[str, Callable[[ColumnRef, Any], Predicate]]] = {
    "=": ColumnRef.equal,
    "<>": ColumnRef.not_equal,
    "<": ColumnRef.less_than,
    "<=": ColumnRef.less_or_equal,
    ">": ColumnRef.greater_than,
    ">=": ColumnRef.greater_or_equal,
}
# A number between two FLOATs is compared as the one beside it is, when that is below, or above.
_BESIDE: Final = {
    True: {"<": "<=", "<=": "<=", ">": ">", ">=": ">"},
    False: {"<": "<", "<=": "<", ">": ">=", ">=": ">="},
}


def float_condition(column: ColumnRef, sign: str, value: float, kind: pa.DataType) -> Predicate:
    """A column compared with a constant.

    Args:
        column: The column.
        sign: How, by one of `= <> < <= > >=`.
        value: With what.
        kind: The type of the column.
    """
    held = _held(value, kind)
    if held != value:
        if sign in {"=", "<>"}:
            return _nothing(column) if sign == "=" else ~_nothing(column)
        sign = _BESIDE[held < value][sign]
    found = SIGNS[sign](column, held)
    return found | ~column.less_or_equal(math.inf) if sign in _ABOVE else found


def float_in(column: ColumnRef, values: Sequence[float], kind: pa.DataType) -> Predicate:
    """A column that is one of several constants."""
    held = [each for each in values if _held(each, kind) == each]
    return column.is_in(held) if held else _nothing(column)


def _held(value: float, kind: pa.DataType) -> float:
    """The number of the column's type that is nearest."""
    if not pa.types.is_float32(kind):
        return value
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _nothing(column: ColumnRef) -> Predicate:
    """No row, and unknown where the column is NULL."""
    return column.less_than(-math.inf)
