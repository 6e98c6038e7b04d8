"""Streams without Spark, micro-batch by micro-batch: where they start, continue and stop."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import replace

import pyarrow as pa
import pytest

from fluss.errors import (
    InvalidValueError,
    OffsetOutOfRangeError,
    PartitionNotFoundError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss.model.paths import TableBucket
from fluss.scan import scan_planner as planning
from fluss_spark import stream_plans
from fluss_spark.stream_offsets import StreamOffset, limited_ends
from tests.support.scripted.micro_batches import MicroBatches, given, rows

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


@pytest.fixture
def query(cluster, database, monkeypatch):
    """`query("table", **options)`: a streaming query of a table of the test's database."""
    monkeypatch.setattr(stream_plans, "KEPT_S", 0.0)  # tests write between two questions
    monkeypatch.setattr(stream_plans, "KEPT_TIMES", 0)

    def one(name: str, **options: object) -> MicroBatches:
        given = {key: str(value) for key, value in options.items()}
        given |= {"path": f"{database}.{name}", "bootstrap.servers": cluster.bootstrap}
        return MicroBatches(options=given)

    return one


def numbered(start: int, stop: int, **more: str) -> pa.Table:
    columns = {"id": range(start, stop), "v": [f"v{each}" for each in range(start, stop)]}
    return pa.table({**columns, **{key: [value] * (stop - start) for key, value in more.items()}})


@pytest.fixture
def log(session):
    table = session.create_table("log", SCHEMA, buckets=3, bucket_key=["id"])
    table.append(numbered(0, 100))
    return table


@pytest.fixture
def people(session):
    table = session.create_table("people", SCHEMA, primary_key=["id"], buckets=3)
    table.upsert(numbered(0, 60))
    table.delete([(each,) for each in range(10)])
    return table


def ids(batches):
    return sorted(row["id"] for row in rows(batches))


# --- where it begins ------------------------------------------------------------------------------


def test_a_stream_starts_where_its_option_says(query, log):
    time.sleep(0.02)
    later = time.time_ns() // 1_000_000
    time.sleep(0.02)
    log.append(numbered(100, 150))
    assert ids(query("log", start="earliest").drained()) == list(range(150))
    assert ids(query("log", start="full").drained()) == list(range(150))
    assert ids(query("log", startingTimestamp=later).drained()) == list(range(100, 150))
    assert ids(query("log", start="-1h").drained()) == list(range(150))
    newest = query("log")
    assert given(newest.drained()) == []
    log.append(numbered(150, 160))
    assert ids(newest.drained()) == list(range(150, 160))


def test_json_offsets_are_those_of_buckets(query, log, people):
    ends = {str(each.bucket.bucket_id): each.stop for each in log.scan().splits()}
    behind = query("log", startingOffsets=json.dumps({**ends, "0": ends["0"] - 1, "1": -2}))
    assert len(rows(behind.drained())) == 1 + ends["1"]
    latest = query("log", startingOffsets=json.dumps(dict.fromkeys(ends, -1)))
    assert given(latest.drained()) == []
    # What Spark shows of another query's progress is understood as well.
    first = query("log", start="earliest", maxOffsetsPerTrigger=30)
    before = ids([first.next_batch()])
    second = query("log", startingOffsets=first.checkpoint[-1])
    assert sorted(before + ids(second.drained())) == list(range(100))
    # Another query cannot continue one whose state is being read.
    states = query("people$changelog", start="full", maxOffsetsPerTrigger=1)
    states.next_batch()
    with pytest.raises(InvalidValueError, match="has not read the state of some buckets"):
        query("people$changelog", startingOffsets=states.checkpoint[-1]).drained()


@pytest.mark.parametrize(
    "text",
    ['{"0": "x"}', '{"x": 1}', '{"0": true}', "{", '{"tableId": 1}', '{"9": 4}', '{"0": -7}'],
)
def test_json_that_lists_no_offsets_is_refused(query, log, text):
    with pytest.raises(InvalidValueError, match=r"offset|bucket"):
        query("log", startingOffsets=text).drained()


# --- full -----------------------------------------------------------------------------------------


def applied(changes):
    """The state that changes lead to, each held against what it says of the row before."""
    state = {}
    for row in changes:
        kind, key = row["_change_type"], row["id"]
        if kind == "insert":
            assert key not in state, f"{key} came twice"
            state[key] = row["v"]
        elif kind == "update_before":
            assert state[key] == row["v"]
        elif kind == "update_after":
            assert key in state
            state[key] = row["v"]
        else:
            assert kind == "delete"
            assert state.pop(key) == row["v"]
    return state


@pytest.mark.parametrize("limit", [None, 7, 25])
def test_full_is_the_state_and_then_its_changes_and_no_row_twice_or_missing(query, people, limit):
    limits = {} if limit is None else {"maxOffsetsPerTrigger": limit}
    stream = query("people$changelog", start="full", **limits)
    batches = []
    for turn in range(30):  # it is written to between any two micro-batches
        batch = stream.next_batch()
        if batch is not None:
            batches.append(batch)
        people.upsert(pa.table({"id": [turn, 100 + turn], "v": [f"turn {turn}"] * 2}))
        people.delete([(50 + turn,)])
        if turn % 10 == 9:
            stream.start()  # again, with nothing but its checkpoint
    batches += stream.drained()
    assert applied(rows(batches)) == dict(zip(*people.to_arrow().to_pydict().values(), strict=True))
    states = [row for row in rows(batches) if row["_log_offset"] is None]
    assert {row["_change_type"] for row in states} == {"insert"}
    assert len(states) == 50


def test_progress_names_the_table(query, log, database):
    stream = query("log", start="earliest")
    stream.available_now()
    assert json.loads(stream.checkpoint[-1])["table"] == f"{database}.log"
    assert stream.reader.reportLatestOffset()["table"] == f"{database}.log"
    # A checkpoint without it goes on.
    bare = {k: v for k, v in json.loads(stream.checkpoint[-1]).items() if k != "table"}
    stream.checkpoint[-1] = json.dumps(bare)
    assert stream.available_now() == []
    log.append(numbered(100, 101))
    assert [each["id"] for each in rows(given(stream.available_now()))] == [100]


def test_columns_of_a_stream_are_named_in_any_case(query, people):
    stream = query("people", mode="changelog", start="full", columns="ID,_Change_Type")
    first = rows(given(stream.available_now()))
    assert {each["_change_type"] for each in first} == {"insert"}
    assert sorted(each["id"] for each in first) == list(range(10, 60))
    people.delete([(10,)])
    assert rows(given(stream.available_now())) == [{"id": 10, "_change_type": "delete"}]


def test_a_part_of_the_columns_is_enough_for_full(query, people):
    stream = query("people", mode="changelog", start="full", columns="v,_change_type,_bucket")
    (batch,) = stream.available_now()
    assert batch.schema.names == ["v", "_change_type", "_bucket"]
    assert sorted(batch["v"].to_pylist()) == sorted(f"v{each}" for each in range(10, 60))
    assert set(batch["_bucket"].to_pylist()) == {0, 1, 2}


def test_the_state_of_an_empty_table_is_read_immediately(query, session):
    table = session.create_table("empty", SCHEMA, primary_key=["id"], buckets=2)
    stream = query("empty$changelog", start="full")
    assert given(stream.drained()) == []
    table.upsert(numbered(0, 3))
    assert ids(stream.drained()) == [0, 1, 2]


# --- how it goes on -------------------------------------------------------------------------------


def test_a_micro_batch_has_as_many_tasks_as_requested(query, log):
    for options, tasks in (({}, 1), ({"minPartitions": 3}, 3), ({"maxPartitions": 1}, 1)):
        stream = query("log", start="earliest", **options)
        assert stream.next_batch().num_rows == 100
        assert len(stream.tasks(*stream.places()[0])) == tasks


@pytest.mark.parametrize("limit", [1, 30, 10**17])
def test_no_micro_batch_has_more_rows_than_it_may(query, log, limit):
    batches = query("log", start="earliest", maxOffsetsPerTrigger=limit).available_now()
    assert max(each.num_rows for each in batches) <= limit
    assert ids(batches) == list(range(100))


def test_available_now_ends_where_the_log_did_when_it_began(query, log):
    stream = query("log", start="earliest", maxOffsetsPerTrigger=40)
    stream.start().prepareForTriggerAvailableNow()
    first = stream.next_batch()
    log.append(numbered(100, 200))
    assert ids([first, *stream.drained()]) == list(range(100))
    assert ids(stream.available_now()) == list(range(100, 200))


@pytest.mark.parametrize("start", ["earliest", "full"])
def test_a_micro_batch_that_is_run_again_has_the_same_tasks_with_the_same_rows(
    query, people, start
):
    stream = query("people$changelog", start=start, maxOffsetsPerTrigger=40)
    stream.drained()
    once = [stream.tasks(*each) for each in stream.places()]
    people.upsert(numbered(0, 60))
    again = MicroBatches(options=stream.options, checkpoint=stream.checkpoint)
    assert [again.tasks(*each) for each in again.places()] == once


@pytest.mark.parametrize("limit", [None, 25])
@pytest.mark.parametrize("start", ["earliest", "full", "latest", "-2s"])
def test_the_first_micro_batch_is_the_same_too_when_it_is_run_again(query, people, start, limit):
    # Spark has no place where the query began until its first micro-batch is done.
    limits = {} if limit is None else {"maxOffsetsPerTrigger": limit}
    stream = query("people$changelog", start=start, **limits)
    first = stream.next_batch()
    people.upsert(numbered(5, 70))
    people.delete([(11,)])
    time.sleep(2.1)
    again = MicroBatches(options=stream.options, checkpoint=stream.checkpoint)
    assert again.read(*again.places()[0]) == first
    if start in {"earliest", "full"}:
        left = [first, *again.drained()]
        there = dict(zip(*people.to_arrow().to_pydict().values(), strict=True))
        assert applied(rows(left)) == there


def test_the_first_micro_batch_whose_rows_are_gone_is_an_error(query, log, monkeypatch):
    stream = query("log", start="earliest")
    assert stream.next_batch().num_rows == 100
    trim(monkeypatch, 20)
    again = MicroBatches(options=stream.options, checkpoint=stream.checkpoint)
    with pytest.raises(OffsetOutOfRangeError, match="failOnDataLoss=false"):
        again.read(*again.places()[0])


def test_new_partitions_join_and_old_ones_may_go(query, session, caplog):
    table = session.create_table(
        "days", pa.schema([*SCHEMA, ("day", pa.string())]), partition_by=["day"], buckets=2
    )
    table.create_partition({"day": "a"})
    table.append(numbered(0, 50, day="a"))
    stream = query("days")  # from now on: what comes in new partitions is from their begin
    assert given(stream.drained()) == []
    table.create_partition({"day": "b"})
    table.append(numbered(50, 90, day="b"))
    assert ids(stream.drained()) == list(range(50, 90))
    table.drop_partition({"day": "a"})  # read to its end, as far as anybody knows
    assert given(stream.drained()) == []
    stream.start()  # and noted: a later query does not ask again
    table.append(numbered(90, 95, day="b"))
    assert ids(stream.drained()) == list(range(90, 95))
    table.append(numbered(95, 100, day="b"))
    last, place = stream.next_batch(), stream.checkpoint[-2:]
    assert last.num_rows == 5
    table.drop_partition({"day": "b"})
    stream.start()  # again: it is unknown whether it was read to its end
    with pytest.raises(PartitionNotFoundError, match="failOnDataLoss"):
        stream.drained()
    with pytest.raises(PartitionNotFoundError, match="query is at offset"):
        stream.read(*place)
    stream.options["failOnDataLoss"] = "false"
    stream.start()
    with caplog.at_level(logging.WARNING, "fluss.spark"):
        assert given(stream.drained()) == []
    assert "is gone" in caplog.text


@pytest.mark.parametrize("loses", [False, True])
def test_a_partition_that_is_dropped_before_its_state_was_given(query, session, caplog, loses):
    table = session.create_table(
        "parts",
        pa.schema([*SCHEMA, ("day", pa.string())]),
        primary_key=["id", "day"],
        partition_by=["day"],
        buckets=1,
    )
    for number, day in enumerate("abc"):
        table.upsert(numbered(10 * number, 10 * number + 5, day=day))
    options = {"failOnDataLoss": "false"} if loses else {}
    stream = query("parts$changelog", start="full", maxOffsetsPerTrigger=5, **options)
    batches = [stream.next_batch()]
    table.drop_partition({"day": "c"})
    if not loses:
        with pytest.raises(PartitionNotFoundError, match="failOnDataLoss=false"):
            stream.drained()
        return
    batches += stream.drained()
    assert ids(batches) == [*range(5), *range(10, 15)]
    assert "is gone" in caplog.text


def test_a_stream_does_not_ask_twice_at_the_same_moment(query, log, monkeypatch):
    asked = []
    plan = stream_plans.StreamPlans._planned
    monkeypatch.setattr(
        stream_plans.StreamPlans, "_planned", lambda *each: asked.append(1) or plan(*each)
    )
    monkeypatch.setattr(stream_plans, "KEPT_S", 60.0)
    stream = query("log", start="earliest")
    stream.next_batch()
    stream.next_batch()
    for _ in range(20):
        assert stream.next_batch() is None
    assert len(asked) <= 3  # where it begins, what the first micro-batch is, what comes then


def test_what_takes_long_to_ask_is_asked_less_often(query, log, monkeypatch):
    plan = stream_plans.StreamPlans._planned
    slow = []

    def slowly(*given):
        slow.append(1)
        return replace(plan(*given), took_s=20.0)

    monkeypatch.setattr(stream_plans.StreamPlans, "_planned", slowly)
    monkeypatch.setattr(stream_plans, "KEPT_TIMES", 4)
    monkeypatch.setattr(stream_plans, "KEPT_S_MAX", 60.0)
    stream = query("log", start="earliest")
    stream.next_batch()
    stream.next_batch()
    asked = len(slow)
    for _ in range(5):
        assert stream.next_batch() is None
    assert len(slow) == asked


# --- what is refused ------------------------------------------------------------------------------


def trim(monkeypatch, earliest):
    """Have every log begin at an offset."""
    pins = planning.fetch_extents

    async def trimmed(*asked, **how):
        found = await pins(*asked, **how)
        return {bucket: replace(each, earliest=earliest) for bucket, each in found.items()}

    monkeypatch.setattr(planning, "fetch_extents", trimmed)


def test_what_was_trimmed_before_it_was_read_is_an_error(query, log, monkeypatch, caplog):
    stream = query("log", start="earliest", maxOffsetsPerTrigger=9)
    stream.next_batch()
    trim(monkeypatch, 20)
    said = r"log: .*bucket \d.*code 19\]\n.*failOnDataLoss=false"
    with pytest.raises(OffsetOutOfRangeError, match=said):
        stream.next_batch()
    stream.options["failOnDataLoss"] = "false"
    stream.start()
    with caplog.at_level(logging.WARNING, "fluss.spark"):
        left = rows(stream.drained())
    assert len(left) == 100 - 3 * 20
    assert "are lost" in caplog.text


def test_offsets_that_went_backwards_are_an_error(query, log):
    stream = query("log", start="earliest")
    stream.next_batch()
    ((begin, end),) = stream.places()
    end = json.loads(end)
    end["offsets"]["1"] += 1_000
    with pytest.raises(OffsetOutOfRangeError, match=r"log: .*has seen it end at .*code 19\]\n"):
        stream.read(begin, json.dumps(end))
    stream.checkpoint = [json.dumps(end)]
    with pytest.raises(OffsetOutOfRangeError, match="checkpoint"):
        stream.next_batch()


def test_a_table_that_was_created_again_is_another_one(query, session, log):
    stream = query("log", start="earliest")
    stream.next_batch()
    session.drop_table("log")
    with pytest.raises(TableNotFoundError):
        stream.start()
    session.create_table("log", SCHEMA, buckets=3)
    stream.start()
    said = r"log .*dropped and created again.*\[TABLE_NOT_EXIST, code 7\]\n.*new checkpoint"
    with pytest.raises(TableNotFoundError, match=said):
        stream.next_batch()


def test_a_checkpoint_of_another_source_is_refused(query, session, log):
    stream = query("log", start="earliest")
    for strange in (
        {"0": 5},
        {"tableId": "x", "offsets": {}},
        {"tableId": 1, "offsets": {"0": -1}},
    ):
        stream.checkpoint = [json.dumps(strange)]
        with pytest.raises(InvalidValueError, match="another checkpoint location"):
            stream.next_batch()
    session.create_table("other", SCHEMA, buckets=3)
    other = query("other", start="earliest")
    stream.checkpoint = []
    stream.next_batch()
    other.checkpoint = stream.checkpoint
    with pytest.raises(TableNotFoundError, match="to another query"):
        other.next_batch()


@pytest.mark.parametrize(
    ("table", "options", "error", "said"),
    [
        ("people", {}, UnsupportedOperationError, r"people\$changelog"),
        ("people", {"start": "full"}, UnsupportedOperationError, r"people\$changelog"),
        ("people$binlog", {}, UnsupportedOperationError, "mode='binlog' is none"),
        ("log$binlog", {}, UnsupportedOperationError, "no primary key"),
        ("log", {"tail": 3}, InvalidValueError, "A stream has no tail"),
        ("log", {"endingOffsets": "latest"}, InvalidValueError, "A stream has no end"),
        ("log", {"order": "timestamp"}, InvalidValueError, "A stream has no order"),
        ("log", {"maxOffsetsPerTrigger": "0"}, InvalidValueError, "maxOffsetsPerTrigger"),
        ("log", {"maxOffsetsPerTrigger": "-1"}, InvalidValueError, "positive whole number"),
        ("log", {"maxOffsetsPerTrigger": "9" * 19}, InvalidValueError, "positive whole number"),
        ("log", {"minPartitions": "x"}, InvalidValueError, "positive whole number"),
        ("log", {"minPartitions": 3, "maxPartitions": 2}, InvalidValueError, "which is fewer"),
        ("log", {"startingOffsets": "-1"}, InvalidValueError, "no position in a log"),
        ("log", {"failOnDataLoss": "no"}, InvalidValueError, "none of true, false"),
        ("log", {"startingOffsets": '{"0": 10000}'}, OffsetOutOfRangeError, "beyond the end"),
        ("log", {"start": "earlyest"}, InvalidValueError, "did you mean 'earliest'"),
    ],
)
def test_what_is_no_stream_is_refused(query, log, people, table, options, error, said):
    with pytest.raises(error, match=said):
        query(table, **options).drained()


def test_an_offset_survives_its_json():
    first = {"tableId": 7, "offsets": {"0": 0}, "state": {"3/0": 9, "3/1": 2}}
    said = {"tableId": 7, "offsets": {"0": 5, "3/1": 0}, "state": {"3/0": 9}, "tasks": 2}
    assert StreamOffset.of(said).to_json() == said
    assert StreamOffset.of(said | {"from": first}).to_json() == said | {"from": first}


@pytest.mark.parametrize("rows_max", [1, 2, 7, 99, 100, 1_000, None])
def test_a_limit_is_shared_out_and_always_lets_some_through(rows_max):
    begins = {TableBucket(1, each): 10 for each in range(4)}
    ends = {TableBucket(1, each): 10 + waiting for each, waiting in enumerate((0, 1, 9, 90))}
    shares = limited_ends(begins, ends, rows_max)
    taken = [shares[each] - begins[each] for each in begins]
    assert sum(taken) == min(100, rows_max or 100)
    assert all(0 <= each <= waiting for each, waiting in zip(taken, (0, 1, 9, 90), strict=True))
