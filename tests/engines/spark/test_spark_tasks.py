"""Functions in Spark's executors: one task for each input, and errors with their types."""

import json
import os
import threading
import time

import pytest

from fluss.errors import FlussError, TableNotFoundError
from fluss_spark import spark_tasks
from fluss_spark.spark_tasks import SparkTasks
from tests.support.servers.local_spark import folder


def test_results_come_in_the_order_of_the_inputs(spark):
    def twice(data: bytes) -> bytes:
        return data + data

    inputs = [bytes([each]) * 3 for each in range(7)]
    outcomes = SparkTasks(spark).run(twice, inputs, description="twice")
    assert [each.result for each in outcomes] == [each * 2 for each in inputs]
    assert all(each.error is None for each in outcomes)


def test_no_input_runs_no_job(spark):
    assert SparkTasks(spark).run(bytes, [], description="nothing") == []


def test_an_error_keeps_its_type_and_the_other_results_stay(spark):
    def refuse_b(data: bytes) -> bytes:
        if data == b"b":
            raise TableNotFoundError("There is no table 'b'.", hint="create it", table="b")
        return data

    a, b, c = SparkTasks(spark).run(refuse_b, [b"a", b"b", b"c"], description="refuse")
    assert (a.result, c.result) == (b"a", b"c")
    assert type(b.error) is TableNotFoundError
    assert b.error.hint == "create it"
    assert b.error.facts["table"] == "b"


def test_an_error_that_cannot_be_pickled_keeps_its_text(spark):
    def fail(data: bytes) -> bytes:
        class LocalError(Exception):
            def __init__(self) -> None:
                super().__init__("a lock cannot travel")
                self.lock = threading.Lock()

        raise LocalError

    [only] = SparkTasks(spark).run(fail, [b""], description="fail")
    assert type(only.error) is FlussError
    assert "LocalError: a lock cannot travel" in str(only.error)


def test_tasks_run_in_other_processes_and_more_inputs_than_one_job_takes(spark, monkeypatch):
    monkeypatch.setattr(spark_tasks, "TASKS_MAX", 2)

    def where(data: bytes) -> bytes:
        return str(os.getpid()).encode()

    outcomes = SparkTasks(spark).run(where, [b""] * 5, description="where")
    assert len(outcomes) == 5
    assert str(os.getpid()).encode() not in {each.result for each in outcomes}


def test_the_user_interface_shows_the_description_and_keeps_that_of_others(spark):
    context = spark.sparkContext
    context.setJobDescription("of the caller")
    try:
        SparkTasks(spark).run(bytes, [b"x"], description="tier shop.orders")
        assert context.getLocalProperty("spark.job.description") == "of the caller"
    finally:
        context.setJobDescription(None)
    started = [
        event["Properties"].get("spark.job.description")
        for path in (folder() / "events").rglob("*")
        if path.is_file()
        for line in path.read_text().splitlines()
        if (event := json.loads(line))["Event"] == "SparkListenerJobStart"
    ]
    assert "tier shop.orders" in started


@pytest.mark.slow  # a job has to be running before it can be cancelled
def test_a_job_can_be_cancelled_from_another_thread(spark):
    def wait(data: bytes) -> bytes:
        time.sleep(60)
        return data

    tasks, tracker = SparkTasks(spark), spark.sparkContext.statusTracker()

    def cancel_when_it_runs() -> None:
        while not tracker.getActiveJobsIds():
            time.sleep(0.05)
        tasks.cancel()

    canceller = threading.Thread(target=cancel_when_it_runs)
    canceller.start()
    began = time.monotonic()
    with pytest.raises(Exception, match=r"(?i)cancel"):
        tasks.run(wait, [b"x"], description="wait")
    canceller.join()
    assert time.monotonic() - began < 40
    assert SparkTasks(spark).run(bytes, [b"y"], description="after")[0].result == b"y"
