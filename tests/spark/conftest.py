"""One Spark for all tests of a worker: it takes seconds to start, and is the same for everybody."""

from __future__ import annotations

import os
import shutil
import sys
import warnings

import pytest

import fluss

pyspark = pytest.importorskip("pyspark", reason="pip install 'fluss-spark[spark]'")


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A local Spark session with two threads."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        missing = "Spark needs Java 17: install a JRE, or set JAVA_HOME"
        if os.environ.get("FLUSS_TEST_REQUIRE_REAL") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    import fluss_spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = tmp_path_factory.mktemp("spark")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own, of the newest pandas
        session = fluss_spark.session(
            "tests",
            master="local[2]",
            spark__ui__enabled=False,
            spark__sql__shuffle__partitions=2,
            spark__sql__warehouse__dir=folder / "warehouse",
            spark__log__level="OFF",
            spark__driver__host="127.0.0.1",
        )
        yield session
        session.stop()


@pytest.fixture
def session(cluster, database):
    """A Fluss session; Spark finds the same cluster by the options that tests give."""
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}") as opened:
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
