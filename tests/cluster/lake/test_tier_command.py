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
def run(monkeypatch, capsys, tmp_path):
    """Run `fluss` in this process; return the exit code, the output, and the error output."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def one(url, *words):
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["fluss", *words, "--url", url])
        code = main()
        written = capsys.readouterr()
        return code, written.out, written.err

    return one


@pytest.fixture
def tier(run):
    """Run `fluss tier` likewise."""
    return lambda url, *words: run(url, "tier", *words)


def test_each_outcome_says_what_to_do(tier, tmp_path):
    data = tmp_path / "data"
    with (
        LocalCluster(data, durability="none", in_thread=True) as cluster,
        fluss.connect(cluster.url) as session,
    ):
        session.create_database("shop")
        session.create_table("shop.old", {"id": "BIGINT"})
        code, out, err = tier(cluster.url, "status")
        assert (code, out) == (0, "")
        assert "No table has a lake.\n  hint: create tables with --set" in err
    with (
        LocalCluster(data, durability="none", lake=True, in_thread=True) as cluster,
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


def test_commands_read_the_lake_the_log_or_both(run, tmp_path):
    with (
        LocalCluster(tmp_path / "data", durability="none", lake=True) as cluster,
        fluss.connect(cluster.url) as session,
    ):
        url = cluster.url
        session.create_database("shop")
        session.create_table("shop.plain", {"id": "INT"})
        orders = session.create_table(
            "shop.orders", {"id": "INT NOT NULL"}, primary_key="id", buckets=1, properties=ENABLED
        )
        orders.upsert({"id": [1, 2]})
        assert run(url, "tier", "--now")[0] == 0
        orders.upsert({"id": [3]})
        for words, rows in (((), 3), (("--lake", "only"), 2), (("--lake", "off"), 3)):
            code, out, _ = run(url, "count", "shop.orders", *words)
            assert (code, out) == (0, f"{rows}\n")
            code, out, _ = run(url, "head", "shop.orders", "-o", "json", *words)
            assert (code, len(out.splitlines())) == (0, rows)
            code, _, err = run(url, "export", "shop.orders", str(tmp_path / "o.csv"), *words)
            assert (code, f"{rows} rows read" in err) == (0, True)
        code, _, err = run(url, "head", "shop.orders", "--lake", "all")
        assert (code, "is none of union, only, off" in err) == (1, True)
        code, _, err = run(url, "head", "shop.plain$lake")
        assert (code, "leave lake out, and $lake of the table's name" in err) == (1, True)

        for file in tmp_path.rglob("*.parquet"):
            file.unlink()
        code, _, err = run(url, "head", "shop.orders")
        assert code == 1
        assert "--lake off reads what Fluss itself holds" in err
