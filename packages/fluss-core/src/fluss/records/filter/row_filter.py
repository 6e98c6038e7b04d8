"""Evaluates predicates on rows, exactly; a server may have skipped batches before.

Evaluation is Arrow's, column by column, over the bound form of a predicate
(`model.predicates.binding`), in which SQL's three values are resolved: a row matches where the
whole is true, not where it is unknown. Floating-point numbers compare as IEEE 754 says: a NaN
equals nothing, itself included, and is neither less nor greater than anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fluss.model.predicates.binding import (
    BoundPredicate,
    ColumnTest,
    Joined,
    Truth,
    bind,
    column_types,
    columns_of,
    every_zero,
    simplified,
)
from fluss.model.predicates.predicate import (
    COMPARISONS,
    PRESENCE,
    SEARCHES,
    CompoundFunction,
    LeafFunction,
    Predicate,
)
from fluss.model.schema.schema import Schema
from fluss.model.types.data_type import DataType
from fluss.model.types.type_to_arrow import to_arrow_type, to_wire_arrow_type
from fluss.records.arrow.numpy_arrays import from_numpy
from fluss.records.convert.from_values import array_from_values
from fluss.rows.buffers.columns import Int64Array

Condition = Callable[[pa.RecordBatch], pa.BooleanArray]
Answer = Callable[[pa.Array], pa.BooleanArray]


class BoundFilter:
    """A bound predicate for batches that have its columns by name."""

    def __init__(self, bound: BoundPredicate) -> None:
        self._condition = _condition_of(simplified(bound))

    def matching(self, batch: pa.RecordBatch) -> Int64Array:
        """Return the places of the rows for which it is true, in order."""
        return _true_places(self._condition(batch))


class RowFilter(BoundFilter):
    """A predicate bound to the schema that rows are laid out in; any thread may use it.

    Args:
        predicate: The condition that rows must fulfil.
        schema: The columns.
        metadata: The types of the columns that describe rows, by their names, where batches have
            such columns beside those of the schema.

    Attributes:
        columns: The positions in the schema of the columns that the predicate reads.
        metadata: The names of the metadata columns that the predicate reads.

    Raises:
        InvalidSchemaError: There is no such column; the hint names the nearest.
        InvalidValueError: A value is not one of its column's type.
        UnsupportedOperationError: The function does not apply to the column's type.
    """

    def __init__(
        self,
        predicate: Predicate,
        schema: Schema,
        metadata: Mapping[str, DataType] | None = None,
    ) -> None:
        bound = bind(predicate, column_types(schema, metadata))
        own = frozenset(schema.column_names)
        names = columns_of(bound)
        self.columns = tuple(sorted(schema.column_indexes(names & own)))
        self.metadata = tuple(sorted(names - own))
        super().__init__(bound)


def _true_places(truth: pa.BooleanArray) -> Int64Array:
    """Return where it is true; by numpy, which is up to 16 times as fast as indices_nonzero."""
    count = len(truth)
    start, shift = divmod(truth.offset, 8)
    stop = start + (shift + count + 7) // 8
    valid, values = truth.buffers()
    bits = np.frombuffer(values, np.uint8)[start:stop]
    if valid is not None:
        bits = bits & np.frombuffer(valid, np.uint8)[start:stop]
    is_true = np.unpackbits(bits, count=shift + count, bitorder="little").view(np.bool_)
    return np.flatnonzero(is_true[shift:])


def _condition_of(bound: BoundPredicate) -> Condition:
    match bound:
        case Joined(function=function, children=children):
            conditions = [_condition_of(each) for each in children]
            # Unknown counts as false, so that only OR has to see through it.
            join = pc.and_ if function is CompoundFunction.AND else pc.or_kleene
            return lambda batch: reduce(join, (each(batch) for each in conditions))
        case Truth(value=value):
            return lambda batch: from_numpy(np.full(batch.num_rows, value))
        case ColumnTest(column=name):
            answer = _answer_of(bound)
            # By position: a projection may name a column that occurs twice.
            return lambda batch: answer(batch.column(batch.schema.names.index(name)))


def _answer_of(test: ColumnTest) -> Answer:
    """Return the boolean array of a test; unknown counts as false."""
    found = getattr(pc, test.function.arrow) if test.function in PRESENCE else _value_answer(test)
    if not test.is_negated:
        return found
    return lambda column: pc.invert(found(column))


def _value_answer(test: ColumnTest) -> Answer:
    if test.function in SEARCHES:
        return partial(getattr(pc, test.function.arrow), pattern=test.values[0])
    if test.function in COMPARISONS:
        (literal,) = physical_array(test.values, test.data_type)
        compare = getattr(pc, test.function.arrow)
        return lambda column: compare(column, literal)
    # Arrow's sets take 0.0 for another number than -0.0.
    values = physical_array(every_zero(test.values, test.data_type), test.data_type)
    if test.function is LeafFunction.IN:
        return lambda column: pc.is_in(column, value_set=values)
    return lambda column: pc.and_(
        pc.invert(pc.is_in(column, value_set=values)), pc.is_valid(column)
    )


def physical_array(values: Sequence[Any], data_type: DataType) -> pa.Array:
    """Physical values as an array of the column's type, as users see it."""
    wire = array_from_values(values, data_type, to_wire_arrow_type(data_type))
    return wire.cast(to_arrow_type(data_type))
