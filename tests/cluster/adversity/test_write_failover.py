"""Writing while the leader of a replicated bucket is killed, with all replicas acknowledging."""

import threading
import time
import uuid

import pyarrow as pa
import pytest

from fluss.wire import messages as pb
from tests.support.servers.raw_client import COORDINATOR, RawClient
from tests.support.servers.write_harness import WriteHarness, wait

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
ROWS = 3_000


@pytest.fixture
def replicated_harness(replicated_cluster):
    name = f"test_{uuid.uuid4().hex[:12]}"
    with RawClient(replicated_cluster.bootstrap_servers) as client:
        client.call(
            pb.CreateDatabaseRequest(database_name=name, ignore_if_exists=False), to=COORDINATOR
        )
    made = WriteHarness(replicated_cluster.bootstrap_servers, name)
    try:
        yield made
    finally:
        made.close()


def test_no_row_is_lost_duplicated_or_reordered_when_the_leader_dies(
    replicated_harness, replicated_cluster
):
    harness = replicated_harness
    table = harness.table(SCHEMA, properties={"table.replication.factor": "3"})
    core = harness.appender(table, batch_bytes_max=4_000, batch_bytes_min=4_000, linger_ms=100)
    wait(core.append({"id": 0, "s": "first"}))
    path = table.table_path
    leader = harness.raw.leader(path.database_name, path.table_name)
    killer = threading.Timer(1.0, replicated_cluster.kill_tablet_server, [leader])
    killer.start()
    for number in range(1, ROWS):
        core.append({"id": number, "s": "x" * 20})
        time.sleep(0.001)
    harness.flush(core)
    killer.join()
    assert harness.raw.leader(path.database_name, path.table_name) != leader
    assert [each["id"] for each in harness.rows(table)] == list(range(ROWS))
    assert harness.cluster.counters.retries > 0
    replicated_cluster.restart_tablet_server(leader)
