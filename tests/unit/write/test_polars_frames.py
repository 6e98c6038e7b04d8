"""Frames of Polars as Arrow: types that Polars would export differently."""

from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest

from fluss.errors import InvalidValueError, UnsupportedTypeError
from fluss.model.types.factory import DataTypes
from fluss.model.types.polars_types import exportable_schema
from fluss.write.polars_frames import exportable
from fluss.write.table_from_frame import schema_of_frame
from fluss.write.tabular import frame_of

OBJECTS = pl.Series("a", [object()], dtype=pl.Object)


def arrow(data):
    frame = frame_of(data)
    return pa.Table.from_batches(frame.batches({}), schema=frame.schema)


@pytest.mark.parametrize(
    "data",
    [OBJECTS, OBJECTS.to_frame(), OBJECTS.to_frame().lazy(), {"a": OBJECTS}],
    ids=["series", "frame", "lazy", "columns"],
)
def test_python_objects_are_refused(data):
    """Polars gives their addresses, as fixed_size_binary[8]."""
    with pytest.raises(UnsupportedTypeError, match=r"column 'a' .* type Object"):
        arrow(data)


def test_a_table_is_not_made_of_python_objects():
    with pytest.raises(UnsupportedTypeError):
        schema_of_frame(OBJECTS.to_frame())


def test_integers_of_128_bits_are_decimals():
    frame = pl.DataFrame(
        {
            "i": pl.Series([1, None, -(2**100)], dtype=pl.Int128),
            "u": pl.Series([1, None, 2**100], dtype=pl.UInt128),
            "l": pl.Series([[2**64], None, []], dtype=pl.List(pl.Int128)),
            "a": pl.Series([[2**64], None, [0]], dtype=pl.Array(pl.Int128, 1)),
            "s": pl.Series([{"x": 1}, None, {"x": 2}], dtype=pl.Struct({"x": pl.Int128})),
        }
    )
    decimal = pa.decimal128(38, 0)
    table = arrow(frame)
    assert table.schema.types[:2] == [decimal, decimal]
    assert table.column("i").to_pylist() == [Decimal(1), None, Decimal(-(2**100))]
    assert table.column("l").to_pylist() == [[Decimal(2**64)], None, []]
    assert table.column("s").to_pylist() == [{"x": Decimal(1)}, None, {"x": Decimal(2)}]
    assert exportable_schema(frame.schema) == exportable(frame).schema
    assert schema_of_frame(frame).schema.column_types[0] == DataTypes.decimal(38, 0)


@pytest.mark.parametrize(
    ("dtype", "values", "row"),
    [
        (pl.Int128, [1, None, -(10**38), 2], 2),
        (pl.UInt128, [2**127], 0),
        (pl.List(pl.Int128), [[1], None, [1], [0, 10**38]], 3),
    ],
)
def test_an_integer_of_more_than_38_digits_is_refused_with_its_row(dtype, values, row):
    with pytest.raises(InvalidValueError, match="at most 38 digits") as refused:
        arrow(pl.DataFrame({"n": pl.Series(values, dtype=dtype)}))
    assert (refused.value.column, refused.value.row) == ("n", row)


def test_other_frames_are_left_as_they_are():
    frame = pl.DataFrame({"a": [1], "b": ["x"], "c": [[1]]})
    assert exportable(frame) is frame
