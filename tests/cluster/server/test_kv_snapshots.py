"""Snapshots of rows by key: there are none, and readers that need them get an error."""

from __future__ import annotations

import pytest

import fluss
from fluss.wire import messages as pb
from tests.support.differential.differential_servers import ServerUnderComparison
from tests.support.differential.differential_tables import KINDS, DifferentialTable
from tests.support.servers.crashing_load import state_of
from tests.support.servers.embedded import Clock, running
from tests.support.servers.raw_client import RefusedError

SNAPSHOT_NOT_EXIST = 41
TTL_MS = 3_600_000


def test_readers_use_the_log_as_long_as_it_is_complete(tmp_path):
    clock = Clock()
    kind = next(each for each in KINDS if each.name == "keyed")
    table = DifferentialTable(kind)
    with running(tmp_path, clock=clock) as server:
        client = ServerUnderComparison(server.address, "fluss")
        properties = {"table.log.ttl": f"{TTL_MS} ms"}
        descriptor = table.descriptor.with_properties({**table.descriptor.properties, **properties})
        client.call(
            pb.CreateTableRequest(
                table_path=client.path(table.name),
                table_json=descriptor.to_json().encode(),
                ignore_if_exists=False,
            )
        )
        put(client, table, range(10))
        (snapshot,) = asked(client, table).latest_snapshots
        assert not snapshot.HasField("snapshot_id")
        clock.now_ms += TTL_MS + 1
        (tablet,) = server.node.tablets
        server.on_loop(lambda: server.node.in_storage(tablet.state.flush))
        server.on_loop(lambda: server.server._maintenance._expire(tablet))
        put(client, table, [100])
        assert tablet.log.start_offset == 10
        with pytest.raises(RefusedError, match="begins at offset 10") as refused:
            asked(client, table)
        assert refused.value.code == SNAPSHOT_NOT_EXIST
        everything = sorted([*range(10), 100])
        assert sorted(state_of(client, table)) == everything
        with fluss.connect(f"fluss://{server.address}") as session:
            found = session.table(f"fluss.{table.name}").scan().to_arrow()
            assert sorted(found.column("id").to_pylist()) == everything
        client.close()


def asked(client, table):
    return client.call(pb.GetLatestKvSnapshotsRequest(table_path=client.path(table.name)))


def put(client, table, keys):
    request = pb.PutKvRequest(acks=-1, table_id=client.table_id(table.name), timeout_ms=1_000)
    records = [((key, "word", key, None), False) for key in keys]
    request.buckets_req.add(bucket_id=0, records=table.kv_batch(records, schema_id=1))
    (answer,) = client.call(request).buckets_resp
    assert not answer.HasField("error_code"), answer.error_message
