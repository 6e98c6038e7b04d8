"""Compares the directories of databases, tables and buckets with the catalog and the ledger.

Both ways: what the catalog and the ledger list must exist, and what exists must be listed. An
unlisted directory belonged to a table that the catalog has lost, and a new table could get its
name and its id. Where no data can have been lost, missing directories are created again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from fluss.model.paths import TableBucket
from fluss_server.catalog.catalog import Catalog
from fluss_server.catalog.catalog_entries import PartitionEntry, TableEntry
from fluss_server.catalog.manifests import Manifests, manifest_of_database
from fluss_server.damage_errors import DamagedDataError, damaged
from fluss_server.data_layout import DATA, MANIFEST, database_manifest, table_manifest
from fluss_server.ledger import Ledger

_LOG = logging.getLogger(__name__)
_TABLE: Final = re.compile(r".+-\d+")
_PARTITION: Final = re.compile(r".+-p\d+")
_BUCKET: Final = re.compile(r"log-(\d+)")

Logs = Mapping[int, TableBucket]


class TreeCheck:
    """One comparison of a data directory.

    Args:
        directory: The data directory.
        catalog: The databases, tables and partitions.
        ledger: The buckets that have a log.
        manifests: The manifests of the directories.
        sequence: The number of the catalog's last change.
    """

    def __init__(
        self,
        directory: Path,
        catalog: Catalog,
        ledger: Ledger,
        manifests: Manifests,
        *,
        sequence: int,
    ) -> None:
        self._directory = directory
        self._catalog = catalog
        self._ledger = ledger
        self._manifests = manifests
        self._sequence = sequence
        self._doomed = set(catalog.pending_deletions())
        self._logs: dict[tuple[int, int | None], dict[int, TableBucket]] = {}
        for bucket in ledger.buckets():
            of_parent = self._logs.setdefault((bucket.table_id, bucket.partition_id), {})
            of_parent[bucket.bucket] = bucket

    def find(self) -> list[DamagedDataError]:
        """Return all contradictions; create what is merely not written yet."""
        found = list(self._unknown_databases())
        for entry in self._catalog.databases:
            path = database_manifest(entry.name)
            manifest = manifest_of_database(entry)
            problem = self._manifests.keep(path, manifest, sequence=self._sequence)
            found += [] if problem is None else [problem]
            found += self._unknown_tables(entry.name)
        for table in self._catalog.tables:
            found += self._table(table)
        return found

    def forget_dropped(self) -> None:
        """Free the ledger's slots of tables and partitions that no longer exist."""
        for table_id, partition_id in list(self._logs):
            table = self._catalog.find_table_by_id(table_id)
            known = table is not None
            if partition_id is not None:
                partition = self._catalog.find_partition_by_id(partition_id)
                known = partition is not None and partition.table_id == table_id
            if not known:
                self._ledger.forget(table_id, partition_id)

    # --- what exists must be listed -------------------------------------------------------------

    def _unknown_databases(self) -> Iterator[DamagedDataError]:
        for path in self._directories(Path(DATA)):
            if self._catalog.has_database(path.name):
                continue
            left = [
                child
                for child in (self._directory / path).iterdir()
                if path / child.name not in self._doomed
                and (child.name == MANIFEST or (child.is_dir() and _TABLE.fullmatch(child.name)))
            ]
            if left:
                yield damaged(
                    self._directory / path,
                    "is the directory of a database that the catalog does not know: the catalog "
                    "is from an earlier moment, or the directory was put there",
                )

    def _unknown_tables(self, database: str) -> Iterator[DamagedDataError]:
        known = {
            self._catalog.directory_of(table, None) for table in self._catalog.tables_of(database)
        }
        for path in self._directories(Path(DATA, database)):
            if path in known or path in self._doomed:
                continue
            if _TABLE.fullmatch(path.name):
                yield damaged(
                    self._directory / path,
                    "is the directory of a table that the catalog does not know: the catalog is "
                    "from an earlier moment, or the directory was put there",
                )
            else:
                _LOG.warning("%s is not a directory of this server and is ignored", path)

    # --- what is listed must exist --------------------------------------------------------------

    def _table(self, table: TableEntry) -> Iterator[DamagedDataError]:
        problem = self._manifests.keep(
            table_manifest(table.path, table.table_id),
            self._catalog.manifest_of_table(table),
            sequence=self._sequence,
        )
        if problem is not None:
            yield problem
            return
        if not table.info.is_partitioned():
            yield from self._buckets(table, self._catalog.directory_of(table, None))
            return
        known = set()
        for partition in self._catalog.partitions_of(table):
            path = self._catalog.directory_of(table, partition)
            known.add(path)
            self._manifests.make_directory(path)
            yield from self._buckets(table, path, partition)
        for path in self._directories(self._catalog.directory_of(table, None)):
            if path not in known | self._doomed and _PARTITION.fullmatch(path.name):
                yield damaged(
                    self._directory / path,
                    f"is the directory of a partition of {table.path} that the catalog does not "
                    "know: the catalog is from an earlier moment, or the directory was put there",
                )

    def _buckets(
        self, table: TableEntry, parent: Path, partition: PartitionEntry | None = None
    ) -> Iterator[DamagedDataError]:
        partition_id = None if partition is None else partition.partition_id
        bucket_count = table.buckets_of(partition)
        logs = self._logs.get((table.table_id, partition_id), {})
        existing = set()
        for path in self._directories(parent):
            name = _BUCKET.fullmatch(path.name)
            if name is not None:
                existing.add(int(name.group(1)))
        for bucket in sorted(logs.keys() - existing):
            mark = self._ledger.entry(logs[bucket]).mark
            end_offset = 0 if mark is None else mark.end_offset
            yield damaged(
                self._directory / parent / f"log-{bucket}",
                f"is missing; it is the log of {table.path} with the offsets below {end_offset}",
            )
        for bucket in sorted(each for each in existing if each >= bucket_count):
            yield damaged(
                self._directory / parent / f"log-{bucket}",
                f"is not a bucket of {table.path}, which has {bucket_count} there",
            )

    def _directories(self, path: Path) -> list[Path]:
        """Return the subdirectories of a directory, relative to the data directory."""
        try:
            children = sorted((self._directory / path).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [path / child.name for child in children if child.is_dir()]
