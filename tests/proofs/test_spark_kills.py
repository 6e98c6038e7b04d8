"""Streams whose drivers and workers are killed at any moment, or resume next to their successors.

Files are streamed into three tables by a driver that is killed, hangs and resumes, loses its
workers, or leaves workers that continue to write when another driver has taken over. In the end the
log `exact` and the primary-key table hold every row of the source once. The log `naive` beside
them, without exactly once, shows duplicates, which proves that the test can detect them.

Each run of the tests has two rounds on one server, and more if these showed no duplicates: a killed
worker, and a driver that resumes beside its successor and dies before its workers. `./dev prove
spark` has forty on a replicated cluster, where leaders die as well.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fluss
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.servers.kills import assert_written_once

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "tests" / "support" / "servers" / "spark_kill_driver.py"
ROUNDS = 40 if IS_EXHAUSTIVE else 2
MORE_ROUNDS_MAX = 6
QUICK = ("worker", "zombie family")
# A new driver takes half a minute to start, so workers and leaders are killed more often.
KINDS = (
    *["worker"] * 4,
    *["leader"] * 3,
    "driver",
    "zombie driver",
    "zombie workers",
    "zombie family",
)
FILES_PER_ROUND = 4
ROWS_PER_FILE = 4_000
READY_S = 600
CATCH_UP_S = 600
COPY = pa.schema([("id", pa.int64()), ("text", pa.string())])
pytestmark = [
    pytest.mark.slow,  # each driver is a Java of its own
    pytest.mark.timeout(7_200),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc"),
]


def test_every_row_is_written_once_whatever_is_killed(request, java, tmp_path):
    del java  # which skips if there is none
    replicated = request.getfixturevalue("replicated_cluster") if IS_EXHAUSTIVE else None
    if replicated is None:
        bootstrap = request.getfixturevalue("cluster").bootstrap
        database = request.getfixturevalue("database")
    else:
        bootstrap, database = replicated.bootstrap_servers, f"kills_{uuid.uuid4().hex[:8]}"
    with fluss.connect(f"fluss://{bootstrap}") as session:
        session.create_database(database, ignore_if_exists=True)
        stage = Stage(session, database, replicated, tmp_path)
        try:
            stage.run(ROUNDS)
        finally:
            stage.close()
        what = stage.tally()
        assert_written_once(stage.ids, stage.produced, what=what)


class Stage:
    """The tables, the drivers, and the schedule of kills."""

    def __init__(self, session, database, replicated, folder):
        self._session = session
        self._database = database
        self._replicated = replicated
        self._folder = folder
        self._dice = random.Random(11)
        self._drivers: list[Driver] = []
        self._kinds: list[str] = []
        self.produced = 0
        properties = {} if replicated is None else {"table.replication.factor": "3"}
        made = {"properties": properties, "buckets": 2}
        (folder / "source").mkdir()
        for name in ("exact", "naive"):
            session.create_table(f"{database}.{name}", COPY, **made)
        session.create_table(f"{database}.keyed", COPY, primary_key=["id"], **made)

    def run(self, rounds):
        """Kill this many times, then let the rest be written."""
        driver = self._start()
        for number in range(rounds):
            self._produce()
            driver = self._round(number, driver)
        self._catch_up(driver)
        # A few rounds may all kill at harmless moments, which proves nothing.
        for number in range(rounds, rounds + MORE_ROUNDS_MAX):
            if len(self.ids("naive")) > self.produced:
                return
            self._produce()
            driver = self._round(number, driver)
            self._catch_up(driver)

    def _kind(self, number):
        if not IS_EXHAUSTIVE:
            return QUICK[number % len(QUICK)]
        kinds = [each for each in KINDS if self._kinds[-1:] != ["leader"] or each != "leader"]
        return self._dice.choice(kinds)

    def _round(self, number, driver):
        self._kinds.append(self._kind(number))
        time.sleep(self._dice.uniform(0.2, 4))
        return self._after(self._kinds[-1], driver)

    def _after(self, kind, driver):
        """Kill a process; return the driver that continues."""
        match kind:
            case "worker":
                driver.kill_worker(self._dice)
                return driver
            case "leader":
                self._kill_leader()
                return driver
            case "driver":
                driver.kill()
                return self._start()
            case "zombie workers":
                left = driver.kill_and_leave_workers()
                new = self._start()
                self._resume_for_a_while(left)
                return new
            case _:
                driver.freeze()
                new = self._start()
                driver.thaw()
                time.sleep(self._dice.uniform(0.5, 4))
                if kind == "zombie family":
                    self._resume_for_a_while(driver.kill_and_leave_workers())
                driver.kill()
                return new

    def _resume_for_a_while(self, workers):
        time.sleep(self._dice.uniform(0, 2))
        _signal(workers, signal.SIGCONT)
        time.sleep(self._dice.uniform(1, 3))
        _signal(workers, signal.SIGKILL)

    def _kill_leader(self):
        if self._replicated is None:
            return
        from tests.support.servers.raw_client import RawClient

        with RawClient(self._replicated.bootstrap_servers) as client:
            leader = client.leader(self._database, "exact")
        self._replicated.kill_tablet_server(leader)
        time.sleep(self._dice.uniform(0, 5))
        self._replicated.restart_tablet_server(leader)

    def _start(self):
        self._produce()
        driver = Driver(self._session.config.bootstrap_servers, self._database, self._folder)
        self._drivers.append(driver)
        driver.wait_until_ready()
        return driver

    def _produce(self):
        """Write files of rows into the folder that the queries read."""
        for _ in range(FILES_PER_ROUND):
            ids = range(self.produced, self.produced + ROWS_PER_FILE)
            table = pa.table({"id": pa.array(ids, pa.int64())})
            written = self._folder / "written.parquet"
            pq.write_table(table, written)
            written.rename(self._folder / "source" / f"{self.produced:09}.parquet")
            self.produced += ROWS_PER_FILE

    def _catch_up(self, driver):
        deadline = time.monotonic() + CATCH_UP_S
        while time.monotonic() < deadline:
            if all(
                len(set(self.ids(each))) == self.produced for each in ("exact", "naive", "keyed")
            ):
                return
            time.sleep(2)
        raise AssertionError(f"the queries do not get on:\n{driver.said()}")

    def ids(self, name):
        """Count the ids in a table."""
        table = self._session.table(f"{self._database}.{name}")
        rows = table.scan(columns=["id"]).to_arrow()
        return sorted(rows["id"].to_pylist())

    def tally(self):
        """Return the number of kills by kind."""
        told = (f"{self._kinds.count(each)} {each}" for each in sorted(set(self._kinds)))
        return f"{len(self._kinds)} rounds ({', '.join(told)})"

    def close(self):
        """End all processes."""
        for driver in self._drivers:
            driver.kill()


class Driver:
    """One driver, with all its processes."""

    def __init__(self, bootstrap, database, folder):
        self._log = folder / f"driver-{uuid.uuid4().hex[:6]}.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(DRIVER), bootstrap, database, str(folder)],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._frozen: list[int] = []

    def wait_until_ready(self):
        """Wait until each of its queries has written rows."""
        deadline = time.monotonic() + READY_S
        while "ready" not in self.said().splitlines():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the driver does not begin:\n{self.said()[-4_000:]}")
            time.sleep(0.2)

    def said(self):
        """Return its output."""
        return self._log.read_text(errors="replace")

    def kill(self):
        """Kill it with all its processes."""
        _signal([*self._frozen, *self._family()], signal.SIGKILL)
        self._process.wait(30)

    def freeze(self):
        """Stop all its processes, like a machine that hangs."""
        self._frozen = self._family()
        _signal(self._frozen, signal.SIGSTOP)

    def thaw(self):
        """Resume it."""
        _signal(self._frozen, signal.SIGCONT)

    def kill_worker(self, rng):
        """Kill one of the processes that run tasks."""
        workers = self._workers()
        if workers:
            _signal([rng.choice(workers)], signal.SIGKILL)

    def kill_and_leave_workers(self):
        """Kill all processes except those that run tasks, and stop these; return them."""
        workers = self._workers()
        _signal(workers, signal.SIGSTOP)
        _signal([each for each in self._family() if each not in workers], signal.SIGKILL)
        self._process.wait(30)
        return workers

    def _family(self):
        parents = _parents()
        family = [self._process.pid]
        for pid in family:
            family += [child for child, parent in parents.items() if parent == pid]
        return family

    def _workers(self):
        """Return the forks of Spark's daemons: processes whose parent runs the same program."""
        parents, family = _parents(), set(self._family())
        daemons = {pid for pid in family if "pyspark.daemon" in _command(pid)}
        return sorted(pid for pid in daemons if parents.get(pid) in daemons)


def _parents():
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            fields = path.read_text().rpartition(")")[2].split()
            found[int(path.parent.name)] = int(fields[1])
    return found


def _command(pid):
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:
        return ""


def _signal(pids, number):
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
