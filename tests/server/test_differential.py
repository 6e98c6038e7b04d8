"""The same random operations on the real server and on the embedded one, answered alike.

Every operation waits for its answer, so both servers have the same history. Answers are compared
as they come, error codes included, and at the end every log and every state once more. In between
the embedded server is killed, or stopped, and started again; the real one is not, because killed
it would lose what it acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from fluss.wire import messages as pb
from fluss_server.local import LocalCluster
from tests.support.profiles import IS_EXHAUSTIVE
from tests.support.raw_client import COORDINATOR, RawClient
from tests.support.twin_ddl import create
from tests.support.twin_operations import operate
from tests.support.twin_reads import read_log, scan_first
from tests.support.twin_servers import Twins
from tests.support.twin_tables import KINDS, TwinTable

SEEDS, OPERATIONS = (20, 1_000) if IS_EXHAUSTIVE else (1, 300)
# How many operations pass between two restarts of the embedded server.
RESTART_AFTER = 100


@pytest.fixture
def embedded(tmp_path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "embedded") as running:
        yield running


def _create_database(bootstrap: str, name: str) -> None:
    with RawClient(bootstrap) as client:
        request = pb.CreateDatabaseRequest(database_name=name, ignore_if_exists=True)
        client.call(request, to=COORDINATOR)


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_two_servers_answer_alike(cluster_kind, cluster, database, embedded, seed):
    if cluster_kind != "real":
        pytest.skip("two embedded servers have nothing to tell")
    _create_database(embedded.bootstrap_servers, database)
    twins = Twins(cluster.bootstrap, embedded.bootstrap_servers, database)
    try:
        _operate(Random(seed), twins, [TwinTable(kind) for kind in KINDS], embedded)
    finally:
        twins.close()


def _operate(chance: Random, twins: Twins, tables: list[TwinTable], embedded: LocalCluster) -> None:
    for each in tables:
        create(chance, twins, each)
    for number in range(1, OPERATIONS + 1):
        operate(chance, twins, chance.choice(tables))
        if number % RESTART_AFTER == 0:
            _start_again(twins, embedded, is_killed=chance.random() < 0.7)
    _compare_all(twins, tables)


def _start_again(twins: Twins, embedded: LocalCluster, *, is_killed: bool) -> None:
    twins.history.append(f"the embedded server is {'killed' if is_killed else 'stopped'}")
    if is_killed:
        embedded.kill()
    embedded.stop()
    embedded.start()
    twins.reconnect(embedded=embedded.bootstrap_servers)


def _compare_all(twins: Twins, tables: list[TwinTable]) -> None:
    for each in tables:
        for partition in _partitions_of(each):
            for bucket in range(each.descriptor.bucket_count or 1):
                read_log(twins, each, (partition, bucket))
                if each.kind.keys:
                    scan_first(twins, each, (partition, bucket), limit=10_000)


def _partitions_of(table: TwinTable) -> list[str | None]:
    if not table.exists:
        return []
    return list(table.partitions) if table.kind.partition_by else [None]
