"""Spark in its other forms: Connect, a cluster without our packages, Java from pip, pipelines.

Each test starts a Spark of its own, which takes too long for every change: `./dev prove pipeline`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest

import fluss
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.servers.shipped import write_zip

ROOT = Path(__file__).resolve().parents[3]
DECLARED = ROOT / "examples/pipeline/declarative"
TIMEOUT_S = 600

pytestmark = [
    pytest.mark.skipif(not IS_EXHAUSTIVE, reason="a Spark of its own: ./dev prove pipeline"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

SCRIPTS_NEED = ("bash", "sh", "dirname", "uname", "ps", "cat", "chmod", "ls", "id", "env", "rm")

# Reads, filters, writes and streams; the test that runs it checks the result.
JOB = """
import os, sys, tempfile
import fluss_spark

servers, database = sys.argv[1:3]
options = {"bootstrap.servers": servers}
spark = START
assert spark.conf.get("spark.sql.timeType.enabled") == "true"
assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
frame = spark.read.format("fluss").options(**options).load(f"{database}.log")
assert frame.where("id > 90").count() == 9, frame.count()
frame.write.format("fluss").options(**options).mode("append").save(f"{database}.keyed")
if "batch" in sys.argv:
    sys.exit(0)
(
    spark.readStream.format("fluss").options(**options, start="earliest").load(f"{database}.log")
    .writeStream.format("fluss").options(**options)
    .option("checkpointLocation", tempfile.mkdtemp())
    .trigger(availableNow=True).start(f"{database}.copy").awaitTermination()
)
print("tasks", frame.rdd.getNumPartitions() if hasattr(spark, "_jsparkSession") else "-")
spark.stop()
"""


@pytest.fixture
def tables(session):
    rows = pa.table({"id": list(range(100)), "v": [f"v{each}" for each in range(100)]})
    session.create_table("log", rows, buckets=4).append(rows)
    session.create_table("keyed", rows, primary_key=["id"], buckets=2)
    session.create_table("copy", rows, buckets=2)
    return session


def run(tmp_path, start, *arguments, python=sys.executable, **environ):
    job = tmp_path / "job.py"
    job.write_text(JOB.replace("START", start))
    done = subprocess.run(
        [python, str(job), *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, **environ},
    )
    said = [each for each in done.stderr.splitlines() if not each.lstrip().startswith("at ")]
    assert done.returncode == 0, "\n".join([done.stdout, *said])
    assert "registered data source" not in done.stderr
    return done.stdout


def check(tables):
    assert tables.table("keyed").count() == 100
    assert sorted(tables.table("copy").to_arrow()["id"].to_pylist()) == list(range(100))


def test_spark_connect(tables, cluster, database, tmp_path):
    run(tmp_path, "fluss_spark.session(remote='local[2]')", cluster.bootstrap, database)
    check(tables)


def test_workers_of_a_cluster_are_sent_what_they_need(tables, cluster, database, tmp_path):
    packages = write_zip(tmp_path / "fluss.zip")
    # A Python with pyarrow and the like, and nothing of ours: .pth files are not looked at.
    bare = tmp_path / "python"
    bare.write_text(
        "#!/bin/sh\n"
        f'PYTHONPATH="$PYTHONPATH:{sysconfig.get_paths()["purelib"]}" exec {sys.executable} -S "$@"\n'
    )
    bare.chmod(0o755)
    start = (
        "fluss_spark.session(master='local-cluster[2,1,1024]', spark__ui__enabled=False, "
        "spark__driver__host='127.0.0.1'{})"
    )
    arguments = (cluster.bootstrap, database)
    with pytest.raises(AssertionError, match="No module named 'fluss"):
        run(tmp_path, start.format(""), *arguments, PYSPARK_PYTHON=str(bare))
    shipped = f", spark__submit__pyFiles={str(packages)!r}"
    try:
        # A stream's source runs beside the driver, where Spark does not unpack what it ships.
        run(tmp_path, start.format(shipped), *arguments, "batch", PYSPARK_PYTHON=str(bare))
        assert tables.table("keyed").count() == 100
        run(tmp_path, start.format(""), *arguments)
        check(tables)
    finally:  # where such a cluster keeps what it was sent
        shutil.rmtree(Path(find_spec("pyspark").origin).parent / "work", ignore_errors=True)


def test_java_from_pip_runs_spark(tables, cluster, database, tmp_path):
    folders = os.environ["PATH"].split(os.pathsep)
    without = os.pathsep.join(each for each in folders if not (Path(each) / "java").exists())
    links = tmp_path / "bin"
    links.mkdir()  # what Spark's scripts need, from folders that have a Java as well
    for each in SCRIPTS_NEED:
        found = next((Path(f) / each for f in folders if (Path(f) / each).exists()), None)
        if found is not None:
            (links / each).symlink_to(found)
    path = os.pathsep.join([str(links), without])
    start = "fluss_spark.session(master='local[2]', spark__ui__enabled=False)"
    run(tmp_path, start, cluster.bootstrap, database, PATH=path, JAVA_HOME="")
    check(tables)


def test_a_declared_pipeline_goes_on_where_it_was(cluster, tmp_path):
    raw = pa.schema([("file", pa.string()), ("line", pa.string())])
    expected = pa.schema(
        [
            ("id", pa.string()),
            ("user", pa.string()),
            ("page", pa.string()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("spent_ms", pa.int32()),
        ]
    )
    line = (
        '{{"id": "c{0}", "user": "u", "page": "/", "at": "2026-01-01T00:00:00Z", "spent_ms": {0}}}'
    )
    for each in ("spark-pipeline.yml", "transformations"):
        (tmp_path / each).symlink_to(DECLARED / each)
    commands = re.findall(
        r"^(?:sed|spark-pipelines) .*", (DECLARED / "README.md").read_text(), re.MULTILINE
    )
    assert len(commands) == 2
    spark = Path(find_spec("pyspark").origin).parent
    environ = {
        **os.environ,
        "FLUSS_BOOTSTRAP_SERVERS": cluster.bootstrap,
        "PATH": f"{spark / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(spark),
    }
    with fluss.connect(f"fluss://{cluster.bootstrap}") as session:
        session.drop_database("clicks", ignore_if_not_exists=True, cascade=True)
        session.create_database("clicks")
        try:
            log = session.create_table("clicks.raw", raw, buckets=2)
            for begin in (0, 50):
                lines = [line.format(each) for each in range(begin, begin + 50)]
                log.append({"file": ["f"] * 51, "line": [*lines, "{"]})
                done = subprocess.run(
                    ["bash", "-ec", "\n".join(commands)],
                    capture_output=True,
                    text=True,
                    timeout=TIMEOUT_S,
                    check=False,
                    env=environ,
                    cwd=tmp_path,
                )
                assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
                declared = session.table("clicks.declared").to_arrow()
                assert declared.schema.equals(expected)
                assert sorted(declared["spent_ms"].to_pylist()) == list(range(begin + 50))
        finally:
            session.drop_database("clicks", cascade=True)
