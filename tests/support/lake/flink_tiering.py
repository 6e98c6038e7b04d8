"""Fluss's own tiering job, run by Flink in one JVM: the judge of what a lake has.

Its jars (150 MB) are resolved by Maven on first use, into the folder of other jars. Fluss's parent
poms of 0.9.1 are not published, so its own jars are fetched one by one.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from fluss_testkit.artifact import LOG_BINDING, find_jar
from fluss_testkit.cache_paths import jars_dir
from fluss_testkit.java_runtime import find_java
from fluss_testkit.lake_profile import FLUSS_LAKE_ICEBERG, HADOOP, SQLITE_DRIVER

FLINK_VERSION = "1.20.1"
FLINK_MODULES = (
    "flink-clients",
    "flink-streaming-java",
    "flink-connector-base",
    "flink-table-runtime",
    "flink-table-api-java-bridge",
)
FLUSS_JARS = ("fluss-flink-tiering", "fluss-flink-1.20")
FLUSS_VERSION = "0.9.1-incubating"
MAIN = "org.apache.fluss.flink.tiering.FlussLakeTieringEntrypoint"
FETCH_TIMEOUT_S = 900
OPENED = ("java.nio", "java.util", "java.lang")

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>flink</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>"""
_DEPENDENCY = (
    "<dependency><groupId>org.apache.flink</groupId><artifactId>{name}</artifactId>"
    "<version>{version}</version></dependency>"
)


def flink_jars() -> list[Path]:
    """The jars of the job; without Maven the test is skipped."""
    folder = jars_dir() / f"flink-{FLINK_VERSION}"
    if not (folder / "complete").exists():
        if shutil.which("mvn") is None:
            pytest.skip("Flink's jars are resolved by Maven, and there is no mvn on the PATH")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        modules = (_DEPENDENCY.format(name=name, version=FLINK_VERSION) for name in FLINK_MODULES)
        (folder / "pom.xml").write_text(_POM.format(dependencies="".join(modules)))
        _maven(folder, "dependency:copy-dependencies")
        for name in FLUSS_JARS:
            _maven(folder, "dependency:copy", f"-Dartifact=org.apache.fluss:{name}:{FLUSS_VERSION}")
        (folder / "complete").touch()
    ours = [find_jar(each) for each in (FLUSS_LAKE_ICEBERG, HADOOP, SQLITE_DRIVER, LOG_BINDING)]
    return [*sorted(folder.glob("*.jar")), *ours]


def _maven(folder: Path, goal: str, *more: str) -> None:
    command = ["mvn", "-q", "-B", "-ntp", goal, f"-DoutputDirectory={folder}", *more]
    subprocess.run(command, cwd=folder, check=True, timeout=FETCH_TIMEOUT_S)


@contextmanager
def flink_tiering(
    bootstrap: str, lake_options: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the job until the end of the block.

    Args:
        bootstrap: The cluster.
        lake_options: The cluster's options of its lake (`datalake.*`).
        log: Where the job's output goes.
    """
    opens = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED]
    classes = ":".join(map(str, flink_jars()))
    given = [word for key, value in lake_options.items() for word in (f"--{key}", value)]
    command = [str(find_java().executable), "-Xmx1g", *opens, "-cp", classes, MAIN]
    with log.open("wb") as out:
        job = subprocess.Popen(
            [*command, "--fluss.bootstrap.servers", bootstrap, *given], stdout=out, stderr=out
        )
        try:
            yield job
        finally:
            job.kill()
            job.wait()
