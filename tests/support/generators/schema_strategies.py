"""Hypothesis strategies for Fluss types, columns and schemas."""

from __future__ import annotations

from hypothesis import strategies as st

from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.types.data_type import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    BytesType,
    CharType,
    DataField,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    MapType,
    RowType,
    SmallIntType,
    StringType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    TinyIntType,
)

BARE_TYPES = (
    BooleanType(),
    TinyIntType(),
    SmallIntType(),
    IntType(),
    BigIntType(),
    FloatType(),
    DoubleType(),
    StringType(),
    BytesType(),
    DateType(),
)

_names = st.text("abcdefgh_ßñ日 `.:", min_size=1, max_size=6)
_comments = st.none() | st.text("abc 'äß\"日", max_size=8)


def _decimals() -> st.SearchStrategy[DataType]:
    return st.integers(1, 38).flatmap(
        lambda precision: st.builds(DecimalType, st.just(precision), st.integers(0, precision))
    )


def scalar_types() -> st.SearchStrategy[DataType]:
    """Types without nested types, with and without NULL."""
    lengths = st.integers(1, 20)
    precisions = st.integers(0, 9)
    kinds = (
        st.sampled_from(BARE_TYPES)
        | st.builds(CharType, lengths)
        | st.builds(BinaryType, lengths)
        | _decimals()
        | st.builds(TimeType, precisions)
        | st.builds(TimestampType, precisions)
        | st.builds(TimestampLtzType, precisions)
    )
    return with_nullability(kinds)


def with_nullability(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    """The same types, some of them NOT NULL."""
    return st.builds(lambda t, keep: t if keep else t.not_null(), types, st.booleans())


def _nested(children: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    fields = st.lists(
        st.builds(DataField, _names, children, _comments),
        min_size=1,
        max_size=3,
        unique_by=lambda field: field.name,
    )
    kinds = (
        st.builds(ArrayType, children)
        | st.builds(MapType, children, children)
        | st.builds(lambda f: RowType(tuple(f)), fields)
    )
    return with_nullability(kinds)


def data_types(*, leaves_max: int = 6) -> st.SearchStrategy[DataType]:
    """Every type, nested up to a few levels."""
    return st.recursive(scalar_types(), _nested, max_leaves=leaves_max)


def columns() -> st.SearchStrategy[list[Column]]:
    """Columns of different names, without ids."""
    return st.lists(
        st.builds(Column, _names, data_types(leaves_max=3), _comments),
        min_size=1,
        max_size=4,
        unique_by=lambda column: column.name,
    )


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """Schemas of log tables and of primary key tables."""
    drawn = draw(columns())
    keyable = [each.name for each in drawn if not each.data_type.is_nested]
    keys = draw(st.lists(st.sampled_from(keyable), unique=True)) if keyable else []
    return Schema(drawn, keys)
