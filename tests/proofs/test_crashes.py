"""kill -9 under load: every acknowledged row is there once, and keyed rows match their changelog.

Writers of a log and of a keyed table, and a reader that moves rows into the store, work until the
server is killed at a random moment. Then it restarts on its directory, everything is checked, and
the writers continue. `./dev prove crashes` does 200 rounds.
"""

from __future__ import annotations

import time
from random import Random

import pytest

from fluss_server import LocalCluster
from tests.support.differential.differential_servers import ServerUnderComparison
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.servers.crashing_load import Load

HISTORIES = 5 if IS_EXHAUSTIVE else 1
ROUNDS = {"process": 20, "disk": 20} if IS_EXHAUSTIVE else {"process": 3, "disk": 2}
# A server is killed after this number of acknowledged batches in its round.
BATCHES_MAX = 60
PATIENCE_S = 60.0


@pytest.mark.slow  # kills and starts a server in every round
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("history", range(HISTORIES))
@pytest.mark.parametrize("durability", ["process", "disk"])
def test_what_was_acknowledged_is_there_once_and_rows_follow_their_changelog(
    tmp_path, durability, history
):
    chance = Random(f"{durability} {history}")
    load = Load()
    cluster = LocalCluster(tmp_path / "data", durability=durability)
    for _ in range(ROUNDS[durability]):
        with cluster:
            _look(cluster, load)
            threads = load.start(cluster.bootstrap_servers)
            _wait_for_some(load, chance.randrange(BATCHES_MAX))
            cluster.kill()
            for thread in threads:
                thread.join()
    with cluster:
        _look(cluster, load)
    assert load.count > 10 * ROUNDS[durability], "there was some load"


def _wait_for_some(load: Load, batches: int) -> None:
    goal, until = load.count + batches, time.monotonic() + PATIENCE_S
    while load.count < goal and not load.failures and time.monotonic() < until:
        time.sleep(0.001)


def _look(cluster: LocalCluster, load: Load) -> None:
    client = ServerUnderComparison(cluster.bootstrap_servers, "fluss")
    try:
        load.create(client)
        load.check(client)
    finally:
        client.close()
