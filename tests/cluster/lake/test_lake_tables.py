"""Tables of a cluster with a lake, on both servers: what is created, changed, and refused."""

from __future__ import annotations

import uuid

import pytest

from fluss_lake.catalogs import open_table
from tests.support.lake.lake_requests import LakeRequests

ENABLED, FRESHNESS = "table.datalake.enabled", "table.datalake.freshness"


@pytest.fixture
def requests(lake_cluster, session):
    made = LakeRequests(lake_cluster.bootstrap_servers, session.database)
    yield made
    made.client.close()


@pytest.fixture
def name():
    return f"t_{uuid.uuid4().hex[:8]}"


@pytest.fixture
def lake_properties(session):
    """The properties of a table in the lake that Fluss has given it."""

    def read(name, *, of=None):
        described = session.table(of or name).info
        table = open_table(described, {}) if of is None else _sibling(described, name)
        return {
            key: value
            for key, value in table.properties.items()
            if key.startswith("fluss.") or not key.startswith("write.")
        }

    return read


def _sibling(described, name):
    table = open_table(described, {})
    return table.catalog.load_table((described.table_path.database_name, name))


def test_every_table_has_the_format_and_enabled_ones_say_where_the_lake_is(requests, name):
    requests.create(name, properties={})
    assert requests.described(name)["properties"]["table.datalake.format"] == "iceberg"
    assert not any("iceberg." in key for key in requests.described(name)["properties"])
    requests.create(f"{name}_on")
    properties = requests.described(f"{name}_on")["properties"]
    assert properties["table.datalake.iceberg.type"] == "jdbc"
    assert properties["table.datalake.iceberg.uri"].startswith("jdbc:sqlite:/")
    assert "journal_mode=WAL" in properties["table.datalake.iceberg.uri"]
    assert properties["table.datalake.iceberg.warehouse"].startswith("file:///")
    assert not any("password" in key for key in properties)


TWO_KEYS = {"columns": [("id", "BIGINT"), ("name", "STRING")]}
REFUSED = {
    "a primary key of two columns": ({"keys": ["id", "name"], **TWO_KEYS}, -1),
    "two bucket keys": ({"bucket_keys": ["id", "name"], **TWO_KEYS}, -1),
    "a partition key that is no text": ({"partition_keys": ["id"], **TWO_KEYS}, 15),
    "a bucket key that cannot be divided": (
        {"columns": [("x", "DOUBLE")], "bucket_keys": ["x"]},
        -1,
    ),
    "a column of the name of a partition": (
        {"columns": [("id", "BIGINT"), ("id_bucket", "STRING")], "bucket_keys": ["id"]},
        -1,
    ),
    "settings of a lake": ({"properties": {"table.datalake.iceberg.uri": "x"}}, 39),
}


@pytest.mark.parametrize(("given", "code"), REFUSED.values(), ids=REFUSED)
def test_what_the_lake_cannot_have_is_refused(requests, name, given, code):
    assert requests.refusal(lambda: requests.create(name, **given)) == code
    assert requests.refusal(lambda: requests.info(name)) == 7
    requests.create(name)  # nothing of it is left


def test_a_table_that_exists_is_54(requests, name):
    requests.create(name)
    assert requests.refusal(lambda: requests.create(name)) == 54


def test_the_lake_keeps_a_dropped_table(requests, name, lake_properties):
    requests.create(name)
    requests.create(f"{name}_other")
    requests.drop(name)
    assert lake_properties(name, of=f"{name}_other")
    assert requests.refusal(lambda: requests.create(name)) == 54
    assert requests.refusal(lambda: requests.info(name)) == 7
    requests.create(name, properties={})
    assert requests.refusal(lambda: requests.alter(name, ENABLED, "true")) == 54
    assert requests.described(name)["properties"].get(ENABLED) != "true"


def test_a_table_is_enabled_later_and_once(requests, name, lake_properties):
    requests.create(name, properties={}, custom={"iceberg.write.x": "1", "mine": "a"})
    requests.alter(name, ENABLED, "true")
    assert requests.described(name)["properties"]["table.datalake.iceberg.type"] == "jdbc"
    assert lake_properties(name) == {
        "fluss.table.replication.factor": "1",
        "fluss.table.datalake.format": "iceberg",
        "fluss.table.datalake.enabled": "true",
        "fluss.mine": "a",
    }
    requests.alter(name, ENABLED, "false")
    assert "table.datalake.iceberg.type" not in requests.described(name)["properties"]
    assert requests.refusal(lambda: requests.alter(name, ENABLED, "true")) == 54


def test_changes_of_properties_reach_the_lake(requests, name, lake_properties):
    requests.create(name, custom={"mine": "a", "other": "b"})
    requests.alter(name, "mine", "c")
    requests.alter(name, "other", None)
    requests.alter(name, FRESHNESS, "10s")
    assert lake_properties(name) == {
        "fluss.table.replication.factor": "1",
        "fluss.table.datalake.format": "iceberg",
        "fluss.table.datalake.enabled": "true",
        "fluss.table.datalake.freshness": "10s",
        "fluss.mine": "c",
    }


def test_the_lake_follows_a_table_that_is_disabled(requests, name, lake_properties):
    requests.create(name)
    requests.create(f"{name}_other")
    requests.alter(name, ENABLED, None)
    requests.alter(name, "mine", "c")
    found = lake_properties(name, of=f"{name}_other")
    assert found["fluss.mine"] == "c"
    assert "fluss.table.datalake.enabled" not in found


def test_options_of_the_lake_s_own_cannot_be_changed(requests, name):
    requests.create(name)
    requests.create(f"{name}_off", properties={})
    set_it = ("iceberg.commit.retry.num-retries", "3")
    assert requests.refusal(lambda: requests.alter(name, *set_it)) == 39
    requests.alter(f"{name}_off", *set_it)
    assert requests.refusal(lambda: requests.alter(name, "table.datalake.format", "paimon")) == 56


def test_columns_are_not_added_while_there_is_a_lake(requests, name):
    requests.create(name)
    assert requests.refusal(lambda: requests.add_column(name, "n")) == -1
    requests.alter(name, ENABLED, "false")
    requests.add_column(name, "n")
    assert len(requests.described(name)["schema"]["columns"]) == 3
