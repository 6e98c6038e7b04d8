"""Which rows fulfil a predicate, decided exactly, whatever a server has left out before.

A predicate meets a schema here: columns are looked up, values become values of their columns' types
as if they were written there, and what does not fit is refused. Evaluation is Arrow's, column by
column, with SQL's three values; a row is wanted where the whole is true, not where it is unknown.
Floating-point numbers compare as IEEE 754 says: a NaN equals nothing, itself included, and is
neither less nor greater than anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fluss.errors import InvalidValueError, UnsupportedOperationError
from fluss.model.arrow_types import to_arrow_type, to_wire_arrow_type
from fluss.model.predicate import Compound, CompoundFunction, Leaf, LeafFunction, Predicate
from fluss.model.schema import Schema
from fluss.model.types import (
    ArrayType,
    CharType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    RowType,
    StringType,
)
from fluss.model.values import to_physical
from fluss.records.from_values import array_from_values
from fluss.rows.columns import Int64Array

Condition = Callable[[pa.RecordBatch], pa.BooleanArray]
Test = Callable[[pa.Array], pa.BooleanArray]

_PRESENCE: Final = {LeafFunction.IS_NULL: pc.is_null, LeafFunction.IS_NOT_NULL: pc.is_valid}
_COMPARISONS: Final = {
    LeafFunction.EQUAL: pc.equal,
    LeafFunction.NOT_EQUAL: pc.not_equal,
    LeafFunction.LESS_THAN: pc.less,
    LeafFunction.LESS_OR_EQUAL: pc.less_equal,
    LeafFunction.GREATER_THAN: pc.greater,
    LeafFunction.GREATER_OR_EQUAL: pc.greater_equal,
}
_SEARCHES: Final = {
    LeafFunction.STARTS_WITH: pc.starts_with,
    LeafFunction.CONTAINS: pc.match_substring,
    LeafFunction.ENDS_WITH: pc.ends_with,
}


class RowFilter:
    """A predicate bound to the schema that rows are laid out in; any thread may use it.

    Args:
        predicate: Which rows are wanted.
        schema: The columns.

    Raises:
        InvalidSchemaError: There is no such column; the hint names the nearest.
        InvalidValueError: A value is not one of its column's type.
        UnsupportedOperationError: A column of this type cannot be asked that.
    """

    def __init__(self, predicate: Predicate, schema: Schema) -> None:
        self._condition = _bind(predicate, schema)
        names = {leaf.column for leaf in leaves_of(predicate)}
        self.columns = tuple(sorted(schema.column_indexes(names)))

    def matching(self, batch: pa.RecordBatch) -> Int64Array:
        """The places of the rows that fulfil it, in order."""
        truth = self._condition(batch).fill_null(False)
        return np.flatnonzero(truth.to_numpy(zero_copy_only=False))


def leaves_of(predicate: Predicate) -> Iterator[Leaf]:
    """The conditions on single columns that a predicate is made of."""
    match predicate:
        case Leaf():
            yield predicate
        case Compound():
            for child in predicate.children:
                yield from leaves_of(child)
        case _:
            raise InvalidValueError(
                f"A filter is a predicate, not {predicate!r}.",
                hint='Write one with col(), for example col("id") > 5.',
            )


def _bind(predicate: Predicate, schema: Schema) -> Condition:
    if isinstance(predicate, Compound):
        join = pc.and_kleene if predicate.function is CompoundFunction.AND else pc.or_kleene
        children = [_bind(child, schema) for child in predicate.children]
        return lambda batch: reduce(join, (child(batch) for child in children))
    (leaf,) = leaves_of(predicate)
    data_type = schema.column(leaf.column).data_type
    name = leaf.column
    test = _test_of(leaf, data_type)
    # By position: a projection may name a column that occurs twice.
    return lambda batch: test(batch.column(batch.schema.names.index(name)))


def _test_of(leaf: Leaf, data_type: DataType) -> Test:
    function = leaf.function
    if function in _PRESENCE:
        test: Test = _PRESENCE[function]
        return test
    if isinstance(data_type, ArrayType | MapType | RowType):
        raise _not_asked(leaf, data_type, "only whether it is NULL")
    if function in _SEARCHES:
        if not isinstance(data_type, CharType | StringType):
            raise _not_asked(leaf, data_type, "and only texts are searched")
        search, (text,) = _SEARCHES[function], leaf.literals
        return lambda column: search(column, pattern=text)
    literals = literal_array(leaf, data_type)
    if function in _COMPARISONS:
        compare, literal = _COMPARISONS[function], literals[0]
        return lambda column: compare(column, literal)
    is_among = _membership(literals, data_type)
    if function is LeafFunction.IN:
        return is_among
    return lambda column: pc.invert(is_among(column))


def literal_array(leaf: Leaf, data_type: DataType) -> pa.Array:
    """The values of a condition, as values of its column."""
    convert = to_physical(data_type.as_nullable(), leaf.column)
    values = [convert(each) for each in leaf.literals]
    wire = array_from_values(values, data_type, to_wire_arrow_type(data_type))
    return wire.cast(to_arrow_type(data_type))


def _membership(literals: pa.Array, data_type: DataType) -> Test:
    if not len(literals):
        return lambda column: pa.array(np.zeros(len(column), dtype=np.bool_))
    if isinstance(data_type, FloatType | DoubleType):
        # Arrow's sets take NaN for equal to itself, and 0.0 for another number than -0.0.
        return lambda column: reduce(
            pc.or_kleene, (pc.equal(column, literal) for literal in literals)
        )
    known = literals.drop_null()
    otherwise = pa.scalar(None if literals.null_count else False, pa.bool_())

    def is_among(column: pa.Array) -> pa.BooleanArray:
        found = pc.if_else(pc.is_in(column, value_set=known), True, otherwise)
        return pc.if_else(pc.is_valid(column), found, pa.scalar(None, pa.bool_()))

    return is_among


def _not_asked(leaf: Leaf, data_type: DataType, why: str) -> UnsupportedOperationError:
    asked: Any = leaf.function.name.lower()
    return UnsupportedOperationError(
        f"The column {leaf.column!r} is {data_type}, {why}; it was asked for {asked}.",
        column=leaf.column,
    )
