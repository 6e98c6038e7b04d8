"""The paths of files inside a data directory, relative to it. No file is opened here.

A table's directory carries the table id, so that a table created again under an old name never
finds old rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fluss.model.paths import TablePath

LOCK: Final = "LOCK"
CATALOG: Final = "catalog.sqlite"
LEDGER: Final = "ledger"
# Written by versions without a ledger, which now records the clean stop.
CLEAN_MARK: Final = "clean"
DATA: Final = "data"
MANIFEST: Final = "manifest.json"
LAKE_OFFSETS: Final = "lake"
LAKE_FOLDER: Final = "iceberg"


def database_manifest(name: str) -> Path:
    """Return the path of a database's manifest."""
    return Path(DATA, name, MANIFEST)


def table_manifest(path: TablePath, table_id: int) -> Path:
    """Return the path of a table's manifest."""
    return table_directory(path, table_id) / MANIFEST


def table_directory(path: TablePath, table_id: int) -> Path:
    """Return the directory of a table."""
    return Path(DATA, path.database_name, f"{path.table_name}-{table_id}")


def partition_directory(
    path: TablePath, table_id: int, partition_name: str, partition_id: int
) -> Path:
    """Return the directory of a partition, inside its table's."""
    return table_directory(path, table_id) / f"{partition_name}-p{partition_id}"


def lake_directory(path: TablePath, table_id: int) -> Path:
    """Return the directory of what is known of a table's lake; the lake itself is elsewhere."""
    return Path(LAKE_OFFSETS, path.database_name, f"{path.table_name}-{table_id}")


def log_directory(parent: Path, bucket: int) -> Path:
    """Return the directory of a bucket's log, inside its table's or partition's."""
    return parent / f"log-{bucket}"


def kv_directory(parent: Path, bucket: int) -> Path:
    """Return the directory of a bucket's rows by key, inside its table's or partition's."""
    return parent / f"kv-{bucket}"


def snapshot_directory(parent: Path, bucket: int) -> Path:
    """Return the directory of a bucket's KV snapshots, inside its table's or partition's."""
    return parent / f"snapshots-{bucket}"
