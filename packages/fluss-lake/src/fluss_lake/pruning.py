"""Decides by the bounds of a file whether a row of it may fulfil a condition; in doubt, it may.

Bounds of texts may be cut off: they are bounds all the same. Floating-point numbers are left alone,
because files do not count a NaN in their bounds as comparisons here do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fluss.model.predicates.binding import BoundPredicate, ColumnTest, Joined, Truth
from fluss.model.predicates.predicate import CompoundFunction, LeafFunction
from fluss.model.types import data_type as t
from fluss_lake.iceberg_parts import Bounds

# Types whose values in Iceberg's bounds are those that conditions hold.
COMPARED: Final = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType, t.StringType)


def may_match(condition: BoundPredicate, bounds: Mapping[str, Bounds], rows: int) -> bool:
    """Whether a file with these bounds may have a row that fulfils the condition.

    Args:
        condition: The condition.
        bounds: What the file says of its columns.
        rows: How many rows it has.
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
        return False  # every other test is false of NULL
    is_compared = isinstance(test.data_type, COMPARED) and not test.is_negated
    if not is_compared or known.lowest is None or known.highest is None:
        return True
    return _may_compare(test, known.lowest, known.highest)


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
