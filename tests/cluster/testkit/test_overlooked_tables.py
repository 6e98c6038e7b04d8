"""Tables of a real server get their leaders also where several threads create them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pyarrow as pa
import pytest

import fluss
from fluss_testkit.ports import HOST
from fluss_testkit.zookeeper import ZooKeeper, ZooKeeperError

THREADS = 4
TABLES = 15
ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture(scope="module")
def running(start_cluster):
    with start_cluster() as running:
        yield running


def test_every_table_has_a_leader(running):
    with fluss.connect(
        f"fluss://{running.bootstrap_servers}", operation_timeout_ms="20000"
    ) as session:

        def make(thread):
            for each in range(TABLES):
                session.create_table(f"fluss.t{thread}_{each}", ROWS).append(ROWS)

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(make, range(THREADS)))


def test_a_node_is_read_and_replaced_unless_another_client_changed_it(running):
    with fluss.connect(f"fluss://{running.bootstrap_servers}") as session:
        session.create_table("fluss.seen", ROWS)
    with closing(ZooKeeper(HOST, running.config.zookeeper_port)) as zookeeper:
        node = "/fluss/metadata/databases/fluss/tables/seen"
        data, version = zookeeper.get(node)
        assert b'"bucket_count"' in data
        assert zookeeper.set(node, data, version) == version + 1
        with pytest.raises(ZooKeeperError) as refused:
            zookeeper.set(node, data, version)
        assert refused.value.code == -103
        with pytest.raises(ZooKeeperError, match="/fluss/nothing"):
            zookeeper.get("/fluss/nothing")
