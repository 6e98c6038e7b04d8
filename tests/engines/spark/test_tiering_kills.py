"""Executors and drivers that are killed while they copy tables: nothing is lost, nothing twice.

A task kills its Python process, or Spark's executor with it, while it fetches, while it writes, and
when its files are there; the driver kills itself before each of its steps, or is killed by a task
that continues. After each kill, a scan gives every row once, and so does the lake after the next
round. The suite kills some; `./dev prove lake` kills at each step, with executors of their own.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

import fluss
import fluss_spark
from fluss_server import LocalCluster
from fluss_spark import tiering
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.lake import spark_kills
from tests.support.lake.rounds import one_round
from tests.support.lake.spark_kills import DRIVER_STEPS, TASK_STEPS
from tests.support.servers.fix_cluster import IMPATIENT

DRIVER = Path(spark_kills.__file__)
# Two executors, each a JVM; a task of a lost one is run again by the other.
EXECUTORS, ONE_PROCESS = "local-cluster[2,1,1024]", "local[2]"
OF_EXECUTORS = [(EXECUTORS, step, "executor") for step in TASK_STEPS]
OF_DRIVERS = [
    (ONE_PROCESS, "fetch", "driver"),
    (ONE_PROCESS, "return", "driver"),
    *((ONE_PROCESS, step, "driver") for step in DRIVER_STEPS),
]
KILLS = [*OF_EXECUTORS, *OF_DRIVERS] if IS_EXHAUSTIVE else [(ONE_PROCESS, "_report", "driver")]
LAKE = {"table.datalake.enabled": "true"}
ROWS = 400
WAIT_S = 300

pytestmark = [
    pytest.mark.slow,  # each kill is a job of Spark, some a Spark of their own
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc"),
]


@pytest.fixture(scope="module")
def lake_cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    with LocalCluster(folder, durability="none", lake=True, in_thread=True) as cluster:
        yield cluster


class Tables:
    """A log and a table with a primary key, and what is written to them."""

    def __init__(self, session):
        self._session, self._count = session, 0
        self.every = [self._made({}), self._made({"primary_key": "id"})]

    def _made(self, how):
        name = f"t_{uuid.uuid4().hex[:8]}"
        columns = {"id": "BIGINT", "n": "BIGINT"}
        return self._session.create_table(name, columns, buckets=2, properties=LAKE, **how)

    def write(self):
        ids = range(self._count * ROWS, (self._count + 1) * ROWS)
        self._count += 1
        log, keys = self.every
        log.append({"id": list(ids), "n": [self._count] * ROWS})
        keys.upsert({"id": [each % (2 * ROWS) for each in ids], "n": [self._count] * ROWS})
        keys.delete([(each,) for each in range(self._count, ROWS, 7)])

    def check_union(self):
        for table in self.every:
            assert rows_of(table, "union") == rows_of(table, "off")

    def check_lake(self):
        for table in self.every:
            assert rows_of(table, "only") == rows_of(table, "union") == rows_of(table, "off")


@pytest.fixture
def tables(lake_cluster):
    url = f"fluss://{lake_cluster.bootstrap_servers}/fluss"
    with fluss.connect(url, **IMPATIENT) as session:
        yield Tables(session)


def rows_of(table, lake):
    return table.scan(lake=lake, with_metadata=["_bucket"]).to_arrow().sort_by("id")


@pytest.mark.parametrize("step", TASK_STEPS)
def test_a_killed_task_costs_its_round(spark, tables, tmp_path, monkeypatch, step):
    from pyspark import cloudpickle

    # Spark's workers do not have the tests' modules.
    cloudpickle.register_pickle_by_value(spark_kills)
    marker = tmp_path / "killed"
    tables.write()
    for table in tables.every:
        marker.unlink(missing_ok=True)
        task = spark_kills.killing_task(step, "worker", str(marker))
        with monkeypatch.context() as patched:
            patched.setattr(tiering, "_carry_out", task)
            done = fluss_spark.tier(spark, table.name, cluster=table_url(table), now=True)
        assert marker.exists()
        # A session with threads for executors does not repeat tasks, and says what has happened.
        [error] = done.errors.values()
        assert "worker" in str(error).lower()
    tables.check_union()
    for table in tables.every:
        done = fluss_spark.tier(spark, table.name, cluster=table_url(table), now=True)
        assert (done.rounds, done.errors) == (1, {})
    tables.check_lake()


def table_url(table):
    return f"fluss://{table.__fluss_table__().connection.config.bootstrap_servers}"


def test_rounds_go_on_after_the_kill_of_an_executor_or_a_driver(lake_cluster, tables, tmp_path):
    url, log = f"fluss://{lake_cluster.bootstrap_servers}", tmp_path / "spark.log"
    try:
        for number, (master, step, victim) in enumerate(KILLS):
            tables.write()
            order = tables.every[:: 1 if number % 2 else -1]
            marker = tmp_path / f"killed-{number}"
            ended = run_driver(log, url, master, step, victim, str(marker), *order)
            said = log.read_text(errors="replace")[-4_000:]
            assert marker.exists(), said
            # Spark runs the tasks of a lost executor again.
            assert ended == (0 if victim == "executor" else -signal.SIGKILL), said
            tables.check_union()
            if victim == "executor":
                tables.check_lake()
            for table in tables.every if number % 2 else ():
                one_round(table)
                assert rows_of(table, "only") == rows_of(table, "off")
        done = tmp_path / "no kill"
        done.touch()
        if IS_EXHAUSTIVE:
            assert run_driver(log, url, ONE_PROCESS, "none", "", str(done), *tables.every) == 0
        else:
            for table in tables.every:
                one_round(table)
        tables.check_lake()
    finally:
        shutil.rmtree(Path(find_spec("pyspark").origin).parent / "work", ignore_errors=True)
    what = ", ".join(f"{step} ({victim})" for _, step, victim in KILLS)
    sys.stderr.write(f"lake: kills on Spark: {len(KILLS)}: {what}; no row lost, none twice\n")


def run_driver(log, *words):
    """Run a driver to its end; return its exit code. What it has started ends with it."""
    given = [getattr(each, "name", each) for each in words]
    with log.open("w") as out:
        driver = subprocess.Popen(
            [sys.executable, str(DRIVER), *given],
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            return driver.wait(WAIT_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
