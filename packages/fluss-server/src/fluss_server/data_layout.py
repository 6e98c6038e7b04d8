"""Where things lie in a data directory, as paths relative to it; names only.

A table's directory carries its id, so that a table made anew under an old name never meets old
rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fluss.model.paths import TablePath

LOCK: Final = "LOCK"
CATALOG: Final = "catalog.sqlite"
LEDGER: Final = "ledger"
# Of versions before there was a ledger, which says the same.
CLEAN_MARK: Final = "clean"
DATA: Final = "data"
MANIFEST: Final = "manifest.json"


def database_manifest(name: str) -> Path:
    """The file that says what the directory of a database is."""
    return Path(DATA, name, MANIFEST)


def table_manifest(path: TablePath, table_id: int) -> Path:
    """The file that says what the directory of a table is."""
    return table_directory(path, table_id) / MANIFEST


def table_directory(path: TablePath, table_id: int) -> Path:
    """The directory of a table."""
    return Path(DATA, path.database_name, f"{path.table_name}-{table_id}")


def partition_directory(
    path: TablePath, table_id: int, partition_name: str, partition_id: int
) -> Path:
    """The directory of a partition, inside its table's."""
    return table_directory(path, table_id) / f"{partition_name}-p{partition_id}"


def log_directory(parent: Path, bucket: int) -> Path:
    """The directory of a bucket's log, inside its table's or partition's."""
    return parent / f"log-{bucket}"


def kv_directory(parent: Path, bucket: int) -> Path:
    """The directory of a bucket's primary key state, inside its table's or partition's."""
    return parent / f"kv-{bucket}"
