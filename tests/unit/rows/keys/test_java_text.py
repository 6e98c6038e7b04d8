"""Printing as Java prints; the expected texts were printed by JDK 17."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fluss.rows.keys.java_text import (
    decimal_text,
    double_text,
    float_text,
    instant_text,
    local_date_time_text,
)

DOUBLES = {
    1.0: "1.0",
    100.0: "100.0",
    1.5: "1.5",
    -2.25e10: "-2.25E10",
    0.001: "0.001",
    9.999e-4: "9.999E-4",
    9999999.0: "9999999.0",
    1e7: "1.0E7",
    123456789012.0: "1.23456789012E11",
    9007199254740993.0: "9.007199254740992E15",
    5e-324: "4.9E-324",
    2e-322: "2.0E-322",
    2.2250738585072014e-308: "2.2250738585072014E-308",
    1.7976931348623157e308: "1.7976931348623157E308",
    # The digits of JDK 18 and older are not always the shortest.
    2e23: "1.9999999999999998E23",
    1e23: "9.999999999999999E22",
    8.41e21: "8.409999999999999E21",
    2.0**-44: "5.6843418860808015E-14",
}
FLOATS = {
    1.1: "1.1",
    0.002: "0.002",
    33554432.0: "3.3554432E7",
    1e10: "1.0E10",
    3.4e10: "3.3999999E10",
    2e-44: "2.0E-44",
    1.4e-45: "1.4E-45",
    1.17549435e-38: "1.17549435E-38",
    3.4028235e38: "3.4028235E38",
}


def to_float(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


@pytest.mark.parametrize(("value", "text"), DOUBLES.items())
def test_a_double_prints_as_in_jdk_17(value, text):
    assert double_text(value) == text


@pytest.mark.parametrize(("value", "text"), FLOATS.items())
def test_a_float_prints_as_in_jdk_17(value, text):
    assert float_text(to_float(value)) == text


def test_zero_keeps_its_sign():
    for text_of in (double_text, float_text):
        assert text_of(0.0) == "0.0"
        assert text_of(-0.0) == "-0.0"


def test_numbers_that_are_none_have_names():
    for text_of in (double_text, float_text):
        assert text_of(math.nan) == "NaN"
        assert text_of(math.inf) == "Infinity"
        assert text_of(-math.inf) == "-Infinity"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_digits_of_a_double_read_back_as_the_same_double(value):
    assert float(double_text(value)).hex() == value.hex()


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_digits_of_a_float_read_back_as_the_same_float(value):
    with np.errstate(over="ignore"):
        assert float(np.float32(float_text(value))).hex() == value.hex()


@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x != 0))
def test_the_exponent_is_the_only_thing_that_decides_the_notation(value):
    assert ("E" in double_text(value)) == (not 1e-3 <= abs(value) < 1e7)


@pytest.mark.parametrize(
    ("unscaled", "scale", "text"),
    [(0, 0, "0"), (0, 2, "0.00"), (-5, 2, "-0.05"), (12345, 2, "123.45"), (7, 0, "7")],
)
def test_a_decimal_prints_all_its_digits(unscaled, scale, text):
    assert decimal_text(unscaled, scale) == text


@pytest.mark.parametrize(
    ("millis", "nanos", "local", "instant"),
    [
        (0, 0, "1970-01-01T00:00", "1970-01-01T00:00:00Z"),
        (1767323045678, 0, "2026-01-02T03:04:05.678", "2026-01-02T03:04:05.678Z"),
        (-1, 0, "1969-12-31T23:59:59.999", "1969-12-31T23:59:59.999Z"),
        (60_000, 1_000, "1970-01-01T00:01:00.000001", "1970-01-01T00:01:00.000001Z"),
        (0, 1, "1970-01-01T00:00:00.000000001", "1970-01-01T00:00:00.000000001Z"),
        (253402300800000, 0, "+10000-01-01T00:00", "+10000-01-01T00:00:00Z"),
        (-62167219200001, 0, "-0001-12-31T23:59:59.999", "-0001-12-31T23:59:59.999Z"),
    ],
)
def test_an_instant_prints_only_the_digits_it_has(millis, nanos, local, instant):
    assert local_date_time_text(millis, nanos) == local
    assert instant_text(millis, nanos) == instant
