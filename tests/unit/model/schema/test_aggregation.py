from __future__ import annotations

import pytest

from fluss.errors import InvalidSchemaError
from fluss.model.schema.aggregation import AggFunction, AggFunctionType
from fluss.model.types.factory import DataTypes


def test_a_function_is_found_by_its_name_in_any_spelling():
    assert AggFunction.of("SUM").type is AggFunctionType.SUM
    assert AggFunction.of("last-value").type is AggFunctionType.LAST_VALUE
    assert AggFunction.find("no_such") is None


def test_a_mistyped_function_brings_the_right_one():
    with pytest.raises(InvalidSchemaError) as caught:
        AggFunction.of("lastvalue")
    assert caught.value.hint == "did you mean 'last_value'?"


def test_a_delimiter_belongs_to_lists_and_is_not_empty():
    assert str(AggFunction.of("listagg", delimiter="|")) == "listagg(delimiter='|')"
    with pytest.raises(InvalidSchemaError, match="takes no parameters"):
        AggFunction.of("sum", delimiter=",")
    with pytest.raises(InvalidSchemaError, match="empty"):
        AggFunction.of("string_agg", delimiter="")


@pytest.mark.parametrize(
    ("name", "data_type"),
    [
        ("sum", DataTypes.decimal(10, 2)),
        ("max", DataTypes.timestamp_ltz()),
        ("min", DataTypes.char(2)),
        ("bool_or", DataTypes.boolean()),
        ("rbm64", DataTypes.bytes()),
        ("listagg", DataTypes.string()),
        ("first_value", DataTypes.array(DataTypes.int())),
    ],
)
def test_a_function_takes_the_types_it_can_combine(name, data_type):
    AggFunction.of(name).check_type("c", data_type)


@pytest.mark.parametrize(
    ("name", "data_type"),
    [
        ("sum", DataTypes.string()),
        ("max", DataTypes.boolean()),
        ("bool_and", DataTypes.int()),
        ("rbm32", DataTypes.binary(4)),
        ("listagg", DataTypes.int()),
    ],
)
def test_a_function_refuses_the_others_and_names_the_column(name, data_type):
    with pytest.raises(InvalidSchemaError, match="'c' is"):
        AggFunction.of(name).check_type("c", data_type)
