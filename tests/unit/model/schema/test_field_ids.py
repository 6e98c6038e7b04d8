from __future__ import annotations

import pytest
from hypothesis import given

from fluss.errors import InvalidSchemaError
from fluss.model.schema.column import Column
from fluss.model.schema.field_ids import (
    FIELD_ID_MAX,
    highest_field_id,
    refuse_duplicate_ids,
    with_field_ids,
    without_field_ids,
)
from fluss.model.types.data_type import DataField, RowType
from fluss.model.types.factory import DataTypes as D
from tests.support.generators.schema_strategies import columns


def ids_of(data_type):
    own = [each.field_id for each in data_type.fields] if isinstance(data_type, RowType) else []
    return own + [each for child in data_type.children() for each in ids_of(child)]


def test_ids_are_given_depth_first():
    inner = D.row([D.field("x", D.int()), D.field("y", D.row([D.field("z", D.int())]))])
    given_columns = [Column("a", inner), Column("b", D.map(D.string(), D.array(inner)))]
    first, second = with_field_ids(given_columns)
    assert first.column_id == 0
    assert ids_of(first.data_type) == [1, 2, 3]
    assert second.column_id == 4
    assert ids_of(second.data_type) == [5, 6, 7]


@given(columns())
def test_every_id_is_given_once_and_none_is_left_out(given_columns):
    numbered = with_field_ids(given_columns)
    found = [
        each for c in numbered for each in (c.column_id, *ids_of(c.data_type)) if each is not None
    ]
    assert sorted(found) == list(range(len(found)))
    assert highest_field_id(numbered) == len(found) - 1
    assert without_field_ids(numbered) == tuple(given_columns)
    assert with_field_ids(numbered) == numbered


def test_ids_that_are_there_stay_and_new_ones_are_above_all():
    row = RowType((DataField("x", D.int(), field_id=9), DataField("y", D.int())))
    (column,) = with_field_ids([Column("a", row, column_id=3)], highest=20)
    assert column.column_id == 3
    assert ids_of(column.data_type) == [9, 21]


def test_columns_have_ids_all_together_or_not_at_all():
    with pytest.raises(InvalidSchemaError, match="'a' has an id and the column 'b' has none"):
        with_field_ids([Column("a", D.int(), column_id=0), Column("b", D.int())])


def test_an_id_is_not_given_twice_not_even_deep_inside():
    row = D.array(RowType((DataField("x", D.int(), field_id=0),)))
    with pytest.raises(InvalidSchemaError, match=r"'a' and 'b\.x' have the same field id 0"):
        refuse_duplicate_ids([Column("a", D.int(), column_id=0), Column("b", row, column_id=1)])


def test_an_id_beyond_32_bits_is_refused():
    with pytest.raises(InvalidSchemaError, match="out of range"):
        with_field_ids([Column("a", D.int(), column_id=FIELD_ID_MAX + 1)])


def test_a_column_refuses_what_it_cannot_be():
    with pytest.raises(InvalidSchemaError, match="ids begin at 0"):
        Column("a", D.int(), column_id=-1)
    with pytest.raises(InvalidSchemaError, match="no type of a column"):
        Column("a", 3)  # type: ignore[arg-type]
