"""Every public method of Java's client 1.0.0 on each server, compared with the record."""

import pytest

from fluss_server.local_cluster import LocalCluster
from fluss_testkit.cluster_profiles import Profile
from tests.support.servers.every_method import (
    NEVER,
    OK,
    answers_of,
    call_every_method,
    read_table,
)

USERS = {"admin": "secret-1"}
METHODS = 135


def asked(bootstrap):
    answers = call_every_method(bootstrap, database="every", user="admin", password="secret-1")
    assert [each.methods for each in answers if each.case == NEVER] == [], "never called"
    return {each.case: each.text for each in answers}


@pytest.mark.usefixtures("java")
@pytest.mark.slow  # a compiler, and one start of a JVM
def test_the_embedded_server_answers_as_recorded():
    options = {"super_users": ["admin"], "kv_snapshot_interval": "1 s"}
    with LocalCluster(users=USERS, **options) as cluster:
        assert asked(cluster.sasl_bootstrap_servers) == answers_of("embedded")


@pytest.mark.slow  # a compiler, two starts of a JVM, and the retries of a client that finds no server of 1.0
def test_a_real_server_answers_as_recorded(start_cluster):
    options = {
        "authorizer.enabled": "true",
        "super.users": "User:admin;User:ANONYMOUS",
        "kv.snapshot.interval": "1s",
    }
    with start_cluster(Profile(), options=options, users=USERS) as cluster:
        assert asked(cluster.sasl_bootstrap_servers) == answers_of("0.9.1")


@pytest.mark.parametrize("line", read_table(), ids=lambda line: line["case"])
def test_what_succeeds_on_main_succeeds_here(line):
    if line["main"].startswith(OK):
        assert line["embedded"].startswith(OK)
    differs = line["main"] != line["embedded"]
    assert differs == bool(line["difference"]), "a difference has a reason, and only a difference"


def test_the_table_has_every_method_of_the_client():
    methods = {method for line in read_table() for method in line["methods"].split(" ")}
    assert len(methods) == METHODS
