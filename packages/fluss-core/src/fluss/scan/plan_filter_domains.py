"""Derives from a filter what single columns can hold: values, bounds, keys.

All answers may be too wide and are never too narrow: the values of every row that fulfils the
filter are among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from math import prod
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fluss.model.predicates import binding
from fluss.model.predicates.predicate import CompoundFunction, LeafFunction
from fluss.model.types.data_type import DataType
from fluss.records.filter.row_filter import BoundFilter, physical_array

Row = tuple[Any, ...]
TypedColumn = tuple[str, DataType]


def values_of(bound: binding.BoundPredicate, column: str) -> tuple[Any, ...] | None:
    """The physical values that a column can hold; None for any value."""
    match bound:
        case binding.ColumnTest(function=LeafFunction.EQUAL | LeafFunction.IN) if (
            bound.column == column
        ):
            return bound.values
        case binding.Joined(function=function, children=children):
            found = [values_of(each, column) for each in children]
            known = [each for each in found if each is not None]
            if function is CompoundFunction.AND:
                return reduce(_common, known) if known else None
            if len(known) < len(found):
                return None
            return tuple(dict.fromkeys(value for values in known for value in values))
        case binding.Truth(value=False):
            return ()
        case _:
            return None


def _common(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    others = frozenset(second)
    return tuple(value for value in first if value in others)


class Interval(NamedTuple):
    """The whole numbers from `low` to `high`, both included; None for no bound."""

    low: int | None = None
    high: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no number lies between the bounds."""
        return self.low is not None and self.high is not None and self.low > self.high


_EVERYTHING: Final = Interval()
_NOTHING: Final = Interval(0, -1)


def interval_of(bound: binding.BoundPredicate, column: str) -> Interval:
    """The bounds of the numbers of a column, which holds whole numbers."""
    match bound:
        case binding.ColumnTest() if bound.column == column:
            return _interval_of_test(bound)
        case binding.Joined(function=CompoundFunction.AND, children=children):
            return reduce(_overlap, (interval_of(each, column) for each in children), _EVERYTHING)
        case binding.Joined(children=children):
            return reduce(_span, (interval_of(each, column) for each in children), _NOTHING)
        case binding.Truth(value=False):
            return _NOTHING
        case _:
            return _EVERYTHING


def _interval_of_test(test: binding.ColumnTest) -> Interval:
    values = test.values
    match test.function:
        case LeafFunction.EQUAL | LeafFunction.IN:
            return Interval(min(values), max(values))
        case LeafFunction.LESS_THAN:
            return Interval(high=values[0] - 1)
        case LeafFunction.LESS_OR_EQUAL:
            return Interval(high=values[0])
        case LeafFunction.GREATER_THAN:
            return Interval(low=values[0] + 1)
        case LeafFunction.GREATER_OR_EQUAL:
            return Interval(low=values[0])
        case _:
            return _EVERYTHING


def _overlap(first: Interval, second: Interval) -> Interval:
    lows = [each.low for each in (first, second) if each.low is not None]
    highs = [each.high for each in (first, second) if each.high is not None]
    return Interval(max(lows, default=None), min(highs, default=None))


def _span(first: Interval, second: Interval) -> Interval:
    parts = [each for each in (first, second) if not each.is_empty]
    if not parts:
        return _NOTHING
    lows = [each.low for each in parts if each.low is not None]
    highs = [each.high for each in parts if each.high is not None]
    return Interval(
        min(lows) if len(lows) == len(parts) else None,
        max(highs) if len(highs) == len(parts) else None,
    )


def keys_of(
    bound: binding.BoundPredicate,
    columns: Sequence[TypedColumn],
    *,
    count_max: int,
    heads: Sequence[Row] = ((),),
    head_columns: Sequence[TypedColumn] = (),
) -> list[Row] | None:
    """The keys that rows can have; None for any key, and for more than `count_max` keys.

    Args:
        bound: The filter.
        columns: The columns of a key that only the filter restricts.
        count_max: How many keys are worth listing.
        heads: The combinations of values that further columns can have.
        head_columns: Those columns; they come first in the keys.
    """
    choices = []
    for name, data_type in columns:
        values = values_of(bound, name)
        if values is None:
            return None
        choices.append(binding.every_zero(values, data_type))
    if len(heads) * prod(map(len, choices)) > count_max:
        return None
    keys = [(*head, *rest) for head in heads for rest in product(*choices)]
    return matching_rows(bound, [*head_columns, *columns], keys)


def matching_rows(
    bound: binding.BoundPredicate, columns: Sequence[TypedColumn], rows: Sequence[Row]
) -> list[Row]:
    """The rows of physical values that can fulfil the filter, whatever their other columns hold."""
    for_these = binding.weakened(bound, [name for name, _ in columns])
    if for_these == binding.ALL or not rows:
        return list(rows)
    if for_these == binding.NONE:
        return []
    arrays = [
        physical_array([row[place] for row in rows], data_type)
        for place, (_, data_type) in enumerate(columns)
    ]
    batch = pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in columns])
    return [rows[place] for place in BoundFilter(for_these).matching(batch).tolist()]
