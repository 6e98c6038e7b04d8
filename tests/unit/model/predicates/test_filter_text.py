import pickle
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest

from fluss.errors import InvalidSchemaError, InvalidValueError
from fluss.model.metadata_columns import metadata_types
from fluss.model.predicates.binding import DEPTH_MAX, bind, column_types
from fluss.model.predicates.filter_text import parse_filter
from fluss.model.predicates.filter_tokens import FILTER_CHARS_MAX
from fluss.model.predicates.predicate import Constant, col
from fluss.model.schema.schema import Schema
from fluss.model.types.factory import DataTypes as T

SCHEMA = (
    Schema.builder()
    .column("id", T.bigint())
    .column("tiny", T.tinyint())
    .column("name", T.string())
    .column("Two words", T.string())
    .column("date", T.date())
    .column("at", T.time(6))
    .column("ts", T.timestamp(9))
    .column("moment", T.timestamp_ltz(3))
    .column("f", T.double())
    .column("price", T.decimal(6, 2))
    .column("raw", T.bytes())
    .column("active", T.boolean())
    .column("tags", T.array(T.string()))
    .build()
)
TYPE_OF = column_types(SCHEMA, metadata_types({"_bucket": "_bucket", "_log_offset": "_log_offset"}))
ID, NAME = col("id"), col("name")


def predicate(text):
    return parse_filter(text).predicate(TYPE_OF)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id > 1", ID > 1),
        ("id>=-1", ID >= -1),
        ("id = + 2", ID == 2),
        ("id == 2", ID == 2),
        ("id <> 2", ID != 2),
        ("id != 2", ID != 2),
        ("1 < id", ID > 1),
        ("1 >= id", ID <= 1),
        ("1 = id", ID == 1),
        ("id = 1e3", ID == 1000),
        ("id = 5.00", ID == 5),
        ("id < 1.5", ID.less_than(Decimal("1.5"))),
        ("price > 1.10", col("price") > Decimal("1.10")),
        ("price > .5", col("price") > Decimal("0.5")),
        ("f = 0.1", col("f") == 0.1),
        ("f < 1e300", col("f") < 1e300),
        ("name = 'it''s'", NAME == "it's"),
        ("name = ''", NAME == ""),
        ("'x' = name", NAME == "x"),
        ('"Two words" = \'x\'', col("Two words") == "x"),
        ("`Two words` = 'x'", col("Two words") == "x"),
        ("raw = X'00fF'", col("raw") == b"\x00\xff"),
        ("raw = x''", col("raw") == b""),
        ("active", col("active") == True),  # noqa: E712 - makes a predicate
        ("(active)", col("active") == True),  # noqa: E712
        ("NOT active", ~(col("active") == True)),  # noqa: E712
        ("active = FALSE", col("active") == False),  # noqa: E712
        ("id IS NULL", ID.is_null()),
        ("id is not null", ID.is_not_null()),
        ("active IS UNKNOWN", col("active").is_null()),
        ("id IN (1)", ID.is_in([1])),
        ("id in (1, NULL, 3)", ID.is_in([1, None, 3])),
        ("id NOT IN (1, 2)", ID.not_in([1, 2])),
        ("id = NULL", ID == None),  # noqa: E711
        ("id BETWEEN 1 AND 2", (ID >= 1) & (ID <= 2)),
        ("id NOT BETWEEN 1 AND 2", ~((ID >= 1) & (ID <= 2))),
        ("id BETWEEN 1 AND 2 OR name = 'x'", ((ID >= 1) & (ID <= 2)) | (NAME == "x")),
        ("id IS DISTINCT FROM 1", (ID != 1) | ID.is_null()),
        ("id IS NOT DISTINCT FROM 1", (ID == 1) & ID.is_not_null()),
        ("id IS DISTINCT FROM NULL", ID.is_not_null()),
        ("active IS NOT TRUE", (col("active") != True) | col("active").is_null()),  # noqa: E712
        ("starts_with(name, 'a_')", NAME.starts_with("a_")),
        ("Ends_With ( name , '%' )", NAME.ends_with("%")),
        ("contains(name, 'x')", NAME.contains("x")),
        ("TRUE", Constant(value=True)),
        ("not false", ~Constant(value=False)),
        ("NULL", Constant(value=None)),
        ("_bucket = 0 AND _log_offset >= 7", (col("_bucket") == 0) & (col("_log_offset") >= 7)),
    ],
)  # fmt: skip
def test_a_test_of_a_column(text, expected):
    assert bind(predicate(text), TYPE_OF) == bind(expected, TYPE_OF)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("date = DATE '2026-01-31'", col("date") == date(2026, 1, 31)),
        ("date = '2026-01-31'", col("date") == date(2026, 1, 31)),
        ("at < TIME '12:30'", col("at") < time(12, 30)),
        ("at < '12:30:05.25'", col("at") < time(12, 30, 5, 250_000)),
        ("at < time '12:30:05.250000000'", col("at") < time(12, 30, 5, 250_000)),
        ("ts >= TIMESTAMP '2026-01-31 12:00:00'", col("ts") >= datetime(2026, 1, 31, 12)),  # noqa: DTZ001
        ("ts >= '2026-01-31T12:00'", col("ts") >= datetime(2026, 1, 31, 12)),  # noqa: DTZ001
        ("ts >= DATE '2026-01-31'", col("ts") >= datetime(2026, 1, 31)),  # noqa: DTZ001
        (
            "ts > '1900-01-31 00:00:00.123456789'",
            col("ts") > np.datetime64("1900-01-31T00:00:00.123456789"),
        ),
        (
            "moment > TIMESTAMP '2026-01-31 12:00:00+01:30'",
            col("moment")
            > datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=1, minutes=30))),
        ),
        ("moment > '2026-01-31 12:00:00 Z'", col("moment") > datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("moment > '2026-01-31 12:00:00'", col("moment") > datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (
            "moment > TIMESTAMPTZ '2026-01-31 12:00:00.000000001-0100'",
            col("moment") > np.datetime64("2026-01-31T13:00:00.000000001"),
        ),
    ],
)
def test_a_date_or_time_is_one_in_quotes_too(text, expected):
    assert bind(predicate(text), TYPE_OF) == bind(expected, TYPE_OF)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id = 1 OR id = 2 AND name = 'x'", (ID == 1) | ((ID == 2) & (NAME == "x"))),
        ("(id = 1 OR id = 2) AND name = 'x'", ((ID == 1) | (ID == 2)) & (NAME == "x")),
        ("NOT id = 1 AND name = 'x'", ~(ID == 1) & (NAME == "x")),
        ("NOT (id = 1 AND name = 'x')", ~((ID == 1) & (NAME == "x"))),
        ("NOT NOT id = 1", ID == 1),
        ("((id = 1))", ID == 1),
        (" \n id\t=\n1 ", ID == 1),
    ],
)
def test_not_binds_before_and_before_or(text, expected):
    assert bind(predicate(text), TYPE_OF) == bind(expected, TYPE_OF)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("'x%'", NAME.starts_with("x")),
        ("'%x'", NAME.ends_with("x")),
        ("'%%x%%'", NAME.contains("x")),
        ("'x'", NAME == "x"),
        ("''", NAME == ""),
        ("'%'", NAME.starts_with("")),
        ("'ab%cd'", NAME.starts_with("ab") & NAME.ends_with("cd")),
        # 'aba' begins with 'aba' and ends with 'ba', and is too short for both of them.
        ("'aba%ba'", NAME.starts_with("aba") & NAME.ends_with("ba") & NAME.not_in(["aba"])),
        ("'aa%aa'", NAME.starts_with("aa") & NAME.ends_with("aa") & NAME.not_in(["aaa", "aa"])),
        ("'50!%%' ESCAPE '!'", NAME.starts_with("50%")),
        ("'a!_b!!' ESCAPE '!'", NAME == "a_b!"),
        ("'C:\\%' ESCAPE ''", NAME.starts_with("C:\\")),
        ("'C:\\%' ESCAPE '\\'", NAME == "C:%"),
    ],
)
def test_like_is_decided_exactly(pattern, expected):
    assert bind(predicate(f"name LIKE {pattern}"), TYPE_OF) == bind(expected, TYPE_OF)
    assert bind(predicate(f"name NOT LIKE {pattern}"), TYPE_OF) == bind(~expected, TYPE_OF)


@pytest.mark.parametrize(
    ("text", "position", "what"),
    [
        ("", 1, "a column was expected"),
        ("   ", 1, "a column was expected"),
        ("id", 1, "BOOLEAN"),
        ("id >", 5, "a literal was expected"),
        ("id > x", 6, "single quotes"),
        ('name = "x"', 8, "single quotes"),
        ("id = 1 id = 2", 8, "AND, OR or the end"),
        ("id = 1;", 7, "without a semicolon"),
        ("id = 1 & name = 'x'", 8, "AND and OR"),
        ("(id = 1", 8, "\\) was expected"),
        ("id = 1)", 7, "AND, OR or the end"),
        ("id = 'x", 6, "not closed"),
        ("id = 1x", 6, "number"),
        ("id=1and name='x'", 4, "number"),
        ("id = \u20ac", 6, "no meaning"),
        ("id => 1", 5, "literal"),
        ("id IN 1", 7, "\\( was expected"),
        ("id IN ()", 8, "literal"),
        ("id IN (1", 9, "\\) was expected"),
        ("id BETWEEN 1 OR 2", 14, "BETWEEN low AND high"),
        ("id IS 5", 7, "NULL, TRUE"),
        ("id IS DISTINCT 5", 16, "FROM"),
        ("id NOT 5", 8, "IN, BETWEEN or LIKE"),
        ("name ILIKE 'x'", 6, "comparison"),
        ("name LIKE 5", 11, "pattern"),
        ("name LIKE 'a_'", 11, "one character"),
        ("name LIKE 'a%b%'", 11, "middle"),
        ("name LIKE 'a\\%'", 11, "backslash"),
        ("name LIKE 'a!' ESCAPE '!'", 11, "ends with its escape"),
        ("name LIKE 'a!b' ESCAPE '!'", 11, "escapes"),
        ("name LIKE 'a' ESCAPE '!!'", 11, "one character"),
        ("lower(name) = 'x'", 6, "no functions"),
        ("t.id = 1", 2, "no fields"),
        ("tags[1] = 'x'", 5, "no elements"),
        ("1 = 1", 5, "column"),
        ("5", 1, "begins with a column"),
        ("5 IN (1)", 1, "begins with a column"),
        ("id + 1 > 2", 4, "comparison"),
        ("id <=> 1", 4, "comparison"),
        ("and = 1", 1, '"and"'),
        ("date = DATE '2026-02-30'", 8, "is not a date"),
        ("at = TIME '25:00'", 6, "is not a time"),
        ("at = TIME '12:00:00.1234567'", 6, "six digits"),
        ("ts = TIMESTAMP '2026-01-01 25:00'", 6, "not a timestamp"),
        ("ts = TIMESTAMP '1600-01-01 00:00:00.000000001'", 6, "not a timestamp"),
        ("ts = TIMESTAMP '2026-01-01 12:00:00+25:00'", 6, "not a timestamp"),
        ("raw = X'0'", 7, "hexadecimal"),
        ("raw = X'0G'", 7, "hexadecimal"),
        ("id = 1e99999999999999999999", 6, "number"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_position(text, position, what):
    with pytest.raises(InvalidValueError, match=what) as caught:
        predicate(text)
    assert caught.value.position == position
    assert caught.value.option == "filter"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("id = 'x'", "without quotes"),
        ("id = TRUE", "without quotes"),
        ("name = 5", "single quotes"),
        ("date = 5", "DATE '2026-01-31'"),
        ("date = TIMESTAMP '2026-01-31 00:00:00'", "DATE '2026-01-31'"),
        ("date = 'yesterday'", "DATE '2026-01-31'"),
        ("at = DATE '2026-01-31'", "TIME '12:00:00.5'"),
        ("moment = 'now'", "TIMESTAMP '2026-01-31 12:00:00'"),
        ("raw = 'x'", "X'00FF'"),
        ("active = 1", "TRUE or FALSE"),
        ("tags = 'x'", "IS NULL"),
        ("f = 1e999", "number"),
    ],
)
def test_a_literal_of_another_type_is_refused_with_one_that_fits(text, hint):
    with pytest.raises(InvalidValueError) as caught:
        predicate(text)
    assert hint in caught.value.hint
    assert caught.value.position == text.index("=") + 3


def test_a_zone_is_not_dropped_from_a_literal():
    for text in ("2026-01-31 12:00:00Z", "2026-01-31 12:00:00.000000001Z"):
        with pytest.raises(InvalidValueError, match="zone would be lost"):
            bind(predicate(f"ts = '{text}'"), TYPE_OF)


def test_the_and_of_between_joins_no_conditions():
    first = "id BETWEEN 1 AND 2"
    assert predicate(f"{first} AND active") == predicate(f"({first}) AND active")


def test_an_unknown_column_is_refused_with_the_nearest():
    with pytest.raises(InvalidSchemaError, match="did you mean 'name'"):
        predicate("Name = 'x'")


def test_a_filter_has_limits():
    with pytest.raises(InvalidValueError, match="characters"):
        parse_filter("id = 1" + " " * FILTER_CHARS_MAX)
    deep = DEPTH_MAX - 1
    parse_filter("(" * deep + "id = 1" + ")" * deep)
    for text in ("(" * 5_000 + "id = 1", "NOT " * 5_000 + "id = 1"):
        with pytest.raises(InvalidValueError, match="deep"):
            parse_filter(text)


def test_a_long_filter_is_parsed():
    listed = ", ".join(map(str, range(10_000)))
    assert len(predicate(f"id IN ({listed})").literals) == 10_000
    chained = " OR ".join(f"id = {each}" for each in range(10_000))
    assert len(predicate(chained).children) == 10_000


def test_a_filter_is_shown_as_it_was_written_and_can_be_pickled():
    parsed = parse_filter("id > 1 AND date = '2026-01-31'")
    assert str(parsed) == "id > 1 AND date = '2026-01-31'"
    assert pickle.loads(pickle.dumps(parsed)) == parsed  # noqa: S301 - made here
