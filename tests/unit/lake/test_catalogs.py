"""The catalog that a table's properties describe, as pyiceberg wants it."""

import pytest

from fluss.errors import ConfigError, FlussError, UnsupportedOperationError
from fluss_lake.catalog_properties import DEFAULT_NAME, catalog_name, catalog_properties
from fluss_lake.catalogs import open_table
from tests.unit.lake.tables import schema_of, table_of


def properties_of(**given):
    return {f"table.datalake.iceberg.{key.replace('_', '.')}": text for key, text in given.items()}


def test_a_file_of_sqlite():
    given = properties_of(
        type="jdbc",
        uri="jdbc:sqlite:/data/catalog.db?journal_mode=WAL",
        jdbc_user="fluss",
        warehouse="file:///data/warehouse",
    )
    assert catalog_name(given) == DEFAULT_NAME
    assert catalog_properties(given, {}) == {
        "type": "sql",
        "uri": "sqlite:////data/catalog.db",
        "init_catalog_tables": "false",
        "warehouse": "file:///data/warehouse",
    }


def test_postgresql_with_a_password_of_the_user():
    given = properties_of(
        type="jdbc", uri="jdbc:postgresql://db:5432/lake?ssl=true", jdbc_user="a b"
    )
    found = catalog_properties(given, {"password": "p@ss/w"})
    assert found["uri"] == "postgresql+psycopg2://a%20b:p%40ss%2Fw@db:5432/lake?ssl=true"
    assert not any("password" in key for key in found)


def test_rest_and_object_storage():
    given = properties_of(type="rest", uri="http://catalog:8181", name="ours") | {
        "table.datalake.iceberg.s3.path-style-access": "true",
        "table.datalake.iceberg.client.region": "eu-1",
        "table.replication.factor": "1",
    }
    found = catalog_properties(given, {"s3.access-key-id": "k", "client-secret": "id:s"})
    assert catalog_name(given) == "ours"
    assert found == {
        "type": "rest",
        "uri": "http://catalog:8181",
        "s3.force-virtual-addressing": "false",
        "s3.region": "eu-1",
        "s3.access-key-id": "k",
        "credential": "id:s",
        "oauth2-server-uri": "http://catalog:8181/v1/oauth/tokens",
    }


def test_a_token_counts_more_than_what_the_cluster_would_ask_one_for():
    given = properties_of(type="rest", uri="http://catalog", credential="id:s")
    found = catalog_properties(given, {"token": "t"})
    assert found == {"type": "rest", "uri": "http://catalog", "token": "t"}


def test_what_cannot_be_opened_is_refused():
    with pytest.raises(ConfigError, match="which catalog"):
        catalog_properties({}, {})
    with pytest.raises(UnsupportedOperationError, match="'hadoop'"):
        catalog_properties(properties_of(type="hadoop"), {})


def test_what_the_user_sets_wins_over_what_the_cluster_says(monkeypatch, tmp_path):
    opened = {}

    def load(name, **properties):
        opened[name] = properties
        raise OSError("no such host")

    monkeypatch.setattr("fluss_lake.catalogs.load_catalog", load)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYICEBERG_CATALOG__FLUSS_ICEBERG_CATALOG__URI", "postgresql://u:p@db/lake")
    monkeypatch.setenv("PYICEBERG_CATALOG__FLUSS_ICEBERG_CATALOG__S3__ACCESS_KEY_ID", "key")
    given = properties_of(type="jdbc", uri="jdbc:postgresql://db/lake", warehouse="s3://a/b")
    with pytest.raises(FlussError, match="no such host") as raised:
        open_table(table_of(schema_of(id="INT"), properties=given), {})
    assert opened[DEFAULT_NAME]["uri"] == "postgresql://u:p@db/lake"
    assert opened[DEFAULT_NAME]["s3.access-key-id"] == "key"
    assert opened[DEFAULT_NAME]["warehouse"] == "s3://a/b"
    assert "lake='off'" in raised.value.hint
