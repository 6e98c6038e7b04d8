from __future__ import annotations

import math
import struct
from collections import OrderedDict
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import IntEnum, StrEnum

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, strategies as st

from fluss.errors import InvalidValueError
from fluss.model.types.data_type import (
    UNITS_PER_SECOND,
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    BytesType,
    CharType,
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
from fluss.model.types.factory import DataTypes as D
from fluss.model.values.conversion import from_physical, to_physical
from tests.support.generators.schema_strategies import data_types

BERLIN_WINTER = timezone(timedelta(hours=1))
NOW = datetime(2026, 11, 18, 10, 7, 3, 123456)  # noqa: DTZ001 - without a zone on purpose
BITS = {TinyIntType: 8, SmallIntType: 16, IntType: 32, BigIntType: 64}


class Level(IntEnum):
    LOW = 3


class Name(StrEnum):
    ANNA = "anna"


def physical(data_type, value):
    return to_physical(data_type, "c")(value)


def refused(data_type, value):
    with pytest.raises(InvalidValueError) as caught:
        physical(data_type, value)
    return caught.value


# --- round trips --------------------------------------------------------------------------------


def values_of(data_type):
    """Values for people that the type holds exactly."""
    kind = scalars_of(data_type)
    return st.none() | kind if data_type.nullable else kind


def scalars_of(data_type):
    match data_type:
        case BooleanType():
            return st.booleans()
        case TinyIntType() | SmallIntType() | IntType() | BigIntType():
            half = 1 << BITS[type(data_type)] - 1
            return st.integers(-half, half - 1)
        case FloatType():
            return st.floats(width=32, allow_nan=False)
        case DoubleType():
            return st.floats(allow_nan=False)
        case DecimalType():
            limit = 10**data_type.precision - 1
            return st.integers(-limit, limit).map(
                lambda n: (
                    Decimal(n).scaleb(-data_type.scale, context=None)
                    if data_type.precision <= 28
                    else Decimal(f"{n}e-{data_type.scale}")
                )
            )
        case CharType():
            return st.text(max_size=data_type.length)
        case StringType():
            return st.text(max_size=10)
        case BinaryType():
            return st.binary(min_size=data_type.length, max_size=data_type.length)
        case BytesType():
            return st.binary(max_size=10)
        case DateType():
            return st.dates()
        case TimeType():
            return st.times().map(lambda t: t.replace(microsecond=cut(t, data_type), fold=0))
        case TimestampType():
            return whole_moments(data_type)
        case TimestampLtzType():
            return whole_moments(data_type).map(lambda t: t.replace(tzinfo=UTC))
    return nested_of(data_type)


def nested_of(data_type):
    match data_type:
        case ArrayType():
            return st.lists(values_of(data_type.element), max_size=3)
        case MapType():
            return st.lists(
                st.tuples(values_of(data_type.key), values_of(data_type.value)), max_size=3
            )
        case RowType():
            names = data_type.field_names
            values = st.tuples(*(values_of(each) for each in data_type.field_types))
            return values.map(lambda given: dict(zip(names, given, strict=True)))
    raise AssertionError(data_type)


def whole_moments(data_type):
    # In nanoseconds 64 bits end in the year 2262.
    low, high = datetime(1700, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001
    return st.datetimes(low, high).map(lambda t: t.replace(microsecond=cut(t, data_type), fold=0))


def cut(moment, data_type):
    step = max(1, 1_000_000 // UNITS_PER_SECOND[data_type.unit])
    return moment.microsecond // step * step


@given(st.data())
def test_what_a_type_holds_comes_back_as_it_was(data):
    data_type = data.draw(data_types(leaves_max=4))
    value = data.draw(values_of(data_type))
    there = to_physical(data_type, "c")(value)
    assert_physical(data_type, there)
    back = from_physical(data_type)(there)
    assert back == value
    assert repr(back) == repr(value)


def assert_physical(data_type, value):
    """The value is one that `fluss.model.types.data_type` allows for the type."""
    if value is None:
        assert data_type.nullable
        return
    expected = {
        BooleanType: bool,
        FloatType: float,
        DoubleType: float,
        CharType: str,
        StringType: str,
        BinaryType: bytes,
        BytesType: bytes,
        ArrayType: list,
        MapType: list,
        RowType: tuple,
    }.get(type(data_type), int)
    assert type(value) is expected
    match data_type:
        case ArrayType():
            for each in value:
                assert_physical(data_type.element, each)
        case MapType():
            for key, each in value:
                assert_physical(data_type.key, key)
                assert_physical(data_type.value, each)
        case RowType():
            for field, each in zip(data_type.fields, value, strict=True):
                assert_physical(field.data_type, each)


# --- NULL ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", [None, pd.NA, pd.NaT], ids=["None", "NA", "NaT"])
@given(data_type=data_types(leaves_max=3))
def test_null_is_taken_where_it_is_allowed_and_refused_where_not(nothing, data_type):
    assert physical(data_type.as_nullable(), nothing) is None
    error = refused(data_type.not_null(), nothing)
    assert "was given no value" in error.message
    assert error.column == "c"


def test_a_nan_is_a_number_and_not_null():
    assert math.isnan(physical(D.double(), math.nan))
    assert math.isnan(physical(D.float(), math.nan))
    assert "NaN is no integer" in refused(D.int(), math.nan).hint
    refused(D.string(), math.nan)
    assert physical(D.timestamp(), np.datetime64("NaT", "ns")) is None
    assert physical(D.date(), np.datetime64("NaT", "ns")) is None


# --- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BITS)
def test_an_integer_fits_or_is_refused(kind):
    data_type, half = kind(), 1 << BITS[kind] - 1
    assert physical(data_type, half - 1) == half - 1
    assert physical(data_type, -half) == -half
    for value in (half, -half - 1, 10**5000):
        assert "is not between" in refused(data_type, value).message


@pytest.mark.parametrize(
    "value", [Level.LOW, np.int8(3), np.uint64(3), np.int64(3)], ids=lambda v: type(v).__name__
)
def test_whatever_is_an_integer_by_itself_is_taken(value):
    converted = physical(D.tinyint(), value)
    assert converted == 3
    assert type(converted) is int


@pytest.mark.parametrize(
    "value",
    [True, np.True_, 3.0, "3", Decimal(3), np.float64(3), b"3", [3], NOW],
    ids=lambda v: f"{type(v).__module__}.{type(v).__name__}",
)
def test_whatever_is_not_is_refused(value):
    error = refused(D.int(), value)
    assert error.column == "c"
    assert error.hint


def test_truth_is_true_or_false():
    assert physical(D.boolean(), np.True_) is True
    assert physical(D.boolean(), np.False_) is False
    for value in (1, 0, "true", 1.0, np.int8(1)):
        refused(D.boolean(), value)


def test_a_float_is_rounded_to_32_bits_and_no_further():
    assert physical(D.float(), 0.1) == struct.unpack("f", struct.pack("f", 0.1))[0]
    assert physical(D.float(), np.float32(0.1)) == physical(D.float(), 0.1)
    assert physical(D.float(), math.inf) == math.inf
    assert physical(D.float(), 2**24) == 2.0**24
    assert "cannot hold it exactly" in refused(D.float(), 2**24 + 1).message
    assert "cannot hold it exactly" in refused(D.float(), np.int64(2**24 + 1)).message
    assert "too large for 32 bits" in refused(D.float(), 1e300).message
    assert math.copysign(1, physical(D.float(), -0.0)) == -1


def test_a_double_takes_floats_and_integers_it_holds_exactly():
    assert physical(D.double(), 0.1) == 0.1
    assert physical(D.double(), 2**53) == 2.0**53
    assert physical(D.double(), np.float16(0.5)) == 0.5
    assert type(physical(D.double(), np.float64(0.1))) is float
    assert type(physical(D.double(), 3)) is float
    for value in (2**53 + 1, 10**400, np.int64(2**53 + 1)):
        assert "cannot hold it exactly" in refused(D.double(), value).message
    for value in (True, np.True_, "0.1", Decimal("sNaN"), 1j):
        refused(D.double(), value)


def test_a_decimal_becomes_the_nearest_floating_point_number():
    assert physical(D.double(), Decimal("89.3")) == 89.3
    assert physical(D.float(), Decimal("89.3")) == physical(D.float(), 89.3)
    assert physical(D.float(), Decimal(16777217)) == 2.0**24
    assert physical(D.double(), Decimal("-Infinity")) == -math.inf
    assert math.isnan(physical(D.float(), Decimal("NaN")))
    assert "too large for 64 bits" in refused(D.double(), Decimal("1e309")).message
    assert "too large for 32 bits" in refused(D.float(), Decimal("-1e39")).message


@pytest.mark.parametrize(
    ("value", "unscaled"),
    [
        (Decimal("123.45"), 12345),
        (Decimal("-123.4"), -12340),
        (Decimal("123.4500000000000000000000000000000000000000000000000000"), 12345),
        (Decimal("1E+2"), 10000),
        (Decimal("0E+999999"), 0),
        (Decimal("0E-999999"), 0),
        (Decimal("-0.00"), 0),
        (999, 99900),
        (np.int64(-999), -99900),
    ],
)
def test_a_decimal_becomes_its_digits(value, unscaled):
    converted = physical(D.decimal(5, 2), value)
    assert converted == unscaled
    assert type(converted) is int


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (Decimal(1000), "3 digits before the point"),
        (Decimal("999.995"), "more than 2 digits after the point"),
        (Decimal("0.001"), "more than 2 digits after the point"),
        (Decimal("1E+999999"), "digits before the point"),
        (Decimal("1E-999999"), "digits after the point"),
        (Decimal("NaN"), "not a number of digits"),
        (Decimal("sNaN"), "not a number of digits"),
        (Decimal("-Infinity"), "not a number of digits"),
        (1000, "3 digits before the point"),
        (-1000, "3 digits before the point"),
        (1.5, ""),
        ("2.5", ""),
        (True, ""),
    ],
)
def test_a_decimal_whose_digits_have_no_place_is_refused(value, why):
    assert why in refused(D.decimal(5, 2), value).message


def test_a_decimal_of_38_digits_comes_back_whole():
    digits = "12345678901234567890123456789012345678"
    for scale in (0, 10, 38):
        value = Decimal(f"{digits}e-{scale}")
        unscaled = physical(D.decimal(38, scale), value)
        assert unscaled == int(digits)
        assert from_physical(D.decimal(38, scale))(unscaled) == value


# --- text and bytes -----------------------------------------------------------------------------


def test_text_is_text_of_any_class():
    for value in (Name.ANNA, np.str_("anna"), "anna"):
        converted = physical(D.string(), value)
        assert converted == "anna"
        assert type(converted) is str
    for value in (b"anna", 7, ["anna"], bytearray(b"a")):
        refused(D.string(), value)
    assert "decode" in refused(D.string(), b"x").hint


def test_char_counts_characters_and_not_bytes():
    assert physical(D.char(3), "äöü") == "äöü"
    assert physical(D.char(3), "\U0001f600" * 3)
    assert physical(D.char(3), "") == ""
    for value in ("abcd", "äöüß"):
        assert "has 4 characters" in refused(D.char(3), value).message


def test_half_a_surrogate_pair_is_refused():
    assert "surrogate pair at position 1" in refused(D.string(), "a\ud800").message


def test_bytes_are_bytes_of_any_class_and_exactly_as_many():
    for value in (b"abc", bytearray(b"abc"), memoryview(b"abc"), np.bytes_(b"abc")):
        for data_type in (D.bytes(), D.binary(3)):
            converted = physical(data_type, value)
            assert converted == b"abc"
            assert type(converted) is bytes
    assert "has 2 bytes" in refused(D.binary(3), b"ab").message
    assert "has 4 bytes" in refused(D.binary(3), bytearray(b"abcd")).message
    assert "encode" in refused(D.bytes(), "abc").hint
    refused(D.bytes(), [1, 2])
    refused(D.bytes(), 3)


# --- times --------------------------------------------------------------------------------------


def test_a_date_is_a_day():
    assert physical(D.date(), date(1970, 1, 2)) == 1
    assert physical(D.date(), date(1, 1, 1)) == -719162
    assert physical(D.date(), np.datetime64("1969-12-31")) == -1
    assert physical(D.date(), np.datetime64("2024-01")) == 19723
    assert physical(D.date(), np.datetime64("1970-01-02T00:00", "ns")) == 1
    assert "not a whole day" in refused(D.date(), np.datetime64("1970-01-02T01")).message
    for value in (NOW, pd.Timestamp("2024-01-01"), 5, "2024-01-01", 5.0, time(1)):
        refused(D.date(), value)
    assert "value.date()" in refused(D.date(), NOW).hint
    assert "out of range" in refused(D.date(), np.datetime64(10**14, "D")).message


@pytest.mark.parametrize(
    ("precision", "count"), [(0, 3_723), (3, 3_723_000), (6, 3_723_000_000), (9, 3_723_000_000_000)]
)
def test_a_time_of_day_counts_in_its_unit(precision, count):
    assert physical(D.time(precision), time(1, 2, 3)) == count
    assert from_physical(D.time(precision))(count) == time(1, 2, 3)


def test_a_time_that_its_unit_cannot_hold_is_refused():
    assert physical(D.time(3), time(0, 0, 0, 1000)) == 1
    assert "whole milliseconds" in refused(D.time(1), time(0, 0, 0, 1)).message
    assert "whole seconds" in refused(D.time(0), time(0, 0, 0, 1000)).message
    assert "has a zone" in refused(D.time(), time(1, tzinfo=UTC)).message
    for value in (NOW, 5, "01:02:03", timedelta(1)):
        refused(D.time(), value)


@pytest.mark.parametrize("data_type", [D.timestamp, D.timestamp_ltz])
def test_a_moment_counts_in_its_unit(data_type):
    moment = NOW.replace(microsecond=0)
    seconds = 1_794_996_423
    for precision, factor in ((0, 1), (3, 10**3), (6, 10**6), (9, 10**9)):
        assert physical(data_type(precision), moment) == seconds * factor
    assert physical(data_type(6), NOW) == seconds * 10**6 + 123_456
    assert physical(data_type(9), NOW) == (seconds * 10**6 + 123_456) * 1000
    assert physical(data_type(3), NOW) == seconds * 10**3 + 123
    assert physical(data_type(0), NOW) == seconds
    before_1970 = datetime(1969, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001
    assert physical(data_type(0), before_1970) == -1
    assert physical(data_type(6), datetime(1, 1, 1)) == -62_135_596_800_000_000  # noqa: DTZ001
    assert "does not fit 64 bits" in refused(data_type(9), datetime(1, 1, 1)).message  # noqa: DTZ001


def test_a_timestamp_has_no_zone_and_an_instant_may():
    aware = NOW.replace(tzinfo=BERLIN_WINTER)
    assert "its zone would be lost" in refused(D.timestamp(), aware).message
    utc = physical(D.timestamp_ltz(), NOW)
    assert physical(D.timestamp_ltz(), NOW.replace(tzinfo=UTC)) == utc
    assert physical(D.timestamp_ltz(), aware) == utc - 3600 * 10**6
    back = from_physical(D.timestamp_ltz())(utc)
    assert back == NOW.replace(tzinfo=UTC)
    assert back.tzinfo is UTC
    assert from_physical(D.timestamp())(utc).tzinfo is None


def test_a_timestamp_of_pandas_keeps_its_nanoseconds():
    stamp = pd.Timestamp("2026-11-18 10:07:03.123456789")
    count = physical(D.timestamp(9), stamp)
    assert count % 10**9 == 123_456_789
    assert physical(D.timestamp_ltz(9), stamp.tz_localize("UTC")) == count
    berlin = stamp.tz_localize("Europe/Berlin")
    assert physical(D.timestamp_ltz(9), berlin) == count - 3600 * 10**9
    assert "its zone would be lost" in refused(D.timestamp(9), berlin).message
    assert "whole microseconds" in refused(D.timestamp(6), stamp).message
    assert physical(D.timestamp(3), pd.Timestamp("2024-01-01")) == 1_704_067_200_000
    far = pd.Timestamp("9999-12-31")  # beyond 64 bits of nanoseconds
    assert physical(D.timestamp(3), far) == 253_402_214_400_000


@pytest.mark.parametrize(
    "value", [np.datetime64("NaT"), np.timedelta64(1, "s"), np.array(np.datetime64("2026-01-01"))]
)
def test_a_single_time_of_numpy_is_no_list(value):
    assert "does not take" in refused(D.array(D.int()), value).message


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", "m", "h", "D", "M", "Y", "25s", "W"])
def test_a_datetime64_of_any_unit_is_taken(unit):
    value = np.datetime64("2026-01-01").astype(f"datetime64[{unit}]")
    expected = int(value.astype("datetime64[us]").astype(np.int64))
    assert physical(D.timestamp(6), value) == expected
    assert physical(D.timestamp_ltz(6), value) == expected


def test_what_is_no_moment_is_refused():
    for value in (5, 5.0, "2024-01-01", date(2024, 1, 1), time(1), pd.Timedelta(1), np.int64(5)):
        for data_type in (D.timestamp(), D.timestamp_ltz()):
            refused(data_type, value)
    assert "combine" in refused(D.timestamp(), date(2024, 1, 1)).hint


def test_a_datetime_of_somebodys_own_class_is_taken():
    class Moment(datetime):
        """As libraries that stop the clock make them."""

    moment = Moment(2026, 11, 18, 10, 7, 3, 123456)
    assert physical(D.timestamp(), moment) == physical(D.timestamp(), NOW)
    assert physical(D.timestamp_ltz(), moment) == physical(D.timestamp_ltz(), NOW)
    aware = moment.replace(tzinfo=BERLIN_WINTER)
    expected = physical(D.timestamp_ltz(), NOW.replace(tzinfo=BERLIN_WINTER))
    assert physical(D.timestamp_ltz(), aware) == expected


def test_what_64_bits_cannot_count_is_refused():
    assert "64 bits" in refused(D.timestamp(9), np.datetime64("9999-01-01", "s")).message
    assert "64 bits" in refused(D.timestamp_ltz(9), pd.Timestamp("9999-12-31")).message


def test_a_zone_that_says_nothing_is_refused():
    class Nowhere(tzinfo):
        """A zone that does not know how far it is from UTC."""

        def utcoffset(self, _moment):
            return None

    assert "how far" in refused(D.timestamp_ltz(), NOW.replace(tzinfo=Nowhere())).message


def test_a_day_and_a_decimal_of_somebodys_own_class_are_taken():
    class Day(date):
        pass

    class Money(Decimal):
        pass

    assert physical(D.date(), Day(1970, 1, 2)) == 1
    assert physical(D.decimal(5, 2), Money("1.25")) == 125


def test_nanoseconds_are_cut_off_on_the_way_back():
    assert from_physical(D.timestamp(9))(1_999) == from_physical(D.timestamp(6))(1)
    assert from_physical(D.timestamp(9))(-1) == from_physical(D.timestamp(6))(-1)
    assert from_physical(D.time(9))(1_999) == time(0, 0, 0, 1)


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (D.date(), 3_000_000),
        (D.date(), -(2**31)),
        (D.time(0), 86_400),
        (D.time(9), -1),
        (D.timestamp(3), 2**62),
        (D.timestamp_ltz(0), -(2**62)),
    ],
)
def test_a_time_that_python_cannot_hold_is_an_error_of_ours(data_type, value):
    with pytest.raises(InvalidValueError, match="datetime") as caught:
        from_physical(data_type)(value)
    assert "Arrow" in (caught.value.hint or "")


# --- nested -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        [1, None, 3],
        (1, None, 3),
        np.array([1, None, 3], dtype=object),
        pd.Series([1, None, 3], dtype="Int64"),
    ],
    ids=["list", "tuple", "numpy", "pandas"],
)
def test_a_list_of_any_kind_is_an_array(value):
    assert physical(D.array(D.int()), value) == [1, None, 3]


def test_an_array_of_numpy_times_keeps_its_times():
    times = np.array(["2026-01-01", "NaT"], dtype="datetime64[ns]")
    assert physical(D.array(D.timestamp(9)), times) == [1_767_225_600 * 10**9, None]
    assert physical(D.array(D.array(D.int())), np.array([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]


@pytest.mark.parametrize("value", ["abc", b"ab", memoryview(b"abc"), 5, {1, 2}, {1: 2}, np.int8(1)])
def test_what_is_no_list_is_refused(value):
    refused(D.array(D.tinyint()), value)


def test_an_error_deep_inside_names_the_way_there():
    data_type = D.array(D.row([D.field("m", D.map(D.string(), D.array(D.int())))]))
    error = refused(data_type, [{"m": {"k": [1, "x"]}}])
    assert error.column == "c[].m.value[]"
    assert refused(data_type, [{"m": {7: []}}]).column == "c[].m.key"


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1, "b": None},
        OrderedDict(a=1, b=None),
        [("a", 1), ("b", None)],
        (["a", 1], ["b", None]),
    ],
)
def test_a_map_is_a_mapping_or_its_pairs(value):
    assert physical(D.map(D.string(), D.int()), value) == [("a", 1), ("b", None)]


@pytest.mark.parametrize("value", [5, "ab", [1], [("a", 1, 2)], ["ab"], {"a"}])
def test_what_is_no_map_is_refused(value):
    refused(D.map(D.string(), D.int()), value)


def test_a_key_is_never_null():
    assert refused(D.map(D.string(), D.int()), {None: 1}).column == "c.key"


ROW = D.row([D.field("id", D.int().not_null()), D.field("name", D.string())])


@pytest.mark.parametrize(
    "value", [{"name": "a", "id": 1}, (1, "a"), [1, "a"], OrderedDict(id=1, name="a")]
)
def test_a_row_is_given_by_name_or_by_position(value):
    assert physical(ROW, value) == (1, "a")
    assert from_physical(ROW)((1, "a")) == {"id": 1, "name": "a"}


@given(data_types(leaves_max=3))
@example(D.date())
@example(D.map(D.date(), D.date()))
def test_null_comes_back_as_none(data_type):
    assert from_physical(data_type)(None) is None


def test_a_field_that_is_missing_is_null():
    assert physical(ROW, {"id": 1}) == (1, None)
    assert refused(ROW, {"name": "a"}).column == "c.id"


def test_a_field_that_is_unknown_is_refused_with_the_right_one():
    error = refused(ROW, {"id": 1, "nmae": "a"})
    assert "no field 'nmae'" in error.message
    assert error.hint == "did you mean 'name'?"
    refused(ROW, {1: 2})


@pytest.mark.parametrize("value", [(1,), (1, "a", 2), [], 5, "ab"])
def test_a_row_of_another_length_or_kind_is_refused(value):
    refused(ROW, value)


def test_a_whole_row_of_a_table_has_no_column_of_its_own():
    convert = to_physical(ROW, "")
    with pytest.raises(InvalidValueError, match=r"^The row is ROW<") as caught:
        convert(5)
    assert caught.value.column == ""
    with pytest.raises(InvalidValueError, match="'id'") as caught:
        convert({"id": "x"})
    assert caught.value.column == "id"
    with pytest.raises(InvalidValueError, match="in the table"):
        convert({"id": 1, "x": 2})


def test_a_long_value_is_cut_in_the_message():
    assert len(refused(D.int(), "x" * 10_000).message) < 200
    assert len(refused(D.int(), list(range(10_000))).message) < 200
