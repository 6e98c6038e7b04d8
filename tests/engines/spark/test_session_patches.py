"""Writing from threads that Python started: they have no active session."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark import InheritableThread
from pyspark.sql.readwriter import DataFrameWriter

import fluss_spark
from fluss_spark.session_patches import activate_in_all_threads

# They speak of Spark, and not of the server.
pytestmark = pytest.mark.one_server

IDS = pa.schema([("id", pa.int64())])


@pytest.fixture
def in_thread():
    """`in_thread(call)`: what a call returns in a thread of its own, which nothing has run in."""

    def one(call):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(call).result(120)

    return one


def test_spark_looks_for_a_format_in_the_session_of_the_thread(
    spark, session, cluster, database, in_thread
):
    # Where this fails, Spark is mended, and `fluss_spark.session_patches` might go.
    session.create_table("log", IDS, buckets=1)
    plain = inspect.unwrap(DataFrameWriter.save)
    writer = spark.range(1).write.format("fluss").mode("append")
    writer = writer.option("bootstrap.servers", cluster.bootstrap)
    with pytest.raises(Py4JJavaError, match="DATA_SOURCE_NOT_FOUND"):
        in_thread(lambda: plain(writer, f"{database}.log"))


def test_frames_are_written_from_every_thread(spark, session, save, in_thread):
    table = session.create_table("log", IDS, buckets=1)
    in_thread(lambda: save(spark.range(3), "log"))
    in_thread(lambda: save(spark.newSession().range(3), "log"))
    thread = InheritableThread(target=lambda: save(spark.range(3), "log"))
    thread.start()
    thread.join(120)
    assert table.count() == 9


def test_streams_start_in_every_thread_and_a_micro_batch_has_several_sinks(
    spark, session, cluster, database, save, in_thread, tmp_path
):
    names = ("a", "b", "c")
    source, *sinks = (session.create_table(name, IDS, buckets=1) for name in ("from", *names))
    source.append({"id": list(range(20))})

    def to_all(frame, number):
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda name: save(frame, name), names))

    def stream(write):
        reader = spark.readStream.format("fluss").option("bootstrap.servers", cluster.bootstrap)
        writer = reader.option("start", "earliest").load(f"{database}.from").writeStream
        writer = writer.option("bootstrap.servers", cluster.bootstrap).trigger(availableNow=True)
        assert write(writer).awaitTermination(300)

    in_thread(
        lambda: stream(
            lambda writer: (
                writer.foreachBatch(to_all)
                .option("checkpointLocation", str(tmp_path / "all"))
                .start()
            )
        )
    )
    in_thread(
        lambda: stream(
            lambda writer: (
                writer.format("fluss")
                .option("checkpointLocation", str(tmp_path / "one"))
                .start(f"{database}.a")
            )
        )
    )
    assert [each.count() for each in sinks] == [40, 20, 20]


def test_a_session_that_is_active_in_the_thread_stays_active(spark):
    other = spark.newSession()
    sessions = spark._jvm.org.apache.spark.sql.classic.SparkSession

    def look():
        sessions.setActiveSession(other._jsparkSession)
        spark.range(1).write.format("noop").mode("overwrite").save()
        found = sessions.getActiveSession().get()
        sessions.clearActiveSession()
        return found.equals(other._jsparkSession)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(look).result(120)


def test_enabling_is_idempotent(spark):
    fluss_spark.enable(spark)
    before = DataFrameWriter.save
    fluss_spark.enable(spark)
    activate_in_all_threads()
    assert DataFrameWriter.save is before
