"""A reused worker leaves its modules out of garbage collections, and no other process does."""

import gc

import pyarrow as pa
import pytest

from fluss_spark import worker_memory
from fluss_spark.spark_tasks import SparkTasks
from fluss_spark.worker_memory import freeze_modules, is_reused_worker


@pytest.fixture
def frozen(monkeypatch):
    """The calls of `gc.freeze`, which freezes nothing in this process."""
    calls: list[int] = []
    monkeypatch.setattr(worker_memory, "_frozen_for", set())
    monkeypatch.setattr(gc, "freeze", lambda: calls.append(1))
    return calls


@pytest.fixture
def as_worker(monkeypatch):
    monkeypatch.setattr(worker_memory, "is_reused_worker", lambda: True)


def test_the_users_process_is_left_alone(frozen):
    assert not is_reused_worker()
    freeze_modules("read")
    assert not frozen


@pytest.mark.usefixtures("as_worker")
def test_a_worker_freezes_once_for_each_purpose(frozen):
    for purpose in ("plan", "read", "read", "plan"):
        freeze_modules(purpose)
    assert len(frozen) == 2


def test_executors_run_in_reused_workers(spark):
    def answer(_: bytes) -> bytes:
        return str(is_reused_worker()).encode()

    (outcome,) = SparkTasks(spark).run(answer, [b""], description="worker")
    assert outcome.result == b"True"


def test_tasks_of_tiering_freeze_and_the_results_stay(spark):
    def frozen_before(_: bytes) -> bytes:
        return str(gc.get_freeze_count()).encode()

    tasks = SparkTasks(spark)
    for _ in range(3):  # Spark may start one worker more
        outcomes = tasks.run(frozen_before, [b""] * 4, description="frozen")
    assert len(outcomes) == 4
    assert all(int(each.result) > 0 for each in outcomes)


@pytest.mark.one_server
@pytest.mark.usefixtures("as_worker")
def test_planning_and_reading_freeze_and_give_the_same_rows(spark, session, read, frozen):
    from fluss_spark.data_source import FlussDataSource

    table = session.create_table("kept", pa.schema([("id", pa.int64())]))
    table.append({"id": [1, 2, 3]})
    source = FlussDataSource(
        {
            "path": str(table.name),
            "bootstrap.servers": table.to_source().config.bootstrap_servers,
        }
    )
    reader = source.reader(source.schema())
    found = [each for part in reader.partitions() for each in reader.read(part)]
    assert sorted(pa.Table.from_batches(found)["id"].to_pylist()) == [1, 2, 3]
    assert len(frozen) == 3  # schema, plan, read
    for _ in range(2):  # with workers that have frozen, too
        assert sorted(row.id for row in read("kept").collect()) == [1, 2, 3]
