"""Tables copied into their lakes by Spark's executors, on the embedded server with a lake."""

from __future__ import annotations

import uuid
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import fluss_spark
from fluss.errors import ConfigError, FlussError
from fluss_lake.catalogs import open_table
from fluss_spark.spark_tasks import Outcome, SparkTasks

pytestmark = pytest.mark.slow  # each round is a job of Spark

LAKE = {"table.datalake.enabled": "true"}


@pytest.fixture
def make(lake_session):
    def made(**how):
        columns = {"day": "STRING", "id": "BIGINT", "n": "BIGINT"}
        name = f"t_{uuid.uuid4().hex[:8]}"
        how = {"properties": LAKE, "buckets": 4, **how}
        return lake_session.create_table(name, columns, **how)

    return made


def rows_of(ids, n=0, day="2026-01-01"):
    ids = list(ids)
    return pa.table({"day": [day] * len(ids), "id": ids, "n": [n] * len(ids)})


def pairs(table, lake):
    found = table.scan(columns=["id", "n"], lake=lake).to_arrow()
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


def files_of(table):
    location = open_table(table.info, {}).location()
    return sorted(Path(urlsplit(location).path).glob("data/**/*.parquet"))


def test_a_log_is_copied_by_one_task_for_each_bucket(spark, lake_session, make, monkeypatch):
    table, jobs = make(bucket_key=["id"]), []
    run = SparkTasks.run

    def noted(self, work, inputs, *, description):
        jobs.append((len(inputs), description))
        return run(self, work, inputs, description=description)

    monkeypatch.setattr(SparkTasks, "run", noted)
    reports = []
    for start in (0, 1000):
        table.append(rows_of(range(start, start + 1000)))
        done = fluss_spark.tier(
            spark, table.name, cluster=lake_session, now=True, on_round=reports.append
        )
        assert (done.rounds, done.changes, done.errors) == (1, 1000, {})
    assert jobs == [(4, f"fluss tier {table.name}: 4 buckets")] * 2
    assert sum(each.committed.rows for each in reports) == 2000
    assert pairs(table, "only") == pairs(table, "union") == [(each, 0) for each in range(2000)]
    table.append(rows_of(range(2000, 2010)))
    assert pairs(table, "union") == [(each, 0) for each in range(2010)]


@pytest.mark.parametrize("mode", ["equality-deletes", "copy-on-write"])
@pytest.mark.parametrize("is_partitioned", [False, True], ids=["whole", "partitioned"])
def test_states_are_those_of_the_table(spark, lake_session, make, mode, is_partitioned):
    how = {"partition_by": ["day"], "primary_key": ["day", "id"], "bucket_key": ["id"]}
    table = make(**(how if is_partitioned else {"primary_key": "id"}))
    days = ["2026-01-01", "2026-01-02"] if is_partitioned else ["2026-01-01"]
    if is_partitioned:
        for day in days:
            table.create_partition({"day": day})
    for step in range(3):
        for place, day in enumerate(days):
            first = 1000 * place
            table.upsert(rows_of(range(first, first + 300), n=step, day=day))
            table.delete(rows_of(range(first + 100 * step, first + 100 * step + 20), day=day))
        done = fluss_spark.tier(spark, table.name, cluster=lake_session, now=True, write_mode=mode)
        assert done.errors == {}
        assert pairs(table, "only") == pairs(table, "union") == pairs(table, "off")
    if mode == "copy-on-write":  # pyiceberg refuses a table with deletes by key
        assert open_table(table.info, {}).scan().to_arrow().num_rows == len(pairs(table, "off"))


def test_an_option_that_spark_sets_itself_is_refused(spark):
    with pytest.raises(ConfigError, match="no option 'carry'"):
        fluss_spark.tier(spark, carry=None)
    with pytest.raises(ConfigError, match="no option 'thread'") as refused:
        fluss_spark.tier(spark, "db.t", thread=3)
    assert "'threads'" in refused.value.hint


def test_the_coordinator_hands_out_tables_to_a_job_that_ends(spark, lake_session, make):
    tables = [make(properties={**LAKE, "table.datalake.freshness": "1s"}) for _ in range(3)]
    for table in tables:
        table.append(rows_of(range(50)))
    names, rounds = [each.name for each in tables], 0
    while rounds < len(tables):  # a table is handed out once its freshness has passed
        done = fluss_spark.tier(spark, names, cluster=lake_session, once=True)
        assert done.errors == {}
        rounds += done.rounds
    assert all(len(pairs(each, "only")) == 50 for each in tables)


def test_an_error_of_one_task_keeps_its_type_and_leaves_no_file(
    spark, lake_session, make, monkeypatch
):
    table = make(bucket_key=["id"])
    table.append(rows_of(range(400)))
    run = SparkTasks.run

    def without_one(self, work, inputs, *, description):
        outcomes = run(self, work, inputs, description=description)
        error = FlussError("The disk is full.", hint="make room")
        return [Outcome(error=error), *outcomes[1:]]

    with monkeypatch.context() as patched:
        patched.setattr(SparkTasks, "run", without_one)
        done = fluss_spark.tier(spark, table.name, cluster=lake_session, now=True)
    [error] = done.errors.values()
    assert error.sentence == "The disk is full."
    assert len(files_of(table)) == 1  # that of the task whose result is replaced here
    assert lake_session.table(table.name).scan(lake="off").count() == 400
    done = fluss_spark.tier(spark, table.name, cluster=lake_session, now=True)
    assert done.errors == {}
    assert pairs(table, "only") == [(each, 0) for each in range(400)]
