"""A real Fluss with a lake of Iceberg tables; the embedded server has none."""

from __future__ import annotations

import uuid

import pytest

import fluss
from fluss_lake.catalogs import open_table
from fluss_testkit.lake_profile import iceberg_lake
from tests.support.servers.fix_cluster import IMPATIENT

LAKE = {"table.datalake.enabled": "true"}


@pytest.fixture(scope="module")
def lake_cluster(start_cluster, tmp_path_factory):
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
