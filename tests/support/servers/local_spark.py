"""The Spark session of a test process, shared because it takes seconds to start."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sys
import tempfile
import uuid
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Queries of tests are small and run once: code generation costs more than it saves.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.streaming.stateStore.maintenanceInterval": "600s",
    # A busy machine is slow to start a worker.
    "spark.python.authenticate.socketTimeout": "120s",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}
# Workers inherit the environment of Spark's start; only a test of secrets reads it.
SECRET_VARIABLE = "FLUSS_TEST_SPARK_SECRET"


def compiled_home(folder: Path) -> Path:
    """Make a home of Spark in a folder whose Python workers import the installed pyspark.

    Spark's own home has pyspark as an archive of sources besides, and its workers prefer that one:
    each of their dozen programs then compiles it again, for 0.4 s of processor time.
    """
    import pyspark

    installed = Path(pyspark.__file__).parent
    home = folder / "pyspark"
    home.mkdir()
    for part in ("bin", "jars"):
        (home / part).symlink_to(installed / part)
    return home


def folder() -> Path:
    """Where this process's Spark keeps its warehouse and its event log."""
    return Path(_folder().name)


@functools.lru_cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fluss-spark-", ignore_cleanup_errors=True)


@functools.lru_cache
def local_spark() -> SparkSession:
    """Return the local session with two threads; it lives as long as the process."""
    pytest.importorskip("pyspark", reason="pip install 'fluss-spark[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        missing = "Spark needs Java 17: install a JRE, or set JAVA_HOME"
        if os.environ.get("FLUSS_TEST_REQUIRE_REAL") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    import fluss_spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ[SECRET_VARIABLE] = uuid.uuid4().hex
    (folder() / "events").mkdir()
    places = {
        "spark.sql.warehouse.dir": folder() / "warehouse",
        "spark.eventLog.dir": folder() / "events",
    }
    conf = {name.replace(".", "__"): value for name, value in {**SETTINGS, **places}.items()}
    os.environ["SPARK_HOME"] = str(compiled_home(folder()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own, of the newest pandas
        session = fluss_spark.session("tests", master="local[2]", **conf)
    del os.environ["SPARK_HOME"]  # the programs of tests find Spark themselves
    atexit.register(session.stop)
    return session
