"""The tags of stored values, and when rows expire: the rules and vectors of Java's client 1.0.0."""

import time

import pytest

from fluss import DataTypes, Schema
from fluss.model.tables.table_options import KvFormat, TableOptions
from fluss_server.kv.row_ttl import NEVER, RowTtl
from fluss_server.kv.stored_row_codec import StoredRowCodec

TTL_MS = 1_000
NOW_MS = 1_000_000


def ttl_of(data_type=None, **options):
    schema = Schema.builder().column("id", DataTypes.int())
    if data_type is not None:
        schema = schema.column("at", data_type)
        options["table.kv.ttl.time-column"] = "at"
    codec = StoredRowCodec({1: schema.primary_key(["id"]).build()}, KvFormat.COMPACTED)
    return RowTtl.of(TableOptions({"table.kv.ttl": "1 s", **options}), codec), codec


def tag_of(ttl, codec, *values, commit_ms=0):
    tagged = ttl.tagged({b"k": codec.write([1, *values])}, commit_ms=commit_ms)[b"k"]
    assert tagged[8:] == codec.write([1, *values])
    return tagged[:8]


@pytest.mark.parametrize(
    ("commit_ms", "tag"),
    [
        (0, "0000000000000000"),
        (1_700_000_000_123, "0000018bcfe5687b"),
        (-1, "ffffffffffffffff"),
        (NEVER, "3fffffffffffffff"),
    ],
)
def test_tags_are_java_s(commit_ms, tag):
    assert tag_of(*ttl_of(), commit_ms=commit_ms).hex() == tag


def test_the_time_column_decides_where_there_is_one():
    ttl = ttl_of(DataTypes.bigint())
    assert tag_of(*ttl, 1_700_000_000_123, commit_ms=5).hex() == "0000018bcfe5687b"
    assert tag_of(*ttl, None, commit_ms=5).hex() == "3fffffffffffffff"
    micros = ttl_of(DataTypes.timestamp_ltz(6))
    assert int.from_bytes(tag_of(*micros, -1)) == 2**64 - 1  # rounded down to -1 ms


@pytest.mark.parametrize(
    ("zone", "millis"), [("UTC", 1_767_323_045_678), ("UTC-1", 1_767_319_445_678)]
)
def test_a_time_without_a_zone_is_in_the_zone_of_the_server(monkeypatch, zone, millis):
    monkeypatch.setenv("TZ", zone)  # POSIX counts zones to the west: this is UTC+1
    time.tzset()
    try:
        found = tag_of(*ttl_of(DataTypes.timestamp(3)), 1_767_323_045_678)
        assert int.from_bytes(found) == millis
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("tag", "is_gone"),
    [
        (998_999, True), (999_000, True), (999_001, False), (1_000_000, False), (2_000_000, False),
        (0, True), (-1, True), (-(2**63), True), (2**62 - 1, False), (2**63 - 1, False),
    ],
)  # fmt: skip
def test_a_row_expires_when_its_time_plus_the_ttl_has_come(tag, is_gone):
    ttl, codec = ttl_of()
    stored = ttl.tagged({b"k": codec.write([1])}, commit_ms=tag)[b"k"]
    assert ttl.has_expired(stored, now_ms=NOW_MS) == is_gone


def test_deletes_have_no_tag():
    ttl, codec = ttl_of(DataTypes.bigint())
    assert ttl.tagged({b"k": None}, commit_ms=1) == {b"k": None}
    assert RowTtl.of(TableOptions({}), codec) is None
