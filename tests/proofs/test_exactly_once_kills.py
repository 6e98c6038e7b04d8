"""Tasks whose processes are killed at any moment, or frozen and resumed next to their successors.

Each round is one step of two tasks. Attempts at a task are made until one succeeds; the others are
killed on the way, or frozen and resumed while the successor works or long after the step was
committed. On the replicated cluster leaders die as well. In the end the log
`exact` and the primary-key table hold every row once, and the log `naive` shows duplicates.
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
import pytest

import fluss
from fluss.exactly_once import Task, append_exactly_once, commit_once
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.servers import once_attempts
from tests.support.servers.kills import assert_written_once
from tests.support.servers.raw_client import RawClient

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
ROUNDS = 40 if IS_EXHAUSTIVE else 3
ROWS = 5 * 2_048
BATCHES = ROWS // once_attempts.ROWS_PER_BATCH
ATTEMPT_S = 180
ATTEMPTS_MAX = 40
LEADER_EVERY = 6
HOWS = ("exact", "naive", "keyed")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]  # waits for processes and leaders


def test_tasks_that_are_killed_and_resumed_are_written_once(cluster, database, tmp_path):
    with fluss.connect(f"fluss://{cluster.bootstrap}") as session:
        _play(Stage(session, database, None, tmp_path), ROUNDS)


def test_tasks_are_written_once_when_leaders_die(replicated_cluster, tmp_path):
    name = f"kills_{uuid.uuid4().hex[:8]}"
    with fluss.connect(f"fluss://{replicated_cluster.bootstrap_servers}") as session:
        session.create_database(name)
        time.sleep(0.5)
        _play(Stage(session, name, replicated_cluster, tmp_path), ROUNDS)


def _play(stage, rounds):
    try:
        for step in range(rounds):
            stage.step(step)
        stage.resume_all()
    finally:
        stage.close()
    what = (
        f"{rounds} steps, {stage.killed} attempts killed, {stage.woken} woken up late, "
        f"{stage.leaders} leaders killed"
    )
    assert_written_once(stage.ids, stage.produced, what=what)


class Stage:
    """The tables, the running attempts, and the schedule of kills."""

    def __init__(self, session, database, replicated, folder):
        self._session = session
        self._database = database
        self._replicated = replicated
        self._folder = folder
        self._dice = random.Random(5)
        self._run = uuid.uuid4().hex
        self._stopped: list[int] = []
        self.produced = self.killed = self.woken = self.leaders = 0
        made = {"buckets": 3}
        if replicated is not None:
            made["properties"] = {"table.replication.factor": "3"}
        for name in ("exact", "naive"):
            session.create_table(f"{database}.{name}", SCHEMA, **made)
        session.create_table(f"{database}.keyed", SCHEMA, primary_key=["id"], **made)
        bootstrap = session.config.bootstrap_servers
        self._errors = (folder / "errors").open("w")
        self._forks = subprocess.Popen(
            [sys.executable, once_attempts.__file__, bootstrap, database, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def step(self, step):
        """Write the rows of one step, whatever happens."""
        dead = self._kill_leader() if step % LEADER_EVERY == 1 else None
        for part in range(2):
            for how in HOWS:
                self._task(how, step, part)
            self.produced += ROWS
        self._commit(step)
        if dead is not None:
            self._replicated.restart_tablet_server(dead)
        if self._dice.random() < 0.3:
            self.resume_all()

    def _task(self, how, step, part):
        for _ in range(self._dice.randint(0, 2)):
            pid = self._attempt(how, step, part)
            self._wait_until(pid, self._dice.randrange(1, BATCHES + 2))
            if how == "exact" and self._dice.random() < 0.5:
                _signal(pid, signal.SIGSTOP)
                self._stopped.append(pid)
            else:
                _signal(pid, signal.SIGKILL)
                self.killed += 1
        for _ in range(ATTEMPTS_MAX):  # an attempt whose first server has died
            if self._ends_well(how, step, part):
                return
            time.sleep(1)
        raise AssertionError(f"{how} {step} {part}: {self._said()}")

    def _ends_well(self, how, step, part):
        pid = self._attempt(how, step, part)
        if self._stopped and self._dice.random() < 0.5:
            self._wait_until(pid, self._dice.randrange(BATCHES))
            self._wake_up(self._stopped.pop())
        return self._wait_for(pid) == "0"

    def _attempt(self, how, step, part):
        asked = [how, self._run, step, part, self.produced, ROWS, self._dice.randrange(10**6)]
        self._forks.stdin.write(" ".join(map(str, asked)) + "\n")
        self._forks.stdin.flush()
        return int(self._forks.stdout.readline())

    def _wait_until(self, pid, place):
        """Wait until an attempt has sent this many batches, or has ended."""
        deadline = time.monotonic() + ATTEMPT_S
        at, ended = self._folder / f"{pid}.at", self._folder / str(pid)
        while time.monotonic() < deadline and not ended.exists():
            if at.exists() and int(at.read_text() or 0) >= place:
                break
            time.sleep(0.005)
        time.sleep(self._dice.random() * 0.02)

    def _wait_for(self, pid):
        deadline = time.monotonic() + ATTEMPT_S
        path = self._folder / str(pid)
        while time.monotonic() < deadline:
            if path.exists() and (code := path.read_text()):
                return code
            time.sleep(0.02)
        return "nothing"

    def _commit(self, step):
        table = self._session.table(f"{self._database}.exact")
        first = self.produced - 2 * ROWS
        receipts = []
        for part in range(2):  # all rows are there already; this returns the receipt
            rows = once_attempts.rows_of(first + part * ROWS, ROWS, 0)
            task = Task(run=self._run, step=step, part=part)
            receipts.append(append_exactly_once(table, task, rows))
            assert receipts[-1].again == ROWS
        commit_once(table, self._run, step, receipts)

    def _kill_leader(self):
        if self._replicated is None:
            return None
        with RawClient(self._replicated.bootstrap_servers) as client:
            leader = client.leader(self._database, "exact", self._dice.randrange(3))
        if leader is None:
            return None
        self._replicated.kill_tablet_server(leader)
        self.leaders += 1
        return leader

    def resume_all(self):
        """Resume all frozen attempts."""
        while self._stopped:
            self._wake_up(self._stopped.pop())

    def _wake_up(self, pid):
        _signal(pid, signal.SIGCONT)
        self.woken += 1
        self._wait_for(pid)  # it succeeds, or detects that it is too late

    def ids(self, name):
        """Count the ids in a table."""
        table = self._session.table(f"{self._database}.{name}")
        return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())

    def _said(self):
        return Path(self._errors.name).read_text()[-3_000:]

    def close(self):
        """End all processes."""
        for pid in self._stopped:
            _signal(pid, signal.SIGKILL)
        self._forks.stdin.close()
        self._forks.stdout.close()
        self._forks.wait(30)
        self._errors.close()


def _signal(pid, number):
    with suppress(ProcessLookupError):
        os.kill(pid, number)
