"""Columns of all types that a table with a lake may have, and rows for them."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

FLAT = {
    "tiny": "TINYINT",
    "small": "SMALLINT",
    "number": "INT",
    "single": "FLOAT",
    "double": "DOUBLE",
    "truth": "BOOLEAN",
    "text": "STRING",
    "fixed": "CHAR(2)",
    "exact": "DECIMAL(10,2)",
    "wide": "DECIMAL(38,4)",
    "bytes": "BYTES",
    "two": "BINARY(2)",
    "day": "DATE",
    "clock": "TIME(3)",
    "at_s": "TIMESTAMP(0)",
    "at_ms": "TIMESTAMP(3)",
    "at_us": "TIMESTAMP(6)",
    "zoned": "TIMESTAMP_LTZ(6)",
}
NESTED = {
    "list": "ARRAY<TINYINT>",
    "map": "MAP<STRING,SMALLINT>",
    "pair": "ROW<x TINYINT, y ARRAY<ROW<z TIMESTAMP(3)>>>",
}
TYPES = {**FLAT, **NESTED}
# Java of 0.9.1 reads none of these from a lake: numbers in nested columns that are narrower than
# INT, lists of rows, and times before 1970 with microseconds.
NESTED_FOR_JAVA = {
    "list": "ARRAY<INT>",
    "map": "MAP<STRING,INT>",
    "pair": "ROW<x INT, y STRING>",
}
TYPES_FOR_JAVA = {**FLAT, **NESTED_FOR_JAVA}
BEFORE_1970 = dt.datetime(1969, 12, 31, 23, 59, 59)  # noqa: DTZ001
AFTER_1970 = dt.datetime(1971, 1, 1)  # noqa: DTZ001
NULLS_EVERY = 7


def full_row(number: int, *, since: dt.datetime = BEFORE_1970) -> dict[str, Any]:
    """A row of a number: every seventh has nothing but the number.

    Args:
        number: The number, which is also the row's `id`.
        since: The time of the row 0.
    """
    if number % NULLS_EVERY == 0:
        return {"id": number}
    at = since + dt.timedelta(microseconds=number * 333_333)
    return {
        "id": number,
        "tiny": number % 100,
        "small": -number,
        "number": number * 1_000,
        "single": number / 4,
        "double": float("nan") if number % 5 == 0 else number / 3,
        "truth": number % 2 == 0,
        "text": f"text {number}" if number % 3 else "",
        "fixed": "ab",
        "exact": decimal.Decimal(-number) / 4,
        "wide": decimal.Decimal(10) ** 30 + number,
        "bytes": bytes([number % 256]),
        "two": b"xy",
        "day": dt.date(1969, 12, 1) + dt.timedelta(days=number),
        "clock": dt.time(1, 2, 3, 4_000),
        "at_s": at.replace(microsecond=0),
        "at_ms": at.replace(microsecond=at.microsecond // 1_000 * 1_000),
        "at_us": at,
        "zoned": at.replace(tzinfo=dt.UTC),
        "list": [number % 100, None],
        "map": {"k": number % 1_000, "n": None},
        "pair": {"x": number % 100, "y": [{"z": at.replace(microsecond=0)}, None]},
    }


def row_for_java(number: int) -> dict[str, Any]:
    """A row of the columns that Java reads as well."""
    row = full_row(number, since=AFTER_1970)
    if len(row) == 1:
        return row
    # Fluss's lake source casts nanoseconds to an int: times from 2.1 s of the day on are wrong.
    return {**row, "pair": {"x": number, "y": None}, "clock": dt.time(0, 0, 1, 4_000)}
