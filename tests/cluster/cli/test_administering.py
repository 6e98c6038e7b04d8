"""Servers, settings, rebalances and access from a terminal."""

from __future__ import annotations

import json

import pytest

from fluss_server.local_cluster import LocalCluster


@pytest.fixture(scope="module")
def cluster():
    """An embedded server with access control, of its own; the plain port is its super user."""
    with LocalCluster(users={"ann": "1"}, super_users=["ANONYMOUS"]) as running:
        yield Bootstrap(running.bootstrap_servers)


class Bootstrap:
    def __init__(self, bootstrap):
        self.bootstrap = bootstrap


@pytest.fixture
def database():
    return "fluss"


def records(done):
    assert done.returncode == 0, done.said
    return [json.loads(each) for each in done.stdout.splitlines()]


def test_servers_and_their_health_are_listed(run):
    found = records(run("cluster", "servers"))
    assert [(each["server"], each["rack"]) for each in found] == [("cs-0", None), ("ts-0", None)]
    (health,) = records(run("cluster", "health"))
    assert health["status"] == "GREEN"


def test_settings_are_changed_and_shown(run):
    key = "kv.snapshot.interval"
    done = run("cluster", "settings", "--set", f"{key}=5 min")
    assert done.said == f"changed {key}\n"
    found = {each["key"]: each["value"] for each in records(run("cluster", "settings"))}
    assert found[key] == "5 min"
    assert run("cluster", "settings", "--reset", key).returncode == 0
    assert key not in {each["key"] for each in records(run("cluster", "settings"))}
    done = run("cluster", "settings", "--set", "data.dir=/x")
    assert (done.returncode, "not allowed to be changed" in done.said) == (1, True)
    done = run("cluster", "settings", "--append", key)
    assert (done.returncode, "is not KEY=VALUE" in done.said) == (2, True)


def test_a_tag_and_a_rebalance(run):
    done = run("cluster", "tag", "temporary_offline", "--server", "0")
    assert done.said == "marked server 0 as temporary_offline\n"
    done = run("cluster", "rebalance")
    assert (done.returncode, "add --yes" in done.said) == (2, True)
    rebalance_id = run("cluster", "rebalance", "rack_aware", "--yes").stdout.decode().strip()
    done = run("cluster", "progress", "--id", rebalance_id)
    assert done.said == f"rebalance {rebalance_id}: COMPLETED, nothing to move\n"
    assert run("cluster", "cancel", "--yes").returncode == 0
    assert run("cluster", "untag", "temporary_offline", "--server", "0").returncode == 0
    done = run("cluster", "tag", "temporary_offline")
    assert (done.returncode, "which servers?" in done.said) == (2, True)


def test_rights_are_granted_listed_and_taken_back(run):
    done = run("acl", "grant", "ann", "read", "write", "--table", "fluss.t")
    assert done.said == "User:ann may READ table fluss.t\nUser:ann may WRITE table fluss.t\n"
    assert run("acl", "grant", "*", "describe", "--cluster").returncode == 0
    found = records(run("acl", "ls", "--principal", "ann"))
    assert [each["operation"] for each in found] == ["READ", "WRITE"]
    assert len(records(run("acl", "ls"))) == 3
    assert len(records(run("acl", "ls", "--table", "fluss.t"))) == 2
    done = run("acl", "revoke", "ann", "write", "--table", "fluss.t", "--yes")
    assert done.said == "taken back: User:ann may WRITE table fluss.t\n"
    done = run("acl", "revoke", "ann", "drop", "--table", "fluss.t", "--yes")
    assert "has no such entry" in done.said
    done = run("acl", "grant", "ann", "read")
    assert (done.returncode, "--table, --database or --cluster" in done.said) == (2, True)
    done = run("acl", "grant", "ann", "raed", "--cluster")
    assert (done.returncode, "did you mean 'READ'" in done.said) == (1, True)
