"""Conditions as text: their meaning, and the position of errors."""

from __future__ import annotations

import contextlib
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss import FlussError, col
from fluss.errors import InvalidSchemaError, InvalidValueError
from fluss.model.predicates.predicate import Leaf
from fluss_spark.conditions import CHARS_MAX, parse_condition

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("t", pa.time32("ms")),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("zoned", pa.timestamp("us", tz="UTC")),
        ("at9", pa.timestamp("ns")),
        ("t9", pa.time64("ns")),
        ("ok", pa.bool_()),
        ("a b", pa.int32()),
        ("tick`s", pa.int32()),
        ("_log_offset", pa.int64()),
    ]
)


@pytest.mark.parametrize(
    ("zone", "text", "moment"),
    [
        ("UTC", "zoned >= TIMESTAMP '2026-07-01 12:00:00'", "2026-07-01T12:00:00+00:00"),
        ("Europe/Berlin", "ZONED >= '2026-07-01T12:00'", "2026-07-01T10:00:00+00:00"),
        ("Europe/Berlin", "zoned >= DATE '2026-01-31'", "2026-01-30T23:00:00+00:00"),
        ("Europe/Berlin", "zoned >= '2026-01-31'", "2026-01-30T23:00:00+00:00"),
        ("+05:30", "zoned >= '2026-07-01T12:00:00'", "2026-07-01T06:30:00+00:00"),
        ("GMT-3", "zoned >= '2026-07-01T12:00:00'", "2026-07-01T15:00:00+00:00"),
        ("+05:30", "zoned >= '2026-07-01T12:00:00Z'", "2026-07-01T12:00:00+00:00"),
        # As Spark and Java: what the clocks skip is later, of what they repeat the first counts.
        ("Europe/Berlin", "zoned >= '2026-03-29 02:30:00'", "2026-03-29T01:30:00+00:00"),
        ("Europe/Berlin", "zoned >= '2026-10-25 02:30:00'", "2026-10-25T00:30:00+00:00"),
    ],
)
def test_a_time_without_a_zone_is_in_the_session_s(zone, text, moment):
    found = parse_condition(text, SCHEMA, zone=zone)
    assert isinstance(found, Leaf)
    assert found.column == "zoned"
    assert found.literals[0].astimezone(UTC).isoformat() == moment


def test_a_zone_that_is_unknown_is_refused_where_it_counts():
    with pytest.raises(InvalidValueError, match="time zone 'Mars/Base' is unknown"):
        parse_condition("zoned > '2026-01-01'", SCHEMA, zone="Mars/Base")
    parse_condition("zoned > '2026-01-01T00:00:00Z' AND ID > 1", SCHEMA, zone="Mars/Base")


MIDNIGHT = datetime(2026, 1, 31)  # noqa: DTZ001
AFTER = datetime(2026, 1, 31, 0, 0, 0, 1)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id = 5", col("id") == 5),
        ("id == -5", col("id") == -5),
        ("id<>5", col("id") != 5),
        ("x <= 1.5e3", col("x") <= 1500.0),
        ("x >= 1.5e3", (col("x") >= 1500.0) | ~(col("x") <= math.inf)),
        ("f < 0.5", col("f") < 0.5),
        ("f < 0.1", col("f") < float(np.float32(0.1))),  # which is above
        ("f >= 1e300", (col("f") >= math.inf) | ~(col("f") <= math.inf)),
        ("f = 0.1", col("f") < -math.inf),
        ("f <> 0.1", ~(col("f") < -math.inf)),
        ("f IN (0.1, 0.5)", col("f").is_in([0.5])),
        ("t > TIME '12:00:01'", col("t") > time(12, 0, 1)),
        ("id = 5.0", col("id") == 5),
        ("price < 9.945", col("price") < Decimal("9.945")),
        ("name = 'it''s'", col("name") == "it's"),
        ("day >= DATE '2026-01-31'", col("day") >= date(2026, 1, 31)),
        ("day = '2026-01-31'", col("day") == date(2026, 1, 31)),
        ("at < TIMESTAMP '2026-01-31 12:00:00'", col("at") < datetime(2026, 1, 31, 12)),  # noqa: DTZ001
        ("zoned < '2026-01-31T12:00:00Z'", col("zoned") < datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("ok = true", col("ok").equal(True)),
        ("`a b` != 1", col("a b") != 1),
        ("`tick``s` = 1", col("tick`s") == 1),
        ("_log_offset > 7", col("_log_offset") > 7),
        ("name is null", col("name").is_null()),
        ("name IS NOT NULL", col("name").is_not_null()),
        ("id IN (1,2, 3)", col("id").is_in([1, 2, 3])),
        ("id NOT IN (1)", ~col("id").is_in([1])),
        ("id BETWEEN 1 AND 2 AND x < 0", (col("id") >= 1) & (col("id") <= 2) & (col("x") < 0.0)),
        ("name LIKE 'a%'", col("name").starts_with("a")),
        ("name LIKE '%a'", col("name").ends_with("a")),
        ("name LIKE '%a%'", col("name").contains("a")),
        ("name LIKE 'a'", col("name") == "a"),
        ("name NOT LIKE 'a%'", ~col("name").starts_with("a")),
        (
            "id = 1 OR id = 2 AND NOT x < 3",
            (col("id") == 1) | ((col("id") == 2) & ~(col("x") < 3.0)),
        ),
        (
            "(id = 1 OR id = 2) and x < 3",
            ((col("id") == 1) | (col("id") == 2)) & (col("x") < 3.0),
        ),
        ("  ( ( id = 1 ) )  ", col("id") == 1),
        ("id = 5e3", col("id") == 5_000),
        ("at < DATE '2026-01-31'", col("at") < datetime(2026, 1, 31)),  # noqa: DTZ001
        # Spark shows a thousand times of Fluss as one.
        ("at9 < '2026-01-31 00:00'", col("at9") < MIDNIGHT),
        ("at9 <= '2026-01-31'", col("at9") < AFTER),
        ("at9 > '2026-01-31'", ~(col("at9") < AFTER)),
        ("at9 >= '2026-01-31'", ~(col("at9") < MIDNIGHT)),
        ("at9 = '2026-01-31'", ~(col("at9") < MIDNIGHT) & (col("at9") < AFTER)),
        ("at9 <> '2026-01-31'", (col("at9") < MIDNIGHT) | ~(col("at9") < AFTER)),
        ("at9 IN ('2026-01-31')", ~(col("at9") < MIDNIGHT) & (col("at9") < AFTER)),
        ("t9 <= '12:00'", col("t9") < time(12, 0, 0, 1)),
        ("t9 > '23:59:59.999999'", ~((col("t9") < time.max) | (col("t9") >= time.max))),
    ],
)
def test_a_condition_means_what_it_means_in_sql(text, expected):
    assert str(parse_condition(text, SCHEMA)) == str(expected)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("", InvalidValueError, "a column is missing at character 0"),
        ("id", InvalidValueError, "a comparison"),
        ("id = ", InvalidValueError, "a constant is missing at character 4, where it ends"),
        ("id = 1 x", InvalidValueError, "AND, OR or the end is missing at character 7"),
        ("(id = 1", InvalidValueError, r"\) is missing"),
        ("idd = 1", InvalidSchemaError, "did you mean 'id'"),
        ("id = 1.5", InvalidValueError, "type int64 with 1.5"),
        ("id = 'a'", InvalidValueError, "type int64 with 'a'.*\n.*whole number"),
        ("id = 1e99", InvalidValueError, "type int64 with 1e99"),
        ("name > 1", InvalidValueError, "a text stands in quotes"),
        ("t = 'noon'", InvalidValueError, "'12:00:00.123456'"),
        ("upper(name) = 'A'", InvalidValueError, r"calls 'upper'.*\n.*\.where"),
        ("name LIKE '1\\%'", InvalidValueError, "where"),
        ("at = '2026-01-01T00:00:00Z'", InvalidValueError, "zone"),
        ("zoned = '2026-01-01'", InvalidValueError, "zone"),
        ("name LIKE 'a%b'", InvalidValueError, "LIKE 'a%b'"),
        ("name LIKE 'a_'", InvalidValueError, "where"),
        ("id + 1 = 2", InvalidValueError, "cannot be parsed from character 2|is missing"),
        ("id = 1; DROP", InvalidValueError, "cannot be parsed"),
        ("name = 'open", InvalidValueError, "cannot be parsed"),
        ("NOT " * 60 + "id = 1", InvalidValueError, "deep"),
        ("(" * 5_000, InvalidValueError, "deep"),
        ("x" * (CHARS_MAX + 1), InvalidValueError, "characters"),
        ("id IN ()", InvalidValueError, "a constant"),
        ("ok = maybe", InvalidValueError, "a constant"),
        ("name = 'a\\nb'", InvalidValueError, r"'a\\nb'.*\n.*without \\; .*where"),
        ("name IN ('a', 'a\\b')", InvalidValueError, "where"),
        ("name = DATE '2026-01-05'", InvalidValueError, "type string with DATE '2026-01-05'"),
        ("id = TIMESTAMP 1", InvalidValueError, "a constant is missing"),
        ("ok = DATE true", InvalidValueError, "a constant is missing"),
        ("at = TIME '12:00'", InvalidValueError, "with TIME '12:00'"),
        ("day = '20260105'", InvalidValueError, "'2026-01-31'"),
        ("day = '2026-W02-1'", InvalidValueError, "'2026-01-31'"),
        ("t = '12'", InvalidValueError, "'12:00:00.123456'"),
        ("at9 = '2026-01-31T12:00:00.123456789'", InvalidValueError, "no finer"),
        ("t9 = '12:00:00.1234567'", InvalidValueError, "no finer"),
        ("id = 9007199254740993e0", InvalidValueError, "without an exponent"),
        ("price = 1e0", InvalidValueError, "without an exponent"),
        ("id = \u0661", InvalidValueError, "cannot be parsed"),
    ],
)
def test_what_is_none_is_refused_with_its_place(text, error, said):
    with pytest.raises(error, match=said):
        parse_condition(text, SCHEMA)


@given(st.text(alphabet="id=<>()'` ANDORNOTINLIKE%_1.5,xname", max_size=60))
def test_no_text_breaks_it(text):
    with contextlib.suppress(FlussError):
        parse_condition(text, SCHEMA)
