"""Frames of keys looked up on a real cluster: one row per key, in the order given."""

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fluss.errors import (
    ConnectError,
    FlussError,
    InvalidSchemaError,
    InvalidValueError,
    PartitionNotFoundError,
    SchemaMismatchError,
)
from fluss.lookup import bulk_lookup as asking, key_frames
from fluss.lookup.bulk_requests import BulkLookups
from fluss.lookup.frame_lookups import lookup_frame, prefix_lookup_frame
from fluss.model.schema.schema import Schema
from fluss.model.types.factory import DataTypes
from fluss.write.frame_writer import write_frame
from tests.support.servers.frame_harness import FrameHarness

PEOPLE = pa.table(
    {
        "id": pa.array([1, 2, 3, 128, -1], pa.int64()),
        "name": ["one", "two", None, "many", "less"],
        "born": pa.array([date(2000, 1, each) for each in (1, 2, 3, 4, 5)]),
        "pay": pa.array(
            [Decimal("1.50"), None, Decimal(3), Decimal(4), Decimal(5)], pa.decimal128(9, 2)
        ),
    }
)


@pytest.fixture
def frames(cluster, database):
    harness = FrameHarness(cluster.bootstrap, database)
    yield harness
    harness.close()


@pytest.fixture
def people(frames):
    table = frames.table(PEOPLE, primary_key=["id"])
    write_frame(table, PEOPLE, mode="upsert")
    return table


def test_there_is_one_row_per_key_in_the_order_given(people):
    found = lookup_frame(people, pa.table({"id": [128, 7, 1, 128, -1]}))
    assert found.column_names == [*PEOPLE.column_names, "_found"]
    assert found["id"].to_pylist() == [128, 7, 1, 128, -1]
    assert found["_found"].to_pylist() == [True, False, True, True, True]
    assert found["name"].to_pylist() == ["many", None, "one", "many", "less"]
    assert found["pay"].to_pylist()[2] == Decimal("1.50")
    assert found.schema.field("id").nullable is False
    assert found.schema.field("born").type == pa.date32()


KEYS = {
    "values": lambda: [3, 9],
    "numpy": lambda: np.array([3, 9]),
    "array": lambda: pa.array([3, 9], pa.int16()),
    "dicts": lambda: [{"id": 3}, {"id": 9}],
    "tuples": lambda: [(3,), (9,)],
    "columns": lambda: {"id": [3, 9]},
    "pandas": lambda: pd.DataFrame({"other": ["x", "y"], "id": [3, 9]}),
    "pandas series": lambda: pd.Series([3, 9]),
    "polars": lambda: pl.DataFrame({"id": [3, 9]}),
    "polars series": lambda: pl.Series([3, 9]),
    "stream": lambda: pa.table({"id": [3, 9]}).to_reader(),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_are_taken_in_any_form(people, kind):
    keys = KEYS[kind]()
    found = lookup_frame(people, keys, columns=["born", "id"])
    assert found.to_pylist() == [
        {"born": date(2000, 1, 3), "id": 3, "_found": True},
        {"born": None, "id": 9, "_found": False},
    ]


def test_no_keys_give_no_rows(people):
    assert lookup_frame(people, []).num_rows == 0
    assert lookup_frame(people, PEOPLE.slice(0, 0)).schema == lookup_frame(people, [1]).schema


def test_no_columns_ask_whether_keys_are_there(people):
    assert lookup_frame(people, [1, 9], columns=[]).to_pylist() == [
        {"_found": True},
        {"_found": False},
    ]


def test_many_keys_take_several_rounds_and_requests(frames, monkeypatch):
    monkeypatch.setattr(key_frames, "KEYS_PER_ROUND_MAX", 3_000)
    monkeypatch.setattr(asking, "KEYS_PER_REQUEST_MAX", 256)
    count = 10_000
    rows = pa.table({"id": np.arange(count), "text": [f"row {each}" for each in range(count)]})
    table = frames.table(rows, primary_key=["id"], buckets=4)
    write_frame(table, rows, mode="upsert")
    keys = np.random.default_rng(5).permutation(count + 100)
    found = lookup_frame(table, keys)
    assert found["id"].to_pylist() == keys.tolist()
    assert found["_found"].to_pylist() == (keys < count).tolist()
    assert found["text"].to_pylist() == [f"row {each}" if each < count else None for each in keys]


def test_requests_become_smaller_where_rows_are_large(frames, monkeypatch):
    monkeypatch.setattr(asking, "ANSWER_BYTES_AIM", 64 * 1024)
    sent = []
    request = BulkLookups.request
    monkeypatch.setattr(
        BulkLookups,
        "request",
        lambda self, runs: sent.append(sum(len(each.keys) for each in runs)) or request(self, runs),
    )
    rows = pa.table({"id": np.arange(4_000), "text": ["x" * 1_000] * 4_000})
    table = frames.table(rows, primary_key=["id"], buckets=1)
    write_frame(table, rows, mode="upsert")
    found = lookup_frame(table, rows.select(["id"]))
    assert found["_found"].to_pylist() == [True] * 4_000
    assert sent[0] == 1_024
    assert max(sent[asking.REQUESTS_IN_FLIGHT_MAX :] or [0]) <= 64


def test_a_key_of_a_missing_partition_is_not_found(frames):
    rows = pa.table({"day": ["mon", "tue", "mon"], "id": [1, 2, 3], "v": [1.0, 2.0, 3.0]})
    table = frames.table(rows, primary_key=["day", "id"], partition_by="day")
    write_frame(table, rows, mode="upsert")
    found = lookup_frame(table, [("mon", 3), ("sun", 1), ("tue", 2), ("mon", 2)])
    assert found["_found"].to_pylist() == [True, False, True, False]
    assert found["v"].to_pylist() == [3.0, None, 2.0, None]
    assert found["day"].to_pylist() == ["mon", "sun", "tue", "mon"]
    with pytest.raises(PartitionNotFoundError):
        lookup_frame(table, [("sun", 1)], insert_if_not_exists=True)


def test_keys_of_several_types_and_their_own_bucket_key(frames):
    moments = [datetime(2026, 1, 1, 12, 0, each, tzinfo=UTC) for each in range(5)]
    rows = pa.table(
        {
            "v": [f"v{each}" for each in range(5)],
            "at": pa.array(moments, pa.timestamp("us", "UTC")),
            "who": ["é", "b", "c", "d", "e" * 50],
        }
    )
    table = frames.table(rows, primary_key=["who", "at"], bucket_key=["who"])
    write_frame(table, rows, mode="upsert")
    found = lookup_frame(table, rows.select(["at", "who"]))
    assert found.drop_columns(["_found"]).to_pylist() == rows.to_pylist()
    assert found["_found"].to_pylist() == [True] * 5
    assert found.schema.field("at").type == pa.timestamp("us", "UTC")


def test_missing_keys_are_inserted_with_numbers_of_the_servers(frames):
    schema = Schema(
        pa.schema([("word", pa.string()), ("number", pa.int64()), ("note", pa.string())]),
        ["word"],
        auto_increment_column="number",
    )
    table = frames.table(schema, buckets=2)
    write_frame(table, [{"word": "old", "note": "kept"}], mode="upsert")
    words = ["old", *(f"w{each}" for each in range(200))]
    found = lookup_frame(table, words, insert_if_not_exists=True)
    assert found["_found"].to_pylist() == [True] * 201
    assert len(set(found["number"].to_pylist())) == 201
    assert None not in found["number"].to_pylist()
    assert found["note"].to_pylist() == ["kept", *[None] * 200]
    again = lookup_frame(table, words, insert_if_not_exists=True)
    assert again["number"].to_pylist() == found["number"].to_pylist()


def test_a_bucket_whose_request_was_lost_is_asked_again(people, monkeypatch):
    ask = BulkLookups.ask
    lost = []

    async def lose_the_first(self, server_id, request, limit):
        if not lost:
            lost.append(server_id)
            raise ConnectError("the connection was lost")
        return await ask(self, server_id, request, limit)

    monkeypatch.setattr(BulkLookups, "ask", lose_the_first)
    found = lookup_frame(people, [1, 2, 3, 128, 77])
    assert lost
    assert found["_found"].to_pylist() == [True, True, True, True, False]


def test_prefixes_give_their_rows_in_order_or_one_that_is_not_found(frames):
    rows = pa.table(
        {
            "user": [f"u{each % 4}" for each in range(20)],
            "seq": pa.array(range(20), pa.int32()),
            "v": [each * 1.5 for each in range(20)],
        }
    )
    table = frames.table(rows, primary_key=["user", "seq"], bucket_key=["user"])
    write_frame(table, rows, mode="upsert")
    found = prefix_lookup_frame(table, ["u2", "u9", "u0"])
    assert found["user"].to_pylist() == ["u2"] * 5 + ["u9"] + ["u0"] * 5
    assert found["seq"].to_pylist() == [2, 6, 10, 14, 18, None, 0, 4, 8, 12, 16]
    assert found["_found"].to_pylist() == [True] * 5 + [False] + [True] * 5
    assert found["v"].to_pylist()[:2] == [3.0, 9.0]
    with pytest.raises(SchemaMismatchError, match="lack the column 'user'"):
        prefix_lookup_frame(table, pa.table({"usr": ["u1"]}))


def test_a_table_without_prefix_lookups_is_refused_with_a_reason(people):
    with pytest.raises(InvalidSchemaError, match="cannot be asked by a prefix"):
        prefix_lookup_frame(people, [1])


def test_bad_keys_are_refused_before_anything_is_asked(people, monkeypatch):
    monkeypatch.setattr(BulkLookups, "leaders", None)
    with pytest.raises(InvalidValueError, match=r"In row 1: .* 'id' cannot take None"):
        lookup_frame(people, [1, None])
    with pytest.raises(InvalidValueError, match="row 0"):
        lookup_frame(people, [2**70])
    with pytest.raises(SchemaMismatchError, match="lack the column 'id'") as error:
        lookup_frame(people, pa.table({"di": [1]}))
    assert error.value.hint.endswith("is (id).")
    with pytest.raises(SchemaMismatchError, match="'id' is BIGINT"):
        lookup_frame(people, pa.table({"id": ["one"]}))
    with pytest.raises(InvalidSchemaError):
        lookup_frame(people, [1], columns=["nmae"])


def test_rows_are_read_with_the_schema_they_were_written_with(frames, people):
    path = people.info.table_path
    frames.add_column(path, "town", DataTypes.string())
    newer = frames.again(path)
    one = PEOPLE.slice(0, 1).append_column("town", pa.array(["Ulm"]))
    write_frame(newer, one, mode="upsert")
    found = lookup_frame(newer, [1, 2, 99])
    assert found["town"].to_pylist() == ["Ulm", None, None]
    assert found["name"].to_pylist() == ["one", "two", None]
    # A table that was asked for before goes on with the columns it knows.
    older = lookup_frame(people, [1, 2, 99])
    assert older.column_names == [*PEOPLE.column_names, "_found"]
    assert older["_found"].to_pylist() == [True, True, False]


def test_a_log_table_has_nothing_to_look_up(frames):
    table = frames.table(PEOPLE)
    with pytest.raises(FlussError, match="no primary key"):
        lookup_frame(table, [1])
