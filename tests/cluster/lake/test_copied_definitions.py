"""Definitions of tables with a lake, copied on the same cluster."""

from __future__ import annotations

import sys

import pytest

from fluss.cli import main
from tests.cluster.lake.conftest import LAKE


@pytest.fixture
def table(session):
    session.create_table("tiered", {"id": "INT"}, buckets=2, properties=LAKE)
    return session.table("tiered")


def test_a_table_with_a_lake_can_be_created_like_another(
    lake_cluster, session, table, monkeypatch, capsys
):
    monkeypatch.delenv("FLUSS_URL", raising=False)
    monkeypatch.setenv("FLUSS_BOOTSTRAP_SERVERS", lake_cluster.bootstrap_servers)
    assert [each for each in table.info.properties if each.startswith("table.datalake.iceberg.")]
    copied = f"{table.name}_2"
    monkeypatch.setattr(sys, "argv", ["fluss", "create", copied, "--like", table.name])
    assert main() == 0, capsys.readouterr().err
    assert session.table("tiered_2").info.properties == table.info.properties
