"""Users' batches become the wire's where that is safe, and a precise complaint where it is not."""

from __future__ import annotations

import struct
from decimal import Decimal
from random import Random

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given

from fluss.errors import InvalidValueError, SchemaMismatchError
from fluss.model.types.data_type import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    BytesType,
    CharType,
    DataField,
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
from fluss.model.types.factory import DataTypes
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.cast import to_wire_batch
from fluss.records.convert.numpy_columns import to_batch, to_columns
from tests.support.generators.random_columns import columns_of, rows_in
from tests.support.generators.random_values import ALL_TYPES, exact, random_rows, tables


def layout_of(**types):
    return BatchLayout.of(list(types), list(types.values()))


def cast_one(array, data_type):
    batch = pa.record_batch([array], ["c"])
    return to_wire_batch(batch, layout_of(c=data_type)).column(0)


def refused_value(array, data_type):
    with pytest.raises(InvalidValueError) as caught:
        cast_one(array, data_type)
    assert caught.value.column == "c"
    return caught.value


def refused_type(array, data_type):
    with pytest.raises(SchemaMismatchError) as caught:
        cast_one(array, data_type)
    assert caught.value.column == "c"
    assert str(array.type) in caught.value.message
    return caught.value


@given(tables())
def test_a_batch_in_wire_form_is_returned_as_it_is(table):
    types, rows = table
    layout = BatchLayout.of([f"c{index}" for index in range(len(types))], types)
    batch = to_batch(columns_of(types, rows, rubbish=False), layout.wire_schema)
    assert to_wire_batch(batch, layout) is batch


@given(tables())
def test_a_batch_as_users_see_it_holds_the_same_rows_in_wire_form(table):
    types, rows = table
    layout = BatchLayout.of([f"c{index}" for index in range(len(types))], types)
    batch = to_batch(columns_of(types, rows, rubbish=False), layout.user_schema)
    wire = to_wire_batch(batch, layout)
    assert exact(rows_in(to_columns(wire, types), length=len(rows))) == exact(rows)


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
def test_large_and_dictionary_forms_of_every_type_come_out_in_wire_form(data_type):
    rows = random_rows(Random(8), (data_type,), 40)
    layout = layout_of(c=data_type)
    plain = to_batch(columns_of((data_type,), rows, rubbish=False), layout.wire_schema).column(0)
    for form in (enlarged(plain), in_dictionary(plain)):
        sliced = pa.concat_arrays([form.slice(0, 3), form]).slice(3)
        wire = cast_one(sliced, data_type)
        assert wire.type == plain.type
        assert exact(
            rows_in(to_columns(pa.record_batch([wire], ["c"]), (data_type,)), length=40)
        ) == (exact(rows))


def enlarged(array):
    kind = array.type
    if pa.types.is_string(kind):
        return array.cast(pa.large_string())
    if pa.types.is_binary(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_list(kind):
        return array.cast(pa.large_list(kind.value_type))
    return array


def in_dictionary(array):
    return array if pa.types.is_nested(array.type) else array.dictionary_encode()


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("sign", ["", "u"])
def test_integers_of_every_width_fit_where_their_values_do(bits, sign):
    source = getattr(pa, f"{sign}int{bits}")()
    for target in (TinyIntType(), SmallIntType(), IntType(), BigIntType()):
        assert cast_one(pa.array([0, 1, 100, None], source), target).to_pylist() == [
            0,
            1,
            100,
            None,
        ]


def test_an_integer_that_overflows_is_refused_with_its_row():
    error = refused_value(pa.array([1, 2**31 - 1, None, 2**31, 5], pa.int64()), IntType())
    assert error.row == 3
    assert "2147483648" in error.message
    assert refused_value(pa.array([2**64 - 1], pa.uint64()), BigIntType()).row == 0


def test_the_row_is_counted_in_the_batch_given_and_not_in_what_it_was_sliced_from():
    array = pa.array([2**40] * 10 + [1] * 7 + [2**40], pa.int64()).slice(10)
    assert refused_value(array, IntType()).row == 7


def test_what_stands_under_a_null_does_not_matter():
    values = pa.array([2**40, 1], pa.int64()).buffers()[1]
    array = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x02"), values])
    assert cast_one(array, IntType()).to_pylist() == [None, 1]


def test_whole_decimals_become_integers_by_value():
    """DuckDB's sums of integers, and integers of 128 bits, come as DECIMAL(38, 0)."""
    whole = pa.array([Decimal(5), None, Decimal(-(2**63))], pa.decimal128(38, 0))
    assert cast_one(whole, BigIntType()).to_pylist() == [5, None, -(2**63)]
    assert refused_value(whole, IntType()).row == 2
    refused_type(pa.array([Decimal("1.0")]), BigIntType())


def test_a_decimal_whose_memory_holds_more_digits_is_refused():
    """DuckDB gives a HUGEINT of 39 digits as DECIMAL(38, 0), and Arrow does not look."""
    huge = (10**38).to_bytes(16, "little")
    data = pa.py_buffer(bytes(16) + huge)
    kind = pa.decimal128(38, 0)
    array = pa.Array.from_buffers(kind, 2, [None, data])
    assert "at most 38 digits" in refused_value(array, DecimalType(38, 0)).message
    assert refused_value(array, DecimalType(38, 0)).row == 1
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), array)
    assert refused_value(lists, ArrayType(DecimalType(38, 0))).row == 1


@pytest.mark.parametrize("millis", [-1, 86_400_000])
def test_a_time_of_day_lies_within_a_day(millis):
    times = pa.array([0, 86_399_999, millis], pa.int32()).view(pa.time32("ms"))
    assert cast_one(times.slice(0, 2), TimeType(3)).equals(times.slice(0, 2))
    assert refused_value(times, TimeType(3)).row == 2


@pytest.mark.parametrize("values", [pa.string_view(), pa.large_string()], ids=str)
def test_dictionaries_are_decoded_whatever_holds_their_values(values):
    """Polars' Categorical and Enum are dictionaries of views, from which Arrow cannot take."""
    array = pa.DictionaryArray.from_arrays(
        pa.array([1, 0, None], pa.uint8()), pa.array(["a", "b"], values)
    )
    assert cast_one(array, StringType()).to_pylist() == ["b", "a", None]
    assert cast_one(array.slice(1), StringType()).to_pylist() == ["a", None]
    rows = pa.StructArray.from_arrays([array], ["x"], mask=pa.array([True, False, False]))
    kind = RowType((DataField("x", StringType()),))
    assert cast_one(rows, kind).to_pylist() == [None, {"x": "a"}, {"x": None}]
    for kind in (pa.list_, pa.large_list, pa.list_view):
        column = pa.array(
            [{"x": ["a"]}, None, {"x": None}, {"x": ["b", "a"]}],
            pa.struct([("x", kind(pa.string()))]),
        )
        inner = column.field(0)
        coded = pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 0], pa.uint8()), pa.array(["a", "b"], values)
        )
        coded_lists = pa.Array.from_buffers(
            kind(coded.type),
            len(inner),
            inner.buffers()[: 3 if kind is pa.list_view else 2],
            -1,
            0,
            [coded],
        )
        deep = pa.StructArray.from_arrays([coded_lists], ["x"], mask=column.is_null())
        for start in (0, 1):
            expected = [{"x": ["a"]}, None, {"x": None}, {"x": ["b", "a"]}][start:]
            made = cast_one(deep.slice(start), RowType((DataField("x", ArrayType(StringType())),)))
            assert made.to_pylist() == expected
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), array)
    assert cast_one(lists, ArrayType(StringType())).to_pylist() == [["b", "a"], [None]]


def test_an_extension_type_whose_storage_is_not_its_value_is_refused():
    periods = pa.array(pd.period_range("2026-01", periods=2, freq="M"))
    assert isinstance(periods.type, pa.BaseExtensionType)
    refused_type(periods, BigIntType())
    opaque = pa.opaque(pa.binary(), "bignum", "DuckDB")
    refused_type(pa.ExtensionArray.from_storage(opaque, pa.array([b"x"])), BytesType())


def test_floats_do_not_become_integers():
    error = refused_type(pa.array([1.0]), IntType())
    assert "INT" in error.message
    assert error.hint == "cast the column: column.cast(pa.int32())"


def test_a_double_becomes_the_nearest_float():
    values = [1.5, None, float("inf"), -0.0, 2.0**100]
    assert cast_one(pa.array(values, pa.float64()), FloatType()).to_pylist() == values
    nan = cast_one(pa.array([float("nan")], pa.float64()), FloatType())[0].as_py()
    assert nan != nan  # noqa: PLR0124 - that is what a NaN is
    rounded = [
        struct.unpack("f", struct.pack("f", each))[0] for each in (89.3, 1e-46, 3.4028235e38)
    ]
    assert cast_one(pa.array([89.3, 1e-46, 3.4028235e38]), FloatType()).to_pylist() == rounded
    assert refused_value(pa.array([1.5, None, -3.5e38]), FloatType()).row == 2


def test_floats_are_rounded_inside_of_nested_values():
    nearest = struct.unpack("f", struct.pack("f", 89.3))[0]
    lists = pa.array([[89.3], None, [1e39]])
    assert cast_one(lists.slice(0, 2), ArrayType(FloatType())).to_pylist() == [[nearest], None]
    assert refused_value(lists, ArrayType(FloatType())).row == 2
    rows = pa.array([{"x": 89.3}, None], pa.struct([("x", pa.float64())]))
    kind = RowType((DataField("x", FloatType()),))
    assert cast_one(rows, kind).to_pylist() == [{"x": nearest}, None]


def test_decimals_become_the_nearest_floating_point_numbers():
    decimals = [Decimal("0.3"), Decimal("89.3"), None, Decimal("-0.1")]
    array = pa.array(decimals, pa.decimal128(38, 20))
    # Arrow's own cast gives 0.30000000000000004.
    assert cast_one(array, DoubleType()).to_pylist() == [0.3, 89.3, None, -0.1]
    assert cast_one(array, FloatType())[1].as_py() == struct.unpack("f", struct.pack("f", 89.3))[0]
    large = pa.array([Decimal(1), Decimal(10) ** 40], pa.decimal256(50, 0))
    assert refused_value(large, FloatType()).row == 1


def test_integers_become_floats_only_where_they_keep_their_value():
    assert cast_one(pa.array([2**53]), DoubleType()).to_pylist() == [2.0**53]
    assert refused_value(pa.array([0, 2**53 + 1]), DoubleType()).row == 1
    assert refused_value(pa.array([2**24 + 1]), FloatType()).row == 0
    # Arrow refuses every integer of more bits than the mantissa has, also those that fit.
    wide = [2**25, -(2**63), 0, None, 2**62 + 2**40]
    assert cast_one(pa.array(wide), FloatType()).to_pylist() == wide
    assert refused_value(pa.array([2**63, 2**64 - 1], pa.uint64()), DoubleType()).row == 1
    assert cast_one(pa.array([0.5], pa.float16()), FloatType()).to_pylist() == [0.5]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_in_any_layout_is_text(kind):
    for target in (StringType(), CharType(4)):
        wire = cast_one(pa.array(["häßl", None, ""], kind), target)
        assert wire.type == pa.string()
        assert wire.to_pylist() == ["häßl", None, ""]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)])
def test_bytes_in_any_layout_are_bytes(kind):
    assert cast_one(pa.array([b"ab", None], kind), BytesType()).type == pa.binary()
    assert cast_one(pa.array([b"ab", None], kind), BinaryType(2)).type == pa.binary(2)


def test_text_and_bytes_are_not_each_other():
    refused_type(pa.array(["a"]), BytesType())
    refused_type(pa.array([b"a"]), StringType())
    refused_type(pa.array([b"a"], pa.binary(1)), BinaryType(2))


def test_char_counts_characters_and_not_bytes():
    assert cast_one(pa.array(["äöü"]), CharType(3)).to_pylist() == ["äöü"]
    error = refused_value(pa.array(["a", "äöüß"]), CharType(3))
    assert error.row == 1
    assert "at most 3 characters" in error.message


def test_binary_has_exactly_its_length():
    assert refused_value(pa.array([b"abc", None, b"ab"]), BinaryType(3)).row == 2


def test_not_null_is_checked():
    assert refused_value(pa.array([1, None], pa.int32()), IntType().not_null()).row == 1
    assert refused_value(pa.nulls(2), IntType().not_null()).row == 0


def test_a_column_without_values_fits_every_type_that_may_be_null():
    for data_type in ALL_TYPES:
        assert cast_one(pa.nulls(3), data_type.as_nullable()).null_count == 3


def test_booleans_are_only_booleans():
    refused_type(pa.array([1]), BooleanType())
    refused_type(pa.array([True]), IntType())


def test_decimals_are_rescaled_exactly():
    array = pa.array([Decimal("1.50"), None], pa.decimal128(10, 2))
    assert cast_one(array, DecimalType(5, 1)).to_pylist() == [Decimal("1.5"), None]
    assert cast_one(array, DecimalType(38, 10)).to_pylist() == [Decimal("1.5000000000"), None]
    assert refused_value(pa.array([Decimal("1.0"), Decimal("1.5")]), DecimalType(5, 0)).row == 1
    assert refused_value(pa.array([Decimal("12345.6")]), DecimalType(5, 1)).row == 0
    wide = pa.array([Decimal("12.5")], pa.decimal256(60, 20))
    assert cast_one(wide, DecimalType(4, 2)).to_pylist() == [Decimal("12.50")]


def test_integers_become_decimals_where_the_digits_suffice():
    assert cast_one(pa.array([999, None]), DecimalType(5, 2)).to_pylist() == [
        Decimal("999.00"),
        None,
    ]
    assert refused_value(pa.array([999, 1000]), DecimalType(5, 2)).row == 1
    assert cast_one(pa.array([2**64 - 1], pa.uint64()), DecimalType(38, 18)).to_pylist() == [
        Decimal(2**64 - 1).quantize(Decimal(1))
    ]
    assert refused_type(pa.array([1.5]), DecimalType(5, 2)).hint == (
        "cast the column: column.cast(pa.decimal128(5, 2))"
    )


def test_dates_come_in_days_or_in_whole_days_of_milliseconds():
    assert (
        cast_one(pa.array([86_400_000], pa.date64()), DateType()).cast(pa.int32())[0].as_py() == 1
    )
    assert refused_value(pa.array([0, 86_400_001], pa.date64()), DateType()).row == 1
    refused_type(pa.array([0], pa.timestamp("s")), DateType())


def test_times_change_units_without_losing_digits():
    array = pa.array([1_000_000, None], pa.time64("us"))
    assert cast_one(array, TimeType(0)).cast(pa.int32()).to_pylist() == [1, None]
    assert cast_one(array, TimeType(9)).cast(pa.int64()).to_pylist() == [1_000_000_000, None]
    assert refused_value(pa.array([0, 1_000_001], pa.time64("us")), TimeType(3)).row == 1


def test_timestamps_change_units_without_losing_digits_or_range():
    array = pa.array([1_500_000, None], pa.timestamp("us"))
    assert cast_one(array, TimestampType(3)).cast(pa.int64()).to_pylist() == [1500, None]
    assert refused_value(array, TimestampType(0)).row == 0
    assert refused_value(pa.array([1, 2**60], pa.timestamp("s")), TimestampType(9)).row == 1


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris", "+05:30"])
def test_an_instant_in_any_zone_is_the_same_instant(zone):
    for unit, precision in (("s", 0), ("ms", 3), ("us", 6), ("ns", 9)):
        array = pa.array([7, -7, None], pa.timestamp(unit, zone))
        wire = cast_one(array, TimestampLtzType(precision))
        assert wire.cast(pa.int64()).to_pylist() == [7, -7, None]
    finer = cast_one(pa.array([7, None], pa.timestamp("s", zone)), TimestampLtzType(6))
    assert finer.type == pa.timestamp("us")
    assert finer.cast(pa.int64()).to_pylist() == [7_000_000, None]


def test_a_plain_timestamp_is_taken_for_utc_where_an_instant_is_expected():
    wire = cast_one(pa.array([7], pa.timestamp("us")), TimestampLtzType(6))
    assert wire.cast(pa.int64()).to_pylist() == [7]


def test_a_zone_is_not_thrown_away():
    for zone in ("Europe/Paris", "UTC"):
        error = refused_type(pa.array([7], pa.timestamp("us", zone)), TimestampType(6))
        assert "local_timestamp" in error.hint
        assert "TIMESTAMP_LTZ" in error.hint


def test_lists_of_every_kind_become_lists_and_their_elements_are_cast():
    values = [[1, 2], None, [], [3, None]]
    for kind in (pa.list_(pa.int64()), pa.large_list(pa.int16()), pa.list_view(pa.uint8())):
        wire = cast_one(pa.array(values, kind).slice(1), ArrayType(IntType()))
        assert wire.type == pa.list_(pa.int32())
        assert wire.to_pylist() == values[1:]
    fixed = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2))
    assert cast_one(fixed, ArrayType(IntType())).to_pylist() == [[1, 2], None, [3, 4]]
    assert refused_value(pa.array([[1], [2**40]]), ArrayType(IntType())).row == 1
    refused_type(pa.array([1]), ArrayType(IntType()))


def test_elements_that_may_not_be_null_are_checked():
    target = ArrayType(IntType().not_null())
    assert refused_value(pa.array([[1], None, [None]], pa.list_(pa.int32())), target).row == 2
    assert cast_one(pa.array([[1], None], pa.list_(pa.int64())), target).to_pylist() == [[1], None]


def test_maps_are_cast_by_keys_and_values():
    source = pa.map_(pa.large_string(), pa.int64())
    values = [[("a", 1)], None, [("b", None), ("c", 3)]]
    target = MapType(StringType(), IntType())
    wire = cast_one(pa.array(values, source).slice(1), target)
    assert wire.to_pylist() == values[1:]
    assert wire.type == pa.map_(pa.string(), pa.int32())
    assert refused_value(pa.array([[("a", 2**40)]], source), target).row == 0
    long_key = pa.array([[("a", 1)], [("abc", 1)]], pa.map_(pa.string(), pa.int32()))
    assert refused_value(long_key, MapType(CharType(2), IntType())).row == 1
    refused_type(pa.array([1]), target)


def test_structs_are_matched_by_name():
    source = pa.struct([("b", pa.large_string()), ("a", pa.int64())])
    target = RowType((DataField("a", IntType()), DataField("b", StringType())))
    values = [{"a": 1, "b": "x"}, None, {"a": None, "b": None}]
    wire = cast_one(pa.array(values, source), target)
    assert wire.to_pylist() == values
    assert [each.name for each in wire.type] == ["a", "b"]
    other = pa.array([{"a": 1, "c": 1}])
    assert "fields are not a, b" in refused_type(other, target).message


def test_views_in_structs_that_may_be_null_are_cast():
    # What Polars hands over; Arrow chooses among no views.
    fields = [("s", pa.string_view()), ("b", pa.binary_view())]
    rows = [{"s": "a text that is not short", "b": b"x"}, None, {"s": None, "b": None}]
    kind = RowType((DataField("s", StringType()), DataField("b", BytesType())))
    batch = pa.record_batch({"c": pa.array(rows, pa.struct(fields))})
    wire = to_wire_batch(batch, BatchLayout.of(("c",), (kind,)))
    assert wire.column(0).to_pylist() == rows


def test_what_stands_under_a_null_struct_does_not_matter():
    child = pa.array([2**40, 1], pa.int64())
    array = pa.StructArray.from_arrays([child], ["a"], mask=pa.array([True, False]))
    target = RowType((DataField("a", IntType().not_null()),))
    assert cast_one(array, target).to_pylist() == [None, {"a": 1}]


def test_a_field_that_may_not_be_null_is_checked():
    target = RowType((DataField("a", IntType().not_null()),))
    assert refused_value(pa.array([{"a": 1}, None, {"a": None}]), target).row == 2


ZONED = pa.timestamp("us", "Europe/Paris")


@pytest.mark.parametrize(
    ("kind", "data_type", "value"),
    [
        (ZONED, TimestampLtzType(6), 7),
        (pa.list_(ZONED), ArrayType(TimestampLtzType(6)), [7, None]),
        (pa.map_(pa.string(), ZONED), MapType(StringType(), TimestampLtzType(6)), [("a", 7)]),
        (pa.struct([("t", ZONED)]), RowType((DataField("t", TimestampLtzType(6)),)), {"t": 7}),
        (
            pa.list_(pa.struct([("ts", pa.list_(ZONED))])),
            ArrayType(RowType((DataField("ts", ArrayType(TimestampLtzType(6))),))),
            [{"ts": [7]}, None],
        ),
    ],
    ids=str,
)
def test_what_needs_no_cast_still_gets_the_wires_types_beside_what_does(kind, data_type, value):
    array = pa.array([None, value, None, value], kind).slice(1)
    other = pa.array([1, 2, 3], pa.int64())
    target = RowType((DataField("x", IntType()), DataField("y", data_type)))
    layout = layout_of(x=IntType(), y=data_type, row=target)
    struct = pa.StructArray.from_arrays([other, array], ["x", "y"])
    wire = to_wire_batch(pa.record_batch([other, array, struct], ["x", "y", "row"]), layout)
    wire.validate(full=True)
    assert wire.schema.equals(layout.wire_schema, check_metadata=True)
    assert "Paris" not in str(wire.schema)
    assert wire.column(1).null_count == 1
    found = str(wire.column(1).to_pylist())
    assert found == str([each["y"] for each in wire.column(2).to_pylist()])
    assert "1970, 1, 1, 0, 0, 0, 7" in found


def test_nothing_but_the_right_kind_becomes_a_list_a_map_a_struct_or_a_time():
    text = pa.array(["x"])
    row = RowType((DataField("a", IntType()),))
    assert "pa.timestamp('us')" in refused_type(text, TimestampType(6)).hint
    assert "pa.timestamp('ms', 'UTC')" in refused_type(text, TimestampLtzType(3)).hint
    assert "pa.time32('s')" in refused_type(text, TimeType(0)).hint
    assert "cast the column" in refused_type(pa.array([1], pa.date32()), TimestampType(6)).hint
    assert "pa.struct(" in refused_type(text, row).hint
    assert "pa.map_(" in refused_type(text, MapType(IntType(), IntType())).hint
    assert "pa.binary(3)" in refused_type(text, BinaryType(3)).hint


def test_more_elements_than_offsets_can_count_are_refused(monkeypatch):
    monkeypatch.setattr("fluss.records.arrow.numpy_arrays.ELEMENTS_MAX", 3)
    array = pa.array([[1, 2], [3, 4]], pa.list_(pa.int64()))
    assert "more than 3 elements" in refused_value(array, ArrayType(IntType())).message


def test_run_ends_and_extensions_are_unwrapped():
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([5, 6], pa.int64()))
    assert cast_one(runs, IntType()).to_pylist() == [5, 5, 6]
    uuids = pa.array([b"0123456789abcdef"], pa.uuid())
    assert cast_one(uuids, BinaryType(16)).to_pylist() == [b"0123456789abcdef"]


def test_columns_are_matched_by_name_whatever_their_order():
    batch = pa.record_batch([pa.array(["x"]), pa.array([1], pa.int32())], ["b", "a"])
    wire = to_wire_batch(batch, layout_of(a=IntType(), b=StringType()))
    assert wire.to_pylist() == [{"a": 1, "b": "x"}]


def test_an_unknown_column_is_refused_with_the_one_probably_meant():
    batch = pa.record_batch([pa.array([1], pa.int32())], ["amout"])
    with pytest.raises(SchemaMismatchError, match="no column 'amout'") as caught:
        to_wire_batch(batch, layout_of(amount=IntType()))
    assert caught.value.hint == "did you mean 'amount'?"


def test_a_missing_column_is_filled_only_if_asked_and_if_it_may_be_null():
    batch = pa.record_batch([pa.array([1], pa.int32())], ["a"])
    layout = layout_of(a=IntType(), b=StringType())
    with pytest.raises(SchemaMismatchError, match="lacks the column 'b'"):
        to_wire_batch(batch, layout)
    filled = to_wire_batch(batch, layout, fill_missing=True)
    assert filled.to_pylist() == [{"a": 1, "b": None}]
    with pytest.raises(SchemaMismatchError, match="lacks the column 'b'"):
        to_wire_batch(batch, layout_of(a=IntType(), b=StringType().not_null()), fill_missing=True)


def test_two_columns_of_one_name_are_refused():
    batch = pa.record_batch([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(SchemaMismatchError, match="same name: 'a'"):
        to_wire_batch(batch, layout_of(a=BigIntType()))


def test_a_long_value_is_not_shown_in_full():
    error = refused_value(pa.array(["x" * 1000]), CharType(3))
    assert len(error.message) < 250


def test_an_empty_batch_is_cast_too():
    assert len(cast_one(pa.array([], pa.int64()), IntType())) == 0
    assert len(cast_one(pa.array([], pa.large_list(pa.int64())), ArrayType(IntType()))) == 0
    assert len(cast_one(pa.array([], pa.string()), DataTypes.char(2))) == 0
