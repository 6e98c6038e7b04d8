"""Parses where a read starts or ends, as Spark users write it.

Beside the words and times that every scan takes there are `full`, a time as milliseconds under the
names that contain `timestamp`, and offsets as JSON. JSON is `{"0": 17}` by bucket,
`{"2026-01-01/0": 17}` by partition and bucket, with Kafka's -2 for earliest and -1 for latest, or
the offset of a query's checkpoint or progress report as Spark shows it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from fluss import TableBucket
from fluss.errors import FlussError, InvalidValueError
from fluss.scan import Bound, BoundKind, Cursor

TABLE_ID: Final = "tableId"
OFFSETS: Final = "offsets"
STATE: Final = "state"
JSON_CHARS_MAX: Final = 16 * 1024 * 1024
_MS_DIGITS_MAX: Final = 15


class _Full(Enum):
    FULL = "full"


FULL: Final = _Full.FULL


def parse_bound(text: str, name: str, *, is_time: bool) -> Any:
    """Return a bound as an option of a scan takes it, or `FULL`.

    Args:
        text: The option's value.
        name: The option's name, for messages.
        is_time: Whether a number is milliseconds since 1970, and not an offset.

    Raises:
        InvalidValueError: It is JSON of something else, or a number below zero.
    """
    stripped = text.strip()
    if stripped.lower() == FULL.value:
        return FULL
    if is_time and stripped.isascii() and stripped.isdecimal() and len(stripped) <= _MS_DIGITS_MAX:
        return Bound(kind=BoundKind.TIME, number=int(stripped))
    if stripped.startswith("{"):
        return _parse_json(stripped, name)
    if stripped.startswith("-") and stripped[1:].strip().isdecimal():
        raise InvalidValueError(
            f"{name} is {stripped[:40]!r}, which is no position in a log.",
            hint="'earliest', 'latest', or a time ago with its unit, '-10m'; -2 and -1 are for "
            "buckets in JSON",
            option=name,
        )
    return stripped


def parse_offsets(listed: Mapping[str, Any], table_id: int) -> dict[TableBucket, int]:
    """Parse offsets that a checkpoint lists by `bucket` or `partition id/bucket`.

    Raises:
        ValueError: It lists something else.
    """
    found = {}
    for key, value in listed.items():
        partition, _, bucket = key.rpartition("/")
        table_bucket = TableBucket(
            table_id=table_id,
            partition_id=int(partition) if partition else None,
            bucket=int(bucket),
        )
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{value!r} is no offset")
        found[table_bucket] = value
    return found


def _parse_json(text: str, name: str) -> Any:
    if len(text) > JSON_CHARS_MAX:
        raise InvalidValueError(f"{name} has {len(text)} characters, which is too long.")
    try:
        found = json.loads(text)
        if "version" in found:
            return Cursor.from_json(text)
        if TABLE_ID in found:
            return _parse_progress(found)
        return {_bucket_key(key): _offset(value) for key, value in found.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, FlussError) as error:
        raise InvalidValueError(
            f"{name} is no JSON of offsets: {error}.",
            hint='write {"0": 17} by bucket, or {"partition/0": 17}; -2 is earliest, -1 latest',
            option=name,
        ) from None


def _parse_progress(found: Mapping[str, Any]) -> Cursor:
    if found.get(STATE):
        raise ValueError("that query has not read the state of some buckets yet")
    table_id = int(found[TABLE_ID])
    return Cursor.of(table_id, parse_offsets(found[OFFSETS], table_id))


def _bucket_key(key: str) -> Any:
    partition, slash, bucket = key.rpartition("/")
    if not bucket.isdecimal():
        raise ValueError(f"{key[:80]!r} names no bucket")
    return (partition, int(bucket)) if slash else int(bucket)


def _offset(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{str(value)[:80]!r} is no offset")  # noqa: TRY004 - one way out
    return value
