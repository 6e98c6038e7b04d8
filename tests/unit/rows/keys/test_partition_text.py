"""Partition texts; the expected ones were written by `PartitionUtils` of Fluss 0.9.1."""

import math

import pytest
from hypothesis import given, strategies as st

from fluss.errors import InvalidValueError, UnsupportedTypeError
from fluss.model.types.data_type import (
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
    StringType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    TinyIntType,
)
from fluss.rows.keys.partition_text import check_partition_type, partition_text, partition_value
from tests.support.generators.random_values import KEY_TYPES, exact, values

PARTITION_TYPES = [each.not_null() for each in KEY_TYPES if not isinstance(each, DecimalType)]
SECOND = 1767323045  # 2026-01-02T03:04:05Z

JAVA = [
    (StringType(), "a b", "a b"),
    (CharType(4), "ab", "ab"),
    (BooleanType(), True, "true"),
    (BooleanType(), False, "false"),
    (TinyIntType(), -5, "-5"),
    (BigIntType(), 2**63 - 1, "9223372036854775807"),
    (BytesType(), b"\x00\xff\x7f", "00ff7f"),
    (BinaryType(2), b"\xab\xcd", "abcd"),
    (BytesType(), b"", ""),
    (DateType(), 0, "1970-01-01"),
    (DateType(), 20455, "2026-01-02"),
    (DateType(), 2932897, "10000-01-01"),
    (DateType(), -719163, "0000-12-31"),
    (DateType(), -719529, "-001-12-31"),
    (DateType(), -(2**31), "-5877641-06-23"),
    (DateType(), 2**31 - 1, "5881580-07-11"),
    (TimeType(0), 45296, "12-34-56_000"),
    (TimeType(3), 86399999, "23-59-59_999"),
    (TimeType(6), 45296007000, "12-34-56_007"),
    (TimeType(9), 45296007000000, "12-34-56_007"),
    (TimestampType(0), SECOND, "2026-01-02-03-04-05_"),
    (TimestampType(3), SECOND * 1000 + 120, "2026-01-02-03-04-05_12"),
    (TimestampType(6), SECOND * 1_000_000 + 678901, "2026-01-02-03-04-05_678901"),
    (TimestampType(9), SECOND * 1_000_000_000 + 1, "2026-01-02-03-04-05_000000001"),
    (TimestampType(9), -1, "1969-12-31-23-59-59_999999999"),
    (TimestampLtzType(9), SECOND * 1_000_000_000, "2026-01-02-03-04-05_"),
    (TimestampType(3), 253402300800000, "+10000-01-01-00-00-00_"),
    (TimestampType(3), 2**63 - 1, "+292278994-08-17-07-12-55_807"),
    (FloatType(), 1.5, "1_5"),
    (FloatType(), 100.0, "100_0"),
    (FloatType(), -0.0, "-0_0"),
    (FloatType(), 3.4e10, "3_3999999E10"),
    (DoubleType(), -2.25e10, "-2_25E10"),
    (DoubleType(), 1e-5, "1_0E-5"),
    (DoubleType(), math.nan, "NaN"),
    (DoubleType(), math.inf, "Inf"),
    (FloatType(), -math.inf, "-Inf"),
]


@pytest.mark.parametrize(("data_type", "value", "text"), JAVA, ids=str)
def test_a_value_has_the_text_that_java_gives_it(data_type, value, text):
    assert partition_text(value, data_type) == text


@pytest.mark.parametrize(("data_type", "value", "text"), JAVA, ids=str)
def test_a_text_means_the_value_it_was_made_from(data_type, value, text):
    if data_type == FloatType() and value == 3.4e10:
        value = 33999998976.0
    assert exact(partition_value(text, data_type)) == exact(value)


@given(
    st.sampled_from(PARTITION_TYPES).flatmap(lambda each: st.tuples(st.just(each), values(each)))
)
def test_every_value_comes_back_from_its_text(case):
    data_type, value = case
    text = partition_text(value, data_type)
    if not _is_before_christ(value, data_type):
        assert exact(partition_value(text, data_type)) == exact(value)


def _is_before_christ(value, data_type):
    units = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    is_timestamp = isinstance(data_type, TimestampType | TimestampLtzType)
    return is_timestamp and value < -62135596800 * units[data_type.unit]


def test_the_first_year_of_both_eras_has_one_name():
    before_christ = -62135596800001
    assert partition_text(before_christ, TimestampType(3)) == "0001-12-31-23-59-59_999"
    assert partition_value("0001-12-31-23-59-59_999", TimestampType(3)) > before_christ


@pytest.mark.parametrize(
    ("text", "data_type", "value"),
    [
        ("2026-01-02-03-04-05_678901000", TimestampType(6), SECOND * 10**6 + 678901),  # pyfluss
        ("2026-01-02-03-04-05_120", TimestampType(3), SECOND * 1000 + 120),  # pyfluss
        ("100", DoubleType(), 100.0),  # pyfluss
        ("2026-01-02-03-04-05_6789", TimestampType(3), SECOND * 1000 + 678),
        ("1969-12-31-23-59-59_9999", TimestampType(3), -1),
        ("1969-12-31-23-59-59_5", TimestampType(0), 0),  # toward zero, as Java divides
        ("2026-01-02", TimestampType(0), SECOND - 11045),
        ("23-59-59_999", TimeType(0), 86399),
        ("TRUE", BooleanType(), True),
        ("+5", IntType(), 5),
        ("ABcd", BytesType(), b"\xab\xcd"),
    ],
)
def test_texts_that_java_does_not_write_but_reads_are_read(text, data_type, value):
    assert exact(partition_value(text, data_type)) == exact(value)


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("yes", BooleanType()),
        ("", IntType()),
        ("1_0", IntType()),
        ("٣", IntType()),
        ("128", TinyIntType()),
        ("9" * 100, BigIntType()),
        ("abc", BytesType()),
        ("0g", BytesType()),
        ("abcdef", BinaryType(2)),
        ("2026-13-01", DateType()),
        ("2026-02-29", DateType()),
        ("2026-1-1", DateType()),
        ("20260101", DateType()),
        ("9000000-01-01", DateType()),
        ("12-60-00_000", TimeType(3)),
        ("12-00-00", TimeType(3)),
        ("999-00-00_000", TimeType(3)),
        ("2026-01-02-24-00-00_", TimestampType(3)),
        ("2026-02-30-00-00-00_", TimestampType(3)),
        ("2026-01-02-03-04-05_1234567890", TimestampType(3)),
        ("2500-01-01-00-00-00_", TimestampType(9)),
        ("now", TimestampType(3)),
        ("1.5", DoubleType()),
        ("nan", DoubleType()),
        ("1_5\n", DoubleType()),
        ("Infinity", FloatType()),
    ],
)
def test_a_text_that_is_no_value_is_refused(text, data_type):
    with pytest.raises(InvalidValueError, match="no partition value"):
        partition_value(text, data_type)


def test_a_float_is_rounded_once():
    # By way of a double this number would become the tie 1 + 2^-24 and then fall to 1.0.
    just_above_the_tie = "1_00000005960464477540"
    assert partition_value(just_above_the_tie, FloatType()) == 1.0 + 2.0**-23
    assert partition_value("1_000000059604644775390625", FloatType()) == 1.0
    assert partition_value("3_5E38", FloatType()) == math.inf


@pytest.mark.parametrize("data_type", [DecimalType(10, 2), ArrayType(IntType())])
def test_a_type_without_partition_names_is_refused(data_type):
    for refused in (
        lambda: check_partition_type(data_type),
        lambda: partition_text(1, data_type),
        lambda: partition_value("1", data_type),
    ):
        with pytest.raises(UnsupportedTypeError, match="partition column"):
            refused()


def test_null_names_no_partition():
    with pytest.raises(InvalidValueError, match="NULL"):
        partition_text(None, IntType())


def test_seconds_that_java_cannot_hold_are_refused():
    with pytest.raises(InvalidValueError, match="64-bit milliseconds"):
        partition_text(2**63 // 1000 + 1, TimestampType(0))
