"""The guarantees of the sink, and a log that is streamed into a log despite failures."""

from __future__ import annotations

import logging
import os
import time
import uuid
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext

import fluss
from fluss.errors import InvalidValueError, UnsupportedOperationError, WriterStateError
from fluss_spark import FlussDataSource, exactly_once
from fluss_spark.exactly_once import DeliveryGuarantee, current_task
from fluss_spark.spark_types import spark_schema

ROWS = pa.schema([("id", pa.int64()), ("v", pa.string()), ("day", pa.string())])


def rows(start, stop, day):
    ids = range(start, stop)
    columns = [pa.array(ids, pa.int64()), [f"v{each}" for each in ids], [day] * len(ids)]
    return pa.table(columns, schema=ROWS)


@pytest.fixture
def writer(cluster, database):
    """`writer("table", **options)`: the sink, as Spark makes it for a stream."""

    def one(name, schema=ROWS, **options):
        given = {"path": f"{database}.{name}", "bootstrap.servers": cluster.bootstrap, **options}
        return FlussDataSource(given).streamWriter(spark_schema(schema), overwrite=False)

    return one


def test_a_log_with_one_replica_is_at_least_once_with_a_reason(session, writer, caplog):
    session.create_table("log", ROWS, buckets=1)
    for _ in range(3):  # Spark makes a new sink for each micro-batch and each commit
        writer("log")
    assert caplog.text.count("written at least once") == 1
    assert "1 replica" in caplog.text
    with pytest.raises(UnsupportedOperationError, match="has 1 replica") as refused:
        writer("log", exactlyOnce="required")
    assert "table.replication.factor" in refused.value.hint


def test_a_primary_key_table_is_exactly_once_unless_it_adds_up(session, writer, caplog):
    caplog.set_level(logging.INFO)
    session.create_table("people", ROWS, primary_key=["id"], buckets=1)
    writer("people", exactlyOnce="required")
    assert "written exactly once" in caplog.text
    sums = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    properties = {"table.merge-engine": "aggregation"}
    session.create_table("sums", sums, primary_key=["id"], properties=properties)
    with pytest.raises(UnsupportedOperationError, match="adds up"):
        writer("sums", sums, exactlyOnce="required")


def test_exactly_once_can_be_switched_off(session, writer, caplog):
    session.create_table("log", ROWS, buckets=1)
    assert not writer("log", exactlyOnce="never")._plan.guarantee.claims
    assert "exactlyOnce is never" in caplog.text
    with pytest.raises(InvalidValueError, match="exactlyOnce is 'always'"):
        writer("log", exactlyOnce="always")


@pytest.mark.parametrize(("is_versioned", "left"), [(False, "old"), (True, "new")])
def test_rows_by_key_that_come_late_are_left_out_where_they_have_a_version(
    session, writer, is_versioned, left
):
    schema = pa.schema([("id", pa.int64()), ("version", pa.int64()), ("v", pa.string())])
    properties = {
        "table.merge-engine": "versioned",
        "table.merge-engine.versioned.ver-column": "version",
    }
    table = session.create_table(
        "state", schema, primary_key=["id"], properties=properties if is_versioned else {}
    )

    def batches(version, v, before=lambda: None):
        yield pa.RecordBatch.from_pydict({"id": [1], "version": [version], "v": [v]}, schema)
        before()

    def the_rest_of_the_query():
        writer("state", schema).write(batches(1, "old"))  # its successor
        writer("state", schema).write(batches(2, "new"))  # the micro-batch behind it

    # An attempt that stands still with its rows in hand, and is overtaken.
    writer("state", schema).write(batches(1, "old", the_rest_of_the_query))
    assert table.lookup([1])["v"].to_pylist() == [left]


def test_deletes_that_the_servers_ignore_are_refused_or_logged(session, writer, caplog):
    schema = pa.schema([("id", pa.int64()), ("version", pa.int64())])
    properties = {
        "table.merge-engine": "versioned",
        "table.merge-engine.versioned.ver-column": "version",
    }
    session.create_table("state", schema, primary_key=["id"], properties=properties)
    with pytest.raises(UnsupportedOperationError, match="ignores deletes"):
        writer("state", schema, operation="delete")
    assert not caplog.text
    for _ in range(2):  # as for each micro-batch
        writer("state", schema.append(pa.field("_change_type", pa.string())))
    assert caplog.text.count("those of the frame change nothing") == 1


def test_what_foreach_batch_appends_is_refused_where_exactness_is_required(monkeypatch):
    told = {"sql.streaming.queryId": "9f2c-1", "streaming.sql.batchId": "57"}
    context = SimpleNamespace(partitionId=lambda: 3, getLocalProperty=told.get)
    monkeypatch.setattr(exactly_once, "TaskContext", SimpleNamespace(get=lambda: context))
    assert current_task(DeliveryGuarantee(claims=True, caveats=()), "a-write").run == "a-write"
    with pytest.raises(UnsupportedOperationError, match="foreachBatch writes into a log"):
        current_task(DeliveryGuarantee(claims=True, caveats=(), is_required=True), "a-write")
    told.clear()
    assert (
        current_task(DeliveryGuarantee(claims=True, caveats=(), is_required=True), "a-write").part
        == 3
    )


@pytest.fixture
def as_task(monkeypatch):
    """`as_task(query, batch)`: what follows runs in a task of that micro-batch."""

    def one(query, batch):
        told = {"sql.streaming.queryId": query, "streaming.sql.batchId": str(batch)}
        context = SimpleNamespace(partitionId=lambda: 0, getLocalProperty=told.get)
        monkeypatch.setattr(exactly_once, "TaskContext", SimpleNamespace(get=lambda: context))

    return one


@pytest.mark.parametrize("is_stream", [True, False], ids=["writeStream", "foreachBatch"])
def test_a_sink_by_key_that_was_made_again_stops_its_query(
    session, cluster, database, as_task, is_stream
):
    query, other = (str(uuid.uuid4()) for _ in range(2))
    batches = rows(0, 5, "a").to_batches()

    def make(name="people"):
        return session.create_table(name, ROWS, primary_key=["id"], buckets=1)

    def write(query, batch, name="people", **options):
        as_task(query, batch)
        given = {"path": f"{database}.{name}", "bootstrap.servers": cluster.bootstrap, **options}
        source = FlussDataSource(given)
        make = source.streamWriter if is_stream else source.writer
        return make(spark_schema(ROWS), overwrite=False).write(iter(batches)).rows

    first = make()
    make("more")
    for batch in range(2):
        assert write(query, batch) == 5
    if is_stream:
        with pytest.raises(WriterStateError, match="checkpoint is that of another table"):
            write(query, 2, "more")
    else:  # which may have several sinks
        assert write(query, 2, "more") == 5
    session.drop_table("people")
    again = make()
    with pytest.raises(WriterStateError, match="dropped and created again") as stopped:
        write(query, 2)
    ids = [each.info.table_id for each in (first, again)]
    assert all(str(each) in stopped.value.message for each in ids)
    assert "new checkpoint" in stopped.value.hint
    assert again.count() == 0
    assert write(other, 0) == 5
    assert write(query, 2, exactlyOnce="never") == 5


def test_a_query_that_writes_other_values_goes_on_where_they_may_differ(session, writer, as_task):
    table = session.create_table("tokens", ROWS, buckets=2)
    query = str(uuid.uuid4())

    def write(start, stop, batch, seed, **options):
        made = rows(start, stop, "a")
        tokens = pa.array([f"{seed}-{each}" for each in range(start, stop)])
        made = made.set_column(1, "V", tokens)  # in any case
        as_task(query, batch)
        sink = writer("tokens", made.schema, **options)
        message = sink.write(iter(made.to_batches(max_chunksize=4)))
        return sink, message

    # An attempt that was stopped, and one after a restart, where uuid() has other values.
    write(0, 8, 0, "one")
    with pytest.raises(WriterStateError, match="other rows than this one") as stopped:
        write(0, 20, 0, "two")
    assert "uuid()" in stopped.value.hint
    assert "mayDiffer" in stopped.value.hint
    sink, message = write(0, 20, 0, "two", mayDiffer="V")
    assert (message.rows, message.receipt.again) == (20, 8)
    sink.commit([message], 0)
    write(20, 24, 1, "two", mayDiffer="v")
    found = table.to_arrow().sort_by("id").to_pylist()
    assert [each["id"] for each in found] == list(range(24))
    assert [each["v"][:3] for each in found] == ["one"] * 8 + ["two"] * 16


@pytest.mark.one_server
def test_the_tasks_of_foreach_batch_know_their_query(spark, tmp_path):
    (tmp_path / "source").mkdir()
    pq.write_table(rows(0, 10, "a"), tmp_path / "source" / "a.parquet")
    seen = []

    def whose(batches):
        for each in batches:
            told = TaskContext.get().getLocalProperty("sql.streaming.queryId")
            yield pa.record_batch({"query": pa.array([told] * each.num_rows)})

    def look(frame, _):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Spark's own, of the newest pandas
            seen.extend(frame.mapInArrow(whose, "query string").distinct().collect())

    frame = spark.readStream.schema("id bigint, v string, day string")
    writer = frame.parquet(str(tmp_path / "source")).writeStream.foreachBatch(look)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    assert [each.query for each in seen] == [query.id]


def test_a_task_is_known_by_query_micro_batch_and_number(monkeypatch):
    told = {"sql.streaming.queryId": "9f2c-1", "streaming.sql.batchId": "57"}
    context = SimpleNamespace(partitionId=lambda: 3, getLocalProperty=told.get)
    monkeypatch.setattr(exactly_once, "TaskContext", SimpleNamespace(get=lambda: context))
    guarantee = DeliveryGuarantee(claims=True, caveats=())
    task = current_task(guarantee, None)
    assert (task.run, task.step, task.part, task.is_chained) == ("9f2c-1", 57, 3, True)
    task = current_task(guarantee, "a-write")
    assert (task.run, task.step, task.part, task.is_chained) == ("a-write", 0, 3, False)
    assert current_task(DeliveryGuarantee(claims=False, caveats=()), None) is None


def test_a_spark_that_does_not_say_is_refused_where_exactness_is_required(monkeypatch, caplog):
    context = SimpleNamespace(partitionId=lambda: 3, getLocalProperty={}.get)
    monkeypatch.setattr(exactly_once, "TaskContext", SimpleNamespace(get=lambda: context))
    assert current_task(DeliveryGuarantee(claims=True, caveats=()), None) is None
    assert "Spark does not tell its tasks" in caplog.text
    with pytest.raises(UnsupportedOperationError, match="does not tell"):
        current_task(DeliveryGuarantee(claims=True, caveats=(), is_required=True), None)


@pytest.fixture
def copy(spark, cluster, database, tmp_path):
    """`copy("table")`: streams the files that are there, in slices, to their end or a failure."""

    def one(into, change=lambda frame: frame, **options):
        # Files, not a table: Spark gives the process of a Python source 10 s to begin.
        source = spark.readStream.schema("id bigint, v string, day string")
        frame = change(source.option("maxFilesPerTrigger", 2).parquet(str(tmp_path / "source")))
        writer = frame.writeStream.format("fluss").option("bootstrap.servers", cluster.bootstrap)
        for key, value in options.items():
            writer = writer.option(key, value)
        query = (
            writer.option("checkpointLocation", str(tmp_path / into))
            .trigger(availableNow=True)
            .start(f"{database}.{into}")
        )
        assert query.awaitTermination(300)

    return one


def test_a_log_is_written_once_over_failures_restarts_and_new_partitions(
    session, copy, cluster, database, tmp_path
):
    into, naive = (
        session.create_table(name, ROWS, partition_by=["day"], buckets=2)
        for name in ("into", "naive")
    )
    (tmp_path / "source").mkdir()
    fails = tmp_path / "fails"
    began = time.time() - 1_000

    def put(first, day):
        path = tmp_path / "source" / f"{first:05}.parquet"
        pq.write_table(rows(first, first + 100, day), path)
        # Spark takes the oldest first, and those of one millisecond in any order.
        os.utime(path, (began + first, began + first))

    def failing(name, frame):
        """One task ends badly when the other one has written."""
        flag, url, table = Path(fails), f"fluss://{cluster.bootstrap}", f"{database}.{name}"

        def some(batches):
            for each in batches:
                if flag.exists() and 333 in each["id"].to_pylist():
                    with fluss.connect(url) as opened:
                        while opened.table(table).count() < 300:
                            time.sleep(0.1)
                    flag.unlink()
                    raise RuntimeError("planned")
                yield each

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Spark's own, of the newest pandas
            return frame.mapInArrow(some, frame.schema)

    for first in range(0, 400, 100):
        put(first, "a")
    for name, options in (("into", {}), ("naive", {"exactlyOnce": "never"})):
        fails.touch()
        with pytest.raises(Exception, match="planned"):
            copy(name, partial(failing, name), **options)
    put(400, "b")
    put(500, "a")
    copy("into", partial(failing, "into"))
    copy("naive", partial(failing, "naive"), exactlyOnce="never")
    put(600, "b")
    copy("into", lambda frame: frame.where("id < 0"))  # tasks without rows
    expected = [
        rows(first, first + 100, day)
        for first, day in zip(range(0, 600, 100), "aaaaba", strict=True)
    ]
    assert into.scan().to_arrow().sort_by("id") == pa.concat_tables(expected)
    seen = naive.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    assert set(seen) == set(range(600))
    assert len(seen) > 600
