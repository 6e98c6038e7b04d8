"""Data types and physical values with corner cases, for tests that compare two codecs.

Two interfaces to the same corner cases: the seeded generators of
`tests.support.generators.seeded_values`, re-exported here, and Hypothesis strategies (`data_types`,
`values`, `tables`), which produce fewer values, but shrink.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from fluss.model.types.data_type import (
    ArrayType,
    BinaryType,
    BooleanType,
    BytesType,
    CharType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    RowType,
    StringType,
)
from tests.support.generators.seeded_values import (
    ALL_TYPES,
    KEY_TYPES,
    LEAF_TYPES,
    NESTED_TYPES,
    NULL_RATE,
    TEXTS,
    corners,
    exact,
    fits_char,
    integer_range,
    leaf_count,
    random_rows,
    random_type,
    random_types,
    random_value,
    row_type,
    to_float32,
    with_field_ids,
    without_odd_bits,
    without_repeated_keys,
)

__all__ = [
    "ALL_TYPES",
    "KEY_TYPES",
    "LEAF_TYPES",
    "NESTED_TYPES",
    "NULL_RATE",
    "corners",
    "data_types",
    "exact",
    "integer_range",
    "leaf_count",
    "random_rows",
    "random_type",
    "random_types",
    "random_value",
    "row_type",
    "tables",
    "to_float32",
    "values",
    "with_field_ids",
]


def data_types(*, depth: int = 2) -> st.SearchStrategy[DataType]:
    """Data types, nested at most `depth` levels deep, nullable or not."""
    leaves = st.sampled_from(LEAF_TYPES)
    made: st.SearchStrategy[DataType] = leaves
    if depth:
        inner = data_types(depth=depth - 1)
        made = (
            leaves
            | inner.map(ArrayType)
            | st.tuples(leaves, inner).map(lambda pair: MapType(*pair))
            | st.lists(inner, min_size=1, max_size=4).map(row_type)
        )
    return st.tuples(made, st.booleans()).map(
        lambda pair: pair[0] if pair[1] else pair[0].not_null()
    )


def values(data_type: DataType) -> st.SearchStrategy[Any]:
    """The physical values of a type."""
    made = _not_null_values(data_type)
    return st.none() | made if data_type.nullable else made


def tables(
    *, depth: int = 2, columns_max: int = 6, rows_max: int = 8
) -> st.SearchStrategy[tuple[tuple[DataType, ...], list[tuple[Any, ...]]]]:
    """Pairs of (types, rows) that fit each other."""
    types = st.lists(data_types(depth=depth), min_size=1, max_size=columns_max).map(tuple)
    return types.flatmap(
        lambda chosen: st.tuples(
            st.just(chosen),
            st.lists(st.tuples(*(values(each) for each in chosen)), max_size=rows_max),
        )
    )


def _not_null_values(data_type: DataType) -> st.SearchStrategy[Any]:
    match data_type:
        case ArrayType():
            return st.lists(values(data_type.element), max_size=5)
        case MapType():
            pairs = st.tuples(values(data_type.key), values(data_type.value))
            return st.lists(pairs, max_size=5).map(without_repeated_keys)
        case RowType():
            return st.tuples(*(values(each) for each in data_type.field_types))
        case BooleanType():
            return st.booleans()
        case FloatType():
            return st.sampled_from(corners(data_type)) | st.floats(width=32).map(without_odd_bits)
        case DoubleType():
            return st.sampled_from(corners(data_type)) | st.floats().map(without_odd_bits)
        case StringType():
            return st.sampled_from(TEXTS) | st.text(max_size=20)
        case CharType():
            texts = st.text(max_size=data_type.length)
            return st.sampled_from(corners(data_type)) | texts.filter(
                lambda text: fits_char(text, data_type)
            )
        case BytesType():
            return st.sampled_from(corners(data_type)) | st.binary(max_size=20)
        case BinaryType():
            return st.binary(min_size=data_type.length, max_size=data_type.length)
        case _:
            low, high, step = integer_range(data_type)
            anything = st.integers(low, high).map(lambda number: number * step)
            return st.sampled_from(corners(data_type)) | anything


def as_lists(value: Any) -> Any:
    """Return a value with lists in place of tuples: what holds elements may not matter."""
    return [as_lists(each) for each in value] if isinstance(value, list | tuple) else value
