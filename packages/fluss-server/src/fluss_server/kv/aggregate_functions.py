"""The functions of the merge engine `aggregation`: they combine two values of one column.

Values are physical ones: decimals are unscaled integers, texts are str. Arithmetic is Java's:
integers wrap around, FLOAT is added in 32 bits, NaN is the greatest number and -0.0 is less than
0.0. The two functions over bitmaps (rbm32, rbm64) are not implemented: tables that use them are
refused at creation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

import numpy as np

from fluss.error_codes import ErrorCode
from fluss.errors import InvalidValueError, UnsupportedOperationError
from fluss.model.schema.aggregation import DELIMITER, AggFunction, AggFunctionType
from fluss.model.types.data_type import (
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerFamily,
)
from fluss_server.server_errors import request_error

# (old value, written value) -> new value
Aggregator = Callable[[Any, Any], Any]

DELIMITER_DEFAULT: Final = ","

_EXACT = Context(prec=80, rounding=ROUND_HALF_UP)


def aggregator(function: AggFunction, data_type: DataType) -> Aggregator:
    """Return the function for columns of this type.

    Raises:
        UnsupportedOperationError: The function works on bitmaps.
    """
    match function.type:
        case AggFunctionType.SUM:
            return _unless_null(_wrapped(_added, data_type))
        case AggFunctionType.PRODUCT:
            return _unless_null(_wrapped(_multiplied, data_type))
        case AggFunctionType.MAX:
            return _unless_null(lambda had, new: new if _order(had) < _order(new) else had)
        case AggFunctionType.MIN:
            return _unless_null(lambda had, new: had if _order(had) < _order(new) else new)
        case AggFunctionType.LAST_VALUE:
            return lambda _, new: new
        case AggFunctionType.LAST_VALUE_IGNORE_NULLS:
            return lambda had, new: had if new is None else new
        case AggFunctionType.FIRST_VALUE | AggFunctionType.FIRST_VALUE_IGNORE_NULLS:
            return lambda had, new: new if had is None else had  # Java's two do the same
        case AggFunctionType.LISTAGG | AggFunctionType.STRING_AGG:
            delimiter = function.parameters.get(DELIMITER, DELIMITER_DEFAULT)
            return _unless_null(lambda had, new: f"{had}{delimiter}{new}")
        case AggFunctionType.BOOL_AND:
            return _unless_null(lambda had, new: had and new)
        case AggFunctionType.BOOL_OR:
            return _unless_null(lambda had, new: had or new)
        case AggFunctionType.RBM32 | AggFunctionType.RBM64:
            raise UnsupportedOperationError(
                f"The embedded server does not implement the aggregation function {function.type.value}.",
                hint="Start a cluster of Apache Fluss for tables with bitmaps.",
            )


def _unless_null(combine: Aggregator) -> Aggregator:
    def aggregate(had: Any, new: Any) -> Any:
        if had is None:
            return new
        return had if new is None else combine(had, new)

    return aggregate


def _order(value: Any) -> Any:
    """Return a sort key that orders floats as Java does; other values are their own key."""
    if not isinstance(value, float):
        return value
    return (math.isnan(value), value, math.copysign(1.0, value))


def _added(had: Any, new: Any) -> Any:
    return had + new


def _multiplied(had: Any, new: Any) -> Any:
    return had * new


def _wrapped(compute: Aggregator, data_type: DataType) -> Aggregator:
    """Return the function in the arithmetic of a type's width."""
    if isinstance(data_type, IntegerFamily):
        half = 1 << (data_type.bits - 1)
        return lambda had, new: (compute(had, new) + half) % (half << 1) - half
    if isinstance(data_type, FloatType):

        def in_32_bits(had: float, new: float) -> float:
            with np.errstate(all="ignore"):
                return float(compute(np.float32(had), np.float32(new)))

        return in_32_bits
    if isinstance(data_type, DoubleType):

        def in_64_bits(had: float, new: float) -> float:
            with np.errstate(all="ignore"):
                return float(compute(np.float64(had), np.float64(new)))

        return in_64_bits
    if isinstance(data_type, DecimalType):
        return _decimal_product(data_type) if compute is _multiplied else _decimal_sum(data_type)
    raise InvalidValueError(f"{data_type} is not a number.")


def _decimal_sum(data_type: DecimalType) -> Aggregator:
    limit = 10**data_type.precision

    def add(had: int, new: int) -> int | None:
        total: int = had + new
        if -limit < total < limit:
            return total
        if data_type.is_compact:
            # In Java the changelog refuses the value, and with it the batch.
            raise request_error(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"A sum has more than the {data_type.precision} digits of its column's {data_type}.",
                hint="Give the column more digits; from 19 on a sum that is too long becomes NULL.",
            )
        return None

    return add


def _decimal_product(data_type: DecimalType) -> Aggregator:
    limit, scale = 10**data_type.precision, data_type.scale

    def multiply(had: int, new: int) -> int | None:
        exact = Decimal(had * new).scaleb(-scale, _EXACT)
        product = int(exact.quantize(Decimal(1), context=_EXACT))
        return product if -limit < product < limit else None

    return multiply
