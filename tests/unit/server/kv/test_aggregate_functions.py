"""The functions of the merge engine `aggregation`, with Java's arithmetic."""

from __future__ import annotations

import math

import pytest

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, UnsupportedOperationError
from fluss.model.schema.aggregation import AggFunction
from fluss.model.types.factory import DataTypes
from fluss_server.kv.aggregate_functions import aggregator

_INT = DataTypes.int()
_FLOAT = DataTypes.float()
_DECIMAL = DataTypes.decimal(5, 2)


@pytest.mark.parametrize(
    ("function", "data_type", "had", "new", "then"),
    [
        ("sum", _INT, 2**31 - 1, 1, -(2**31)),
        ("sum", DataTypes.smallint(), -32768, -1, 32767),
        ("sum", _FLOAT, 16777216.0, 1.0, 16777216.0),
        ("sum", DataTypes.double(), 16777216.0, 1.0, 16777217.0),
        ("sum", DataTypes.decimal(19, 2), 10**19 - 1, 1, None),
        ("sum", _DECIMAL, 150, -25, 125),
        ("product", DataTypes.bigint(), 2**62, 2, -(2**63)),
        ("product", _DECIMAL, 150, 150, 225),
        ("product", _DECIMAL, 5, 10, 1),  # 0.05 * 0.10 = 0.005, half up
        ("product", _DECIMAL, -5, 10, -1),
        ("product", _DECIMAL, 99_999, 99_999, None),
        ("max", _INT, 3, 7, 7),
        ("min", _INT, 3, 7, 3),
        ("max", DataTypes.string(), "Z", "a", "a"),
        ("last_value", _INT, 1, None, None),
        ("last_value_ignore_nulls", _INT, 1, None, 1),
        ("first_value", _INT, None, 4, 4),
        ("first_value", _INT, 1, 4, 1),
        ("first_value_ignore_nulls", _INT, 1, None, 1),
        ("listagg", DataTypes.string(), "a", "b", "a,b"),
        ("string_agg", DataTypes.string(), "a", "", "a,"),
        ("bool_and", DataTypes.boolean(), True, False, False),
        ("bool_or", DataTypes.boolean(), False, True, True),
        ("sum", _INT, None, 5, 5),
        ("sum", _INT, 5, None, 5),
        ("max", _INT, None, None, None),
    ],
)
def test_two_values_are_combined(function, data_type, had, new, then):
    assert aggregator(AggFunction.of(function), data_type)(had, new) == then


def test_a_short_decimal_sum_with_too_many_digits_is_refused_as_java_does():
    with pytest.raises(FlussError, match="more than the 5 digits") as refused:
        aggregator(AggFunction.of("sum"), _DECIMAL)(99_999, 1)
    assert refused.value.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_floats_are_ordered_as_in_java():
    greatest = aggregator(AggFunction.of("max"), DataTypes.double())
    least = aggregator(AggFunction.of("min"), DataTypes.double())
    assert math.isnan(greatest(math.inf, math.nan))
    assert math.isnan(greatest(math.nan, math.inf))
    assert least(math.nan, 1.0) == 1.0
    assert math.copysign(1, greatest(-0.0, 0.0)) == 1
    assert math.copysign(1, least(0.0, -0.0)) == -1


@pytest.mark.parametrize("function", ["rbm32", "rbm64"])
def test_bitmaps_are_refused(function):
    with pytest.raises(UnsupportedOperationError, match="does not implement"):
        aggregator(AggFunction.of(function), DataTypes.bytes())
