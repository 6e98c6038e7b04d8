"""Tasks that are repeated: after crashes, at the same time, with other rows, and far too late."""

from __future__ import annotations

import random
import re
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice

import anyio
import anyio.to_thread
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fluss
from fluss.errors import (
    InvalidValueError,
    PartitionNotFoundError,
    UnsupportedOperationError,
    WriterStateError,
)
from fluss.exactly_once import (
    Task,
    append_exactly_once,
    claims as once_claims,
    commit_once,
    delivery_caveats,
    end_run,
    plan_claims as once,
    task_writer as once_writer,
)
from fluss.exactly_once.claims import is_shared
from fluss.exactly_once.producer_offsets import registered
from fluss.exactly_once.task_writer import CHUNK_BYTES, TaskWriter
from fluss_server.local_cluster import LocalCluster

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
CRASHES = 12
WIDTH = 1_024
CHUNK_ROWS = -(-CHUNK_BYTES // (1 + 8 + 4 + WIDTH))  # of rows_of(), by the weight of their values
ROWS = 5 * CHUNK_ROWS + 17


class CrashError(Exception):
    """What ends an attempt somewhere."""


@pytest.fixture
def session(cluster, database):
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}") as opened:
        yield opened


@pytest.fixture
def table(session):
    """A log of three buckets without a bucket key."""
    return session.create_table("log", SCHEMA, buckets=3)


def rows_of(start, count=ROWS, *, width=WIDTH, size=1_000):
    """Rows of a kilobyte each, of which `CHUNK_ROWS` make a chunk."""
    ids = range(start, start + count)
    columns = [pa.array(ids, pa.int64()), pa.array(["x" * width] * count)]
    return pa.table(columns, schema=SCHEMA).to_batches(max_chunksize=size)


def crashing(batches, after):
    for place, each in enumerate(batches):
        if place == after:
            raise CrashError
        yield each


@pytest.fixture
def run():
    """A name that no other test has."""
    return uuid.uuid4().hex


@pytest.fixture
def task(run):
    """`task(step, part)`: a task of the run."""
    return lambda step=0, part=0: Task(run=run, step=step, part=part)


def ids(table):
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


def test_a_task_that_crashes_anywhere_is_written_once_step_by_step(table, task, run):
    rng = random.Random(3)
    expected = []
    for step in range(3):
        receipts = []
        for part in range(2):
            first = (step * 2 + part) * ROWS
            for _ in range(rng.randint(0, CRASHES // 6)):
                with pytest.raises(CrashError):
                    append_exactly_once(
                        table, task(step, part), crashing(rows_of(first), rng.randrange(11))
                    )
            receipt = append_exactly_once(
                table, task(step, part), rows_of(first, size=rng.choice([999, 5_000]))
            )
            assert receipt.rows == ROWS
            receipts.append(receipt)
            expected += range(first, first + ROWS)
        again = append_exactly_once(table, task(step, 1), rows_of(first))
        assert again.again == ROWS
        commit_once(table, run, step, receipts)
    assert ids(table) == expected


def test_attempts_at_the_same_time_write_once(table, task, run):
    with ThreadPoolExecutor(4) as pool:
        for step in range(3):
            running = [
                pool.submit(append_exactly_once, table, task(step), rows_of(step * ROWS))
                for _ in range(4)
            ]
            receipts = [each.result() for each in running]
            commit_once(table, run, step, receipts[:1])
    assert ids(table) == list(range(3 * ROWS))


def test_rows_find_their_buckets_by_key_and_partitions_are_made_on_the_way(session, task):
    schema = SCHEMA.append(pa.field("day", pa.string()))
    table = session.create_table("days", schema, buckets=2, bucket_key=["id"], partition_by=["day"])

    def rows(days):
        for place, day in enumerate(days):
            for each in rows_of(place * CHUNK_ROWS, CHUNK_ROWS):
                yield each.append_column("day", pa.array([day] * each.num_rows))

    days = ["a", "b", "c", "a", "d"]
    with pytest.raises(CrashError):
        append_exactly_once(table, task(), crashing(rows(days), 8))
    receipt = append_exactly_once(table, task(), rows(days))
    assert receipt.again
    assert receipt.claims > 1  # partitions that come later are claimed when they come
    assert ids(table) == list(range(5 * CHUNK_ROWS))
    assert len(table.partitions()) == 4


def test_partitions_that_were_dropped_between_steps_are_written_again(session, task, run, cluster):
    schema = SCHEMA.append(pa.field("day", pa.string()))
    table = session.create_table("days", schema, partition_by="day", buckets=1)
    rows = pa.table({"id": [1, 2, 3], "text": ["x"] * 3, "day": ["a", "b", "c"]})
    step_0 = append_exactly_once(table, task(0), rows.to_batches())
    commit_once(table, run, 0, [step_0])
    # A connection of its own drops them, so the other one still knows their ids.
    with fluss.connect(f"fluss://{cluster.bootstrap}", operation_timeout_ms=29_000) as other:
        for day in ("a", "b"):
            other.table(table.name).drop_partition({"day": day})
    step_1 = None
    for _ in range(20):
        # A server of 0.9.1 may give the id of a dropped partition for a moment.
        with suppress(PartitionNotFoundError):
            step_1 = append_exactly_once(table, task(1), rows.to_batches())
            break
        time.sleep(0.1)
    commit_once(table, run, 1, [step_1])
    assert ids(table) == [1, 2, 3, 3]


def test_a_repetition_with_other_rows_is_refused(table, task):
    append_exactly_once(table, task(), rows_of(0))
    with pytest.raises(WriterStateError, match="other rows than this one"):
        append_exactly_once(table, task(), rows_of(1))
    for fewer in (CHUNK_ROWS - 1, 2 * CHUNK_ROWS):
        with pytest.raises(WriterStateError, match="more rows than this one has"):
            append_exactly_once(table, task(), rows_of(0, fewer))
    assert ids(table) == list(range(ROWS))


@pytest.mark.parametrize("bucket_key", [None, ["id"]])
@pytest.mark.parametrize(
    "cuts", [(1_000,), (0, 500, 3_000, 2_100), (CHUNK_ROWS, ROWS - 1)], ids=str
)
def test_an_attempt_goes_on_behind_one_whose_rows_broke_off(session, task, run, bucket_key, cuts):
    """As Spark's do where the Python process before the sink dies between two batches."""
    table = session.create_table("cut", SCHEMA, buckets=3, bucket_key=bucket_key)
    for step in range(2):
        first = step * ROWS
        reached = 0
        for cut in cuts:
            if cut >= reached:
                append_exactly_once(table, task(step), rows_of(first, cut))
            else:
                with pytest.raises(WriterStateError, match="more rows than this one has"):
                    append_exactly_once(table, task(step), rows_of(first, cut))
            reached = max(reached, cut)
        receipt = append_exactly_once(table, task(step), rows_of(first))
        assert (receipt.rows, receipt.again) == (ROWS, reached)
        assert append_exactly_once(table, task(step), rows_of(first)).again == ROWS
        commit_once(table, run, step, [receipt])
    read = table.scan(columns=["id", "_bucket"]).to_arrow()
    assert sorted(read["id"].to_pylist()) == list(range(2 * ROWS))
    for bucket in range(3):
        there = read.filter(pc.field("_bucket") == bucket)["id"].to_pylist()
        assert there == sorted(there)


def test_partitions_that_an_attempt_did_not_come_to_are_claimed_by_the_next(session, task):
    schema = SCHEMA.append(pa.field("day", pa.string()))
    table = session.create_table("days", schema, buckets=2, bucket_key=["id"], partition_by=["day"])

    def rows(count):
        for place, each in enumerate(rows_of(0, count, size=400)):
            yield each.append_column("day", pa.array([f"d{place // 2 % 4}"] * each.num_rows))

    for count in (0, 300, 900, 1_700):  # all of them in what is one chunk in the end
        append_exactly_once(table, task(), rows(count))
    receipt = append_exactly_once(table, task(), rows(ROWS))
    assert receipt.again == 1_700
    assert receipt.claims >= 3
    assert ids(table) == list(range(ROWS))


@pytest.fixture
def meanwhile(table, task, monkeypatch):
    """`meanwhile(rows)`: another attempt writes so many between a writer's claim and its sending.

    A server takes its last batch for the other's, which has the same number and more rows.
    """
    go_on_with = TaskWriter._go_on_with

    def one(count):
        waiting = [count]

        def interrupted(self, item):
            if waiting:
                append_exactly_once(table, task(), rows_of(0, waiting.pop()))
            go_on_with(self, item)

        monkeypatch.setattr(TaskWriter, "_go_on_with", interrupted)

    return one


def test_an_attempt_goes_on_behind_one_beside_it_whose_rows_broke_off(table, task, meanwhile):
    """As Spark leaves them: it does not wait for the sink of the attempt that failed."""
    append_exactly_once(table, task(), rows_of(0, 10))
    meanwhile(1_000)
    receipt = append_exactly_once(table, task(), rows_of(0))
    assert (receipt.rows, receipt.again) == (ROWS, 1_000)
    assert ids(table) == list(range(ROWS))


def test_the_first_attempt_notices_one_beside_it_whose_rows_broke_off(table, task, meanwhile):
    meanwhile(1_000)
    with pytest.raises(WriterStateError, match=f"has written 1000 rows .* of {CHUNK_ROWS}"):
        append_exactly_once(table, task(), rows_of(0, CHUNK_ROWS))
    assert append_exactly_once(table, task(), rows_of(0)).again == 1_000
    assert ids(table) == list(range(ROWS))


def test_an_attempt_that_is_alone_asks_for_no_headers(table, task, monkeypatch):
    looked = []
    monkeypatch.setattr(TaskWriter, "_look", lambda *given: looked.append(given))
    assert not append_exactly_once(table, task(), rows_of(0)).is_shared
    assert not looked


def test_the_word_that_there_is_more_than_one_attempt_is_gone_when_the_step_is_done(
    table, task, run
):
    def is_left(run, step):
        connection = table.__fluss_table__().connection
        named = Task(run=run, step=step, part=0)
        return connection.engine.run(is_shared(connection.cluster, named))

    for step in range(2):
        assert not append_exactly_once(table, task(step), rows_of(step * ROWS)).is_shared
        assert not is_left(run, step)
        receipt = append_exactly_once(table, task(step), rows_of(step * ROWS))
        assert receipt.is_shared
        assert is_left(run, step)
        commit_once(table, run, step, [receipt])
        assert not is_left(run, step)
    alone = Task(run=run + "-alone", step=0, part=0, is_chained=False)
    receipts = [append_exactly_once(table, alone, rows_of(0)) for _ in range(2)]
    end_run(table, alone.run, receipts[1:])
    assert not is_left(alone.run, 0)


def test_a_repetition_under_a_newer_schema_is_compared_by_its_rows(session, table, task):
    with pytest.raises(CrashError):
        append_exactly_once(table, task(), crashing(rows_of(0), 8))
    newer = session.alter_table("log", add_columns=pa.schema([("more", pa.int32())]))

    def wider():
        for each in rows_of(0):
            yield each.append_column("more", pa.nulls(each.num_rows, pa.int32()))

    assert append_exactly_once(newer, task(), wider()).again
    assert ids(newer) == list(range(ROWS))


@pytest.mark.parametrize("bucket_key", [None, ["id"]])
def test_a_column_that_was_gained_since_may_have_values_in_the_rest(
    session, task, bucket_key, caplog
):
    table = session.create_table("gained", SCHEMA, buckets=3, bucket_key=bucket_key)
    append_exactly_once(table, task(), islice(rows_of(0), 8))
    newer = session.alter_table("gained", add_columns=pa.schema([("more", pa.string())]))

    def wider(first=0):
        for each in rows_of(first):
            yield each.append_column("more", pa.array(["y" * 100] * each.num_rows))

    written = append_exactly_once(newer, task(), wider())
    assert written.again == 8_000
    assert written.rows == ROWS
    assert ids(newer) == list(range(ROWS))
    left = newer.scan(filter=fluss.col("more").is_null()).to_arrow().num_rows
    assert left == 8_000
    assert caplog.text.count("have NULL in more, which the table has gained since") == 1
    assert append_exactly_once(newer, task(), wider()).again == ROWS
    with pytest.raises(WriterStateError, match="other rows than this one"):
        append_exactly_once(newer, task(), wider(1))


def test_values_that_may_differ_are_not_compared_and_stay(session, task, run):
    table = session.create_table("tokens", SCHEMA.append(pa.field("token", pa.string())), buckets=3)

    def tokens(rng, first=0):
        for each in rows_of(first):
            made = [f"{rng.getrandbits(128):032x}" for _ in range(each.num_rows)]
            yield each.append_column("token", pa.array(made))

    one, two = random.Random(1), random.Random(2)
    append_exactly_once(table, task(), islice(tokens(one), 8))
    before = table.to_arrow()["token"].to_pylist()
    assert len(before) == 8_000
    with pytest.raises(WriterStateError, match="other rows than this one"):
        append_exactly_once(table, task(), tokens(two))
    with pytest.raises(WriterStateError, match="other rows than this one"):
        append_exactly_once(table, task(), tokens(two, 1), may_differ=["token"])
    receipt = append_exactly_once(table, task(), tokens(two), may_differ=["token"])
    assert receipt.again == len(before)
    commit_once(table, run, 0, [receipt])
    assert ids(table) == list(range(ROWS))
    after = set(table.to_arrow()["token"].to_pylist())
    assert after >= set(before)


def test_an_attempt_that_wakes_up_when_its_step_has_been_done_writes_nothing(table, task, run):
    receipts = {}
    for step in range(3):
        receipts[step] = [append_exactly_once(table, task(step), rows_of(step * ROWS))]
        commit_once(table, run, step, receipts[step])
    for step in (0, 1):
        with pytest.raises(WriterStateError, match="has been done since"):
            append_exactly_once(table, task(step), rows_of(step * ROWS))
        with pytest.raises(WriterStateError, match="has been done since"):
            commit_once(table, run, step, receipts[step])
    # The last one may come again: its end may not have been noted.
    assert append_exactly_once(table, task(2), rows_of(2 * ROWS)).again == ROWS
    commit_once(table, run, 2, receipts[2])
    append_exactly_once(table, task(3), rows_of(3 * ROWS))
    assert ids(table) == list(range(4 * ROWS))


@pytest.mark.parametrize("is_late", [False, True])
def test_an_attempt_that_stands_still_while_it_claims_writes_nothing(
    table, task, run, monkeypatch, is_late
):
    """It has seen that its step is due, and goes on when the next steps have been done.

    Late, it does so when the next but one has been claimed and nothing of that been sent.
    """
    commit_once(table, run, 0, [append_exactly_once(table, task(0), rows_of(0, 10))])
    pin, register = once_claims.fetch_extents, once_claims.register
    stands, goes_on, is_over = (threading.Event() for _ in range(3))
    to_stop, to_wake = [1], [1]

    async def pin_late(*given):
        if to_stop and to_stop.pop():
            stands.set()
            assert await anyio.to_thread.run_sync(goes_on.wait, 60)
        return await pin(*given)

    async def register_and_wake(table, name, numbers, **given):
        made = await register(table, name, numbers, **given)
        if is_late and to_wake and name == task(3).claim_id(0):
            to_wake.pop()
            goes_on.set()
            assert await anyio.to_thread.run_sync(is_over.wait, 60)
        return made

    monkeypatch.setattr(once_claims, "fetch_extents", pin_late)
    monkeypatch.setattr(once_claims, "register", register_and_wake)

    def late():
        try:
            append_exactly_once(table, task(1), rows_of(10, 10))
        finally:
            is_over.set()

    with ThreadPoolExecutor(1) as pool:
        attempt = pool.submit(late)
        assert stands.wait(60)
        for step in (1, 2):
            receipt = append_exactly_once(table, task(step), rows_of(10 * step, 10))
            commit_once(table, run, step, [receipt])
        if not is_late:
            goes_on.set()
            assert is_over.wait(60)
        commit_once(table, run, 3, [append_exactly_once(table, task(3), rows_of(30, 10))])
        with pytest.raises(WriterStateError, match="this attempt is an old one"):
            attempt.result(60)
    assert ids(table) == list(range(40))


def test_an_attempt_that_stands_still_before_it_registers_writes_nothing(
    table, task, run, monkeypatch
):
    """Its numbers are right, and its writer may be another one than that of its step."""
    commit_once(table, run, 0, [append_exactly_once(table, task(0), rows_of(0, 10))])
    register = once_claims.register
    waiting = [1]

    async def register_late(table, name, numbers, **given):
        if waiting and name == task(1).claim_id(0):
            waiting.pop()
            await anyio.to_thread.run_sync(the_rest_of_the_query)
        return await register(table, name, numbers, **given)

    def the_rest_of_the_query():
        monkeypatch.setattr(once, "EPOCH_MS_MAX", 0)  # ten minutes are over
        for step in (1, 2):
            receipt = append_exactly_once(table, task(step), rows_of(10 * step, 10))
            commit_once(table, run, step, [receipt])

    monkeypatch.setattr(once_claims, "register", register_late)
    with pytest.raises(WriterStateError, match="this attempt is an old one"):
        append_exactly_once(table, task(1), rows_of(10, 10))
    assert ids(table) == list(range(30))
    connection = table.__fluss_table__().connection
    left = registered(connection.cluster, task(1).claim_id(0))
    assert connection.engine.run(left) is None


def test_a_step_that_comes_again_in_fewer_tasks_is_refused(table, task, run):
    for part in (0, 2, 3):
        append_exactly_once(table, task(0, part), rows_of(10 * part, 10))
    receipts = [
        append_exactly_once(table, task(0, part), rows_of(20 * part, 20)) for part in range(2)
    ]
    with pytest.raises(WriterStateError, match=r"more tasks than the 2 of.*\n.*maxPartitions"):
        commit_once(table, run, 0, receipts)


def test_a_task_that_comes_again_without_rows_is_refused(table, task):
    append_exactly_once(table, task(), rows_of(0, 10))
    with pytest.raises(WriterStateError, match="one has no rows for"):
        append_exactly_once(table, task(), [])


def test_a_task_that_comes_again_for_fewer_partitions_is_refused(session, task):
    table = session.create_table(
        "days", SCHEMA.append(pa.field("day", pa.string())), buckets=1, partition_by=["day"]
    )

    def rows(*days):
        for place, day in enumerate(days):  # each comes in a chunk of its own
            for each in rows_of(place * CHUNK_ROWS, CHUNK_ROWS):
                yield each.append_column("day", pa.array([day] * each.num_rows))

    append_exactly_once(table, task(), rows("a", "b"))
    with pytest.raises(WriterStateError, match=r"one has no rows for"):
        append_exactly_once(table, task(), rows("a"))


def test_rows_in_flight_are_bounded_by_their_size(table, task, monkeypatch):
    monkeypatch.setattr(once_writer, "UNSETTLED_BYTES_MAX", 5_000_000)
    held = []
    add = TaskWriter._add

    def noticed(self, *given):
        held.append(sum(each.weight for each in self._pending))
        add(self, *given)

    monkeypatch.setattr(TaskWriter, "_add", noticed)
    # A server may be so quick that nothing is ever in flight: what it has taken is not looked at
    # before there has to be room, or an end.
    looks = []

    def looking(original):
        def one(self):
            looks.append(original)
            original(self)
            looks.pop()

        return one

    for name in ("_make_room", "_settle_all"):
        monkeypatch.setattr(TaskWriter, name, looking(getattr(TaskWriter, name)))
    reap = TaskWriter._reap
    monkeypatch.setattr(TaskWriter, "_reap", lambda self: reap(self) if looks else None)
    append_exactly_once(table, task(), rows_of(0, 12 * CHUNK_ROWS))
    assert 0 < max(held) <= 5_000_000
    assert table.count() == 12 * CHUNK_ROWS


FAR = {None: 2**31 - 1, "s": 10**12, "ms": 10**15, "us": 10**18, "ns": 2**62}


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("us", tz="UTC"),
        pa.timestamp("us", tz="America/New_York"),
        pa.timestamp("s", tz="UTC"),
        pa.timestamp("ns"),
        pa.date32(),
        pa.list_(pa.timestamp("us", tz="UTC")),
        pa.struct([("at", pa.timestamp("ms", tz="UTC"))]),
        pa.map_(pa.string(), pa.timestamp("us", tz="UTC")),
    ],
    ids=str,
)
def test_times_are_compared_by_rows(session, task, kind):
    schema = pa.schema([("id", pa.int64()), ("v", kind)])
    # The last of them lies after the year 9999, where Python's calendar ends.
    values = [1, None, FAR[re.search(r"timestamp\[(\w+)|date", str(kind))[1]]] * 5
    starts = pa.array(range(16), pa.int32())
    if pa.types.is_struct(kind):
        moments = pa.StructArray.from_arrays([pa.array(values, kind[0].type)], ["at"])
    elif pa.types.is_map(kind):
        moments = pa.MapArray.from_arrays(starts, ["k"] * 15, pa.array(values, kind.item_type))
    elif pa.types.is_list(kind):
        moments = pa.ListArray.from_arrays(starts, pa.array(values, kind.value_type))
    else:
        moments = pa.array(values, kind)
    rows = pa.record_batch([pa.array(range(15)), moments], schema=schema)
    table = session.create_table("times", schema, buckets=1)
    append_exactly_once(table, task(), [rows.slice(0, 7)])  # they broke off
    assert append_exactly_once(table, task(), [rows]).again == 7
    assert ids(table) == list(range(15))
    other = pa.record_batch([pa.array(range(15)), moments.take(pa.array([2] * 15))], schema=schema)
    with pytest.raises(WriterStateError, match="has written other rows"):
        append_exactly_once(table, task(), [other])


def test_steps_without_rows_keep_the_chain(table, task, run):
    for step in range(4):
        count = ROWS if step == 2 else 0
        receipts = [append_exactly_once(table, task(step), rows_of(0, count))]
        commit_once(table, run, step, receipts)
    assert ids(table) == list(range(ROWS))


def test_a_query_may_begin_to_be_exact_at_any_step(table, task, run):
    receipt = append_exactly_once(table, task(57), rows_of(0))
    commit_once(table, run, 57, [receipt])
    append_exactly_once(table, task(58), rows_of(ROWS))
    with pytest.raises(WriterStateError, match="no step before it"):
        append_exactly_once(table, task(60), rows_of(ROWS))


def test_a_table_that_was_made_again_is_another_table(session, table, task, run):
    receipt = append_exactly_once(table, task(), rows_of(0, 5))
    session.drop_table("log")
    again = session.create_table("log", SCHEMA, buckets=3)
    for step in (0, 1):
        with pytest.raises(WriterStateError, match="dropped and created again"):
            append_exactly_once(again, task(step), rows_of(0, 5))
        if not step:
            commit_once(again, f"{run}-other", 0, [])  # another run has nothing to do with it
            commit_once(table, run, 0, [receipt])
    assert again.count() == 0


def test_a_write_that_is_no_stream_is_done_once_each_time_it_is_run(table, run):
    for day in ("monday", "tuesday"):
        parts = [Task(run=run + day, step=0, part=part, is_chained=False) for part in range(2)]
        with pytest.raises(CrashError):
            append_exactly_once(table, parts[0], crashing(rows_of(0), 8))
        receipts = [append_exactly_once(table, each, rows_of(each.part * ROWS)) for each in parts]
        end_run(table, run + day, receipts)
        with pytest.raises(WriterStateError, match="an old one"):
            append_exactly_once(table, parts[0], rows_of(0))
    assert ids(table) == sorted([*range(2 * ROWS)] * 2)


def test_a_row_that_does_not_fit_is_reported_and_earlier_rows_stay_once(session, task):
    table = session.create_table("log", SCHEMA, buckets=2, bucket_key=["id"])
    bad = pa.RecordBatch.from_arrays([pa.array([None], pa.int64()), pa.array([""])], schema=SCHEMA)
    with pytest.raises(InvalidValueError, match="NULL"):
        append_exactly_once(table, task(), [*rows_of(0, 4 * CHUNK_ROWS), bad])
    append_exactly_once(table, task(), rows_of(0, 4 * CHUNK_ROWS))
    assert ids(table) == list(range(4 * CHUNK_ROWS))


def test_a_table_with_a_primary_key_is_refused(session, task):
    keyed = session.create_table("keyed", SCHEMA, primary_key=["id"])
    with pytest.raises(UnsupportedOperationError, match="has a primary key"):
        append_exactly_once(keyed, task(), rows_of(0, 1))


def test_caveats_are_listed(session, table, cluster, database):
    assert any("1 replica" in each for each in delivery_caveats(table))
    hasty = {"writer_acks": "1", "writer_enable_idempotence": "false"}
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}", **hasty) as other:
        assert "writer.acks is 1" in str(delivery_caveats(other.table("log")))
    keyed = session.create_table("keyed", SCHEMA, primary_key=["id"])
    assert delivery_caveats(keyed) == []
    sums = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    properties = {"table.merge-engine": "aggregation"}
    summed = session.create_table("summed", sums, primary_key=["id"], properties=properties)
    assert any("adds up" in each for each in delivery_caveats(summed))


def test_an_embedded_server_that_keeps_what_it_acknowledged_needs_no_replica(tmp_path):
    for durability, is_enough in (("process", True), ("none", False)):
        with (
            LocalCluster(tmp_path / durability, durability=durability, in_thread=True) as server,
            fluss.connect(f"fluss://{server.bootstrap_servers}") as session,
        ):
            session.create_database("d")
            table = session.create_table("d.log", SCHEMA, buckets=1)
            assert (delivery_caveats(table) == []) is is_enough
