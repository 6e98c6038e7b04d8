"""Decides from the bounds of a file whether any of its rows may match a filter.

The answer is "no" only if it is certain. Bounds of texts may be truncated; they are valid bounds
nevertheless. Bounds of floating-point numbers are not used: they leave out NaN, which a filter may
match.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from fluss.model.predicates.binding import BoundPredicate, ColumnTest, Joined, Truth
from fluss.model.predicates.predicate import CompoundFunction, LeafFunction
from fluss.model.types import data_type as t
from fluss_lake.iceberg_parts import Bounds

_UNITS_PER_S: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_US_PER_S: Final = 1_000_000


def may_match(condition: BoundPredicate, bounds: Mapping[str, Bounds], rows: int) -> bool:
    """Whether a file with these bounds may have a row that matches the filter.

    Args:
        condition: The filter.
        bounds: The bounds of the columns by their names.
        rows: How many rows the file has; -1 if that is unknown.
    """
    match condition:
        case Truth(value=value):
            return value
        case Joined(function=function, children=children):
            found = (may_match(each, bounds, rows) for each in children)
            return all(found) if function is CompoundFunction.AND else any(found)
        case ColumnTest():
            known = bounds.get(condition.column)
            return known is None or _may_pass(condition, known, rows)


def _may_pass(test: ColumnTest, known: Bounds, rows: int) -> bool:
    if test.function is LeafFunction.IS_NULL:
        return known.nulls != 0
    if known.nulls == rows:
        return False  # all values are NULL, and no other test is true for NULL
    if test.is_negated or known.lowest is None or known.highest is None:
        return True
    physical = _physical(test.data_type, known.lowest, known.highest)
    return physical is None or _may_compare(test, *physical)


def _physical(kind: t.DataType, lowest: Any, highest: Any) -> tuple[Any, Any] | None:
    """Bounds in the representation of filter values; None if they cannot be compared."""
    match kind:
        case t.IntegerFamily() | t.StringType() | t.DateType():
            return lowest, highest
        case t.DecimalType(scale=scale):
            if not isinstance(lowest, Decimal) or not isinstance(highest, Decimal):
                return None
            return int(lowest.scaleb(scale)), -int((-highest).scaleb(scale))
        case t.TimeFamily():
            # Lakes store microseconds. Both bounds are widened to the coarser unit of the filter.
            per_s = _UNITS_PER_S[kind.unit]
            return lowest * per_s // _US_PER_S, -(-highest * per_s // _US_PER_S)
        case _:
            return None


def _may_compare(test: ColumnTest, lowest: Any, highest: Any) -> bool:
    values = test.values
    match test.function:
        case LeafFunction.EQUAL:
            return bool(lowest <= values[0] <= highest)
        case LeafFunction.IN:
            return any(lowest <= each <= highest for each in values)
        case LeafFunction.LESS_THAN:
            return bool(lowest < values[0])
        case LeafFunction.LESS_OR_EQUAL:
            return bool(lowest <= values[0])
        case LeafFunction.GREATER_THAN:
            return bool(highest > values[0])
        case LeafFunction.GREATER_OR_EQUAL:
            return bool(highest >= values[0])
        case LeafFunction.STARTS_WITH:
            prefix = values[0]
            return bool(highest >= prefix and lowest[: len(prefix)] <= prefix)
        case _:
            return True
