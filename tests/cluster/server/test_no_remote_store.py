"""The embedded server keeps all segments in its directory, as docs/server.md says."""

from pathlib import Path

import pytest

import fluss
from fluss.wire import messages as pb
from fluss_server.local_cluster import LocalCluster
from tests.support.servers.raw_client import COORDINATOR, RawClient

ROOT = Path(__file__).resolve().parents[3]
ROWS = 20_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with LocalCluster(tmp_path_factory.mktemp("server"), durability="none") as running:
        yield running


def test_no_segment_moves_and_no_token_is_needed(server):
    options = {"table.log.tiered.local-segments": "1"}
    with fluss.connect(f"fluss://{server.bootstrap_servers}/d") as session:
        session.create_database("d")
        first = {"id": list(range(ROWS))}
        table = session.append("d.t", first, create=True, buckets=1, properties=options)
        table = session.table("d.t")
        assert table.scan().to_arrow().num_rows == ROWS
        assert session.counters()["remote_reads"] == 0
        table_id = table.info.table_id
    with RawClient(server.bootstrap_servers) as client:
        listed = client.call(pb.ListRemoteLogManifestsRequest(table_id=table_id), to=COORDINATOR)
        token = client.call(pb.GetFileSystemSecurityTokenRequest())
    assert not listed.manifests
    assert (token.schema, token.token) == ("file", b"")


def test_the_page_of_the_server_says_so():
    words = " ".join((ROOT / "docs" / "server.md").read_text("utf-8").split())
    assert "All segments stay in its directory" in words
