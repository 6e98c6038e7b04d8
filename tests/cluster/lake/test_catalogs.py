"""Lakes with other catalogs on a real Fluss: what a client needs to read them."""

from __future__ import annotations

import dataclasses
import pickle
import uuid

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import fluss
from fluss.errors import AuthenticationError, ConnectError, FlussError
from fluss_lake.catalogs import open_table
from fluss_testkit.artifact import Artifact
from fluss_testkit.lake_profile import FLUSS_LAKE_ICEBERG, HADOOP, iceberg_lake
from tests.cluster.lake.conftest import LAKE
from tests.support.lake.plain_tiering import tier_log
from tests.support.lake.postgresql import DATABASE, PASSWORD, USER, postgresql
from tests.support.lake.rest_catalog import CLIENT, SECRET, rest_catalog
from tests.support.servers.fix_cluster import IMPATIENT

POSTGRESQL_DRIVER = Artifact(
    group="org.postgresql",
    name="postgresql",
    version="42.7.4",
    sha256="188976721ead8e8627eb6d8389d500dccc0c9bebd885268a3047180274a6031e",
    size_bytes=1_086_687,
)


def profile_of(folder, options, *jars):
    base = iceberg_lake(folder)
    kept = {"datalake.format": "iceberg", **options}
    return dataclasses.replace(
        base, options=kept, plugins={"iceberg": (FLUSS_LAKE_ICEBERG, HADOOP, *jars)}
    )


@pytest.fixture(scope="module")
def in_postgresql(start_cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    with postgresql() as address:
        options = {
            "datalake.iceberg.type": "jdbc",
            "datalake.iceberg.uri": f"jdbc:postgresql://{address}/{DATABASE}",
            "datalake.iceberg.jdbc.user": USER,
            "datalake.iceberg.jdbc.password": PASSWORD,
            "datalake.iceberg.jdbc.schema-version": "V1",
            "datalake.iceberg.warehouse": (folder / "warehouse").as_uri(),
        }
        with start_cluster(profile_of(folder, options, POSTGRESQL_DRIVER)) as running:
            yield running


@pytest.fixture(scope="module")
def behind_rest(start_cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    beneath = SqlCatalog(
        "beneath", uri=f"sqlite:///{folder / 'rest.db'}", warehouse=(folder / "warehouse").as_uri()
    )
    with rest_catalog(beneath) as address:
        options = {
            "datalake.iceberg.type": "rest",
            "datalake.iceberg.uri": address,
            "datalake.iceberg.credential": f"{CLIENT}:{SECRET}",
        }
        with start_cluster(profile_of(folder, options)) as running:
            yield running


def read_through(cluster, settings):
    """Write, copy into the lake, write again; return the table and a session without a login."""
    name = f"lake_{uuid.uuid4().hex[:8]}"
    url = f"fluss://{cluster.bootstrap_servers}/{name}"
    with fluss.connect(url, config=settings, **IMPATIENT) as session:
        session.create_database(name)
        session.create_table("log", {"id": "BIGINT"}, buckets=2, properties=LAKE)
        table = session.table("log")
        table.append(pa.table({"id": range(500)}))
        rows = table.scan(with_metadata=True, lake="off").to_arrow()
        given = table._core.connection.lake_settings()
        tier_log(table, cluster.bootstrap_servers, open_table(table.info, given), rows)
        table.append(pa.table({"id": range(500, 600)}))
        scan = table.scan()
        assert "lake: snapshot" in scan.explain()
        assert sorted(scan.to_arrow()["id"].to_pylist()) == list(range(600))
        assert table.scan(lake="only").count() == 500
        check_secrecy(table, scan, [each for each in settings.values() if each != USER])
    return f"{name}.log"


def check_secrecy(table, scan, secrets):
    # Not the table's properties: 0.9.1 tells each client the credential of a REST catalog.
    shown = [scan.explain(), repr(scan), repr(table), repr(table.to_source())]
    for secret in secrets:
        assert all(secret not in each for each in shown)
        for each in (*scan.splits(), table.to_source()):
            assert secret.encode() not in pickle.dumps(each)


def refused(cluster, name, settings, kind):
    with fluss.connect(
        f"fluss://{cluster.bootstrap_servers}", config=settings, **IMPATIENT
    ) as session:
        with pytest.raises(kind) as found:
            session.table(name).scan().count()
        assert session.table(name).scan(lake="off").count() == 600
    assert "lake='off'" in found.value.hint
    for secret in settings.values():
        assert secret not in str(found.value)
    return found.value


def test_a_catalog_in_postgresql(in_postgresql, monkeypatch):
    name = read_through(in_postgresql, {"lake.password": PASSWORD})
    refused(in_postgresql, name, {}, AuthenticationError)
    refused(in_postgresql, name, {"lake.password": "not-it-9"}, AuthenticationError)
    gone = refused(in_postgresql, name, {"lake.uri": "jdbc:postgresql://127.0.0.1:1/x"}, FlussError)
    assert isinstance(gone, ConnectError)
    monkeypatch.setenv("FLUSS_LAKE_PASSWORD", PASSWORD)
    with fluss.connect(f"fluss://{in_postgresql.bootstrap_servers}") as session:
        assert session.table(name).count() == 600


def test_a_rest_catalog(behind_rest, monkeypatch):
    name = read_through(behind_rest, {"lake.client-secret": f"{CLIENT}:{SECRET}"})
    refused(behind_rest, name, {"lake.client-secret": f"{CLIENT}:not-it-9"}, AuthenticationError)
    refused(behind_rest, name, {"lake.token": "not-it-9"}, AuthenticationError)
    monkeypatch.setenv("FLUSS_LAKE_CLIENT_SECRET", f"{CLIENT}:{SECRET}")
    with fluss.connect(f"fluss://{behind_rest.bootstrap_servers}") as session:
        assert session.table(name).count() == 600
