"""Batch reads without Spark: options, tasks, and the schema."""

from __future__ import annotations

import json
import logging
import pickle
import time
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from fluss.errors import (
    ConfigError,
    InvalidSchemaError,
    InvalidValueError,
    OffsetOutOfRangeError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from fluss_spark import FlussDataSource
from fluss_spark.batch_reader import FlussBatchReader
from fluss_spark.spark_types import arrow_schema, to_spark
from fluss_spark.task_splits import ROWS_WORTH_A_TASK, cut_splits, pack_splits

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("day", pa.string())])


class Read:
    """A read as Spark does it: planned, shipped as pickles, read task by task."""

    def __init__(self, options, schema=None):
        source = FlussDataSource(options)
        source.parallelism = 4
        self.declared = schema or source.schema()
        self.schema = arrow_schema(self.declared)
        reader = source.reader(self.declared)
        assert isinstance(reader, FlussBatchReader)
        self.partitions = reader.partitions()
        shipped = [pickle.loads(pickle.dumps(each)) for each in self.partitions]  # noqa: S301
        self.tasks = [
            pa.Table.from_batches(list(reader.read(each)), self.schema) for each in shipped
        ]

    @property
    def splits(self):
        return [split for each in self.partitions for split in each.splits]

    @property
    def rows(self):
        return pa.concat_tables(self.tasks)

    @property
    def ids(self):
        return sorted(self.rows["id"].to_pylist())


@pytest.fixture
def read(cluster, database):
    """`read("table", "id > 5", schema=None, **options)`: what Spark would get."""

    def one(name, where=None, *, schema=None, **options):
        given = {key: str(value) for key, value in options.items()}
        given |= {"path": f"{database}.{name}", "bootstrap.servers": cluster.bootstrap}
        if where is not None:
            given["filter"] = where
        return Read(given, schema)

    return one


def numbered(start, stop, day="a"):
    ids = list(range(start, stop))
    return pa.table({"id": ids, "v": [f"v{each}" for each in ids], "day": [day] * len(ids)})


@pytest.fixture
def log(session):
    table = session.create_table("log", SCHEMA, buckets=4, bucket_key=["id"])
    for start in range(0, 100, 10):
        table.append(numbered(start, start + 10))
    return table


@pytest.fixture
def days(session):
    table = session.create_table("days", SCHEMA, partition_by=["day"], buckets=2)
    for index, day in enumerate("abc"):
        table.create_partition({"day": day})
        table.append(numbered(index * 10, index * 10 + 10, day))
    return table


@pytest.fixture
def people(session):
    table = session.create_table("people", SCHEMA, primary_key=["id"], buckets=3)
    table.upsert(numbered(0, 50))
    return table


# --- what is pushed -------------------------------------------------------------------------------


def test_a_partition_is_not_read_that_a_filter_rules_out(read, days):
    found = read("days", "day = 'b'")
    assert {each.partition_name for each in found.splits} == {"b"}
    assert found.ids == list(range(10, 20))


def test_a_bucket_is_not_read_that_a_filter_rules_out(read, log):
    found = read("log", "id = 7")
    assert len(found.splits) == 1
    assert found.ids == [7]


def test_offsets_and_times_are_sought(read, log):
    found = read("log", "_log_offset < 3", with_metadata="_log_offset,_bucket")
    assert {(each.start, each.stop) for each in found.splits} == {(0, 3)}
    assert found.rows.num_rows == 12
    time.sleep(0.02)
    moment = datetime.now(UTC)
    time.sleep(0.02)
    log.append(numbered(100, 120))
    found = read("log", f"_commit_timestamp > '{moment.isoformat()}'", with_metadata="true")
    assert found.ids == list(range(100, 120))
    assert sum(each.rows_max for each in found.splits) == 20


def test_keys_are_looked_up(read, people):
    found = read("people", "id IN (3, 4, 99)")
    assert [each.keys for each in found.splits] == [((3,), (4,), (99,))]
    assert found.ids == [3, 4]


def test_a_filter_is_applied_to_the_row(read, log):
    assert read("log", "v LIKE 'v1%' AND NOT id = 1").ids == list(range(10, 20))
    assert read("log", "id BETWEEN 5 AND 7 OR v IN ('v90', 'v91')", columns="id").ids == [
        *(5, 6, 7, 90, 91)
    ]


def test_a_limit_is_of_what_a_filter_leaves(read, log):
    assert read("log", "id >= 95", limit=3).rows.num_rows == 3
    assert set(read("log", "id >= 95", limit=20).ids) == set(range(95, 100))


def test_a_filter_is_of_what_a_tail_leaves(read, log):
    last = read("log", tail=3).ids
    assert len(last) == 3
    assert read("log", "_log_offset < 3", tail=3).ids == []
    assert read("log", f"id >= {last[1]}", tail=3).ids == last[1:]
    assert read("log", f"id >= {last[1]}", tail=3, limit=1).rows.num_rows == 1


# --- what is read ---------------------------------------------------------------------------------


def test_a_limit_takes_the_same_rows_each_time(read, session):
    table = session.create_table(
        "many", pa.schema([("id", pa.int64())]), primary_key=["id"], buckets=6
    )
    table.upsert(pa.table({"id": range(20_000)}))
    few = read("many", limit=1_000)
    assert few.rows.num_rows == 1_000
    assert all(read("many", limit=1_000).rows == few.rows for _ in range(8))


def test_time_windows_have_their_begin_and_not_their_end(read, log):
    moments = []
    for start in (100, 110, 120):
        moments.append(time.time_ns() // 1_000_000 + 1)
        time.sleep(0.02)
        log.append(numbered(start, start + 10))
        time.sleep(0.02)
    window = {"startingTimestamp": moments[1], "endingTimestamp": moments[2]}
    assert read("log", **window).ids == list(range(110, 120))
    texts = [datetime.fromtimestamp(each / 1000, UTC).isoformat() for each in moments]
    assert read("log", start=texts[1]).ids == list(range(110, 130))
    assert read("log", end=texts[0]).ids == list(range(100))


def test_offsets_bound_a_read_as_json(read, log):
    ends = json.dumps({"0": 2, "1": 0, "2": 1, "3": 0})
    assert read("log", endingOffsets=ends).rows.num_rows == 3
    begins = json.dumps({"0": -1, "1": -1, "2": -1, "3": 1})
    assert read("log", startingOffsets=begins).rows.num_rows == log_of(read, 3) - 1
    both = read("log", startingOffsets='{"0": 1}', endingOffsets='{"0": 3, "1": 0, "2": 0, "3": 0}')
    assert both.rows.num_rows == 2
    assert read("log", asOf=ends).rows.num_rows == 3


def log_of(read, bucket):
    return read("log", f"_bucket = {bucket}", with_metadata="_bucket").rows.num_rows


def test_a_state_is_read_as_it_was(read, people):
    time.sleep(0.02)
    moment = datetime.now(UTC).isoformat()
    time.sleep(0.02)
    people.delete([(each,) for each in range(40)])
    assert read("people", asOf=moment).ids == list(range(50))
    assert read("people").ids == list(range(40, 50))


def test_columns_are_named_in_any_case(read, people):
    found = read("people", "ID = 7 AND `V` = 'v7'", columns="DAY,Id")
    assert found.rows.to_pylist() == [{"day": "a", "id": 7}]
    declared = StructType([StructField("ID", LongType()), StructField("Day", StringType())])
    found = read("people", "id < 2", schema=declared)
    assert found.rows.sort_by("ID").to_pylist() == [{"ID": 0, "Day": "a"}, {"ID": 1, "Day": "a"}]
    with pytest.raises(SchemaMismatchError, match=r"'ID'.* string in the given schema"):
        read("people", schema=StructType([StructField("ID", StringType())]))
    found = read("people$changelog", "id = 3", columns="_CHANGE_TYPE,ID")
    assert found.rows.to_pylist() == [{"_change_type": "insert", "id": 3}]


def test_columns_that_differ_in_case_alone_are_two(session, read):
    rows = pa.table({"id": [1], "ID": [2]})
    session.create_table("twins", rows, buckets=1).append(rows)
    assert read("twins", columns="ID").rows.to_pylist() == [{"ID": 2}]
    assert read("twins", "ID = 2", columns="id").rows.to_pylist() == [{"id": 1}]
    with pytest.raises(InvalidSchemaError, match="Id"):
        read("twins", "Id = 2")


def test_changes_have_their_columns_and_other_names_on_request(read, people):
    people.delete([(1,)])
    found = read("people$changelog", columns="id,_change_type")
    assert found.rows.schema.names == ["id", "_change_type"]
    assert found.rows.num_rows == 51
    named = read("people", mode="changelog", metadataPrefix="m_")
    assert named.rows.schema.names[:3] == ["m_change_type", "m_log_offset", "m_commit_timestamp"]
    assert read("people$binlog").rows.num_rows == 51


# --- how it is shared out -------------------------------------------------------------------------


def test_few_rows_are_one_task_unless_more_are_requested(read, log):
    assert len(read("log").tasks) == 1
    cut = read("log", minPartitions=9)
    assert len(cut.tasks) == 9
    assert cut.ids == list(range(100))
    assert len(read("log", minPartitions=3, maxPartitions=3).tasks) == 3
    assert len(read("log", minPartitions=7, limit=50).tasks) == 1  # it is cut as a whole


def test_many_buckets_are_about_as_many_tasks_as_run_concurrently(read, session):
    table = session.create_table("wide", SCHEMA, buckets=40)
    table.append(numbered(0, 5 * ROWS_WORTH_A_TASK))
    assert len(read("wide").tasks) == 4
    assert len(read("wide", maxPartitions=2).tasks) == 2


def test_packs_are_about_equal_and_the_same_each_time(read, log):
    splits = read("log").splits
    pieces = cut_splits(splits, 20)
    assert sum(each.rows_max for each in pieces) == 100
    packs = pack_splits(pieces, 4)
    assert packs == pack_splits(pieces, 4)
    assert max(sum(each.rows_max for each in pack) for pack in packs) <= 30


def test_one_task_may_read_several_pieces_of_a_bucket(read, log):
    found = read("log")
    (whole,) = found.partitions
    for order in ("none", "bucket"):
        task = replace(whole, splits=tuple(cut_splits(found.splits, 9)), order=order)
        ids = [each for batch in task.rows() for each in batch.column("id").to_pylist()]
        assert sorted(ids) == list(range(100))


# --- what is asked of the schema ------------------------------------------------------------------


def test_a_schema_that_is_given_must_be_the_tables(read, log):
    few = StructType([StructField("v", StringType()), StructField("id", LongType())])
    assert read("log", schema=few).rows.schema.names == ["v", "id"]
    trusted = StructType([StructField("id", LongType(), False)])
    with pytest.raises(SchemaMismatchError, match=r"'id' of .*log may be NULL"):
        read("log", schema=trusted)
    for options in ({"columns": "id"}, {"columns": "id,v,_bucket"}, {"with_metadata": "_bucket"}):
        with pytest.raises(InvalidValueError, match=r"columns and with_metadata disagree"):
            read("log", schema=few, **options)
    wrong = StructType([StructField("id", StringType())])
    with pytest.raises(
        SchemaMismatchError, match=r"'id' of .*log is int64.*bigint.*string in the given"
    ):
        read("log", schema=wrong)
    missing = StructType([StructField("idd", LongType())])
    with pytest.raises(SchemaMismatchError, match="did you mean 'id'"):
        read("log", schema=missing)


def test_nanoseconds_are_cut_with_a_warning_or_become_numbers(read, session, caplog):
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("at", pa.timestamp("ns")),
            ("zoned", pa.timestamp("ns", tz="UTC")),
            ("list", pa.list_(pa.timestamp("ns"))),
        ]
    )
    exact = 1_767_225_600_000_000_001
    rows = pa.table({"id": [1], "at": [exact], "zoned": [exact], "list": [[exact]]}, schema=schema)
    session.create_table("fine", schema, buckets=1).append(rows)
    with caplog.at_level(logging.WARNING, "fluss.spark"):
        cut = read("fine")
    assert "at, zoned, list have nanoseconds" in caplog.text
    assert cut.rows["at"].cast(pa.int64()).to_pylist() == [exact // 1_000]
    caplog.clear()
    long = read("fine", nanoseconds="long")
    assert long.rows.to_pylist() == [{"id": 1, "at": exact, "zoned": exact, "list": [exact]}]
    assert not caplog.text


def test_nanoseconds_before_1970_are_cut_towards_the_past(read, session):
    nanos, nested = pa.timestamp("ns"), pa.struct([("at", pa.timestamp("ns")), ("n", pa.int32())])
    values = [-1, -1_000, -1_001, 1_999, None, -(2**63), 2**63 - 1]
    expected = [-1, -1, -2, 1, None, -(2**63) // 1_000, (2**63 - 1) // 1_000]
    rows = pa.table(
        {
            "id": range(len(values)),
            "at": pa.array(values, nanos),
            "zoned": pa.array(values, pa.timestamp("ns", tz="UTC")),
            "list": pa.array([[each] for each in values], pa.list_(nanos)),
            "map": pa.array([[("a", each)] for each in values], pa.map_(pa.string(), nanos)),
            "row": pa.array([{"at": each, "n": 1} for each in values], nested),
        }
    )
    session.create_table("old", rows, buckets=1).append(rows)
    cut = read("old").rows
    as_longs = {"list": pa.list_(pa.int64()), "map": pa.map_(pa.string(), pa.int64())}
    for name, each in (("at", expected), ("zoned", expected), ("list", [[n] for n in expected])):
        assert cut[name].cast(as_longs.get(name, pa.int64())).to_pylist() == each
    assert cut["map"].cast(as_longs["map"]).to_pylist() == [[("a", each)] for each in expected]
    inner = pc.struct_field(cut["row"], "at").cast(pa.int64())
    assert inner.to_pylist() == expected
    part = to_spark(rows.to_batches()[0].slice(2, 3), cut.schema)  # none of it lies at its begin
    assert part.to_pylist() == cut.slice(2, 3).to_pylist()
    gaps = pa.array([[1, None], None, [-1]], pa.list_(nanos)).slice(1)
    floored = to_spark(pa.record_batch({"list": gaps}), pa.schema([("list", as_longs["list"])]))
    assert floored["list"].to_pylist() == [None, [-1]]  # nothing is cut of what stays a number


def test_a_value_that_spark_cannot_hold_is_reported_with_its_column():
    batch = pa.record_batch({"at": pa.array([2**60], pa.timestamp("s"))})
    with pytest.raises(
        InvalidValueError,
        match=r"'at' is timestamp\[us\] in Spark, and has a value that this type cannot",
    ):
        to_spark(batch, pa.schema([("at", pa.timestamp("us"))]))


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"colums": "id"}, ConfigError, "did you mean 'columns'"),
        ({"startingOffset": "earliest"}, ConfigError, "did you mean 'startingOffsets'"),
        ({"bootstrap.server": "x"}, ConfigError, "did you mean 'bootstrap.servers'"),
        ({"url": "x"}, ConfigError, "its name here is 'bootstrap.servers'"),
        ({"subscribe": "t"}, ConfigError, r"load\('db.table'\)"),
        ({"filter": "id > "}, InvalidValueError, "a constant is missing at character 4"),
        ({"filter": "idd > 5"}, InvalidSchemaError, "did you mean 'id'"),
        ({"filter": "id > 'x'"}, InvalidValueError, "type int64 with 'x'"),
        ({"writer.buffer.page-size": "4"}, ConfigError, "Java client"),
        ({"nanoseconds": "lon"}, InvalidValueError, "did you mean 'long'"),
        ({"minPartitions": "²"}, InvalidValueError, "positive whole number"),
        ({"maxPartitions": "-1"}, InvalidValueError, "positive whole number"),
        ({"minPartitions": "5", "maxPartitions": "2"}, InvalidValueError, "is 2, which is fewer"),
        # Of a view, whose options are there for every use, what no use could take.
        ({"maxOffsetsPerTrigger": "0"}, InvalidValueError, "maxOffsetsPerTrigger is '0', not a"),
        ({"failOnDataLoss": "maybe"}, InvalidValueError, "none of true, false"),
        ({"startingOffsets": "-2"}, InvalidValueError, "'-2', which is no position in a log"),
        ({"startingTimestamp": "-1"}, InvalidValueError, "'-1', which is no position in a log"),
        ({"startingOffsets": '{"9": 4}'}, InvalidValueError, "log: .* bucket 9, which is not part"),
        ({"startingOffsets": '{"x/0": 4}'}, InvalidValueError, "bucket 0 of partition 'x', which"),
        ({"startingOffsets": '{"0": -3}'}, InvalidValueError, "log: .*does not say where"),
        (
            {"startingOffsets": '{"0": 5}', "endingOffsets": '{"0": 2}'},
            InvalidValueError,
            "log: .*begins at offset 5 and ends before that",
        ),
        ({"start": "5", "startingOffsets": "6"}, InvalidValueError, "both set start"),
        ({"mode": "changelog", "start": "full"}, InvalidValueError, "for streams"),
        ({"end": "full"}, InvalidValueError, "end is 'full', which is only a start of streams"),
        ({"scan.startup.mode": "timestamp"}, ConfigError, r"\n.*scan\.startup\.timestamp"),
        ({"max_parallel": "x"}, InvalidValueError, "max_parallel='x' is not a number from 1 to"),
        ({"asOf": '{"9": 1}'}, InvalidValueError, "bucket 9, which is not part"),
        (
            {"startingOffsets": '{"0": 1000}'},
            OffsetOutOfRangeError,
            r"log: .*bucket 0 is beyond the end.*\[LOG_OFFSET_OUT_OF_RANGE_EXCEPTION, code 19\]",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(read, log, options, error, said):
    with pytest.raises(error, match=said) as refused:
        read("log", **options)
    assert f", code {refused.value.error_code}]" in str(refused.value)


def test_a_read_of_no_table_names_the_forms_that_name_one():
    for options in ({}, {"path": ""}):
        with pytest.raises(ConfigError, match=r"TEMPORARY VIEW"):
            FlussDataSource(options).schema()
    with pytest.raises(InvalidValueError, match="two tables"):
        FlussDataSource({"path": "a.b", "table": "a.c"}).schema()


def test_a_server_inside_of_the_driver_is_named_by_its_address():
    with pytest.raises(
        UnsupportedOperationError, match=r"other processes.*\n.*fluss server.*bootstrap"
    ):
        FlussDataSource({"path": "embedded:./data/d.t"}).schema()
