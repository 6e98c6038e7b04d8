"""One writer and one reader of many tables while servers are killed and start again.

What the writer reports as delivered is there afterwards, each row once and in order: writers are
idempotent, and a server that starts again still knows the batches that it has taken.
"""

import threading
import time
import uuid
from random import Random

import pytest

import fluss
from fluss_server.local_cluster import LocalCluster
from tests.cluster.many.model import KEYS, LOGS, SETTINGS, Following, Model, create_tables

# How long calls retry, which is longer than a new leader takes.
PATIENT = {**SETTINGS, "operation-timeout": "90s", "writer.buffer.wait-timeout": "90s"}
KILLS = 3
CALM_S = 1.0
DOWN_S = 0.3
PAUSE_S = 0.001
STEPS_AFTERWARDS = 100
END_S = 150.0


class Killing(threading.Thread):
    """Kills and restarts a server in the background; a failure is raised by `check`."""

    def __init__(self, kill, restart, *, times):
        super().__init__(daemon=True)
        self._kill, self._restart, self._times = kill, restart, times
        self.killed = 0
        self._failure = None

    def run(self):
        try:
            for _ in range(self._times):
                time.sleep(CALM_S)
                self._kill()
                self.killed += 1
                time.sleep(DOWN_S)
                self._restart()
        except BaseException as error:  # noqa: BLE001 - raised by the test's thread
            self._failure = error

    def check(self):
        self.join(END_S)
        assert not self.is_alive()
        assert self._failure is None, repr(self._failure)


def work(session, model, following, killing):
    """Write and read until the last restart, and some steps more."""
    random, left = model.random, STEPS_AFTERWARDS
    end = time.monotonic() + END_S
    while left:
        model.step()
        time.sleep(PAUSE_S)
        match random.randint(0, 60):
            case 0 | 1:
                model.flush()
            case 2 | 3 | 4:
                following.take()
            case 5:
                following.reopen()
        if not killing.is_alive():
            left -= 1
        assert time.monotonic() < end
    model.writer.flush()
    killing.check()
    model.check(session)
    following.check(model)


@pytest.mark.slow  # a server is started four times
@pytest.mark.timeout(200)
@pytest.mark.parametrize("seed", range(2))
def test_a_killed_embedded_server_loses_and_repeats_nothing(tmp_path, seed):
    server = LocalCluster(tmp_path, durability="process").start()
    port = int(server.bootstrap_servers.rpartition(":")[2])

    def kill():
        server.kill()

    def restart():
        nonlocal server
        server = LocalCluster(tmp_path, durability="process", port=port).start()

    try:
        with fluss.connect(f"fluss://{server.bootstrap_servers}/d", config=PATIENT) as session:
            session.create_database("d")
            create_tables(session)
            killing = Killing(kill, restart, times=KILLS)
            with Following(session) as following, session.write_many([*LOGS, *KEYS]) as writer:
                killing.start()
                work(session, Model(Random(seed), writer), following, killing)
            assert killing.killed == KILLS
            assert session.counters()["retries"] > 0
    finally:
        server.stop()


@pytest.mark.timeout(300)
def test_a_killed_tablet_server_of_three_loses_and_repeats_nothing(replicated_cluster):
    database = f"many_{uuid.uuid4().hex[:8]}"
    url = f"fluss://{replicated_cluster.bootstrap_servers}/{database}"
    with fluss.connect(url, config=PATIENT) as session:
        session.create_database(database)
        create_tables(session, **{"table.replication.factor": "3"})
        victim = leader(session, LOGS[0])
        killing = Killing(
            lambda: replicated_cluster.kill_tablet_server(victim),
            lambda: replicated_cluster.restart_tablet_server(victim),
            times=1,
        )
        with Following(session) as following, session.write_many([*LOGS, *KEYS]) as writer:
            killing.start()
            work(session, Model(Random(1), writer), following, killing)
        assert killing.killed == 1
        assert leader(session, LOGS[0]) != victim
        session.drop_database(database, cascade=True)


def leader(session, name):
    """The server that leads the first bucket of a table."""
    return session.table(name).replicas()["leader"][0].as_py()
