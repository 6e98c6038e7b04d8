"""Filters in SQL keep the rows that DuckDB keeps with the same text in WHERE."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from fluss.model.predicates.binding import column_types
from fluss.model.predicates.filter_text import parse_filter
from fluss.model.schema.schema import Schema
from fluss.model.types.arrow_to_type import from_arrow_type
from fluss.records.filter.row_filter import RowFilter

ROWS = pa.table(
    {
        "id": pa.array([1, 2, None, -3, 2**62, 0], pa.int64()),
        "name": pa.array(["aba", "ab%ba", None, "", "it's", "abba"]),
        "day": pa.array([date(2026, 1, 1), None, date(1969, 12, 31), date(2026, 2, 1), None, None]),
        "hour": pa.array([time(0), time(12, 30, 5, 250_000), None, time(23, 59, 59), None, None],
                       pa.time64("us")),
        "ts": pa.array([datetime(2026, 1, 1), datetime(1900, 1, 1, 1, 2, 3), None, None,  # noqa: DTZ001
                        datetime(2026, 1, 1, 12, 0, 0, 1), None], pa.timestamp("us")),  # noqa: DTZ001
        "moment": pa.array([datetime(2026, 1, 1, tzinfo=UTC), None, None, None, None,
                            datetime(2026, 1, 1, 12, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        "f": pa.array([0.1, 1.0, None, -0.0, 1e300, 2.5], pa.float64()),
        "price": pa.array([Decimal("1.10"), Decimal("-1.00"), None, Decimal("0.00"), None, None],
                          pa.decimal128(6, 2)),
        "raw": pa.array([b"", b"\x00\xff", None, b"'", None, None], pa.binary()),
        "active": pa.array([True, False, None, True, None, False]),
    }
)  # fmt: skip

CONDITIONS = [
    "id > 1", "id >= -3 AND id <> 0", "1 < id", "id = 1.0", "id < 1.5", "id > 1.5", "id <> 1.5",
    "id IN (1, 2.5, NULL)", "id NOT IN (1, NULL)", "id NOT IN (1, 2)", "NOT id IN (1, 2)",
    "id BETWEEN -3 AND 1", "id NOT BETWEEN -3 AND 1", "id = NULL", "NOT (id = NULL)",
    "id IS NULL OR name IS NOT NULL", "id IS DISTINCT FROM 1", "NOT (id IS DISTINCT FROM 1)",
    "id IS NOT DISTINCT FROM NULL", "name = 'it''s'", "name < 'b'", "name LIKE 'ab%'",
    "name LIKE '%ba'", "name LIKE '%b%'", "name LIKE 'ab%ba'", "name LIKE 'aba%ba'",
    "name NOT LIKE 'ab%ba'", "name LIKE '%'", "name LIKE ''", "name LIKE 'ab!%%' ESCAPE '!'",
    "name NOT LIKE '%b%' OR id = 2", "starts_with(name, 'ab%')", "contains(name, '%')",
    "ends_with(name, 's')", "day = DATE '2026-01-01'", "day < '2026-01-02'",
    "day IN ('2026-01-01', '1969-12-31')", "hour >= TIME '12:30:05.25'", "hour < '12:30'",
    "ts >= TIMESTAMP '2026-01-01 12:00:00'", "ts = DATE '2026-01-01'", "ts < '1900-01-02 00:00:00'",
    "moment > TIMESTAMPTZ '2026-01-01 01:30:00+01:00'", "moment = '2026-01-01 13:00:00+01'",
    "f = 0.1", "f > 1e10", "f = 0", "f < 1", "f BETWEEN 0.1 AND 2.5", "NOT f > 1",
    "price > 1.05", "price = 1.1", "price < -0.995", "price IN (1.10, -1)",
    r"raw = '\x00\xff'::BLOB", "active", "NOT active", "active = FALSE", "active IS NOT TRUE",
    "active IS FALSE OR active IS NULL", "(active) AND (id > 0)", "TRUE", "FALSE OR id = 1",
    "NULL", "NOT NULL", "id = 1 OR id = 2 AND name = 'x'", "(id = 1 OR id = 2) AND name = 'aba'",
    "NOT (id > 1 AND (name = 'x' OR active))", '"id" = 1',
]  # fmt: skip
# DuckDB writes bytes as text with a cast.
OURS = {r"raw = '\x00\xff'::BLOB": "raw = X'00FF'"}


@pytest.fixture(scope="module")
def database():
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("rows", ROWS.append_column("row_number", pa.array(range(len(ROWS)))))
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def schema():
    builder = Schema.builder()
    for field in ROWS.schema:
        builder = builder.column(field.name, from_arrow_type(field.type))
    return builder.build()


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_rows_are_those_of_where(database, schema, condition):
    parsed = parse_filter(OURS.get(condition, condition)).predicate(column_types(schema))
    (batch,) = ROWS.to_batches()
    kept = RowFilter(parsed, schema).matching(batch)
    expected = database.sql(
        f"SELECT row_number FROM rows WHERE {condition} ORDER BY row_number"
    ).fetchall()
    assert [(int(each),) for each in kept] == expected
