"""The profile of a cluster with a lake: Iceberg tables beside it, in a catalog of SQLite.

The servers need three jars as their plugin: Fluss's own for Iceberg, Hadoop's classes for local
files, and the driver of SQLite. Java's driver and Python's may open the catalog concurrently only
with a write-ahead log: without it, Java keeps a read lock for good.
"""

from __future__ import annotations

from pathlib import Path

from fluss_testkit.artifact import Artifact
from fluss_testkit.cluster_profiles import Profile

FLUSS_LAKE_ICEBERG = Artifact(
    group="org.apache.fluss",
    name="fluss-lake-iceberg",
    version="0.9.1-incubating",
    sha256="b9d8aa37a1a1a1eb14c1a365ae40e8114dcff26367cdc08156ae4f6d0d911d93",
    size_bytes=37_456_281,
)
HADOOP = Artifact(
    group="io.trino.hadoop",
    name="hadoop-apache",
    version="3.3.5-2",
    sha256="ad01449cb0c511344ad7f0960831c1a8ad1d3a4fc99caf8028134c29ea29c0a0",
    size_bytes=46_112_803,
)
SQLITE_DRIVER = Artifact(
    group="org.xerial",
    name="sqlite-jdbc",
    version="3.46.1.3",
    sha256="4a4832720a65eaf7f4d6fd7ede52087b994dc5633c076f9e994dc0c8b4b0b4fa",
    size_bytes=14_127_503,
)
CATALOG_FILE = "catalog.db"
WAREHOUSE = "warehouse"
_WRITE_AHEAD = "journal_mode=WAL&busy_timeout=10000"


def iceberg_lake(directory: Path) -> Profile:
    """Return the profile of a cluster whose lake is in a directory.

    Args:
        directory: Where the catalog and the files of its tables are; it must exist.
    """
    return Profile(
        options={
            "datalake.format": "iceberg",
            "datalake.iceberg.type": "jdbc",
            "datalake.iceberg.uri": f"jdbc:sqlite:{directory / CATALOG_FILE}?{_WRITE_AHEAD}",
            "datalake.iceberg.jdbc.user": "fluss",
            "datalake.iceberg.jdbc.password": "fluss",
            "datalake.iceberg.jdbc.schema-version": "V1",
            "datalake.iceberg.warehouse": (directory / WAREHOUSE).as_uri(),
        },
        plugins={"iceberg": (FLUSS_LAKE_ICEBERG, HADOOP, SQLITE_DRIVER)},
    )
