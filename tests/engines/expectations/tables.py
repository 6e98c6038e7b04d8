"""The tables of the cases, created when a case first needs them.

`Tables.rows` has what a table holds as Python rows, so that a case can select its rows in Python.
"""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from fluss.errors import FlussError
from fluss.session import Session, Table

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
EVENTS = 1_000
# Commit times are whole milliseconds.
TICK_S = 0.001

# Every type, and in each its extremes; nanoseconds are numbers, because Python's times end earlier.
TYPES = pa.schema(
    [
        ("id", pa.int64()),
        ("truth", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("number", pa.int32()),
        ("big", pa.int64()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("text", pa.string()),
        ("fixed", pa.binary(4)),
        ("raw", pa.binary()),
        ("price", pa.decimal128(10, 2)),
        ("exact", pa.decimal128(38, 18)),
        ("day", pa.date32()),
        ("time_s", pa.time32("s")),
        ("time_ms", pa.time32("ms")),
        ("at_s", pa.timestamp("s")),
        ("at_ms", pa.timestamp("ms")),
        ("at_us", pa.timestamp("us")),
        ("at_ns", pa.timestamp("ns")),
        ("zoned_ms", pa.timestamp("ms", tz="UTC")),
        ("zoned_us", pa.timestamp("us", tz="UTC")),
        ("zoned_ns", pa.timestamp("ns", tz="UTC")),
        ("list", pa.list_(pa.int32())),
        ("map", pa.map_(pa.string(), pa.int32())),
        ("row", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("deep", pa.list_(pa.struct([("k", pa.string()), ("v", pa.list_(pa.float64()))]))),
    ]
)
_TYPED: dict[str, list[Any]] = {
    "truth": [True, False],
    "tiny": [127, -128],
    "small": [32_767, -32_768],
    "number": [2**31 - 1, -(2**31)],
    "big": [2**60 + 1, -(2**63)],
    "single": [math.nan, -0.0],
    "double": [math.inf, -0.0],
    "text": ["Grüße, 世界 🌍", ""],
    "fixed": [b"\x00\x01\x02\xff", b"abcd"],
    "raw": [b"\x00\xff", b""],
    "price": [Decimal("99999999.99"), Decimal("-0.01")],
    "exact": [Decimal("12345678901234567890.123456789012345678"), Decimal("-1E-18")],
    "day": [dt.date(9999, 12, 31), dt.date(1, 1, 1)],
    "time_s": [dt.time(23, 59, 59), dt.time(0)],
    "time_ms": [dt.time(23, 59, 59, 999_000), dt.time(0, 0, 0, 1_000)],
    "at_s": [dt.datetime(9999, 12, 31, 23, 59, 59), dt.datetime(1, 1, 1)],  # noqa: DTZ001
    "at_ms": [dt.datetime(2026, 1, 1, 0, 0, 0, 1_000), dt.datetime(1969, 12, 31)],  # noqa: DTZ001
    "at_us": [dt.datetime(2026, 1, 1, 0, 0, 0, 1), dt.datetime(1969, 12, 31)],  # noqa: DTZ001
    "at_ns": [1_767_225_600_000_000_001, -1],
    "zoned_ms": [1_767_225_600_001, -1],
    "zoned_us": [1_767_225_600_000_001, -1],
    "zoned_ns": [1_767_225_600_000_000_001, -1],
    "list": [[1, None, 3], []],
    "map": [[("a", 1), ("b", None)], []],
    "row": [{"a": 1, "b": "x"}, {"a": None, "b": None}],
    "deep": [[{"k": "x", "v": [1.5, None]}, None], []],
}
FLOATS = [None, math.nan, -math.inf, -1.5, -0.0, 0.0, 1.5, math.inf]


def _types() -> pa.Table:
    columns = {"id": [0, 1, 2], **{name: [*values, None] for name, values in _TYPED.items()}}
    return pa.table([pa.array(columns[each.name], each.type) for each in TYPES], schema=TYPES)


def _events() -> pa.Table:
    numbers = range(EVENTS)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "day": [DAYS[each % 3] for each in numbers],
            "x": [None if each % 10 == 9 else each / 8 for each in numbers],
            "name": [None if each % 7 == 6 else f"n{each % 7}" for each in numbers],
            "price": pa.array([Decimal(each) / 100 for each in numbers], pa.decimal128(10, 2)),
        }
    )


def _odd_names() -> pa.Table:
    return pa.table(
        {"id": [1, 2], "select": ["a", "b"], "a b": [1, 2], 'quo"te': [3, 4], "Ä": [5, 6]}
    )


class Tables:
    """Creates each table when it is first needed.

    Args:
        session: Where they are made.
        database: In which database.
    """

    def __init__(self, session: Session, database: str) -> None:
        self.session = session
        self.database = database
        self._rows: dict[str, pa.Table] = {}
        self._moments: dict[str, dt.datetime] = {}

    def name(self, table: str) -> str:
        """Return the full name of a table, with its suffix (`$changelog`)."""
        plain = table.partition("$")[0]
        if plain not in self._rows:
            self._rows[plain] = self._made(plain, f"{self.database}.{plain}")
        return f"{self.database}.{table}"

    def _made(self, plain: str, name: str) -> pa.Table:
        try:
            return _MAKERS[plain](self, name)
        except FlussError:
            # One that got no leader would be in the way of the test that is run again.
            self.session.drop_table(name, ignore_if_not_exists=True)
            raise

    def rows(self, table: str) -> pa.Table:
        """Return the rows of a table."""
        self.name(table)
        return self._rows[table.partition("$")[0]]

    def moment(self, table: str) -> dt.datetime:
        """Return a time between the writes of the first and the second half of a table."""
        self.name(table)
        return self._moments[table.partition("$")[0]]

    # --- one maker for each -------------------------------------------------------------------

    def _written(self, name: str, rows: pa.Table, *, batches: int = 1, **how: Any) -> pa.Table:
        table = self.session.create_table(name, rows, **how)
        write: Callable[[Any], Any] = table.upsert if "primary_key" in how else table.append
        step = -(-rows.num_rows // batches)
        for start in range(0, rows.num_rows, max(step, 1)):
            write(rows.slice(start, step))
        return rows

    def _types(self, name: str) -> pa.Table:
        return self._written(name, _types(), buckets=1)

    def _typed_state(self, name: str) -> pa.Table:
        return self._written(name, _types(), buckets=1, primary_key=["id"])

    def _floats(self, name: str) -> pa.Table:
        rows = pa.table({"id": range(len(FLOATS)), "x": pa.array(FLOATS, pa.float64())})
        return self._written(name, rows, buckets=1)

    def _events(self, name: str) -> pa.Table:
        return self._written(name, _events(), batches=10, buckets=4, bucket_key=["id"])

    def _parted(self, name: str) -> pa.Table:
        return self._written(name, _events(), buckets=2, partition_by=["day"])

    def _keyed(self, name: str) -> pa.Table:
        rows = _events()
        table: Table = self.session.create_table(name, rows, primary_key=["id"], buckets=3)
        table.upsert(rows)
        changed = rows.slice(0, 10).set_column(2, "x", pa.array([-1.0] * 10))
        table.upsert(changed)
        table.delete(rows.slice(10, 10).select(["id"]))
        return pa.concat_tables([changed, rows.slice(20)])

    def _tailed(self, name: str) -> pa.Table:
        return self._one_by_one(name, buckets=2, partition_by=["day"], bucket_key=["id"])

    def _tailed_changes(self, name: str) -> pa.Table:
        return self._one_by_one(name, buckets=3, primary_key=["id"])

    def _one_by_one(self, name: str, **how: Any) -> pa.Table:
        """Eight rows, each with a commit time of its own, so that their order is known."""
        rows = pa.table(
            {
                "id": pa.array(range(8), pa.int64()),
                "day": [DAYS[each // 5] for each in range(8)],
                "name": [f"n{each % 3}" for each in range(8)],
            }
        )
        table: Table = self.session.create_table(name, rows, **how)
        write: Callable[[Any], Any] = table.upsert if "primary_key" in how else table.append
        for number in range(rows.num_rows):
            write(rows.slice(number, 1))
            time.sleep(2 * TICK_S)
            if number == rows.num_rows // 2:
                self._moments[name.rpartition(".")[2]] = dt.datetime.now(dt.UTC)
                time.sleep(2 * TICK_S)
        return rows

    def _few_changes(self, name: str) -> pa.Table:
        rows = pa.table({"id": [1, 2], "x": ["a", "b"]})
        table = self.session.create_table(name, rows, primary_key=["id"], buckets=1)
        table.upsert(rows)
        table.upsert(pa.table({"id": [1], "x": ["c"]}))
        table.delete(pa.table({"id": [2]}))
        return pa.table({"id": [1], "x": ["c"]})

    def _evolved(self, name: str) -> pa.Table:
        before = pa.table({"id": [1, 2], "x": ["a", "b"]})
        self._written(name, before, buckets=1)
        table = self.session.alter_table(name, add_columns=pa.schema([("y", pa.int32())]))
        after = pa.table({"id": [3], "x": ["c"], "y": pa.array([30], pa.int32())})
        table.append(after)
        return pa.concat_tables([before, after], promote_options="default")

    def _empty(self, name: str) -> pa.Table:
        return self._written(name, _types().slice(0, 0), buckets=2)

    def _odd_names(self, name: str) -> pa.Table:
        return self._written(name, _odd_names(), buckets=1)


_MAKERS: dict[str, Callable[[Tables, str], pa.Table]] = {
    "types": Tables._types,
    "typed_state": Tables._typed_state,
    "floats": Tables._floats,
    "events": Tables._events,
    "parted": Tables._parted,
    "keyed": Tables._keyed,
    "tailed": Tables._tailed,
    "tailed_changes": Tables._tailed_changes,
    "few_changes": Tables._few_changes,
    "evolved": Tables._evolved,
    "empty": Tables._empty,
    "odd_names": Tables._odd_names,
}
