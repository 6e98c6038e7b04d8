"""Passwords are looked up where they are used, and appear nowhere."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import fluss
import fluss_spark
from fluss_server.local_cluster import LocalCluster
from fluss_spark import FlussDataSource
from fluss_spark.spark_options import read_options
from tests.support.servers.local_spark import SECRET_VARIABLE, folder

PASSWORD = "security.sasl.password"


@pytest.fixture(scope="module")
def guarded(spark, tmp_path_factory):
    """A cluster that requires a password, which workers find in their environment."""
    users = {"reader": os.environ[SECRET_VARIABLE]}
    directory = tmp_path_factory.mktemp("guarded")
    with LocalCluster(directory, users=users, durability="none") as cluster:
        with fluss.connect(f"fluss://{cluster.bootstrap_servers}") as session:
            session.create_database("d")
            rows = pa.table({"id": [1, 2, 3]})
            session.create_table("d.log", rows, buckets=2).append(rows)
            session.create_table("d.keyed", rows, primary_key=["id"], buckets=1)
        yield cluster.sasl_bootstrap_servers


@pytest.fixture
def options(guarded):
    """How to log in, with a marker for the password."""
    return {
        "bootstrap.servers": guarded,
        "security.protocol": "sasl",
        "security.sasl.username": "reader",
        PASSWORD: f"${{env:{SECRET_VARIABLE}}}",
    }


@pytest.fixture
def secret(spark):
    return os.environ[SECRET_VARIABLE]


def event_log() -> str:
    return "".join(each.read_text() for each in (folder() / "events").rglob("*") if each.is_file())


def test_markers_are_resolved_on_the_workers(spark, options, secret, monkeypatch):
    monkeypatch.delenv(SECRET_VARIABLE)  # this process is neither driver's planner nor worker
    frame = spark.read.format("fluss").options(**options).load("d.log")
    assert frame.selectExpr("sum(id)").first()[0] == 6
    frame.write.format("fluss").options(**options).mode("append").save("d.keyed")
    given = {**options, PASSWORD: "${env:FLUSS_TEST_NO_SUCH}"}
    with pytest.raises(PySparkException, match="FLUSS_TEST_NO_SUCH"):
        spark.read.format("fluss").options(**given).load("d.log")


def test_what_is_shipped_holds_the_marker_and_not_the_secret(options, secret):
    source = FlussDataSource({**options, "path": "d.log"})
    partitions = source.reader(source.schema()).partitions()
    writer = source.writer(source.schema(), overwrite=False)
    for each in (partitions, writer, source):
        assert secret.encode() not in pickle.dumps(each)


def test_a_password_that_is_written_out_is_shown_nowhere(spark, options, secret, tmp_path):
    # One that was written out cannot be kept from the tasks; from everything that is shown, it can.
    given = {**options, PASSWORD: secret}
    listed = ", ".join(f"`{key}` '{value}'" for key, value in given.items())
    shown = []
    frame = spark.read.format("fluss").options(**given).load("d.log")
    assert frame.where("id > 1").count() == 2
    shown.append(frame._jdf.queryExecution().toString())
    spark.sql(f"CREATE TEMPORARY VIEW guarded USING fluss OPTIONS (path 'd.log', {listed})")
    try:
        viewed = spark.sql("SELECT sum(id) s FROM guarded")
        assert viewed.first()[0] == 6
        spark.sql("INSERT INTO guarded VALUES (4)")
        shown.append(viewed._jdf.queryExecution().toString())
        shown.append(str(spark.sql("DESCRIBE EXTENDED guarded").collect()))
    finally:
        spark.catalog.dropTempView("guarded")
    query = (
        spark.readStream.format("fluss")
        .options(**given)
        .option("start", "earliest")
        .load("d.log")
        .writeStream.format("fluss")
        .options(**given)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start("d.keyed")
    )
    query.awaitTermination(60)
    shown.append("".join(each.json for each in query.recentProgress))
    shown.append(query._jsq.explainInternal(True))
    shown += [each.read_text() for each in Path(tmp_path).rglob("*") if each.suffix == ""
              and each.is_file()]  # fmt: skip
    for wrong in ({"path": "d.lag"}, {"colums": "x"}, {PASSWORD: secret + "x"}, {"start": "soon"}):
        with pytest.raises(PySparkException) as refused:
            spark.read.format("fluss").options(**{"path": "d.log", **given, **wrong}).load()
        shown.append(str(refused.value))
    log = event_log()
    assert "SparkListenerSQLExecutionStart" in log
    for each in (*shown, log):
        assert secret not in each


@pytest.mark.parametrize(
    "url",
    [
        "fluss://reader:{}@127.0.0.1:1/d.log",
        " fluss://reader:{}@127.0.0.1:1/d.log",
        "fluss+sasl://reader:{}@127.0.0.1:1/d.log",
        "://reader:{}@127.0.0.1:1/d.log",
        "fluss://reader@127.0.0.1:1/d.log?security.sasl.password={}",
        "fluss://reader:{}@127.0.0.1:1/d.log$changelog",
    ],
)
def test_a_password_in_a_url_is_refused_and_not_shown(url, secret):
    # Spark redacts by the names of options, and `path` is not one of those.
    path = url.format(secret)
    for ask in (
        lambda: read_options({"path": path}, what="read"),
        lambda: read_options({"path": path, "table": "d.other"}, what="write"),
        lambda: FlussDataSource({"path": path}).schema(),
        lambda: fluss_spark.table(None, path),
        lambda: fluss_spark.upsert_batches(path),
        lambda: fluss_spark.register_views(None, path),
    ):
        with pytest.raises(fluss.FlussError) as refused:
            ask()
        assert secret not in f"{refused.value!r}{refused.value.facts}"


def test_a_marker_in_a_url_is_looked_up_when_connecting(guarded):
    url = f"fluss://reader:${{env:{SECRET_VARIABLE}}}@{guarded}/d.log"
    assert FlussDataSource({"path": url}).schema().names == ["id"]
    url = url.replace("d.log", "d.keyed$changelog?tail=1")
    assert "_change_type" in FlussDataSource({"path": url}).schema().names


@pytest.mark.parametrize("way", ["file", "directory", "unsubstituted"])
def test_markers_that_sql_leaves_as_they_are(spark, options, secret, tmp_path, way):
    """`${env:...}` is Spark's own in SQL, and becomes the password there."""
    file = tmp_path / "creds.properties"
    file.write_text(f"password={secret}\n")
    file.chmod(0o600)
    (tmp_path / "password").write_text(secret)
    (tmp_path / "password").chmod(0o600)
    marker = {
        "file": f"${{file:{file}:password}}",
        "directory": f"${{directory:{tmp_path}:password}}",
        "unsubstituted": options[PASSWORD],
    }[way]
    given = {**options, PASSWORD: marker, "path": "d.log"}
    listed = ", ".join(f"`{key}` '{value}'" for key, value in given.items())
    try:
        if way == "unsubstituted":
            spark.sql("SET spark.sql.variable.substitute=false")
        spark.sql(f"CREATE TEMPORARY VIEW marked USING fluss OPTIONS ({listed})")
        found = spark.sql("SELECT sum(id) FROM marked")
        leaf = found._jdf.queryExecution().analyzed().collectLeaves().head()
        assert leaf.options().get(PASSWORD) == marker
        assert found.first()[0] >= 6
    finally:
        spark.sql("RESET spark.sql.variable.substitute")
        spark.catalog.dropTempView("marked")
