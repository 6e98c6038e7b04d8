"""Streams: every row once from checkpoint to checkpoint, limits, and refused options."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

from fluss.errors import UnsupportedOperationError
from fluss_spark import FlussDataSource
from fluss_spark.spark_types import spark_schema


@pytest.fixture
def stream(spark, cluster, database, tmp_path):
    """`stream("table", into="other", **options)`: runs a query on what is there, to its end."""

    def one(name: str, into: str, **options: object):
        reader = spark.readStream.format("fluss").option("bootstrap.servers", cluster.bootstrap)
        for key, value in options.items():
            reader = reader.option(key, value)
        frame = reader.load(f"{database}.{name}")
        writer = frame.writeStream.format("fluss").option("bootstrap.servers", cluster.bootstrap)
        query = (
            writer.option("checkpointLocation", str(tmp_path / f"{name}-{into}"))
            .trigger(availableNow=True)
            .start(f"{database}.{into}")
        )
        query.awaitTermination(120)
        return query

    return one


def _rows(start: int, stop: int, day: str | None = None) -> pa.Table:
    columns = {
        "id": pa.array(range(start, stop), pa.int64()),
        "v": pa.array([f"v{each}" for each in range(start, stop)], pa.string()),
    }
    if day is not None:
        columns["day"] = pa.array([day] * (stop - start), pa.string())
    return pa.table(columns)


@pytest.mark.one_server  # about Spark's checkpoint and query
def test_a_query_goes_on_where_its_checkpoint_ends_and_new_partitions_join(session, stream):
    source = session.create_table(
        "source", _rows(0, 0, "x").schema, partition_by=["day"], buckets=2
    )
    target = session.create_table("target", source.schema, primary_key=["id"], buckets=2)
    source.create_partition({"day": "a"})
    source.append(_rows(0, 300, "a"))
    stream("source", "target", startingOffsets="earliest", maxOffsetsPerTrigger=70)
    assert target.count() == 300
    source.create_partition({"day": "b"})
    source.append(_rows(300, 400, "a"))
    source.append(_rows(400, 500, "b"))
    query = stream("source", "target", startingOffsets="earliest", maxOffsetsPerTrigger=70)
    assert sorted(target.to_arrow()["id"].to_pylist()) == list(range(500))
    taken = [each["numInputRows"] for each in map(_progress, query.recentProgress)]
    assert max(taken) <= 70
    assert sum(taken) == 200


def _progress(each: object) -> dict[str, int]:
    return each if isinstance(each, dict) else json.loads(each.json)


def test_the_changes_of_a_table_are_streamed_into_another(session, stream):
    source = session.create_table("people", _rows(0, 0).schema, primary_key=["id"], buckets=2)
    target = session.create_table("copy", _rows(0, 0).schema, primary_key=["id"], buckets=3)
    source.upsert(_rows(0, 50))
    source.delete([(each,) for each in range(10)])
    options = {"columns": "_change_type,id,v", "startingOffsets": "earliest"}
    stream("people$changelog", "copy", **options)
    source.upsert(pa.table({"id": [20], "v": ["changed"]}))
    stream("people$changelog", "copy", **options)
    assert target.to_arrow().sort_by("id") == source.to_arrow().sort_by("id")


@pytest.mark.one_server  # about Spark's checkpoint and query
def test_a_sink_by_key_that_was_dropped_under_the_checkpoint_stops_the_query(session, stream):
    source = session.create_table("source", _rows(0, 0).schema, buckets=1)
    source.append(_rows(0, 60))
    session.create_table("into", _rows(0, 0).schema, primary_key=["id"], buckets=1)
    stream("source", "into", startingOffsets="earliest")
    session.drop_table("into")
    into = session.create_table("into", _rows(0, 0).schema, primary_key=["id"], buckets=1)
    source.append(_rows(60, 70))
    with pytest.raises(StreamingQueryException, match="it was dropped and created again"):
        stream("source", "into", startingOffsets="earliest")
    assert into.count() == 0


@pytest.mark.one_server  # about Spark's checkpoint and query
def test_a_query_that_fails_in_its_first_micro_batch_begins_where_it_began(
    spark, session, cluster, database, tmp_path
):
    # Until then Spark asks where the query begins whenever it is started.
    people = session.create_table("people", _rows(0, 0).schema, primary_key=["id"], buckets=2)
    people.upsert(_rows(0, 5))
    given = {}

    def fail_once(frame, number):
        given.setdefault(number, []).append(sorted(map(tuple, frame.collect())))
        if len(given[0]) == 1:
            raise RuntimeError("planned")

    def run():
        reader = spark.readStream.format("fluss").option("bootstrap.servers", cluster.bootstrap)
        reader = reader.option("start", "full").option("columns", "_change_type,id,v")
        writer = reader.load(f"{database}.people$changelog").writeStream.foreachBatch(fail_once)
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        assert query.start().awaitTermination(300)

    with pytest.raises(StreamingQueryException, match="planned"):
        run()
    people.upsert(pa.table({"id": [0, 7], "v": ["b", "b"]}))
    people.delete([(1,)])
    run()
    state = [("insert", each, f"v{each}") for each in range(5)]
    assert given[0] == [state, state]
    assert sorted(change for each in given[1] for change in each) == [
        ("delete", 1, "v1"),
        ("insert", 7, "b"),
        ("update_after", 0, "b"),
        ("update_before", 0, "v0"),
    ]


def test_a_log_is_streamed_into_another(session, stream):
    session.create_table("from", _rows(0, 0).schema, buckets=1).append(_rows(0, 5))
    into = session.create_table("into", _rows(0, 0).schema, buckets=1)
    stream("from", "into", startingOffsets="earliest")
    assert into.count() == 5


@pytest.mark.one_server  # about Spark's checkpoint and query
def test_a_log_sink_reports_that_it_is_at_least_once(session, cluster, database, caplog):
    session.create_table("into", _rows(0, 0).schema, buckets=1)
    given = {"path": f"{database}.into", "bootstrap.servers": cluster.bootstrap}
    schema = spark_schema(_rows(0, 0).schema)
    FlussDataSource(given).streamWriter(schema, overwrite=False)
    assert "at least once" in caplog.text
    with pytest.raises(UnsupportedOperationError, match="at least once"):
        FlussDataSource({**given, "exactlyOnce": "required"}).streamWriter(schema, overwrite=False)
