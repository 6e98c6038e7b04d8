"""Skips batches by their statistics: compares a reader's filter with minimum and maximum.

A batch is skipped only where no row of it can match; the reader itself filters the rows. So a batch
is kept wherever the filter or the statistics are not understood: an unknown function, a literal of
another type, a column that is younger than the batch (main does the same, and 0.9.1 has no
filters). `log.filtered_read` reads the kept batches.

Numbers compare as in SQL, where -0.0 equals 0.0. Where NaN is involved no batch is skipped, because
writers and readers do not agree on its order.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fluss.model.predicates.predicate import CompoundFunction, LeafFunction
from fluss.model.schema.schema import Schema
from fluss.model.types.data_type import (
    UNITS_PER_SECOND,
    CharType,
    DataType,
    DecimalType,
    StringType,
    TextFamily,
    TimestampFamily,
    TimeType,
)
from fluss.records.log.statistics import BatchStatistics
from fluss.wire import messages as pb

LEAF, COMPOUND = range(2)
_NANOS_PER_MS: Final = 1_000_000
_MS_PER_SECOND: Final = 1_000
_NANOS_PER_SECOND: Final = 1_000_000_000
_TEXTS: Final = {CharType.literal.number, StringType.literal.number}


@dataclass(frozen=True, slots=True)
class _Known:
    """The statistics of one column, in the unit of the literals."""

    low: Any
    high: Any
    has_nulls: bool
    has_values: bool


# Whether a batch with these statistics may have a matching row.
_Test = Callable[[_Known], bool]
BatchTest = Callable[[BatchStatistics, int], bool]


def keep_all(statistics: BatchStatistics, record_count: int) -> bool:
    """The test of a filter that cannot rule out any batch."""
    del statistics, record_count
    return True


def batch_test(predicate: pb.PbPredicate, schema: Schema) -> BatchTest:
    """Return a test of whether a batch may have rows that match a predicate.

    Args:
        predicate: The reader's filter.
        schema: The schema of the batches.
    """
    if predicate.type == COMPOUND and predicate.HasField("compound"):
        return _joined(predicate.compound, schema)
    if predicate.type == LEAF and predicate.HasField("leaf"):
        return _of_column(predicate.leaf, schema)
    return keep_all


def _joined(compound: pb.PbCompoundPredicate, schema: Schema) -> BatchTest:
    tests = [batch_test(each, schema) for each in compound.children]
    if not tests:
        return keep_all
    match compound.function:
        case CompoundFunction.AND:
            return lambda statistics, count: all(each(statistics, count) for each in tests)
        case CompoundFunction.OR:
            return lambda statistics, count: any(each(statistics, count) for each in tests)
        case _:
            return keep_all


def _of_column(leaf: pb.PbLeafPredicate, schema: Schema) -> BatchTest:
    position = next(
        (i for i, each in enumerate(schema.columns) if each.column_id == leaf.field_id), None
    )
    if position is None:
        return keep_all
    data_type = schema.columns[position].data_type
    test = _test_of(leaf, data_type)
    if test is None:
        return keep_all

    def may_have(statistics: BatchStatistics, record_count: int) -> bool:
        if position not in statistics.positions:
            return True
        return test(_known(statistics, position, record_count, data_type))

    return may_have


def _known(
    statistics: BatchStatistics, position: int, record_count: int, data_type: DataType
) -> _Known:
    slot = statistics.positions.index(position)
    nulls = statistics.null_counts[slot]
    low, high = statistics.minimums[slot], statistics.maximums[slot]
    has_values = nulls < record_count
    if has_values and low is not None and high is not None:
        low, high = _comparable(low, data_type), _comparable(high, data_type)
        if isinstance(data_type, TimeType) and data_type.unit in {"us", "ns"}:
            high += 1  # rows may have digits below the millisecond; statistics do not
    return _Known(low, high, has_nulls=nulls > 0, has_values=has_values)


def _comparable(value: Any, data_type: DataType) -> Any:
    """Convert a physical value to the unit of literals: ms for times, ns for timestamps."""
    match data_type:
        case TimeType():
            return value * _MS_PER_SECOND // UNITS_PER_SECOND[data_type.unit]
        case TimestampFamily():
            return value * (_NANOS_PER_SECOND // UNITS_PER_SECOND[data_type.unit])
        case _:
            return value


def covers(claimed: BatchStatistics, found: BatchStatistics, types: Sequence[DataType]) -> bool:
    """Return whether a writer's statistics cover all rows of the batch.

    Args:
        claimed: The writer's statistics.
        found: The statistics of the rows, for the same columns.
        types: The column types of the batch's schema.
    """
    if claimed.null_counts != found.null_counts:
        return False
    for slot, position in enumerate(claimed.positions):
        wide = (claimed.minimums[slot], claimed.maximums[slot])
        narrow = (found.minimums[slot], found.maximums[slot])
        if not _spans(wide, narrow, types[position]):
            return False
    return True


def _spans(wide: tuple[Any, Any], narrow: tuple[Any, Any], data_type: DataType) -> bool:
    (low, high), (least, greatest) = wide, narrow
    if least is None:
        return True  # there are only NULLs, and their count has been compared
    if low is None or high is None:
        return False
    if isinstance(data_type, TimeType):
        low, high, least, greatest = (
            _comparable(value, data_type) for value in (low, high, least, greatest)
        )
    # Where NaN is involved no batch is skipped, so any claim is acceptable.
    below = math.isnan(low) or math.isnan(least) if isinstance(low, float) else False
    above = math.isnan(high) or math.isnan(greatest) if isinstance(high, float) else False
    return bool((below or low <= least) and (above or high >= greatest))


# --- the functions --------------------------------------------------------------------------------


def _test_of(leaf: pb.PbLeafPredicate, data_type: DataType) -> _Test | None:
    """Return the test of a function and its literals; None where it rules out no batch."""
    try:
        function = LeafFunction(leaf.function)
    except ValueError:
        return None
    if function is LeafFunction.IS_NULL:
        return lambda known: known.has_nulls
    if function is LeafFunction.IS_NOT_NULL:
        return lambda known: known.has_values
    # The list of IN may be empty; no row matches then.
    if function not in _RANGES or (function is not LeafFunction.IN and len(leaf.literals) != 1):
        return None
    literals = [_literal(each, data_type) for each in leaf.literals]
    if any(each is _UNUSABLE for each in literals):
        return None
    values = [each for each in literals if each is not None]  # nothing is equal to NULL
    if function is LeafFunction.STARTS_WITH and not isinstance(data_type, TextFamily):
        return None
    fits = _RANGES[function]
    ordered = sorted(values)

    def test(known: _Known) -> bool:
        if not known.has_values or not ordered:
            return False
        if known.low is None or known.high is None or _has_nan(known):
            return True
        return fits(known.low, known.high, ordered)

    return test


def _has_nan(known: _Known) -> bool:
    return isinstance(known.low, float) and (math.isnan(known.low) or math.isnan(known.high))


def _one_between(low: Any, high: Any, ordered: Sequence[Any]) -> bool:
    slot = bisect_left(ordered, low)
    return slot < len(ordered) and bool(ordered[slot] <= high)


def _begins(low: str, high: str, ordered: Sequence[str]) -> bool:
    prefix = ordered[0]
    return high >= prefix and low[: len(prefix)] <= prefix


_RANGES: Final[dict[LeafFunction, Callable[[Any, Any, Sequence[Any]], bool]]] = {
    LeafFunction.EQUAL: _one_between,
    LeafFunction.IN: _one_between,
    LeafFunction.LESS_THAN: lambda low, _, ordered: low < ordered[0],
    LeafFunction.LESS_OR_EQUAL: lambda low, _, ordered: low <= ordered[0],
    LeafFunction.GREATER_THAN: lambda _, high, ordered: high > ordered[0],
    LeafFunction.GREATER_OR_EQUAL: lambda _, high, ordered: high >= ordered[0],
    LeafFunction.STARTS_WITH: _begins,
}

_UNUSABLE: Final = object()


def _literal(literal: pb.PbLiteralValue, data_type: DataType) -> Any:
    """Convert a literal to the unit of comparison; `_UNUSABLE` where it does not fit."""
    if data_type.literal is None or not data_type.has_statistics:
        return _UNUSABLE
    number, field = data_type.literal
    is_text = isinstance(data_type, TextFamily)  # CHAR and STRING are compared with either
    if literal.literal_type not in (_TEXTS if is_text else {number}):
        return _UNUSABLE
    if literal.is_null:
        return None
    if isinstance(data_type, DecimalType) and literal.HasField("decimal_bytes"):
        return int.from_bytes(literal.decimal_bytes, "big", signed=True)
    if not literal.HasField(field):
        return _UNUSABLE
    value = getattr(literal, field)
    if isinstance(value, float) and math.isnan(value):
        return _UNUSABLE
    if field == "timestamp_millis_value":
        return value * _NANOS_PER_MS + literal.timestamp_nano_of_millis_value
    return value
