"""What `fluss tier` reports to a person: no table, no table that is due, a table without a lake."""

from __future__ import annotations

import sys

import pytest

import fluss
from fluss.cli import main
from fluss.errors import FlussError
from fluss_server import LocalCluster

ENABLED = {"table.datalake.enabled": "true"}


@pytest.fixture
def tier(monkeypatch, capsys, tmp_path):
    """Run `fluss tier` in this process; return the exit code, the output, and the error output."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def one(url, *words):
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["fluss", "tier", *words, "--url", url])
        code = main()
        written = capsys.readouterr()
        return code, written.out, written.err

    return one


def test_each_outcome_says_what_to_do(tier, tmp_path):
    data = tmp_path / "data"
    with LocalCluster(data, durability="none") as cluster, fluss.connect(cluster.url) as session:
        session.create_database("shop")
        session.create_table("shop.old", {"id": "BIGINT"})
        code, out, err = tier(cluster.url, "status")
        assert (code, out) == (0, "")
        assert "No table has a lake.\n  hint: create tables with --set" in err
    with (
        LocalCluster(data, durability="none", lake=True) as cluster,
        fluss.connect(cluster.url) as session,
    ):
        url = cluster.url
        with pytest.raises(FlussError, match="enabled datalake") as refused:
            session.alter_table("shop.old", set_properties=ENABLED)
        assert "Create a table with the same columns" in refused.value.hint
        code, _, err = tier(url, "--now", "-t", "shop.old")
        assert code == 1
        assert "is not copied into a lake.\n  hint: Set its property" in err

        orders = session.create_table("shop.orders", {"id": "BIGINT"}, properties=ENABLED)
        orders.append({"id": [1, 2]})
        code, _, err = tier(url, "--once")
        assert code == 0
        assert "0 rounds, 0 changes copied\nNo table is due" in err
        assert "hint: `fluss tier --now` copies all rows now" in err
        code, _, err = tier(url, "--now")
        assert (code, orders.count(lake="only")) == (0, 2)
        assert " KB, snapshot " in err
        code, out, _ = tier(url, "status", "-o", "json")
        assert code == 0
        assert '"lag": 0' in out
        assert 'Z", "by": ' in out
        code, _, err = tier(url, "expire")
        assert (code, err) == (0, "shop.orders: 0 snapshots expired, 0 files removed\n")
