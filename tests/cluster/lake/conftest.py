"""Servers with a lake of Iceberg tables: a real Fluss with its plugin, and the embedded server."""

from __future__ import annotations

import uuid

import pytest

import fluss
from fluss_lake.catalogs import open_table
from fluss_server import LocalCluster
from fluss_testkit.lake_profile import iceberg_lake
from tests.support.servers.fix_cluster import IMPATIENT, server_kinds

LAKE = {"table.datalake.enabled": "true"}


@pytest.fixture(scope="module", params=server_kinds())
def lake_cluster(request, tmp_path_factory):
    if request.param == "embedded":
        folder = tmp_path_factory.mktemp("lake")
        # A process of its own imports pyiceberg again for each file: a second of processor time.
        with LocalCluster(folder, durability="none", lake=True, in_thread=True) as running:
            yield running
        return
    start_cluster = request.getfixturevalue("start_cluster")
    with start_cluster(iceberg_lake(tmp_path_factory.mktemp("lake"))) as running:
        yield running


@pytest.fixture(scope="module")
def session(lake_cluster):
    name = f"lake_{uuid.uuid4().hex[:8]}"
    with fluss.connect(f"fluss://{lake_cluster.bootstrap_servers}/{name}", **IMPATIENT) as opened:
        opened.create_database(name)
        yield opened


@pytest.fixture(scope="module")
def iceberg():
    return lambda table: open_table(table.info, {})
