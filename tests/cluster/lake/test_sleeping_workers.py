"""Workers that sleep for longer than their lease, while another one takes their tables.

Four workers stop (SIGSTOP), each with a table of its own and at another step of its round. When the
leases have ended, a worker of this process is assigned the tables and copies them; where a sleeper
had committed already, it reports that snapshot first. Then the sleepers wake up: each is refused,
and no row is there twice. The suite has leases of seconds, on the embedded server; `./dev prove
lake` waits for those of Fluss 0.9.1.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

import fluss
from fluss_lake.tiering import plan_lease
from fluss_lake.tiering.service import TieringService
from fluss_lake.tiering.worker import WorkerOptions
from fluss_server import LocalCluster
from fluss_server.lake import plan_tiering
from fluss_testkit.lake_profile import iceberg_lake
from tests.cluster.lake.conftest import LAKE
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.lake import sleeper
from tests.support.lake.rounds import one_round
from tests.support.lake.sleeper import STEPS, shorten

FRESH = {**LAKE, "table.datalake.freshness": "1s"}
LEASE_S = 6.0
# Beyond the two minutes of Fluss.
SLEEP_S = 180
WAIT_S = 300
REFUSED = {"TieringFencedError", "LakeConflictError", "LakeMismatchError"}

pytestmark = [
    pytest.mark.slow,  # leases have to end
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc"),
]


def test_sleepers_add_nothing(tmp_path, monkeypatch):
    for name in ("LEASE_S", "MARGIN_S", "BEAT_S", "IDLE_S"):
        monkeypatch.setattr(plan_lease, name, getattr(plan_lease, name))  # restored afterwards
    shorten(LEASE_S)
    monkeypatch.setattr(plan_tiering, "LEASE_MS", int(LEASE_S * 1_000))
    with LocalCluster(tmp_path, durability="none", lake=True, in_thread=True) as cluster:
        check_sleepers(f"fluss://{cluster.bootstrap_servers}/fluss", LEASE_S, sleep_s=0)


@pytest.mark.skipif(not IS_EXHAUSTIVE, reason="the leases of Fluss: ./dev prove lake")
@pytest.mark.timeout(1_800)
@pytest.mark.real
def test_sleepers_add_nothing_to_a_real_fluss(start_cluster, tmp_path):
    with start_cluster(iceberg_lake(tmp_path)) as cluster:
        url = f"fluss://{cluster.bootstrap_servers}"
        with fluss.connect(url) as session:
            session.create_database("asleep")
        check_sleepers(f"{url}/asleep", 0, sleep_s=SLEEP_S)


def check_sleepers(url, lease_s, *, sleep_s):
    with fluss.connect(url) as session:
        tables = dict(zip(STEPS, [made(session, number) for number in range(4)], strict=True))
        for table in tables.values():
            put(table, range(20))
        program = [sys.executable, sleeper.__file__, url]
        sleepers = {
            step: subprocess.Popen(
                [*program, table.name, step, str(lease_s)], stdout=subprocess.PIPE, text=True
            )
            for step, table in tables.items()
        }
        try:
            wait_until(lambda: all(map(is_stopped, sleepers.values())), lambda: states(sleepers))
            began = time.monotonic()
            for table in tables.values():
                put(table, range(20, 30))
            with working(tables.values()) as service:
                wait_until(lambda: not any(lag_of(table) for table in tables.values()))
                # The other worker has copied them: the leases have ended.
                assert service.tally.rounds >= len(tables)
                time.sleep(max(0, sleep_s - (time.monotonic() - began)))
                said = {step: woken(each) for step, each in sleepers.items()}
        finally:
            for each in sleepers.values():
                each.kill()
                each.communicate()
        assert set(said.values()) <= REFUSED, said
        for table in tables.values():
            put(table, range(30, 35))
            one_round(table)
            assert rows_of(table, "only") == rows_of(table, "union") == rows_of(table, "off")
            assert rows_of(table, "off") == list(range(35))
        facts = ", ".join(f"{step}: {error}" for step, error in said.items())
        sys.stderr.write(f"lake: workers asleep ({facts}); no row lost, none twice\n")


def made(session, number):
    name = f"s_{uuid.uuid4().hex[:8]}"
    how = {"primary_key": "id"} if number % 2 else {}
    return session.create_table(name, {"id": "BIGINT"}, buckets=2, properties=FRESH, **how)


def put(table, ids):
    (table.upsert if table.primary_key else table.append)({"id": list(ids)})


def rows_of(table, lake):
    return sorted(table.scan(lake=lake).to_arrow().column("id").to_pylist())


def lag_of(table):
    from fluss_lake.tiering.lake_tables import how_far

    handle = table.__fluss_table__()
    return handle.connection.engine.run(how_far(handle)).lag


def is_stopped(process):
    assert process.poll() is None, process.stdout.read()
    state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"


def woken(process):
    process.send_signal(signal.SIGCONT)
    return process.communicate(timeout=WAIT_S)[0].strip()


def states(sleepers):
    return {step: "stopped" if is_stopped(each) else "running" for step, each in sleepers.items()}


def wait_until(is_so, how_it_is=lambda: None):
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, how_it_is()
        time.sleep(0.2)


class working:  # noqa: N801 - a block
    """A worker of this process, for some tables."""

    def __init__(self, tables):
        handles = [each.__fluss_table__() for each in tables]
        paths = frozenset(each.info.table_path for each in handles)
        self._service = TieringService(handles[0].connection, WorkerOptions(tables=paths))
        self._thread = threading.Thread(target=self._service.run)

    def __enter__(self):
        self._thread.start()
        return self._service

    def __exit__(self, *error):
        self._service.stop()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
