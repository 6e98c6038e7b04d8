"""Three replicated tablet servers that are killed, stopped and paused, and recover in seconds."""

import time

import pytest

from tests.support.servers.raw_client import COORDINATOR, RawClient, RefusedError
from tests.support.servers.raw_table import append_nothing, create_log_table, end_offset

HEAL_S_MAX = 20


def survivor(cluster, dead):
    """Return the address of a running tablet server; each has the metadata."""
    alive = [each for i, each in enumerate(cluster.config.tablet_servers) if i != dead]
    return alive[0].plain_address


def append_until_done(client, name, *, timeout_s):
    """Append through the current leader until it succeeds; return the seconds it took."""
    begin = time.monotonic()
    while True:
        try:
            leader = client.leader("fluss", name)
            if leader is not None:
                (table,) = client.metadata(("fluss", name)).table_metadata
                if not append_nothing(client, table.table_id, to=leader).HasField("error_code"):
                    return time.monotonic() - begin
                client.drop_connection(leader)
        except (OSError, RefusedError):
            client.close()
        assert time.monotonic() - begin < timeout_s, "the cluster has not healed"
        time.sleep(0.1)


@pytest.fixture
def table(replicated_cluster, request):
    """A replicated table with two acknowledged batches, and its leader."""
    name = request.node.name
    with RawClient(replicated_cluster.bootstrap_servers) as client:
        table_id = create_log_table(client, "fluss", name)
        for _ in range(2):
            append_until_done(client, name, timeout_s=HEAL_S_MAX)
        (found,) = client.metadata(("fluss", name)).table_metadata
        assert len(found.bucket_metadata[0].replica_id) == 3
        return name, table_id, client.leader("fluss", name)


def all_know_each_other(cluster):
    for ports in cluster.config.tablet_servers:
        with RawClient(ports.plain_address) as client:
            if len(client.metadata().tablet_servers) != 3:
                return False
    return True


def test_a_killed_leader_is_replaced_and_nothing_acknowledged_is_lost(replicated_cluster, table):
    name, table_id, leader = table
    replicated_cluster.kill_tablet_server(leader)
    with RawClient(survivor(replicated_cluster, leader)) as client:
        outage_s = append_until_done(client, name, timeout_s=HEAL_S_MAX)
        heir = client.leader("fluss", name)
        assert heir != leader
        assert end_offset(client, table_id, to=heir) == 3
    assert outage_s > 1, "it was no outage at all"
    replicated_cluster.restart_tablet_server(leader)
    assert all_know_each_other(replicated_cluster)


def test_a_leader_that_is_stopped_hands_over_immediately(replicated_cluster, table):
    name, table_id, leader = table
    replicated_cluster.stop_tablet_server(leader)
    with RawClient(survivor(replicated_cluster, leader)) as client:
        assert append_until_done(client, name, timeout_s=HEAL_S_MAX) < 5
        assert end_offset(client, table_id, to=client.leader("fluss", name)) == 3
    replicated_cluster.restart_tablet_server(leader)
    assert all_know_each_other(replicated_cluster)


def test_a_paused_server_keeps_its_connections_and_responds_when_resumed(replicated_cluster):
    address = replicated_cluster.config.tablet_servers[1].plain_address
    with RawClient(address, timeout_s=1) as client:
        client.metadata()
        replicated_cluster.pause_tablet_server(1)
        try:
            with pytest.raises(TimeoutError):
                client.metadata()
        finally:
            replicated_cluster.resume_tablet_server(1)
    with RawClient(address) as client:
        assert len(client.metadata().tablet_servers) == 3


def test_a_coordinator_that_is_gone_leaves_the_data_reachable(replicated_cluster, table):
    name, _, leader = table
    replicated_cluster.kill_coordinator()
    with RawClient(survivor(replicated_cluster, leader)) as client:
        append_until_done(client, name, timeout_s=HEAL_S_MAX)
        with pytest.raises(OSError, match="refused"):
            client.connection(COORDINATOR)
    replicated_cluster.restart_coordinator()
    with RawClient(replicated_cluster.bootstrap_servers) as client:
        create_log_table(client, "fluss", f"{name}_after")
