"""Java's readers of a lake, as judges of what our rounds write: tools/LakeJudge.java.

The generic reader of Iceberg-Java and Fluss's own lake source read a snapshot in one JVM. Their
rows and ours are compared as texts, column by column, with the bucket, the offset and the time of
each. Fluss's source gives no bucket where a table has no bucket key.
"""

from __future__ import annotations

import datetime as dt
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from fluss_testkit.artifact import FLUSS_CLIENT, LOG_BINDING, find_jar
from fluss_testkit.java_runtime import find_java
from fluss_testkit.lake_profile import FLUSS_LAKE_ICEBERG, HADOOP, SQLITE_DRIVER
from tests.support.java_programs import java_command
from tests.support.servers.java_client import JVM_OPTIONS, TOOLS

PREFIX = "table.datalake.iceberg."
JARS = (FLUSS_CLIENT, FLUSS_LAKE_ICEBERG, HADOOP, SQLITE_DRIVER, LOG_BINDING)
READERS = ("iceberg", "fluss")
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001
PLACES = ("_bucket", "_log_offset", "_commit_timestamp")

Rows = Counter[tuple[int, int | None, int | None, str]]


class JavaJudge:
    """A JVM that reads snapshots."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def rows(self, table: Any, snapshot_id: int) -> dict[str, Rows]:
        """The rows of a snapshot by reader: bucket, offset, time in milliseconds, and values."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        path = table.info.table_path
        print(
            path.database_name, path.table_name, snapshot_id, file=self._process.stdin, flush=True
        )
        found: dict[str, Rows] = {each: Counter() for each in READERS}
        for line in self._process.stdout:
            reader, *words = line.rstrip("\n").split("\t")
            if reader == "end":
                return found
            assert reader in READERS, line
            bucket, offset, time_ms, values = words
            found[reader][int(bucket), int(offset), int(time_ms), values] += 1
        raise AssertionError("the JVM has ended")


@contextmanager
def java_judge(bootstrap: str, settings: Mapping[str, str], log: Path) -> Iterator[JavaJudge]:
    """Run the JVM until the end of the block.

    Args:
        bootstrap: The cluster.
        settings: The settings of the catalog, as Java names them.
        log: Where errors go.
    """
    jars = [find_jar(each) for each in JARS]
    command = java_command(find_java(), JVM_OPTIONS, jars, [TOOLS / "LakeJudge.java"])
    pairs = [f"{key}={value}" for key, value in settings.items()]
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*command, bootstrap, *pairs],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            yield JavaJudge(process)
        finally:
            process.kill()
            process.communicate()


def settings_of(table: Any) -> dict[str, str]:
    """The settings of a table's catalog for Java, from the properties that the server gives it."""
    given = table.info.properties.items()
    found = {key.removeprefix(PREFIX): value for key, value in given if key.startswith(PREFIX)}
    # Servers keep passwords to themselves; SQLite has none.
    return {**found, "jdbc.user": "fluss", "jdbc.password": "fluss", "jdbc.schema-version": "V1"}


def texts_of(rows: pa.Table) -> Rows:
    """Our rows as the JVM writes its own; offsets and times are None where they are not there."""
    columns = [name for name in rows.column_names if not name.startswith("_")]
    values = [_column(rows.column(name)) for name in columns]
    places = [
        _column(rows.column(name)) if name in rows.column_names else ["~"] * rows.num_rows
        for name in PLACES
    ]
    found: Rows = Counter()
    for bucket, offset, time_us, *row in zip(*places, *values, strict=True):
        at = None if time_us == "~" else int(time_us) // 1_000
        found[int(bucket), None if offset == "~" else int(offset), at, f"({','.join(row)})"] += 1
    return found


def without_buckets(rows: Rows) -> Rows:
    """The rows without their buckets, as Fluss's source gives those of a table without a key."""
    found: Rows = Counter()
    for (_, offset, time_ms, values), count in rows.items():
        found[-1, offset, time_ms, values] += count
    return found


def without_places(rows: Rows) -> Rows:
    """The rows without their offsets and times, which a state does not give."""
    found: Rows = Counter()
    for (bucket, _, _, values), count in rows.items():
        found[bucket, None, None, values] += count
    return found


def _column(column: pa.ChunkedArray) -> list[str]:
    return [_text(each, column.type) for each in column.to_pylist()]


def _text(value: Any, kind: pa.DataType) -> str:
    if value is None:
        return "~"
    match value:
        case bool():
            return str(value).lower()
        case int() | Decimal():
            return f"{value:f}" if isinstance(value, Decimal) else str(value)
        case float():
            form = ">f" if pa.types.is_float32(kind) else ">d"
            return struct.pack(form, value).hex().lstrip("0") or "0"
        case str():
            return value.encode().hex()
        case bytes():
            return value.hex()
        case _:
            return _text_of_time(value) or _text_of_nested(value, kind)


def _text_of_time(value: Any) -> str | None:
    match value:
        case dt.datetime():
            return str((value.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1))
        case dt.date():
            return str((value - EPOCH.date()).days)
        case dt.time():
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return str(seconds * 1_000_000 + value.microsecond)
        case _:
            return None


def _text_of_nested(value: Any, kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        pairs = sorted(
            (_text(key, kind.key_type), _text(one, kind.item_type)) for key, one in value
        )
        return "{" + ", ".join(f"{key}={one}" for key, one in pairs) + "}"
    if pa.types.is_struct(kind):
        texts = [_text(value[each.name], each.type) for each in kind]
    else:
        texts = [_text(each, kind.value_type) for each in value]
    return f"({','.join(texts)})"
