"""What `ClusterReport` advises follows from what was found."""

import asyncio
from types import SimpleNamespace

import fluss.admin.health as health_module
from fluss.admin.health import ClusterReport, ServerHealth, cluster_report
from fluss.errors import ConnectError, ServerError, TableNotFoundError
from fluss.model.servers import ServerNode, ServerType

COORDINATOR = ServerHealth(node=ServerNode(0, "a", 1, ServerType.COORDINATOR), latency_ms=1.0)
TABLET = ServerHealth(
    node=ServerNode(1, "b", 2, ServerType.TABLET_SERVER),
    latency_ms=1.0,
    release="1.0",
    clock_skew_ms=3,
)


def health(*servers, **facts):
    found = {
        "databases": 1, "tables": 1, "tables_left_out": 0, "buckets": 4,
        "leaderless": (), "under_replicated": (), "unreadable": (),
    }  # fmt: skip
    return ClusterReport(servers=servers, **{**found, **facts})


def test_a_sound_cluster_needs_no_advice():
    assert health(COORDINATOR, TABLET).is_sound


def test_missing_servers_are_named():
    (advice,) = health(TABLET).advice
    assert "no coordinator" in advice
    (advice,) = health(COORDINATOR).advice
    assert "no tablet server" in advice


def test_each_finding_has_a_remedy():
    silent = ServerHealth(node=TABLET.node, error="no answer.")
    slow = ServerHealth(node=TABLET.node, latency_ms=250.0, clock_skew_ms=-61_500)
    assert "ts-1 at b:2 does not answer: no answer. Check" in health(COORDINATOR, silent).advice[0]
    late, clock = health(COORDINATOR, slow).advice
    assert "250 ms" in late
    assert "clock of ts-1 is 61.5 s behind" in clock
    (buckets,) = health(COORDINATOR, TABLET, leaderless=("a.b, bucket 0",) * 5).advice
    assert "5 buckets have no leader" in buckets
    assert "and 2 more" in buckets
    (replicas,) = health(COORDINATOR, TABLET, under_replicated=("a.b, bucket 0",)).advice
    assert "lack replicas (a.b, bucket 0)" in replicas
    assert not health(COORDINATOR, TABLET, unreadable=("a.b (why)",)).is_sound


class FakeAdmin:
    """Lists two servers, and tables of which one is gone and one cannot be read."""

    async def get_server_nodes(self):
        return [COORDINATOR.node, TABLET.node]

    async def list_databases(self):
        return ["db"]

    async def list_tables(self, database):  # noqa: ARG002 - as declared
        return ["gone", "broken"]

    async def get_table_info(self, path):
        error = TableNotFoundError if path.table_name == "gone" else ServerError
        raise error(f"{path} is not there.")


async def test_what_does_not_answer_is_a_finding_and_no_error(monkeypatch):
    async def silent(*_):
        await asyncio.Event().wait()

    async def refused(*_):
        raise ConnectError("Cannot connect to b:2: refused.")

    monkeypatch.setattr(health_module, "ANSWER_S_MAX", 0.01)
    cluster = SimpleNamespace(ask_coordinator=silent, ask_server=refused)
    found = await cluster_report(FakeAdmin(), cluster)
    coordinator, tablet = found.servers
    assert coordinator.error == "there was no answer within 0.01 s."
    assert "refused" in tablet.error
    assert (found.tables, found.unreadable) == (0, ("db.broken (db.broken is not there)",))
    assert len(found.advice) == 3
