"""The Java clients 0.9.1 and 1.0.0 on servers with a lake: snapshots, and tables they create."""

from __future__ import annotations

import uuid

import pytest

from fluss_testkit.artifact import FLUSS_CLIENT, FLUSS_CLIENT_1_0
from tests.support.lake.lake_requests import LakeRequests
from tests.support.servers.java_client import ask_for_snapshots

SNAPSHOT_ID = 2**62 + 1  # ids of Iceberg are random numbers of 63 bits


@pytest.mark.usefixtures("java")
@pytest.mark.slow  # each is a start of a JVM, which compiles the program
@pytest.mark.parametrize("client", [FLUSS_CLIENT, FLUSS_CLIENT_1_0], ids=["0.9.1", "1.0.0"])
def test_java_clients_read_the_snapshots(lake_cluster, session, client):
    requests = LakeRequests(lake_cluster.bootstrap_servers, session.database)
    name = f"t_{uuid.uuid4().hex[:8]}"
    requests.create(name, partition_keys=["name"])
    path = requests.prepared(name, [(3, 1, 7), (2, 0, 2**40)])
    readable = requests.prepared(name, [(3, 1, 6)])
    answer = requests.commit(requests.table_id(name), SNAPSHOT_ID, path, readable=readable)
    assert not answer.error_code
    assert ask_for_snapshots(
        lake_cluster.bootstrap_servers,
        session.database,
        name,
        SNAPSHOT_ID,
        f"{name}_java",
        client,
    ) == [
        f"newest: {SNAPSHOT_ID} {{2/0={2**40}, 3/1=7}}",
        f"by id: {SNAPSHOT_ID} {{2/0={2**40}, 3/1=7}}",
        "another: LakeTableSnapshotNotExistException",
        f"readable: {SNAPSHOT_ID} {{3/1=6}}",
        "enabled true",
        "format iceberg",
        "of the new one: LakeTableSnapshotNotExistException",
    ]
    assert requests.described(f"{name}_java")["properties"]["table.datalake.enabled"] == "true"
    requests.client.close()
