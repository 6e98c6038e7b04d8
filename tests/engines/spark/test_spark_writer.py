"""Writes without Spark: refused frames and rows, their messages, and the written rows.

The driver refuses a frame that does not fit before a task starts; a worker refuses a row. Every
message has the table, the code, and the remedy.
"""

from __future__ import annotations

import logging
import os
import pickle
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimeType,
    VariantType,
    YearMonthIntervalType,
)

import fluss
from fluss.errors import (
    ConnectError,
    DatabaseNotFoundError,
    FlussError,
    InvalidSchemaError,
    InvalidValueError,
    RequestTimeoutError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
    UnsupportedTypeError,
)
from fluss_server.local_cluster import LocalCluster
from fluss_spark import FlussDataSource, error_context, spark_writer
from fluss_spark.error_context import START_AGAIN, ErrorContext
from fluss_spark.spark_types import spark_schema
from tests.support.scripted.micro_batches import MicroBatches, rows
from tests.support.servers.fix_cluster import IMPATIENT

ROW = {
    "id": pa.array([1], pa.int64()),
    "n": pa.array([1], pa.int32()),
    "d": pa.array([Decimal("1.25")], pa.decimal128(5, 2)),
    "at": pa.array([datetime(2026, 1, 1)], pa.timestamp("ns")),  # noqa: DTZ001 - a wall clock
    "moment": pa.array([0], pa.timestamp("ms", tz="UTC")),
    "t": pa.array([1_000], pa.time64("us")),
    "tags": pa.array([["a"]], pa.list_(pa.string())),
    "day": pa.array(["x"]),
}
TABLES = {
    "log": {"buckets": 1},
    "bucketed": {"buckets": 2, "bucket_key": ["id"]},
    "keyed": {"buckets": 1, "primary_key": ["id"]},
    "days": {"buckets": 1, "partition_by": ["day"]},
}


@pytest.fixture(scope="module")
def tables(cluster):
    """A table of each kind with the columns of `ROW`; no test writes to it successfully."""
    name = f"refusing_{uuid.uuid4().hex[:8]}"
    with fluss.connect(f"fluss://{cluster.bootstrap}/{name}", **IMPATIENT) as session:
        session.create_database(name)
        for each, how in TABLES.items():
            session.create_table(each, pa.table(ROW).schema, **how)
        yield SimpleNamespace(session=session, name=name)
        session.drop_database(name, cascade=True)


@pytest.fixture
def options_of(tables, cluster):
    """`options_of("table", **options)`: the options of the format."""

    def one(name, **options):
        path = name if "." in name else f"{tables.name}.{name}"
        return {"path": path, "bootstrap.servers": cluster.bootstrap, **options}

    return one


def plan(options, frame, *, is_stream=False):
    """What Spark's driver does."""
    source = FlussDataSource(options)
    make = source.streamWriter if is_stream else source.writer
    return make(spark_schema(frame.schema), overwrite=False)


def write(options, frame, *, is_stream=False, batch=0):
    """What Spark does: plan, ship, write, commit."""
    shipped = pickle.loads(pickle.dumps(plan(options, frame, is_stream=is_stream)))  # noqa: S301
    message = shipped.write(iter(frame.to_batches()))
    shipped.commit([message], *([batch] if is_stream else []))


def frame(**changes):
    """The row with other columns; None leaves one out."""
    columns = {**ROW, **changes}
    return pa.table({name: each for name, each in columns.items() if each is not None})


def cells(value, kind):
    return pa.array([value], kind)


# --- by the driver --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "changes", "options", "error", "said"),
    [
        (
            "log",
            {"n": cells("1", pa.string())},
            {},
            SchemaMismatchError,
            r"'n' is INT .*has string.*\n.*hint: cast it: .*col\('n'\).cast\('int'\)",
        ),
        (
            "keyed",
            {"tags": cells([1], pa.list_(pa.int64()))},
            {},
            SchemaMismatchError,
            r"'tags' is ARRAY<STRING> .*list.*int64.*\n.*cast\('array<string>'\)",
        ),
        (
            "log",
            {"moment": cells(datetime(2026, 1, 1), pa.timestamp("us"))},  # noqa: DTZ001
            {},
            SchemaMismatchError,
            r"'moment' .* moments \(timestamp\); .* wall .*\n.*cast\('timestamp'\)",
        ),
        (
            "log",
            {"at": cells(datetime(2026, 1, 1, tzinfo=UTC), pa.timestamp("us", tz="UTC"))},
            {},
            SchemaMismatchError,
            r"'at' .* wall .*\(timestamp_ntz\).*; .* moments .*\n.*cast\('timestamp_ntz'\)",
        ),
        ("days", {"day": None}, {}, SchemaMismatchError, r"lacks the column 'day' \(STRING\).*\n"),
        ("bucketed", {"id": None}, {}, SchemaMismatchError, "lacks the column 'id'"),
        (
            "log",
            {"_change_type": cells("insert", pa.string())},
            {},
            UnsupportedOperationError,
            r"log is a log, in which rows do not change.*\n.*withColumnRenamed\('_change_type'",
        ),
        ("keyed", {"ID2": cells(1, pa.int64())}, {}, SchemaMismatchError, "'ID2'"),
        ("log", {}, {"mayDiffer": "nn"}, InvalidValueError, r"'nn', which.*\n.*did you mean 'n'"),
        (
            "days",
            {},
            {"mayDiffer": "id, DAY"},
            InvalidValueError,
            "'day', which decides .* a second time",
        ),
        ("bucketed", {}, {"mayDiffer": "id"}, InvalidValueError, r"'id', which decides.*\n.*sha2"),
        ("keyed", {}, {"mayDiffer": "n"}, UnsupportedOperationError, "is for logs"),
        ("keyed", {"id": None}, {}, SchemaMismatchError, r"lacks.*\n.*may not be NULL"),
        ("log", {"N": cells(1, pa.int32())}, {}, SchemaMismatchError, "did you mean 'n'"),
        (
            "log",
            {"moment": cells(0, pa.timestamp("us"))},
            {},
            SchemaMismatchError,
            r"'moment'.*\(timestamp\).*\(timestamp_ntz\).*\n.*cast\('timestamp'\)",
        ),
        ("keyed", {"id": None}, {"operation": "delete"}, SchemaMismatchError, "by its key, id"),
        (
            "keyed",
            {"_change_type": cells("insert", pa.string())},
            {"operation": "delete"},
            InvalidValueError,
            r"delete all of them.*\n.*leave operation out",
        ),
        (
            "keyed",
            {"_change_type": cells("insert", pa.string())},
            {"operation": "update"},
            InvalidValueError,
            "Upsert it",
        ),
        ("keyed", {}, {"targetColumns": "id,n"}, InvalidValueError, "operation', 'update'"),
        (
            "keyed",
            {},
            {"operation": "update", "targetColumns": "id,nn"},
            InvalidSchemaError,
            "did you mean 'n'",
        ),
        ("keyed", {}, {"operation": "append"}, UnsupportedOperationError, "has a primary key"),
        ("log", {}, {"operation": "delete"}, UnsupportedOperationError, "no primary key"),
        ("lag", {}, {}, TableNotFoundError, r"TABLE_NOT_EXIST, code 7\]\n.*did you mean 'log'"),
        ("keyed", {}, {"operation": "upsrt"}, InvalidValueError, "did you mean 'upsert'"),
        ("log", {}, {"operation": "upsert"}, UnsupportedOperationError, r"\n.*it supports append"),
        ("keyed$changelog", {}, {}, UnsupportedOperationError, r"is read.*\n.*keyed'\).*_change"),
        ("keyed$binlog", {}, {}, UnsupportedOperationError, "is read-only"),
        (
            "made",
            {},
            {"createIfNotExists": "true", "operation": "upsert"},
            InvalidValueError,
            r"without a primary key.*\n.*'primaryKey'",
        ),
        ("made", {}, {"createIfNotExists": "yes"}, InvalidValueError, "none of true, false"),
        ("made", {}, {"createIfNotExists": "true", "bucketNum": "0"}, InvalidValueError, "whole"),
    ],
)
def test_a_frame_that_does_not_fit_is_refused_before_a_task_begins(
    tables, options_of, table, changes, options, error, said
):
    with pytest.raises(error, match=said) as refused:
        plan(options_of(table, **options), frame(**changes))
    assert f".{table}" in str(refused.value) or "option" in refused.value.facts
    assert ", code " in str(refused.value)
    assert not {"made", "lag"} & set(tables.session.tables())


@pytest.mark.parametrize(
    "kind",
    [
        VariantType(),
        ArrayType(VariantType()),
        MapType(StringType(), StructType([StructField("v", VariantType())])),
    ],
    ids=lambda kind: kind.simpleString(),
)
def test_a_variant_is_refused_as_what_it_is(options_of, kind):
    source = FlussDataSource(options_of("made", createIfNotExists="true"))
    schema = StructType([StructField("variant", StringType()), StructField("v", kind)])
    with pytest.raises(UnsupportedTypeError, match=r"'v' is .*no VARIANT.*\n.*to_json\('v'\)"):
        source.writer(schema, overwrite=False)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (ArrayType(NullType(), False), r"'v' is array<void>, .*\n.*cast\('array<int>'\)"),
        (MapType(NullType(), NullType(), False), "'v' is map<void,void>"),
        (YearMonthIntervalType(), r"'v' is interval year to month, .*\n.*cast it"),
    ],
    ids=lambda each: each if isinstance(each, str) else each.simpleString(),
)
def test_a_type_that_spark_does_not_pass_to_python_is_refused(options_of, kind, said):
    source = FlussDataSource(options_of("log"))
    schema = StructType([StructField("id", StringType()), StructField("v", kind)])
    with pytest.raises(UnsupportedTypeError, match=said):
        source.writer(schema, overwrite=False)


def test_a_table_that_is_there_is_as_it_would_have_been_made(options_of):
    for table, options, said in (
        (
            "log",
            {"primaryKey": "id"},
            r"has none, but primaryKey is id.*\n.*leave primaryKey out",
        ),
        ("keyed", {"primaryKey": "id, n"}, "has id, but primaryKey is id, n"),
        ("keyed", {"partitionBy": "day"}, "has none, but partitionBy is day"),
        ("days", {"partitionBy": "id"}, "has day, but partitionBy is id"),
    ):
        with pytest.raises(InvalidValueError, match=said):
            plan(options_of(table, createIfNotExists="true", **options), frame())
    with pytest.raises(InvalidValueError, match="has 1, but bucketNum is 7"):
        plan(options_of("keyed", createIfNotExists="true", bucketNum="7"), frame())
    plan(options_of("keyed", createIfNotExists="true", primaryKey="ID", bucketNum="1"), frame())


def test_a_micro_batch_that_is_written_is_committed_though_the_table_has_more_columns_by_now(
    session, options_of, database
):
    rows = pa.table({"id": [1, 2]})
    session.create_table("grown", rows, buckets=1)
    source = FlussDataSource(options_of(f"{database}.grown"))
    schema = spark_schema(rows.schema)
    message = source.streamWriter(schema, overwrite=False).write(iter(rows.to_batches()))
    session.alter_table("grown", add_columns=pa.schema([("more", pa.string())]))
    sent = pickle.loads(pickle.dumps(source))  # noqa: S301
    sent.streamWriter(schema, overwrite=False).commit([message], 0)
    # And the next one has NULL there, as INSERT with some of the columns has.
    source.streamWriter(schema, overwrite=False).write(iter(rows.to_batches()))
    assert session.table("grown").to_arrow()["more"].to_pylist() == [None] * 4


# --- by a worker ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "changes", "options", "said"),
    [
        ("keyed", {"id": cells(None, pa.int64())}, {}, "'id' cannot take None"),
        ("keyed", {"id": cells(None, pa.int64())}, {"operation": "delete"}, "'id' cannot take"),
        ("bucketed", {"id": cells(None, pa.int64())}, {}, "'id' chooses the bucket, and is NULL"),
        ("days", {"day": cells(None, pa.string())}, {}, "day is NULL"),
        ("log", {"n": cells(2**40, pa.int64())}, {}, "'n' cannot take 1099511627776"),
        (
            "keyed",
            {"d": cells(Decimal("12345.00"), pa.decimal128(20, 2))},
            {},
            "'d' cannot take 12345.00.*precision 5",
        ),
        (
            "log",
            {"d": cells(Decimal("1.234"), pa.decimal128(20, 3))},
            {},
            "'d' cannot take 1.234: .*loss",
        ),
        (
            "keyed",
            {"at": cells(datetime(1600, 1, 1), pa.timestamp("us"))},  # noqa: DTZ001 - a wall clock
            {},
            "'at' cannot take 1600-01-01.*out of bounds",
        ),
        (
            "log",
            {"moment": cells(123_456, pa.timestamp("us", tz="UTC"))},
            {},
            "'moment' cannot take .*lose data",
        ),
        (
            "keyed",
            {"t": cells(1, pa.time64("us"))},
            {},
            r"'t' cannot take .* the table keeps milliseconds",
        ),
        ("keyed", {"_change_type": cells(None, pa.string())}, {}, "'_change_type' is NULL"),
        ("keyed", {"_change_type": cells("put", pa.string())}, {}, "has 'put'"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_with_its_column(
    tables, options_of, table, changes, options, said
):
    with pytest.raises(InvalidValueError, match=said) as refused:
        write(options_of(table, **options), frame(**changes))
    text = str(refused.value)
    assert f".{table}" in text
    assert "[CLIENT_ERROR, code -2]\n  hint: " in text
    assert tables.session.table(table).count() == 0


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize("key", [None, ["id"]])
def test_columns_that_a_frame_lacks_are_null(session, options_of, database, caplog, is_stream, key):
    error_context._logged_until.clear()
    schema = pa.schema([("id", pa.int64()), ("a", pa.string()), ("tags", pa.list_(pa.int32()))])
    session.create_table("lacking", schema, buckets=1, primary_key=key)
    options = options_of(f"{database}.lacking")
    for batch in range(2):
        rows = pa.table({"id": [batch], "a": ["x"]})
        write(options, rows, is_stream=is_stream, batch=batch)
    # It is running when the table gains one.
    planned = plan(options, pa.table({"A": ["y"], "Id": [2]}), is_stream=is_stream)
    session.alter_table("lacking", add_columns=pa.schema([("more", pa.int32())]))
    planned.write(iter(pa.table({"A": ["y"], "Id": [2]}).to_batches()))
    found = session.table("lacking").to_arrow().sort_by("id").to_pylist()
    assert [tuple(each.values()) for each in found] == [
        (0, "x", None, None),
        (1, "x", None, None),
        (2, "y", None, None),
    ]
    assert caplog.text.count("the frame lacks tags, which is NULL in its rows") == 1
    assert ("operation=update keeps" in caplog.text) is (key is not None)


def test_numbers_that_fit_are_taken_from_wider_columns(session, options_of, database):
    session.create_table("fits", pa.table(ROW).schema, buckets=1)
    wider = frame(n=cells(7, pa.int64()), d=cells(Decimal("1.5"), pa.decimal128(20, 4)))
    write(options_of(f"{database}.fits"), wider)
    assert (
        session.table("fits").to_arrow().to_pylist()
        == frame(n=cells(7, pa.int32()), d=cells(Decimal("1.50"), pa.decimal128(5, 2))).to_pylist()
    )


# --- what is written ------------------------------------------------------------------------------


@pytest.mark.parametrize("is_stream", [False, True])
def test_keys_are_upserted_updated_and_deleted(session, cluster, database, is_stream):
    schema = pa.schema([("id", pa.int64()), ("a", pa.string()), ("b", pa.string())])
    table = session.create_table("keyed", schema, primary_key=["id"], buckets=2)
    done = iter(range(9))

    def put(columns, **options):
        given = {"path": f"{database}.keyed", "bootstrap.servers": cluster.bootstrap, **options}
        write(given, pa.table(columns), is_stream=is_stream, batch=next(done))
        return sorted(tuple(each.values()) for each in table.to_arrow().to_pylist())

    three = {"id": [1, 2, 3], "a": ["a"] * 3, "b": ["b"] * 3}
    assert put(three) == [(1, "a", "b"), (2, "a", "b"), (3, "a", "b")]
    # Of the frame's columns those that are named; of the row's, the others stay.
    put({"id": [1], "a": ["A"], "b": ["-"]}, operation="update", targetColumns="id, a")
    assert put({"id": [2], "b": ["B"]}, operation="update") == [
        (1, "A", "b"),
        (2, "a", "B"),
        (3, "a", "b"),
    ]
    assert put({"id": [3], "why": ["old"]}, operation="delete") == [(1, "A", "b"), (2, "a", "B")]
    changes = {"_change_type": ["-D", "-U", "+U", "+I"], "id": [1, 2, 2, 4]}
    assert put({**changes, "a": list("wxyz"), "b": list("wxyz")}) == [(2, "y", "y"), (4, "z", "z")]


def test_a_table_is_created_at_the_address_of_a_url(tables, cluster, options_of, database):
    rows = frame()
    url = f"fluss://{cluster.bootstrap}/{tables.name}.by_url"
    write({"path": url, "createIfNotExists": "true", "primaryKey": "id"}, rows)
    write({"path": url, "createIfNotExists": "true", "operation": "upsert"}, rows)
    made = tables.session.table("by_url")
    assert made.primary_key == ("id",)
    assert made.count() == rows.num_rows
    tables.session.drop_table("by_url")


def test_a_table_that_is_made_has_times_as_fine_as_the_frame_s(session, options_of, database):
    fields = [StructField(f"t{each}", TimeType(each)) for each in range(7)]
    nested = StructType([StructField("id", LongType()), StructField("a", ArrayType(TimeType(3)))])
    source = FlussDataSource(options_of(f"{database}.made", createIfNotExists="true"))
    writer = source.writer(StructType([*fields, *nested]), overwrite=False)
    assert "made" not in session.tables()
    writer.write(iter([]))  # a frame without rows makes a table as well
    units = ["s", "ms", "ms", "ms", "us", "us", "us"]
    made = session.table("made").schema
    assert [made.field(f"t{place}").type.unit for place in range(7)] == units
    assert made.field("a").type.value_type == pa.time32("ms")


def test_a_table_is_made_with_properties(session, options_of, database, caplog):
    error_context._logged_until.clear()
    options = options_of(
        f"{database}.made", createIfNotExists="true", **{"table.log.ttl": "3d", "primaryKey": "ID"}
    )
    rows = pa.table({"id": [1], "v": ["a"]})
    write(options, rows)
    made = session.table("made")
    assert made.info.properties["table.log.ttl"] == "3d"
    assert made.primary_key == ("id",)
    write({**options, "table.log.ttl": "7d"}, rows)
    assert "has table.log.ttl=3d; it stays so, although the option is 7d" in caplog.text
    alone = options_of(f"{database}.made", **{"table.log.ttl": "3d"})
    with pytest.raises(InvalidValueError, match=r"table\.log\.ttl describes a table to create"):
        plan(alone, rows)
    for wrong in ({"table.log.til": "7d"}, {"table.log.ttl": "soon"}):
        with pytest.raises(FlussError, match=r"table\.log\.t"):
            plan({**options, "path": f"{database}.other", **wrong}, rows)
    with pytest.raises(DatabaseNotFoundError, match="no_such_database"):
        plan({**options, "path": "no_such_database.made"}, rows)


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_write_that_is_refused_has_made_no_table(session, options_of, database, is_stream):
    def refused(said, rows, **options):
        given = options_of(f"{database}.made", createIfNotExists="true", **options)
        with pytest.raises(FlussError, match=said):
            write(given, rows, is_stream=is_stream)
        assert "made" not in session.tables()

    rows = pa.table({"id": [1], "day": ["a/b"]})
    one = {"table.replication.factor": "1"}
    refused(
        "has 1 replica.*exactlyOnce is required|exactlyOnce is required",
        rows,
        exactlyOnce="required",
        **one,
    )
    refused("exactlyOnce is required", rows, exactlyOnce="required")
    refused("partition value.*'a/b'", rows, partitionBy="day")
    refused(
        "day is NULL", pa.table({"id": [1], "day": cells(None, pa.string())}), partitionBy="day"
    )
    refused("'id' cannot take None", pa.table({"id": cells(None, pa.int64())}), primaryKey="id")
    refused("'idd'", rows, primaryKey="idd")
    refused("a log, in which rows do not change", rows.add_column(0, "_change_type", [["insert"]]))


def test_a_partitioned_table_is_made_and_so_are_its_partitions(session, cluster, database):
    options = {
        "path": f"{database}.made",
        "bootstrap.servers": cluster.bootstrap,
        "createIfNotExists": "true",
        "primaryKey": "id, day",
        "partitionBy": "day",
        "bucketNum": "2",
    }
    for day in "ab":  # the second time it is there
        write(options, pa.table({"id": [1], "day": [day], "v": [1.5]}))
    made = session.table("made")
    assert (made.primary_key, made.partition_by, made.buckets) == (("id", "day"), ("day",), 2)
    assert sorted(made.to_arrow()["day"].to_pylist()) == ["a", "b"]


def test_a_write_that_is_over_does_not_fail_where_its_notes_are_forgotten(
    session, options_of, database, monkeypatch, caplog
):
    # It would be run again, and every row be there twice.
    def unreachable(*_):
        raise ConnectError("Cannot connect to anybody.")

    monkeypatch.setattr(spark_writer, "end_run", unreachable)
    table = session.create_table("log", pa.table(ROW).schema, buckets=1)
    planned = plan(options_of(f"{database}.log"), frame())
    planned.commit([spark_writer.Written(1, run="r", receipt=object())])
    assert "all rows are written" in caplog.text
    assert table.count() == 0
    caplog.clear()
    with caplog.at_level(logging.WARNING, "fluss.spark"):
        planned.abort([None])
    assert "others may have written some" in caplog.text


# --- a server that is gone ------------------------------------------------------------------------


def test_a_killed_server_is_an_error_with_a_remedy_and_a_restart_continues(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    first = pa.table({"id": list(range(100)), "v": ["x" * 1_000] * 100}, schema=schema)
    server = LocalCluster(tmp_path, durability="process").start()
    port = int(server.bootstrap_servers.rpartition(":")[2])
    with fluss.connect(f"fluss://{server.bootstrap_servers}/d") as session:
        session.create_database("d")
        session.create_table("log", schema, buckets=2).append(first)
        for name in ("copy", "keyed"):
            key = {"primary_key": ["id"]} if name == "keyed" else {}
            session.create_table(name, schema, buckets=2, **key)
        given = {
            "bootstrap.servers": server.bootstrap_servers,
            "operation-timeout": "1s",
            "request-timeout": "1s",
        }
        stream = MicroBatches(
            options={**given, "path": "d.log", "start": "earliest", "maxOffsetsPerTrigger": "40"}
        )
        before = stream.next_batch()
        writers = {name: plan({**given, "path": f"d.{name}"}, first) for name in ("copy", "keyed")}

        def dying():
            for each in first.to_batches(max_chunksize=50):
                server.kill()
                yield each

        gone = (ConnectError, RequestTimeoutError)
        said = r"(?s)d\.{}.*(NETWORK_EXCEPTION, code 1|REQUEST_TIME_OUT, code 25)\].*{}"
        with pytest.raises(gone, match=said.format("copy", "a second write adds all rows again")):
            writers["copy"].write(dying())
        with pytest.raises(gone, match=said.format("keyed", "are there already change nothing")):
            writers["keyed"].write(iter(first.to_batches()))
        with pytest.raises(gone, match=said.format("log", "same checkpoint: it continues")):
            stream.next_batch()
        with pytest.raises(gone, match=said.format("log", "run the query again")):
            FlussDataSource({**given, "path": "d.log"}).schema()
        server = LocalCluster(tmp_path, durability="process", port=port).start()
        try:
            stream.start()  # with nothing but its checkpoint
            assert sorted(each["id"] for each in rows([before, *stream.drained()])) == list(
                range(100)
            )
            writers["keyed"].write(iter(first.to_batches()))
            assert session.table("keyed").count() == 100
        finally:
            server.stop()


@pytest.mark.parametrize("is_stream", [False, True])
def test_what_would_overwrite_is_refused_with_the_way_out(options_of, is_stream):
    source = FlussDataSource(options_of("keyed"))
    make = source.streamWriter if is_stream else source.writer
    way = r"foreachBatch\(fluss_spark.upsert_batches" if is_stream else r"mode\('append'\)"
    with pytest.raises(UnsupportedOperationError, match=rf"(?s)keyed: .*code 20\].*{way}"):
        make(spark_schema(frame().schema), overwrite=True)


@pytest.mark.parametrize("is_worker", [True, False])
def test_a_worker_reports_an_error_of_ours_without_its_traceback(monkeypatch, is_worker):
    monkeypatch.delenv("SPARK_HIDE_TRACEBACK", raising=False)
    monkeypatch.setenv("SPARK_PYTHON_RUNTIME", "PYTHON_WORKER" if is_worker else "")
    for error in (KeyError("x"), ConnectError("It hung up.")):
        with pytest.raises(type(error)), ErrorContext("d.log"):
            raise error
        is_ours = isinstance(error, FlussError)
        assert ("SPARK_HIDE_TRACEBACK" in os.environ) is (is_worker and is_ours)


def test_an_error_is_completed_once():
    context = ErrorContext("d.log", START_AGAIN)
    error = ConnectError("It hung up.", hint="look there", bucket=3)
    for _ in range(2):
        context.complete(error)
    assert str(error) == (
        "In bucket 3 of d.log: It hung up. [NETWORK_EXCEPTION, code 1]\n"
        f"  hint: look there. {START_AGAIN}"
    )
    whole = FlussError("Bucket: bucket 3 of d.log.", bucket=3)
    context.complete(whole)
    assert str(whole) == "Bucket: bucket 3 of d.log. [CLIENT_ERROR, code -2]"
    with pytest.raises(KeyError, match="x"), context:
        raise KeyError("x")
