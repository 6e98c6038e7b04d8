"""Tables as DataFrames: reads, filters, writes, and refused arguments."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

import fluss_spark
from fluss.errors import (
    ConnectError,
    InvalidNameError,
    InvalidValueError,
    UnsupportedOperationError,
)

ROWS = 1_000


@pytest.fixture
def events(session):
    """A log of four buckets."""
    frame = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "name": [f"n{each % 7}" for each in range(ROWS)],
            "x": [each / 8 for each in range(ROWS)],
        }
    )
    session.create_table("events", frame, buckets=4, bucket_key=["id"]).append(frame)
    return frame


@pytest.fixture
def people(session):
    """A primary-key table."""
    frame = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None]})
    table = session.create_table("people", frame, primary_key=["id"], buckets=2)
    table.upsert(frame)
    return table


def test_a_log_is_read_whole(read, events):
    found = read("events")
    assert found.count() == ROWS
    assert found.toArrow().sort_by("id").to_pydict() == events.to_pydict()


def test_only_the_requested_columns_are_read(read, events):
    assert read("events", columns="id, x").columns == ["id", "x"]
    named = read("events", columns="x,_log_offset,_bucket")
    assert named.columns == ["x", "_log_offset", "_bucket"]
    assert named.selectExpr("count(distinct _bucket)").first()[0] == 4


def test_a_time_without_a_zone_is_in_the_zone_of_the_session(
    spark, session, cluster, database, read
):
    # Of the two hours that a clock repeats in autumn, and of the one that it skips in spring, too.
    hours = [
        datetime(2026, month, day, tzinfo=UTC) + timedelta(hours=each)
        for month, day in ((3, 28), (10, 24))
        for each in range(48)
    ]
    rows = pa.table({"id": range(96), "at": pa.array(hours, pa.timestamp("us", tz="UTC"))})
    session.create_table("hours", rows, buckets=1).append(rows)
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        for zone in ("Europe/Berlin", "America/New_York", "+05:30", "UTC"):
            spark.conf.set("spark.sql.session.timeZone", zone)
            in_memory = read("hours").cache()
            for text in ("2026-03-29 02:30:00", "2026-10-25 02:30:00", "2026-10-25"):
                condition = f"AT < TIMESTAMP '{text}'"
                expected = in_memory.where(condition).count()
                assert 0 < expected < 96
                assert read("hours", filter=condition).count() == expected
                servers = {"bootstrap.servers": cluster.bootstrap}
                found = fluss_spark.table(spark, f"{database}.hours", where=condition, **servers)
                assert found.count() == expected
            in_memory.unpersist()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_a_schema_that_is_given_projects(spark, cluster, database, events):
    reader = spark.read.format("fluss").option("bootstrap.servers", cluster.bootstrap)
    found = reader.schema("id bigint, x double").load(f"{database}.events")
    assert found.selectExpr("sum(id)", "sum(x)").first() == (499_500, 62_437.5)


@pytest.mark.parametrize(
    "condition",
    [
        "id in (1, 2, 3)",
        "id > 990 and name = 'n3'",
        "name like 'n%' and id between 5 and 9",
        "x >= 124.5",
    ],
)
def test_a_filter_gives_what_spark_would(spark, read, events, condition):
    found = sorted(row.id for row in read("events", filter=condition).collect())
    in_memory = spark.createDataFrame(events)
    assert found == sorted(row.id for row in in_memory.where(condition).collect())


@pytest.mark.one_server
def test_a_filter_of_floating_numbers_gives_what_spark_would(spark, session, read):
    singles = [0.1, 0.5, -0.5, 3.4e38, float("nan"), float("inf"), -float("inf"), 0.0, -0.0, None]
    numbers = pa.table(
        {
            "id": range(len(singles)),
            "f": pa.array(singles, pa.float32()),
            "x": pa.array(singles, pa.float64()),
        }
    )
    session.create_table("numbers", numbers, buckets=1).append(numbers)
    conditions = [
        f"{negated}{column} {test.format(constant)}"
        for column in ("f", "x")
        for test in ("= {}", "<> {}", "< {}", "<= {}", "> {}", ">= {}", "IN ({}, 0.5)")
        for constant in ("0.1", "0.5", "0", "-1e30", "1e30")
        for negated in ("", "NOT ")
    ]
    expected = chosen_by_spark(spark.createDataFrame(numbers), conditions)
    for condition in conditions:
        found = sorted(row.id for row in read("numbers", filter=condition).collect())
        assert found == expected[condition], condition


def chosen_by_spark(frame, conditions):
    """The ids that Spark itself chooses from a frame in memory, by condition, in one query."""
    chosen = frame.selectExpr("id", *(f"({each}) AS c{n}" for n, each in enumerate(conditions)))
    rows = chosen.collect()
    return {
        each: sorted(row.id for row in rows if row[f"c{n}"]) for n, each in enumerate(conditions)
    }


@pytest.mark.one_server
def test_a_filter_of_nanoseconds_gives_what_spark_would(session, read):
    noon = 1_769_860_800_123_456_000  # 2026-01-31T12:00:00.123456
    ends = [2**63 - 1, 1 - 2**63]
    values = [noon, noon + 789, noon - 1, noon + 999, noon + 1_000, -1, 0, None, *ends]
    times = pa.table(
        {
            "id": range(len(values)),
            "at": pa.array(values, pa.timestamp("ns")),
            "zoned": pa.array(values, pa.timestamp("ns", "UTC")),
        }
    )
    session.create_table("times", times, buckets=1).append(times)
    conditions = []
    for column, zone in (("at", ""), ("zoned", "Z")):
        constants = (
            "2026-01-31T12:00:00.123456",
            "2262-04-11T23:47:16.854775",
            "9999-12-31T23:59:59.999999",
            "1600-02-29T00:00:00",
        )
        for test in ("{} = {}", "{} <> {}", "{} <= {}", "{} > {}", "NOT {} >= {}", "{} IN ({})"):
            conditions += [test.format(column, f"'{said}{zone}'") for said in constants]
    expected = chosen_by_spark(read("times"), conditions)
    for condition in conditions:
        found = sorted(row.id for row in read("times", filter=condition).collect())
        assert found == expected[condition], condition


def test_a_name_that_sql_cannot_say_is_a_view_all_the_same(spark, cluster, database, session):
    for name in ("a-b", "good"):
        session.create_table(name, pa.table({"id": [1]}), buckets=1).append(pa.table({"id": [1]}))
    servers = {"bootstrap.servers": cluster.bootstrap}
    assert fluss_spark.register_views(spark, database, **servers) == ["a-b", "good"]
    assert spark.sql("SELECT * FROM `a-b` JOIN good USING (id)").count() == 1


def test_tables_that_would_be_one_view_are_refused(spark, cluster, database, session):
    for number, name in enumerate(("Orders", "orders")):
        rows = pa.table({"id": [number]})
        session.create_table(name, rows, buckets=1).append(rows)
    servers = {"bootstrap.servers": cluster.bootstrap}
    with pytest.raises(InvalidNameError, match=r"'Orders' and 'orders'.*\n.*under another name"):
        fluss_spark.register_views(spark, database, **servers)
    assert not spark.catalog.tableExists("orders")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        fluss_spark.register_views(spark, database, **servers)
        found = [spark.table(each).first()[0] for each in ("Orders", "orders")]
        assert found == [0, 1]
    finally:
        spark.catalog.dropTempView("Orders")
        spark.catalog.dropTempView("orders")
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_frame_explains_what_it_reads_of_fluss(spark, cluster, database, events):
    servers = {"bootstrap.servers": cluster.bootstrap}
    some = fluss_spark.table(
        spark, f"{database}.events", columns=["id"], where="_log_offset < 3", **servers
    )
    every = fluss_spark.table(spark, f"{database}.events", **servers)
    said = fluss_spark.explain(some.join(every, "id").groupBy("name").count())
    first, second = said.split("Scan of")[1:]
    assert first.startswith(f" {database}.events (")
    for line in ("columns: id\n", "filter: _log_offset < 3", "rows: at most 12", "tasks: 1"):
        assert f"  {line}" in first
    assert "columns: id, name, x" in second
    with pytest.raises(InvalidValueError, match="reads no table of Fluss"):
        fluss_spark.explain(spark.range(3))
    stream = spark.readStream.format("fluss").options(**servers).load(f"{database}.events")
    with pytest.raises(UnsupportedOperationError, match=r"(?s)A stream.*lastProgress"):
        fluss_spark.explain(stream)


@pytest.mark.one_server
def test_spark_collects_what_is_planned_and_read(spark, cluster, database, events, read):
    spark.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    try:
        assert read("events", filter="_log_offset < 3", columns="id").count() == 12
        found = spark.sql("SELECT msg FROM python_worker_logs() WHERE logger = 'fluss.spark'")
        said = "\n".join(row.msg for row in found.collect())
    finally:
        spark.conf.unset("spark.sql.pyspark.worker.logging.enabled")
    assert f"{database}.events: 4 buckets in 1 tasks, at most 12 rows" in said
    assert "columns id; filter _log_offset < 3" in said
    assert f"{database}.events: 12 rows of 4 buckets" in said


def test_views_are_of_the_cluster_that_spark_would_read(spark, session, database, monkeypatch):
    # What is open in this process is open in none of Spark's.
    session.create_table("one", pa.table({"id": [1]}), buckets=1)
    monkeypatch.setenv("FLUSS_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    with pytest.raises(ConnectError, match=r"127\.0\.0\.1:1"):
        fluss_spark.register_views(spark, database, **{"operation-timeout": "1s"})


def test_the_state_of_a_table_and_its_changes(read, people):
    people.delete([(1,)])
    people.upsert(pa.table({"id": [2], "name": ["c"]}))
    assert sorted(map(tuple, read("people").collect())) == [(2, "c"), (3, None)]
    changes = [(row["_change_type"], row["id"]) for row in read("people$changelog").collect()]
    assert sorted(changes) == [
        ("delete", 1),
        ("insert", 1),
        ("insert", 2),
        ("insert", 3),
        ("update_after", 2),
        ("update_before", 2),
    ]


def test_every_type_survives_both_ways(spark, session, read, save, cluster, database):
    frame = pa.table(
        {
            "b": pa.array([True, None]),
            "i8": pa.array([-128, None], pa.int8()),
            "i16": pa.array([-(2**15), None], pa.int16()),
            "i32": pa.array([-(2**31), None], pa.int32()),
            "i64": pa.array([2**60 + 1, None], pa.int64()),
            "f32": pa.array([1.5, None], pa.float32()),
            "f64": pa.array([float("nan"), -0.0], pa.float64()),
            "s": pa.array(["é", None]),
            "bin": pa.array([b"\x00\xff", None], pa.binary()),
            "dec": pa.array([Decimal("123456789012345678.123456789"), None], pa.decimal128(38, 9)),
            "d": pa.array([date(1600, 1, 1), None]),
            "ts": pa.array([1_767_229_323_456_789, None], pa.timestamp("us")),
            "ltz": pa.array([-1, None], pa.timestamp("us", tz="UTC")),
            "s0": pa.array([-1, None], pa.timestamp("s")),
            "ms": pa.array([-1, None], pa.timestamp("ms", tz="UTC")),
            "ns": pa.array([1_000, None], pa.timestamp("ns")),
            "t": pa.array([time(23, 59, 59, 999_999), None], pa.time64("us")),
            "t0": pa.array([time(1, 2, 3), None], pa.time32("s")),
            "three": pa.array([b"\x00\x01\x02", None], pa.binary(3)),
            "arr": pa.array([[1, None, 3], None], pa.list_(pa.int32())),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "st": pa.array(
                [{"a": 1, "b": [{"k": Decimal("1.5")}, None]}, None],
                pa.struct(
                    [
                        ("a", pa.int32()),
                        ("b", pa.list_(pa.map_(pa.string(), pa.decimal128(9, 2)))),
                    ]
                ),
            ),
        }
    )
    session.create_table("types", frame, buckets=1).append(frame)
    found = read("types")
    assert _values(found.toArrow()) == _values(frame)
    # Into a table of the very types, and into one that is made of the frame's.
    session.create_table("same", frame, buckets=1)
    for into, options in (("same", {}), ("made", {"createIfNotExists": "true"})):
        save(found, into, **options)
        assert _values(session.table(into).to_arrow()) == _values(frame)


def _values(table):
    """Rows as texts; a time is the same in any unit."""
    kept = [
        table.column(each.name).cast(pa.timestamp("us", each.type.tz))
        if pa.types.is_timestamp(each.type)
        else table.column(each.name)
        for each in table.schema
    ]
    return repr(pa.table(kept, table.schema.names).to_pylist())


def test_frames_are_appended_upserted_updated_and_deleted(spark, session, save, people, events):
    save(spark.range(5000, 5010).selectExpr("id", "'new' name", "cast(id as double) x"), "events")
    assert session.table("events").count() == ROWS + 10
    save(spark.createDataFrame([(3, "z"), (4, "q")], "id bigint, name string"), "people")
    assert people.count() == 4
    save(spark.createDataFrame([(4,)], "id bigint"), "people", operation="delete")
    save(spark.createDataFrame([(1, "u")], "id bigint, name string"), "people", operation="update")
    assert sorted(map(tuple, (each.values() for each in people.to_arrow().to_pylist()))) == [
        (1, "u"),
        (2, "b"),
        (3, "z"),
    ]


def test_a_changelog_is_applied(spark, session, save, people):
    rows = [("delete", 1, "a"), ("update_after", 2, "bb"), ("insert", 9, "n")]
    save(spark.createDataFrame(rows, "_change_type string, id bigint, name string"), "people")
    assert {each["id"]: each["name"] for each in people.to_arrow().to_pylist()} == {
        2: "bb",
        3: None,
        9: "n",
    }


def test_missing_tables_are_created_on_request(spark, session, save):
    frame = spark.range(3).selectExpr("id", "'2026' day")
    save(frame, "made", createIfNotExists="true", primaryKey="id", bucketNum="2")
    table = session.table("made")
    assert (table.primary_key, table.buckets, table.count()) == (("id",), 2, 3)


@pytest.mark.parametrize(
    ("frame", "options", "said"),
    [
        ("select 1 as idd", {}, "idd"),
        ("select 'x' as id, 'a' as name, 1.0D as x", {}, "id"),
        (
            "select 1L as id, 'a' as name, 1.0D as x",
            {"operation": "upsert"},
            "does not support upsert",
        ),
        ("select 1L as id, 'a' as name, 1.0D as x", {"operation": "put"}, "operation is 'put'"),
        ("select 1L as id, 'a' as name, 1.0D as x", {"primaryKey": "id"}, "createIfNotExists"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_row_is_sent(
    spark, session, save, events, frame, options, said
):
    with pytest.raises(Exception, match=said):
        save(spark.sql(frame), "events", **options)
    assert session.table("events").count() == ROWS


def test_an_overwrite_is_refused(spark, cluster, database, events):
    writer = spark.range(1).write.format("fluss").option("bootstrap.servers", cluster.bootstrap)
    with pytest.raises(Exception, match="cannot be overwritten"):
        writer.mode("overwrite").save(f"{database}.events")


def test_views_select_and_insert(spark, cluster, database, session, people):
    spark.sql(
        f"CREATE TEMPORARY VIEW v USING fluss OPTIONS (path '{database}.people', "
        f"`bootstrap.servers` '{cluster.bootstrap}')"
    )
    try:
        assert spark.sql("select count(*) from v").first()[0] == 3
        spark.sql("insert into v select 7L, 'seven'")
        assert people.count() == 4
    finally:
        spark.catalog.dropTempView("v")


def test_every_table_becomes_a_view(spark, cluster, database, events, people):
    import fluss_spark

    names = fluss_spark.register_views(spark, database, **{"bootstrap.servers": cluster.bootstrap})
    assert names == ["events", "people"]
    try:
        joined = spark.sql("select count(*) from events e join people p on e.id = p.id")
        assert joined.first()[0] == 3
    finally:
        for each in names:
            spark.catalog.dropTempView(each)
