"""Texts are parsed as values of a type, or refused with the reason."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from fluss.cli.files.cell_parsing import CellError, value_of, values_of
from fluss.cli.files.json_file import parse_json_value, values_of_json

US = pa.timestamp("us")
UTC_US = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("007", pa.int64(), 7),
        (" 5 ", pa.int8(), 5),
        ("+5", pa.int8(), 5),
        ("1.0", pa.int64(), 1),
        ("1e3", pa.int32(), 1000),
        ("-9223372036854775808", pa.int64(), -(2**63)),
        ("0.1", pa.float64(), 0.1),
        ("-Infinity", pa.float32(), float("-inf")),
        (".5", pa.float64(), 0.5),
        ("1e-400", pa.float64(), 0.0),
        ("TRUE", pa.bool_(), True),
        ("0", pa.bool_(), False),
        ("1.10", pa.decimal128(9, 2), Decimal("1.10")),
        ("1.1000", pa.decimal128(9, 2), Decimal("1.10")),
        ("9" * 38, pa.decimal128(38, 0), Decimal("9" * 38)),
        ("-0.0", pa.decimal128(3, 1), Decimal("0.0")),
        ("YWI=", pa.binary(), b"ab"),
        ("YWI=", pa.binary(2), b"ab"),
        ("", pa.string(), ""),
        ("007", pa.string(), "007"),
        ("12:34:56.789000", pa.time32("ms"), 45_296_789),
        ("12:34", pa.time32("s"), 45_240),
        ("2026-01-01T12:00:00.5", US, 1_767_268_800_500_000),
        ("2026-01-01 12", US, 1_767_268_800_000_000),
        ("2026-01-01", US, 1_767_225_600_000_000),
        ("2026-01-01T12:00:00+02:00", UTC_US, 1_767_261_600_000_000),
        ("2026-01-01 12:00 UTC", UTC_US, 1_767_268_800_000_000),
        ("2026-01-01T12:00:00", UTC_US, 1_767_268_800_000_000),
        ("+10000-01-01", pa.date32(), 2_932_897),
        ("-0001-12-31", pa.date32(), -719_529),
    ],
)
def test_a_text_is_read_as_its_type_alone_and_in_a_column(text, kind, value):
    read = values_of(pa.array([None, text, None]), kind)
    count = pa.int32() if pa.types.is_date(kind) or pa.types.is_time32(kind) else pa.int64()
    plain = read.view(count) if pa.types.is_temporal(kind) else read
    assert plain.to_pylist() == [None, value, None]
    assert read.type == kind
    if not pa.types.is_string(kind):
        assert value_of(text, kind) == value


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        ("1.5", pa.int64(), "is not BIGINT"),
        ("0x10", pa.int64(), "is not BIGINT"),
        ("1_000", pa.int64(), "is not BIGINT"),
        ("٣", pa.int64(), "is not BIGINT"),
        ("", pa.int64(), "is not BIGINT"),
        ("128", pa.int8(), "is not between -128 and 127"),
        ("1e400", pa.float64(), "is too large for DOUBLE"),
        ("-1e39", pa.float32(), "is too large for FLOAT"),
        ("1,5", pa.float64(), "is not DOUBLE"),
        ("yes", pa.bool_(), "is not BOOLEAN"),
        ("1.125", pa.decimal128(9, 2), "more than 2 digits after the point"),
        ("12345678.1", pa.decimal128(9, 2), "more than 7 digits before the point"),
        ("nan", pa.decimal128(9, 2), "is not DECIMAL(9, 2)"),
        ("1e999999999", pa.decimal128(9, 2), "is not DECIMAL(9, 2)"),
        ("YWI", pa.binary(), "is not base64"),
        ("Y\u00e9I=", pa.binary(), "is not base64"),
        ("YWI=", pa.binary(3), "has 2 bytes"),
        ("2026-02-30", pa.date32(), "is not a day of the calendar"),
        ("20260230", pa.date32(), "is not DATE"),
        ("24:00:00", pa.time32("s"), "is not a time of day"),
        ("12", pa.time32("s"), "is not TIME"),
        ("12:34:56.7", pa.time32("s"), "more than 0 digits"),
        ("2026-01-01T00:00:00.1234567", US, "more than 6 digits"),
        ("2026-01-01T00:00:00Z", US, "has a zone"),
        ("2300-01-01T00:00:00", pa.timestamp("ns"), "is out of range"),
    ],
)
def test_a_bad_text_is_named_with_its_row(text, kind, why):
    with pytest.raises(CellError) as caught:
        values_of(pa.array([None, None, text, "rubbish"]), kind)
    error = caught.value
    assert why in error.why
    assert (error.index, error.text) == (2, text)


def test_moments_without_a_zone_are_in_utc_also_beside_others():
    texts = pa.array(["2026-01-01T12:00:00", None, "2026-01-01T12:00:00+01:00"])
    found = values_of(texts, UTC_US).cast(pa.int64()).to_pylist()
    assert found == [1_767_268_800_000_000, None, 1_767_265_200_000_000]


def test_arrows_cast_and_the_rules_of_one_value_agree():
    texts = pa.array(["2026-01-31T23:59:59.000001", None, "1969-12-31T23:59:59.999999"])
    slow = values_of(pa.array([f" {each}" if each else None for each in texts.to_pylist()]), US)
    assert values_of(texts, US).equals(slow)
    assert slow[0].as_py() == datetime(2026, 1, 31, 23, 59, 59, 1, tzinfo=UTC).replace(tzinfo=None)


def test_a_number_of_json_keeps_its_digits_whatever_its_type():
    value = parse_json_value("99999999999999999999")
    read = values_of_json([value], pa.decimal128(38, 0))
    assert read.to_pylist() == [Decimal(99999999999999999999)]
    assert values_of_json([value], pa.string()).to_pylist() == ["99999999999999999999"]
    assert str(values_of_json([parse_json_value("-0")], pa.float64())[0].as_py()) == "-0.0"


@pytest.mark.parametrize(
    "text",
    ['[["a", 1], ["b", null]]', '{"a": 1, "b": null}', '[{"key": "a", "value": 1}, {"key": "b", "value": null}]'],
)  # fmt: skip
def test_a_map_may_be_written_in_three_ways(text):
    kind = pa.map_(pa.string(), pa.int32())
    assert values_of_json([parse_json_value(text)], kind).to_pylist() == [[("a", 1), ("b", None)]]


@pytest.mark.parametrize(
    ("text", "kind", "inside", "why"),
    [
        ('[1, "x"]', pa.list_(pa.int8()), "[]", "is not TINYINT"),
        ('{"a": {"b": 300}}', pa.struct([("a", pa.struct([("b", pa.int8())]))]), ".a.b", "between"),
        ('{"c": 1}', pa.struct([("a", pa.int8())]), "", "has 'c', and the fields are a"),
        ("5", pa.list_(pa.int8()), "", "is not a list"),
        ("[[1]]", pa.map_(pa.string(), pa.int8()), "", "is not a map"),
        ("[[null, 1]]", pa.map_(pa.string(), pa.int8()), "", "is not a map"),
        ('{"a": "x"}', pa.map_(pa.string(), pa.int8()), ".value", "is not TINYINT"),
        ("[1]", pa.string(), "", "an object or a list"),
        ('"\\ud800"', pa.string(), "", "half a surrogate pair"),
    ],
)
def test_an_error_inside_of_a_nested_value_is_found(text, kind, inside, why):
    with pytest.raises(CellError) as caught:
        values_of_json([None, parse_json_value(text)], kind)
    assert why in caught.value.why
    assert (caught.value.index, caught.value.inside) == (1, inside)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "[1", "", "[" * 100_000])
def test_invalid_json_is_refused(text):
    with pytest.raises(CellError):
        parse_json_value(text)
