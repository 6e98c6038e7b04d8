"""Surprising behaviour of Spark towards a Python data source, and our workarounds.

Found by experiment with PySpark 4.3. A test that fails here with a newer Spark shows that the
behaviour is gone, or that a workaround no longer works; `docs/spark.md` tells users the same.
"""

from __future__ import annotations

import inspect
import os
import pickle
import re
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

import fluss_spark
from fluss.errors import ConfigError, InvalidValueError, UnsupportedOperationError
from fluss.log.range_reader import RangeReader
from fluss_spark import FlussDataSource
from fluss_spark.spark_options import read_options
from fluss_spark.spark_types import arrow_schema, spark_schema, to_spark

# They speak of Spark, and not of the server.
pytestmark = pytest.mark.one_server

SHIM = """
import sys, pyspark_fluss
heavy = [each for each in ("pyarrow", "fluss.net", "fluss.session") if each in sys.modules]
print(pyspark_fluss.DefaultSource.name(), heavy)
"""


@pytest.fixture
def log(session):
    table = session.create_table(
        "log", pa.schema([("id", pa.int64()), ("v", pa.string())]), buckets=2
    )
    table.append({"id": [1, 2, 3], "v": ["a", "b", "c"]})
    return table


def rows_scanned(frame):
    """How many rows the source gave, after the query has run."""
    scan = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
    return scan.metrics().apply("numOutputRows").value()


# --- discovery ------------------------------------------------------------------------------------


def test_spark_finds_the_format_by_itself_and_is_not_kept_waiting():
    # Discovery imports every `pyspark_*` in a process of its own, and so does every worker.
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            SHIM,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "fluss []\n"


def test_a_session_without_preparation_reads(spark, cluster, database, log):
    reader = spark.newSession().read.format("fluss").option("bootstrap.servers", cluster.bootstrap)
    found = reader.load(f"{database}.log").where("id = 2")
    assert [tuple(each) for each in found.collect()] == [(2, "b")]


def test_a_session_that_is_prepared_warns_of_nothing(cluster, database, log, tmp_path):
    # Spark says of every format that it has found by itself that it was replaced, and finds and
    # replaces it for each streaming query once more.
    program = f"""
        import fluss_spark
        spark = fluss_spark.session(master="local[1]", spark__ui__enabled=False)
        fluss_spark.enable(spark)
        fluss_spark.enable(spark.newSession())
        frame = (
            spark.readStream.format("fluss")
            .option("bootstrap.servers", {cluster.bootstrap!r})
            .option("start", "earliest")
            .load("{database}.log")
        )
        query = frame.writeStream.trigger(availableNow=True).format("memory").queryName("seen")
        query.option("checkpointLocation", {str(tmp_path)!r}).start().awaitTermination()
        print(spark.table("seen").count())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "3"
    assert "Setting default log level" in done.stderr
    assert "DataSourceManager" not in done.stderr


def test_a_session_that_runs_keeps_its_time_zone(spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        assert fluss_spark.session() is spark
        assert spark.conf.get("spark.sql.session.timeZone") == "Europe/Berlin"
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_settings_and_columns_are_checked_before_spark_is_asked():
    with pytest.raises(ConfigError, match=r"\n.*spark__ui__enabled"):
        fluss_spark.session(spark_ui_enabled=False)
    asked = SimpleNamespace(read=SimpleNamespace(format=lambda _: None))
    with pytest.raises(InvalidValueError, match="comma"):
        fluss_spark.table(asked, "d.t", columns=["a,b"])
    with pytest.raises(InvalidValueError, match="columns is empty"):
        fluss_spark.table(asked, "d.t", columns=[])


# --- one plan for all queries of a frame ----------------------------------------------------------


class Pushing(DataSource):
    """What takes the filters that Spark offers, as its documentation says."""

    @classmethod
    def name(cls):
        return "pushing"

    def schema(self):
        return "id bigint"

    def reader(self, schema):  # noqa: ARG002 - Spark's
        return PushingReader()


class PushingReader(DataSourceReader):
    def pushFilters(self, filters):  # noqa: N802 - Spark's name
        self.bound = filters
        return filters

    def read(self, partition):  # noqa: ARG002 - Spark's
        least = [each.value for each in getattr(self, "bound", ()) if hasattr(each, "value")]
        yield from ((each,) for each in range(max(least, default=0), 10))


def test_spark_mixes_the_filters_of_the_queries_of_a_frame(spark):
    # Therefore ours takes none. Where this fails, Spark is mended, and ours might.
    spark.dataSource.register(Pushing)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format("pushing").load()
        assert frame.where("id >= 8").count() == 2
        assert frame.count() == 2, "there are 10"
        both = frame.where("id >= 2").union(frame.where("id >= 8"))
        assert both.count() == 4, "there are 10"
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.parametrize("pushes", ["true", "false"])
def test_every_query_of_a_frame_has_its_own_rows(spark, read, log, pushes):
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushes)
    try:
        frame = read("log")
        assert frame.where("id >= 3").count() == 1
        assert frame.count() == 3
        assert frame.where("id <= 1").union(frame.where("id >= 2")).count() == 3
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_frame_is_pinned_when_it_is_first_used(read, log):
    frame = read("log")
    assert frame.count() == 3
    log.append({"id": [4], "v": ["d"]})
    assert frame.count() == 3
    assert read("log").count() == 4


def test_an_option_selects_the_rows_that_are_read(read, log):
    found = read("log", filter="id >= 2")
    assert sorted(map(tuple, found.collect())) == [(2, "b"), (3, "c")]
    assert rows_scanned(found) == 2


def test_times_are_compared_and_grouped(session, read):
    # Spark 4.3 shows TIME, and refuses all else until a setting allows it; 4.2 compares none of
    # another precision.
    rows = {"at": pa.array([1, 2, 2, None], pa.time32("s"))}
    session.create_table("times", pa.table(rows), buckets=1).append(pa.table(rows))
    later = read("times").where("at > cast(time'00:00:01' AS time(0))")
    assert later.groupBy("at").count().first()[1] == 2


def test_the_python_of_workers_is_this_one_and_spark_is_the_installed_one(spark, monkeypatch):
    monkeypatch.delenv("SPARK_HOME", raising=False)
    fluss_spark.session("tests", master="local[2]")
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert os.environ["SPARK_HOME"] == str(Path(pyspark.__file__).parent)
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


# --- how Spark calls ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["name", "schema", "reader", "streamReader", "writer", "streamWriter"]
)
def test_parameters_have_the_names_that_spark_calls_them_by(name):
    # Other names work for the write, and fail at its commit.
    expected = inspect.signature(getattr(DataSource, name)).parameters
    assert list(inspect.signature(getattr(FlussDataSource, name)).parameters) == list(expected)


def test_options_are_the_same_in_any_case():
    written = {
        "path": "d.t",
        "minPartitions": "3",
        "startingOffsets": "latest",
        "Bootstrap.Servers": "host:1",
        "targetColumns": "a",
    }
    folded = {key.lower(): value for key, value in written.items()}
    assert read_options(written, what="read") == read_options(folded, what="read")


def test_nothing_is_kept_between_a_write_and_its_commit(cluster, database, log):
    # Spark makes a new writer in another process for every step.
    options = {"path": f"{database}.log", "bootstrap.servers": cluster.bootstrap}
    schema = spark_schema(log.schema)
    writer = FlussDataSource(options).writer(schema, overwrite=False)
    task, driver = (pickle.loads(pickle.dumps(writer)) for _ in range(2))  # noqa: S301
    row = pa.table({"id": [9], "v": ["x"]}).to_batches()
    message = task.write(iter(row))
    driver.commit([pickle.loads(pickle.dumps(message)), None])  # noqa: S301
    assert log.count() == 4


def test_spark_plans_with_a_source_of_its_own_and_commits_with_one_that_it_was_sent(
    spark, cluster, database, log, tmp_path
):
    # By that a sink knows that rows are written already, and need not fit the table again.
    seen = tmp_path / "seen"

    class Sink(DataSource):
        was_sent = False

        def __setstate__(self, state):
            self.__dict__.update(state)
            self.was_sent = True

        @classmethod
        def name(cls):
            return "sent"

        def streamWriter(self, schema, overwrite):  # noqa: ARG002, N802 - Spark's name
            was_sent = self.was_sent

            class Writer(DataSourceStreamArrowWriter):
                def write(self, iterator):
                    rows = sum(each.num_rows for each in iterator)
                    return WriterCommitMessage() if rows and not was_sent else None

                def commit(self, messages, batchId):  # noqa: ARG002, N803 - Spark's name
                    with seen.open("a") as file:
                        print(was_sent, *(each is not None for each in messages), file=file)

            return Writer()

    spark.dataSource.register(Sink)
    reader = spark.readStream.format("fluss").option("bootstrap.servers", cluster.bootstrap)
    (
        reader.option("start", "earliest")
        .load(f"{database}.log")
        .writeStream.format("sent")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
    assert seen.read_text() == "True True\n"


def test_a_batch_has_the_schema_that_spark_would_have_made():
    # Only the first batch is checked, and in no friendly words.
    kinds = [
        pa.large_string(),
        pa.timestamp("ms"),
        pa.timestamp("ns", tz="UTC"),
        pa.time32("s"),
        pa.time64("us"),
        pa.binary(3),
        pa.decimal128(9, 2),
        pa.map_(pa.string(), pa.timestamp("ms")),
        pa.list_(pa.struct([pa.field("a", pa.int8(), nullable=False)])),
        pa.struct([("m", pa.map_(pa.int32(), pa.list_(pa.large_string())))]),
    ]
    schema = pa.schema([pa.field(f"c{i}", each, nullable=False) for i, each in enumerate(kinds)])
    nullable = pa.schema([each.with_nullable(True) for each in schema])
    declared = spark_schema(schema)
    expected = to_arrow_schema(declared, timezone="UTC")
    batch = pa.RecordBatch.from_arrays([pa.nulls(2, each) for each in kinds], schema=nullable)
    assert to_spark(batch, arrow_schema(declared)).schema.equals(expected, check_metadata=True)
    assert all(each.nullable for each in declared)


def test_columns_are_not_pruned_so_they_are_named(spark, read, cluster, database, log):
    plan = read("log").select("id")._jdf.queryExecution().toString()
    assert re.search(r"BatchScan fluss\[id#\d+L, v#\d+\]", plan)
    servers = {"bootstrap.servers": cluster.bootstrap}
    few = fluss_spark.table(spark, f"{database}.log", columns=["id"], **servers)
    plan = few._jdf.queryExecution().toString()
    assert re.search(r"BatchScan fluss\[id#\d+L\]", plan)


@pytest.fixture
def many(session):
    """A table whose buckets are read by several threads, with more rows than a pipe holds."""
    rows = pa.table({"id": range(60_000), "v": ["x" * 100] * 60_000})
    table = session.create_table("many", rows, primary_key=["id"], buckets=6)
    table.upsert(rows)
    return table


COUNT_SCANNING = """
import threading, time
import pyarrow as pa

def count_scanning(batches):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        left = [each for each in threading.enumerate() if each.name.startswith("fluss-scan")]
        if not left:
            break
        time.sleep(0.01)
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"left": pa.array([len(left)], pa.int32())})
"""


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_a_limit_abandons_what_is_read_and_nothing_reads_on(spark, read, many):
    # Spark lets go of the iterator in its midst, and the worker ends or has other things to do.
    assert len(read("many", maxPartitions=1).limit(3).collect()) == 3
    names: dict[str, object] = {}
    exec(COUNT_SCANNING, names)  # noqa: S102 - workers cannot import a test
    found = spark.range(4).mapInArrow(names["count_scanning"], "left int").collect()
    assert [each.left for each in found] == [0] * len(found)
    assert read("many", maxPartitions=1).count() == 60_000


def test_an_abandoned_partition_closes_its_reader(cluster, database, many, log, monkeypatch):
    closed = []
    close = RangeReader.close
    monkeypatch.setattr(RangeReader, "close", lambda self: (closed.append(self), close(self)))
    for table in (many, log):
        name = f"{database}.{table.name.rpartition('.')[2]}"
        options = {"path": name, "bootstrap.servers": cluster.bootstrap, "maxPartitions": "1"}
        reader = FlussDataSource(options).reader(spark_schema(table.schema))
        (partition,) = reader.partitions()
        batches = reader.read(partition)
        assert next(batches).num_rows
        assert bool(scanning()) == (table is many)
        batches.close()
        deadline = time.monotonic() + 10
        while scanning() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not scanning()
    assert closed, "a log is read without threads of its own"


def scanning():
    """The threads that read splits."""
    return [each for each in threading.enumerate() if each.name.startswith("fluss-scan")]


def test_metadata_columns_are_ordinary_columns_on_request(read, log):
    with pytest.raises(PySparkException, match="UNRESOLVED_COLUMN"):
        read("log").select("_metadata")
    assert read("log", withMetadata="_bucket").columns == ["id", "v", "_bucket"]


# --- writing --------------------------------------------------------------------------------------


def test_a_write_needs_a_mode(spark, cluster, database, log):
    writer = spark.range(1).write.format("fluss").option("bootstrap.servers", cluster.bootstrap)
    with pytest.raises(PySparkException, match='use either the "Append"'):
        writer.save(f"{database}.log")
    with pytest.raises(PySparkException, match="Ignore"):
        writer.mode("ignore").save(f"{database}.log")


def test_update_mode_is_for_foreach_batch(spark, session, cluster, database, log, tmp_path):
    counts = session.create_table(
        "counts",
        pa.schema([("v", pa.string()), ("n", pa.int64())]),
        primary_key=["v"],
        buckets=1,
    )
    stream = spark.readStream.format("fluss").option("bootstrap.servers", cluster.bootstrap)
    frame = stream.option("start", "earliest").load(f"{database}.log")
    grouped = frame.groupBy("v").agg({"id": "count"}).withColumnRenamed("count(id)", "n")
    sink = (
        grouped.writeStream.format("fluss")
        .option("bootstrap.servers", cluster.bootstrap)
        .option("checkpointLocation", str(tmp_path / "refused"))
        .outputMode("update")
    )
    with pytest.raises(PySparkException, match=r"(?i)does not support Update"):
        sink.start(f"{database}.counts").awaitTermination(60)
    with pytest.raises(PySparkException, match=r"(?s)overwrite.*fluss_spark.upsert_batches"):
        sink.outputMode("complete").start(f"{database}.counts").awaitTermination(60)
    upsert = fluss_spark.upsert_batches(
        f"{database}.counts", **{"bootstrap.servers": cluster.bootstrap}
    )
    query = (
        grouped.writeStream.foreachBatch(upsert)
        .outputMode("update")
        .option("checkpointLocation", str(tmp_path / "counts"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert counts.to_arrow().sort_by("v").to_pydict() == {"v": ["a", "b", "c"], "n": [1, 1, 1]}
    into_log = fluss_spark.upsert_batches(
        f"{database}.log", **{"bootstrap.servers": cluster.bootstrap}
    )
    with pytest.raises(
        PySparkException, match=r"(?s)log has no primary key; it does not support upsert"
    ):
        into_log(spark.range(1).selectExpr("id", "'x' v"), 0)


def test_a_query_that_is_stopped_while_it_upserts_has_not_failed(
    spark, session, cluster, database, log, tmp_path
):
    session.create_table("kept", log.schema, primary_key=["id"], buckets=1)
    stream = spark.readStream.format("fluss").option("bootstrap.servers", cluster.bootstrap)
    begun = tmp_path / "begun"

    def slowly(batches):
        for each in batches:
            begun.touch()
            time.sleep(3)
            yield each

    frame = stream.option("start", "earliest").load(f"{database}.log")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own, of the newest pandas
        slow = frame.mapInArrow(slowly, frame.schema)
    upsert = fluss_spark.upsert_batches(
        f"{database}.kept", **{"bootstrap.servers": cluster.bootstrap}
    )
    query = (
        slow.writeStream.foreachBatch(upsert)
        .option("checkpointLocation", str(tmp_path / "kept"))
        .start()
    )
    while not begun.exists():
        assert query.isActive, query.exception()
        time.sleep(0.05)
    query.stop()
    assert query.exception() is None


def test_an_option_that_no_stream_has_is_refused(spark, cluster, database, log, tmp_path):
    stream = spark.readStream.format("fluss").option("bootstrap.servers", cluster.bootstrap)
    frame = stream.option("endingOffsets", "latest").load(f"{database}.log")
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    with pytest.raises(PySparkException, match="A stream has no end") as refused:
        query.trigger(availableNow=True).start().awaitTermination(120)
    assert "UnboundLocalError" not in str(refused.value)
    assert str(refused.value).count("Traceback") <= 1


def test_a_partitioning_of_sparks_own_is_refused_for_frames_and_ignored_for_streams(
    spark, session, cluster, database, log, tmp_path
):
    options = {"bootstrap.servers": cluster.bootstrap}
    frame = spark.range(1).selectExpr("id", "'x' v")
    writer = frame.write.format("fluss").options(**options).mode("append")
    with pytest.raises(PySparkException, match="provided partitioning or clustering columns"):
        writer.partitionBy("v").save(f"{database}.log")
    # What it means is an option, of a table that is made: its partitions are its own.
    writer = frame.write.format("fluss").options(**options).mode("append")
    writer.options(createIfNotExists="true", partitionBy="v").save(f"{database}.made")
    assert session.table("made").partition_by == ("v",)
    stream = spark.readStream.format("fluss").options(**options, start="earliest")
    query = (
        stream.load(f"{database}.log")
        .writeStream.format("fluss")
        .options(**options, checkpointLocation=str(tmp_path / "parts"))
        .partitionBy("v")
        .trigger(availableNow=True)
        .start(f"{database}.made")
    )
    query.awaitTermination()
    assert session.table("made").count() == 4


def test_a_table_that_spark_saves_as_its_own_is_written_and_cannot_be_used(
    spark, cluster, database, log
):
    # Spark hands the options on this once, as for save(), and forgets them.
    frame = spark.range(1).selectExpr("id", "'x' v")
    writer = frame.write.format("fluss").option("bootstrap.servers", cluster.bootstrap)
    try:
        writer.option("path", f"{database}.log").mode("append").saveAsTable("trap_saved")
        assert log.count() == 4
        for use in (
            lambda: spark.table("trap_saved").collect(),
            lambda: frame.write.insertInto("trap_saved"),
        ):
            with pytest.raises(PySparkException, match=r"(?s)TEMPORARY VIEW.*WITH \(path"):
                use()
    finally:
        spark.sql("DROP TABLE IF EXISTS trap_saved")


def test_a_table_of_the_catalog_api_is_refused_when_made_or_when_used(
    spark, cluster, database, log
):
    named = {"path": f"{database}.log", "bootstrap.servers": cluster.bootstrap}
    with pytest.raises(PySparkException, match=r"(?s)catalog cannot represent.*TEMPORARY VIEW"):
        spark.catalog.createTable("trap_made", source="fluss", **named)
    # With its columns declared, our code is not called when it is made.
    schema = spark_schema(log.schema)
    try:
        spark.catalog.createTable("trap_made", source="fluss", schema=schema, **named)
        with pytest.raises(PySparkException, match=r"(?s)TEMPORARY VIEW.*WITH \(path"):
            spark.table("trap_made").collect()
    finally:
        spark.sql("DROP TABLE IF EXISTS trap_made")


# --- triggers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "said"),
    [
        ({"continuous": "1 second"}, "fluss does not support continuous processing"),
        ({"realTime": "5 seconds"}, "STREAMING_REAL_TIME_MODE.INPUT_STREAM_NOT_SUPPORTED"),
    ],
    ids=["continuous", "real time"],
)
def test_a_source_knows_micro_batches_only(spark, cluster, database, log, trigger, said, tmp_path):
    stream = spark.readStream.format("fluss").option("bootstrap.servers", cluster.bootstrap)
    writer = stream.load(f"{database}.log").writeStream.format("console").outputMode("update")
    writer = writer.option("checkpointLocation", str(tmp_path)).trigger(**trigger)
    with pytest.raises(PySparkException, match=said):
        writer.start().awaitTermination(60)


def rates(spark, cluster, database, tmp_path):
    """A stream of another source, that is written into the log."""
    frame = spark.readStream.format("rate").load().selectExpr("value id", "'x' v")
    writer = frame.writeStream.format("fluss").option("bootstrap.servers", cluster.bootstrap)
    return writer.option("path", f"{database}.log").option("checkpointLocation", str(tmp_path))


def test_a_sink_in_real_time_is_refused(spark, cluster, database, log, tmp_path):
    writer = rates(spark, cluster, database, tmp_path).outputMode("update")
    with pytest.raises(PySparkException, match="OPERATOR_OR_SINK_NOT_IN_ALLOWLIST"):
        writer.trigger(realTime="5 seconds").start().awaitTermination(60)


def test_a_continuous_sink_commits_nothing_because_spark_gives_it_no_rows(
    spark, cluster, database, log, tmp_path
):
    # Spark never calls `write` there, and commits all the same: every row would be lost. An error
    # of `commit` stops no such query; it is in the log, and the checkpoint stays where it is.
    writer = rates(spark, cluster, database, tmp_path)
    query = writer.trigger(continuous="100 milliseconds").start()
    try:
        assert not query.awaitTermination(4)
    finally:
        query.stop()
    assert not [*(tmp_path / "commits").glob("[0-9]*")]
    options = {"path": f"{database}.log", "bootstrap.servers": cluster.bootstrap}
    schema = spark_schema(log.schema)
    sink = FlussDataSource(options).streamWriter(schema, overwrite=False)
    with pytest.raises(UnsupportedOperationError, match=r"trigger\(continuous=") as refused:
        sink.commit([None, None], 0)
    assert "processingTime" in refused.value.hint


# --- SQL ------------------------------------------------------------------------------------------


def test_a_table_of_sparks_catalog_is_refused_because_spark_keeps_its_options(
    spark, cluster, database, log
):
    options = f"(path '{database}.log', `bootstrap.servers` '{cluster.bootstrap}')"
    with pytest.raises(PySparkException, match="TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE trap USING fluss OPTIONS {options}")
    # With its columns declared, our code is not called when it is made.
    spark.sql(f"CREATE TABLE trap (id bigint, v string) USING fluss OPTIONS {options}")
    try:
        for use in (
            lambda: spark.sql("SELECT * FROM trap").collect(),
            lambda: spark.sql("INSERT INTO trap VALUES (4, 'd')"),
            lambda: spark.range(1).selectExpr("id", "'d' v").writeTo("trap").append(),
        ):
            with pytest.raises(PySparkException, match=r"(?s)TEMPORARY VIEW.*WITH \(path"):
                use()
        said = f"WITH (path = '{database}.log', `bootstrap.servers` = '{cluster.bootstrap}')"
        spark.sql(f"INSERT INTO trap {said} VALUES (4, 'd')")  # noqa: S608
        assert spark.sql(f"SELECT sum(id) FROM trap {said}").first()[0] == 10  # noqa: S608
        for change, said in {
            "DELETE FROM trap WHERE id = 1": "does not support deletes",
            "UPDATE trap SET v = 'x'": "UNSUPPORTED_FEATURE.TABLE_OPERATION",
            "MERGE INTO trap USING trap s ON trap.id = s.id WHEN MATCHED THEN DELETE": (
                "UNSUPPORTED_FEATURE.TABLE_OPERATION"
            ),
        }.items():
            with pytest.raises(PySparkException, match=said):
                spark.sql(change)
    finally:
        spark.sql("DROP TABLE trap")


def test_create_table_as_select_is_refused(spark, cluster, database, log):
    try:
        with pytest.raises(PySparkException, match=r"(?s)TEMPORARY VIEW.*WITH \(path"):
            spark.sql(
                f"CREATE TABLE copied USING fluss OPTIONS (path '{database}.log', "
                f"`bootstrap.servers` '{cluster.bootstrap}') AS SELECT 7L id, 'x' v"
            )
    finally:
        spark.sql("DROP TABLE IF EXISTS copied")
    assert log.count() == 3


def test_a_query_of_the_name_alone_needs_a_view(spark, database, log):
    with pytest.raises(PySparkException, match="UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"):
        spark.sql(f"SELECT * FROM fluss.`{database}.log`")  # noqa: S608 - a test's own name


def test_an_error_begins_with_what_it_is(spark, session, read, save, database, log):
    # Its type is lost on the way, so everything is in the text; a traceback would be before it.
    with pytest.raises(PySparkException) as refused:
        read("lag")
    said = str(refused.value)
    assert "fluss.errors.TableNotFoundError: " in said.splitlines()[0]
    assert "Traceback" not in said
    session.create_table("keyed", log.schema, primary_key=["id"], buckets=1)
    with pytest.raises(PySparkException) as failed:
        save(spark.sql("SELECT CAST(NULL AS BIGINT) id, 'x' v"), "keyed")
    assert str(failed.value).splitlines()[1].startswith("fluss.errors.InvalidValueError: In row 0")
    said = str(refused.value)
    assert "hint: did you mean 'log'?" in said
    with pytest.raises(PySparkException, match="SchemaMismatchError"):
        read("log", columns="id,w")


def test_a_partition_that_is_empty_is_no_trouble(spark, cluster, database, session):
    session.create_table("none", pa.schema([("id", pa.int64())]), buckets=3)
    options = {"path": f"{database}.none", "bootstrap.servers": cluster.bootstrap}
    reader = FlussDataSource(options).reader(StructType.fromDDL("id bigint"))
    assert [list(reader.read(each)) for each in reader.partitions()] == [[]]
