"""The Spark session of the tests, and short ways to read and write."""

from __future__ import annotations

from pathlib import Path

import pytest

import fluss
from fluss_server import LocalCluster
from tests.support.servers.fix_cluster import IMPATIENT
from tests.support.servers.local_spark import local_spark

pytest.importorskip("pyspark", reason="pip install 'fluss-spark[spark]'")


HERE = Path(__file__).parent
TIMEOUT_S = 600


def pytest_collection_modifyitems(items):
    # One that is interrupted leaves Spark's session useless to all that follow.
    for item in items:
        if item.path.parent == HERE and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def spark():
    """A local Spark session with two threads."""
    return local_spark()


@pytest.fixture
def session(cluster, database):
    """A Fluss session; Spark finds the same cluster by the options that tests give."""
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}", **IMPATIENT) as opened:
        yield opened


@pytest.fixture(scope="module")
def lake_session(tmp_path_factory):
    """A Fluss session of an embedded server with a lake, with the database `spark`."""
    folder = tmp_path_factory.mktemp("lake")
    with (
        LocalCluster(folder, durability="none", lake=True, in_thread=True) as cluster,
        fluss.connect(f"fluss://{cluster.bootstrap_servers}/spark", **IMPATIENT) as opened,
    ):
        opened.create_database("spark")
        yield opened


@pytest.fixture
def read(spark, cluster, database):
    """`read("table", **options)`: a DataFrame of a table of the test's database."""

    def one(name: str, **options: object):
        reader = spark.read.format("fluss").option("bootstrap.servers", cluster.bootstrap)
        for key, value in options.items():
            reader = reader.option(key, value)
        return reader.load(f"{database}.{name}")

    return one


@pytest.fixture
def save(cluster, database):
    """`save(frame, "table", **options)`: writes a DataFrame to a table of the test's database."""

    def one(frame, name: str, **options: object) -> None:
        writer = frame.write.format("fluss").mode("append")
        writer = writer.option("bootstrap.servers", cluster.bootstrap)
        for key, value in options.items():
            writer = writer.option(key, value)
        writer.save(f"{database}.{name}")

    return one
