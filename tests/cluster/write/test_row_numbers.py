"""Errors of values name the row in the caller's frame, whatever encodes it."""

import pyarrow as pa
import pytest

from fluss import DataTypes, Schema
from fluss.errors import InvalidValueError, LimitExceededError

ROWS = 3_000
BAD = 2_345
FORMATS = ["ARROW", "INDEXED", "COMPACTED"]
LOGS = {
    "plain": {"buckets": 3},
    "keyed": {"buckets": 3, "bucket_key": ["id"]},
    "parted": {"buckets": 2, "partition_by": ["day"]},
}
KEYED = {"keyed": {"buckets": 3}, "parted": {"buckets": 2, "partition_by": ["day"]}}


def schema_of(*keys):
    builder = (
        Schema.builder()
        .column("id", DataTypes.bigint())
        .column("code", DataTypes.char(3))
        .column("day", DataTypes.string())
        .column("at", DataTypes.timestamp(0))
    )
    return (builder.primary_key(keys) if keys else builder).build()


def frame(**bad):
    columns = {
        "id": list(range(ROWS)),
        "code": ["abc"] * ROWS,
        "day": ["odd" if each % 2 else "even" for each in range(ROWS)],
        "at": [0] * ROWS,
    }
    for name, value in bad.items():
        columns[name][BAD] = value
    columns["at"] = pa.array(columns["at"], pa.timestamp("s"))
    return pa.table(columns)


def chunked(table):
    return pa.concat_tables([table.slice(start, 700) for start in range(0, ROWS, 700)])


def refused(write, data):
    with pytest.raises(InvalidValueError) as caught:
        write(data)
    assert f"row {BAD}" in caught.value.message
    return caught.value.row, caught.value.column


def check(table, write, bad):
    for name, value in bad:
        whole = frame(**{name: value})
        assert refused(write, whole) == (BAD, name)
        assert refused(write, chunked(whole)) == (BAD, name)
        assert table.count() == 0, "nothing is written"
    for name, value in bad[:1]:
        assert refused(write, chunked(frame(**{name: value})).to_reader(500)) == (BAD, name)


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("log_format", FORMATS)
def test_a_log_names_the_row_of_the_frame(session, log_format, kind):
    table = session.create_table(
        "log", schema_of(), properties={"table.log.format": log_format}, **LOGS[kind]
    )
    bad = [("code", "abcd")]
    if log_format == "INDEXED":
        bad.append(("code", "äöü"))  # six bytes, for which CHAR(3) has no room there
    if log_format != "ARROW":
        bad.append(("at", 2**62))
    if kind == "keyed":
        bad.append(("id", None))
    if kind == "parted":
        bad += [("day", None), ("day", "x" * 201)]
    check(table, table.append, bad)


@pytest.mark.parametrize("kind", KEYED)
@pytest.mark.parametrize("kv_format", ["INDEXED", "COMPACTED"])
def test_a_key_table_names_the_row_of_the_frame(session, kv_format, kind):
    properties = {"table.kv.format": kv_format}
    table = session.create_table(
        "keys", schema_of("id", "day"), properties=properties, **KEYED[kind]
    )
    bad = [("code", "abcd"), ("id", None), ("at", 2**62)]
    if kv_format == "INDEXED":
        bad.append(("code", "äöü"))
    check(table, table.upsert, bad)
    assert refused(table.lookup, chunked(frame(id=None)).select(["id", "day"])) == (BAD, "id")


def test_a_changelog_names_the_row_of_the_frame(session):
    """Rows that an update replaces are left out before anything else is looked at."""
    table = session.create_table("keys", schema_of("id", "day"), buckets=2)
    kinds = pa.array((["insert", "update_before", "update_after"] * ROWS)[:ROWS])
    whole = frame(code="abcd").append_column("_change_type", kinds)
    bad = frame().append_column(
        "_change_type", pa.array([*kinds.to_pylist()[:BAD], "odd"] * 2)[:ROWS]
    )
    assert BAD % 3 != 1
    assert refused(table.upsert, chunked(whole)) == (BAD, "code")
    assert refused(table.upsert, chunked(bad)) == (BAD, "_change_type")
    assert table.count() == 0


def test_the_error_names_a_row_that_is_too_large(session):
    text = pa.schema([("id", pa.int64()), ("text", pa.string())])
    large = pa.table({"id": range(50), "text": ["x"] * 49 + ["y" * 11_000_000]})
    plain = {"table.log.arrow.compression.type": "NONE"}
    log = {"bucket_key": ["id"], "properties": plain}
    for name, how in (("log", log), ("keys", {"primary_key": ["id"]})):
        table = session.create_table(name, text, buckets=3, **how)
        write = table.append if name == "log" else table.upsert
        with pytest.raises(LimitExceededError, match="In row 49: ") as caught:
            write(large)
        assert caught.value.row == 49
