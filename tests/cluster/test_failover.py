"""Everybody at work while tablet servers die, hang and end: no call fails, and no row is lost.

With FLUSS_TEST_PROFILE=exhaustive each of three servers is killed, stopped and ended in turn, three
times over; that is `./dev prove failover`.
"""

import sys
import time

import pytest

from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.servers.failover_load import OPERATION_TIMEOUT_S, Load

CALM_S = 3.0
HURT_S = 8.0
HANG_S = 12.0
KINDS = ("append", "upsert", "look_up", "scan_log", "scan_state", "open_session", "follow")
ROUNDS = 3
ALL_FAULTS = [
    (kind, server) for _ in range(ROUNDS) for kind in ("kill", "stop", "end") for server in range(3)
]


def hurt(cluster, kind, server):
    """Hurt a server, give it some time like that, and mend it."""
    if kind == "stop":
        cluster.pause_tablet_server(server)
        time.sleep(HANG_S)
        cluster.resume_tablet_server(server)
        return
    cluster.kill_tablet_server(server) if kind == "kill" else cluster.stop_tablet_server(server)
    time.sleep(HURT_S)
    cluster.restart_tablet_server(server)


@pytest.mark.timeout(1_800)
def test_no_call_fails_and_no_row_is_lost_while_servers_fail(replicated_cluster):
    faults = ALL_FAULTS if IS_EXHAUSTIVE else [("kill", 1)]
    load = Load(replicated_cluster.bootstrap_servers)
    said = []
    with load.running():
        time.sleep(CALM_S)
        for kind, server in faults:
            begin = time.monotonic()
            hurt(replicated_cluster, kind, server)
            if len(faults) > 1:
                load.wait_for_replicas()
            longest = load.longest(begin, time.monotonic())
            waits = ", ".join(f"{name} {longest.get(name, 0):.1f} s" for name in KINDS)
            said.append(f"failover: {kind} {server}: longest calls: {waits}")
        time.sleep(CALM_S)
    load.verify()
    counts = {name: sum(each.kind == name for each in load.calls) for name in KINDS}
    said.append(
        f"failover: {load.acknowledged} rows and {counts['upsert']} upserts acknowledged, "
        f"{len(load.failures())} of {len(load.calls)} calls failed: "
        + ", ".join(f"{count} {name}" for name, count in counts.items())
    )
    sys.stderr.write("".join(f"{line}\n" for line in said))
    assert not load.failures(), [(each.kind, each.seconds, each.error) for each in load.failures()]
    assert all(counts.values())
    assert max(each.seconds for each in load.calls) < OPERATION_TIMEOUT_S + 2
