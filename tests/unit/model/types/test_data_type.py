from __future__ import annotations

import copy

import pytest
from hypothesis import given

from fluss.errors import InvalidSchemaError
from fluss.model.types.data_type import (
    ArrayType,
    BinaryType,
    CharType,
    DataField,
    DecimalType,
    IntType,
    MapType,
    RowType,
    StringType,
    TimestampLtzType,
    TimestampType,
    TimeType,
)
from fluss.model.types.factory import DataTypes
from tests.support.copies import pickled
from tests.support.generators.schema_strategies import data_types


@given(data_types())
def test_a_type_can_be_pickled_copied_and_hashed(data_type):
    assert pickled(data_type) == data_type
    assert copy.deepcopy(data_type) == data_type
    assert hash(data_type) == hash(copy.deepcopy(data_type))


@given(data_types())
def test_not_null_and_back_is_the_same_type(data_type):
    assert not data_type.not_null().nullable
    assert data_type.not_null().as_nullable() == data_type.as_nullable()
    assert data_type.not_null().not_null() is data_type.not_null() or data_type.nullable


@pytest.mark.parametrize(
    ("make", "facts"),
    [
        (CharType, (0,)),
        (CharType, (2**31,)),
        (CharType, (True,)),
        (CharType, ("3",)),
        (BinaryType, (0,)),
        (DecimalType, (0,)),
        (DecimalType, (39,)),
        (DecimalType, (5, 6)),
        (DecimalType, (5, -1)),
        (TimeType, (10,)),
        (TimestampType, (-1,)),
        (TimestampLtzType, (10,)),
    ],
)
def test_a_length_or_precision_out_of_range_is_refused(make, facts):
    with pytest.raises(InvalidSchemaError, match="must lie between"):
        make(*facts)


def test_a_key_of_a_map_is_never_null():
    assert MapType(StringType(), IntType()).key == StringType().not_null()


def test_a_row_cannot_have_two_fields_of_one_name():
    with pytest.raises(InvalidSchemaError, match="'a'"):
        RowType((DataField("a", IntType()), DataField("a", StringType())))


def test_nested_types_say_what_they_are_made_of():
    row = RowType([DataField("a", IntType()), DataField("b", ArrayType(StringType()))])
    assert list(row.children()) == [IntType(), ArrayType(StringType())]
    assert row.field_names == ("a", "b")
    assert row.is_nested
    assert not IntType().is_nested


def test_the_unit_follows_from_the_precision():
    units = [TimestampType(each).unit for each in range(10)]
    assert units == ["s", "ms", "ms", "ms", "us", "us", "us", "ns", "ns", "ns"]


def test_the_text_is_that_of_sql():
    row = DataTypes.row([DataTypes.field("a", DataTypes.decimal(10, 2).not_null())])
    assert str(DataTypes.map(DataTypes.string(), DataTypes.array(row)).not_null()) == (
        "MAP<STRING NOT NULL, ARRAY<ROW<a DECIMAL(10, 2) NOT NULL>>> NOT NULL"
    )


def test_the_factory_makes_every_type_with_the_documented_defaults():
    made = [
        DataTypes.boolean(),
        DataTypes.tinyint(),
        DataTypes.smallint(),
        DataTypes.int(),
        DataTypes.bigint(),
        DataTypes.float(),
        DataTypes.double(),
        DataTypes.string(),
        DataTypes.bytes(),
        DataTypes.date(),
        DataTypes.time(),
        DataTypes.timestamp(),
        DataTypes.timestamp_ltz(),
        DataTypes.decimal(10, 2),
        DataTypes.char(3),
        DataTypes.binary(4),
        DataTypes.time_with_precision(3),
        DataTypes.timestamp_with_precision(9),
        DataTypes.timestamp_ltz_with_precision(0),
    ]
    assert " ".join(map(str, made)) == (
        "BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE STRING BYTES DATE TIME(0) TIMESTAMP(6) "
        "TIMESTAMP_LTZ(6) DECIMAL(10, 2) CHAR(3) BINARY(4) TIME(3) TIMESTAMP(9) TIMESTAMP_LTZ(0)"
    )
    assert all(each.nullable for each in made)


def test_compact_types_fit_64_bits():
    assert [DecimalType(each).is_compact for each in (1, 18, 19, 38)] == [True, True, False, False]
    for kind in (TimestampType, TimestampLtzType):
        assert [kind(each).is_compact for each in (0, 3, 4, 9)] == [True, True, False, False]
