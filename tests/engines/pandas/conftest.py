"""A session on the cluster of the test run, and a table with every type of Fluss."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

UTC = dt.UTC


@pytest.fixture
def every_type():
    """Rows with an extreme value of each type, another value, and NULL."""
    moment = 1_767_225_600_123_456_789
    arrays = {
        "id": pa.array([0, 1, 2], pa.int64()),
        "truth": pa.array([True, False, None]),
        "tiny": pa.array([-128, 127, None], pa.int8()),
        "small": pa.array([-(2**15), 1, None], pa.int16()),
        "middle": pa.array([-(2**31), 1, None], pa.int32()),
        "big": pa.array([2**60 + 1, -(2**63), None], pa.int64()),
        "short": pa.array([1.5, float("nan"), None], pa.float32()),
        "long": pa.array([-0.0, float("nan"), None], pa.float64()),
        "price": pa.array([Decimal("12345678901234567890.123456789"), Decimal(0), None],
                          pa.decimal128(38, 9)),
        "text": pa.array(["ä\U0001f40d", "", None]),
        "raw": pa.array([b"\x00\xff", b"", None], pa.binary()),
        "fixed": pa.array([b"abc", b"\x00\x00\x00", None], pa.binary(3)),
        "day": pa.array([dt.date(9999, 12, 31), dt.date(1, 1, 1), None]),
        "clock_ms": pa.array([dt.time(23, 59, 59, 999_000), dt.time(0), None], pa.time32("ms")),
        "clock_ns": pa.array([86_399_999_999_999, 1, None], pa.time64("ns")),
        "at_s": pa.array([253_370_764_800, -62_135_596_800, None], pa.timestamp("s")),
        "at_us": pa.array([253_370_768_461_000_007, -62_135_596_800_000_000, None],
                          pa.timestamp("us")),
        "at_ns": pa.array([moment, 1, None], pa.timestamp("ns")),
        "zoned": pa.array([dt.datetime(2026, 1, 1, tzinfo=UTC), dt.datetime(1970, 1, 1, tzinfo=UTC),
                           None], pa.timestamp("ms", tz="UTC")),
        "zoned_ns": pa.array([moment, 1, None], pa.timestamp("ns", tz="UTC")),
        "list": pa.array([[1, None], [], None], pa.list_(pa.int32())),
        "map": pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int64())),
        "row": pa.array([{"x": 2**60 + 1, "y": "z"}, {"x": None, "y": None}, None],
                        pa.struct([("x", pa.int64()), ("y", pa.string())])),
    }  # fmt: skip
    return pa.table(arrays)


@pytest.fixture
def typed(session, every_type):
    """A log table of these rows."""
    table = session.create_table("typed", every_type, buckets=1)
    table.append(every_type)
    return table


@pytest.fixture
def events(session):
    """A log table of four buckets and 10 000 rows."""
    rows = pa.table({"id": range(10_000), "name": [f"n{each % 7}" for each in range(10_000)]})
    return session.append("events", rows, create=True, buckets=4, bucket_key=["id"]) and (
        session.table("events")
    )


@pytest.fixture
def keyed(session):
    """A table with a primary key and 100 rows."""
    rows = pa.table({"id": range(100), "name": ["old"] * 100, "points": range(100)})
    session.upsert("keyed", rows, create=True, primary_key=["id"], buckets=3)
    return session.table("keyed")
