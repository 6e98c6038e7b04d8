"""`--repair`: makes a damaged data directory servable, and reports what is given up.

The catalog keeps its readable rows and recovers the rest from the manifests; every log is checked
from its first batch on (`log.log_repair`); the ledger is written to agree. Nothing is deleted:
what contradicts the rest is moved into a directory `aside-…` beside the data. The usual checks of
a start follow, so a repair that was not enough ends in their errors.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from fluss.errors import FlussError
from fluss.model.paths import TableBucket
from fluss_server.catalog import lake_notes
from fluss_server.catalog.catalog import (
    NEVER_MS,
    Catalog,
    epoch_name,
    partition_buckets_name,
    setting_id,
)
from fluss_server.catalog.catalog_store import CatalogStore
from fluss_server.catalog.manifests import Manifests, read_manifest
from fluss_server.damage_errors import DamagedDataError
from fluss_server.data_layout import (
    CATALOG,
    DATA,
    LEDGER,
    MANIFEST,
    kv_directory,
    log_directory,
)
from fluss_server.ledger import NO_CHECK, Head, Ledger
from fluss_server.ledger_marks import LogMark, NextNumbers
from fluss_server.log.log_inventory import sizes_of
from fluss_server.log.log_repair import repair_log
from fluss_server.log.segment_list import LogIdentity
from fluss_server.server_config import ServerConfig

_LOG = logging.getLogger(__name__)
_TABLE: Final = re.compile(r"(.+)-(\d+)")
_PARTITION: Final = re.compile(r"(.+)-p(\d+)")
_CATALOG_FILES: Final = (CATALOG, f"{CATALOG}-wal", f"{CATALOG}-shm")


def repair(config: ServerConfig) -> list[str]:
    """Repair the directory; the caller holds its lock.

    Returns:
        One sentence for each thing that was given up or moved aside.

    Raises:
        LocalServerError: The directory is from a newer version, or not a data directory.
        OSError: The disk refused.
    """
    return _Repair(config).run()


class _Repair:
    """One run of the repair."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._directory = config.directory
        self._aside = config.directory / time.strftime("aside-%Y%m%dT%H%M%S")
        self._reports: list[str] = []
        self._head = Head()
        self._marks: dict[TableBucket, LogMark] = {}

    def run(self) -> list[str]:
        if not (self._directory / CATALOG).exists() and not (self._directory / DATA).exists():
            return []  # an empty directory
        ledger = self._ledger()
        store = self._store()
        try:
            known = store.contents.sequence
            store.begin(
                ledger.directory_id,
                on_seal=lambda _: None,
                refuse_change=lambda: None,
            )
            with store.transaction():
                newest = self._recover_tree(store, ledger.directory_id, known)
                self._raise_floors(store)
                store.skip_to(1 + max(known, newest, self._head.sequence))
            catalog = Catalog(store, Manifests(self._directory, ledger.directory_id))
            self._logs(catalog, ledger)
            seal = store.contents.seal
            ledger.seal(seal.sequence, seal.check, catalog.next_numbers)
            ledger.begin()
        finally:
            store.close()
            ledger.close()
        for text in self._reports:
            _LOG.warning("repair: %s", text)
        return self._reports

    def _report(self, text: str) -> None:
        self._reports.append(text)

    def _put_aside(self, path: Path) -> None:
        if not path.exists():
            return
        target = self._aside / path.relative_to(self._directory)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, target)
        self._report(f"{path} was moved to {target}")

    # --- ledger and catalog ---------------------------------------------------------------------

    def _ledger(self) -> Ledger:
        path = self._directory / LEDGER
        try:
            old = Ledger.open(path, is_durable=self._config.is_durable)
        except FileNotFoundError:
            self._report(f"{path} is missing; it is created again")
        except DamagedDataError as error:
            self._report(error.message)
            self._put_aside(path)
        else:
            self._head = old.found_head
            for bucket in old.buckets():
                mark = old.entry(bucket).mark
                if mark is not None:
                    self._marks[bucket] = mark
            old.close()
        directory_id = self._head.directory_id
        if directory_id == NO_CHECK:
            directory_id = self._id_in_manifests()
        return Ledger.create(path, is_durable=self._config.is_durable, directory_id=directory_id)

    def _id_in_manifests(self) -> bytes:
        for path in sorted((self._directory / DATA).rglob(MANIFEST)):
            found = read_manifest(path)
            if found is not None:
                return bytes.fromhex(found["directory"])
        return NO_CHECK

    def _store(self) -> CatalogStore:
        path = self._directory / CATALOG
        try:
            store = CatalogStore(path, is_durable=self._config.is_durable, compares=False)
            try:
                Catalog(store)  # checks that its rows can be parsed
            except BaseException:
                store.close()
                raise
        except (
            DamagedDataError,
            sqlite3.Error,
            FlussError,
            LookupError,
            ValueError,
            TypeError,
        ) as error:
            if isinstance(error, FlussError) and "this version can read" in error.message:
                raise
            self._report(f"{path} cannot be used ({error}); it is created again from the manifests")
            for name in _CATALOG_FILES:
                self._put_aside(self._directory / name)
            return CatalogStore(path, is_durable=self._config.is_durable)
        return store

    def _raise_floors(self, store: CatalogStore) -> None:
        next_numbers = self._head.next_numbers
        if next_numbers == NextNumbers():
            # The number of writers is not known; no server has assigned this many ids.
            next_numbers = NextNumbers(writer_id=time.time_ns() // 1_000_000)
        tables = [row[0] for row in store.rows("SELECT id FROM tables")]
        partitions = [row[0] for row in store.rows("SELECT id FROM partitions")]
        ids = [bucket.table_id for bucket in self._marks]
        partition_ids = [each.partition_id for each in self._marks if each.partition_id is not None]
        for name, floor in (
            ("table", max([next_numbers.table_id, *(each + 1 for each in (*tables, *ids))])),
            (
                "partition",
                max(
                    [
                        next_numbers.partition_id,
                        *(each + 1 for each in (*partitions, *partition_ids)),
                    ]
                ),
            ),
            ("writer", next_numbers.writer_id),
        ):
            if store.next_number(name) < floor:
                store.put("counters", name, floor)

    # --- manifests ------------------------------------------------------------------------------

    def _recover_tree(self, store: CatalogStore, directory_id: bytes, known: int) -> int:
        """Add what only the manifests have to the catalog; return their newest change number."""
        newest = 0
        doomed = {Path(row[0]) for row in store.rows("SELECT path FROM doomed")}
        for database in _children(self._directory / DATA):
            newest = max(newest, self._recover_database(store, database, directory_id, known))
            for path in _children(database):
                relative = path.relative_to(self._directory)
                if relative not in doomed and _TABLE.fullmatch(path.name):
                    newest = max(newest, self._recover_table(store, path, directory_id, known))
        return newest

    def _manifest_of(
        self, path: Path, directory_id: bytes, expected: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Read the manifest of a directory; None where it does not match the directory's name."""
        found = read_manifest(path / MANIFEST)
        if found is None:
            return None
        expected = {**expected, "directory": directory_id.hex()}
        if all(found.get(name) == value for name, value in expected.items()):
            return found
        self._report(f"{path / MANIFEST} is the manifest of another directory")
        self._put_aside(path / MANIFEST)
        return None

    def _recover_database(
        self, store: CatalogStore, path: Path, directory_id: bytes, known: int
    ) -> int:
        is_known = bool(store.rows("SELECT name FROM databases WHERE name = ?", path.name))
        found = self._manifest_of(path, directory_id, {"kind": "database", "name": path.name})
        if found is None:
            if not is_known and not _children(path):
                self._report(f"{path} belongs to an unknown database")
                self._put_aside(path)
            return 0
        if not is_known or found["sequence"] > known:
            descriptor = json.dumps(found["descriptor"])
            store.put("databases", path.name, descriptor, found["created"], found["modified"])
            if not is_known:
                self._report(f"the database {path.name} is taken from {path / MANIFEST}")
        return int(found["sequence"])

    def _recover_table(
        self, store: CatalogStore, path: Path, directory_id: bytes, known: int
    ) -> int:
        name = _TABLE.fullmatch(path.name)
        if name is None:
            return 0
        names = (path.parent.name, name.group(1), int(name.group(2)))
        rows = store.rows("SELECT database, name FROM tables WHERE id = ?", names[2])
        is_known = rows == [names[:2]]
        expected = {"kind": "table", **dict(zip(("database", "name", "id"), names, strict=True))}
        found = self._manifest_of(path, directory_id, expected)
        taken = store.rows("SELECT id FROM tables WHERE database = ? AND name = ?", *names[:2])
        if not is_known and (found is None or rows or taken):
            self._report(f"{path} belongs to an unknown table, or to one whose name is taken")
            self._put_aside(path)
            return 0
        if found is not None and (not is_known or found["sequence"] > known):
            self._restore_table(store, path, found, is_known=is_known)
        self._recover_partitions(store, path, names[2])
        return 0 if found is None else int(found["sequence"])

    def _restore_table(
        self, store: CatalogStore, path: Path, found: dict[str, Any], *, is_known: bool
    ) -> None:
        table_id = found["id"]
        store.put(
            "tables", table_id, found["database"], found["name"], found["schema_id"],
            json.dumps(found["descriptor"]), found["created"], found["modified"],
        )  # fmt: skip
        for schema_id, schema in found["schemas"].items():
            store.put("schemas", table_id, int(schema_id), json.dumps(schema))
        for position, next_number in found["numbers"].items():
            counter = f"column {table_id} {position}"
            if store.next_number(counter) < next_number:
                store.put("counters", counter, next_number)
        if "bucket_count_epoch" in found:
            store.require_rescales()
            store.put("counters", epoch_name(table_id), found["bucket_count_epoch"])
            for partition_id, count in found["bucket_counts"].items():
                store.put("counters", partition_buckets_name(int(partition_id)), count)
        if "lake" in found:
            store.require_lake()
            row = setting_id(lake_notes.record_name(table_id))
            store.put("producers", row, NEVER_MS, json.dumps(found["lake"]).encode())
        if not store.rows("SELECT name FROM databases WHERE name = ?", found["database"]):
            store.put(
                "databases", found["database"], '{"version":1}', found["created"], found["created"]
            )
        what = "a newer state of the table" if is_known else "the table"
        self._report(f"{what} {found['database']}.{found['name']} is taken from {path / MANIFEST}")

    def _recover_partitions(self, store: CatalogStore, path: Path, table_id: int) -> None:
        doomed = {row[0] for row in store.rows("SELECT path FROM doomed")}
        for child in _children(path):
            name = _PARTITION.fullmatch(child.name)
            if name is None or child.relative_to(self._directory).as_posix() in doomed:
                continue
            row = (int(name.group(2)), table_id, name.group(1))
            if store.rows("SELECT * FROM partitions WHERE id = ?", row[0]) == [row]:
                continue
            taken = store.rows(
                "SELECT id FROM partitions WHERE id = ? OR (table_id = ? AND name = ?)", *row
            )
            if taken:
                self._report(f"{child} belongs to a partition whose name or id is taken")
                self._put_aside(child)
            else:
                store.put("partitions", *row)
                self._report(f"the partition {name.group(1)} is taken from the name of {child}")

    # --- logs -----------------------------------------------------------------------------------

    def _logs(self, catalog: Catalog, ledger: Ledger) -> None:
        for bucket, directory in _buckets_of(catalog):
            where = self._directory / log_directory(directory, bucket.bucket)
            mark = self._marks.get(bucket)
            if mark is None and not where.is_dir():
                continue
            identity = LogIdentity(directory_id=ledger.directory_id, bucket=bucket)
            made = repair_log(where, identity, mark, put_aside=self._put_aside, report=self._report)
            if made is not None:
                ledger.entry(bucket).write(made)
            lost = made is None or (mark is not None and made.end_offset < mark.end_offset)
            if lost and mark is not None:
                self._drop_rows_by_key(directory, bucket, has_start=_begins_at_zero(where))

    def _drop_rows_by_key(self, directory: Path, bucket: TableBucket, *, has_start: bool) -> None:
        """Discard rows by key that have changes which the log has lost; the log rebuilds them."""
        path = self._directory / kv_directory(directory, bucket.bucket)
        if not path.is_dir():
            return
        if has_start:
            self._put_aside(path)
        else:
            self._report(
                f"{path} has changes that its log has lost, and the log begins too late to rebuild "
                "the rows; they are refused until both are restored from a backup"
            )


def _begins_at_zero(directory: Path) -> bool:
    return not directory.is_dir() or 0 in sizes_of(directory)


def _buckets_of(catalog: Catalog) -> Iterator[tuple[TableBucket, Path]]:
    for table in catalog.tables:
        for partition in catalog.partitions_of(table) if table.info.is_partitioned() else [None]:
            directory = catalog.directory_of(table, partition)
            partition_id = None if partition is None else partition.partition_id
            for bucket in range(table.buckets_of(partition)):
                yield TableBucket(table.table_id, bucket, partition_id=partition_id), directory


def _children(path: Path) -> list[Path]:
    try:
        return sorted(child for child in path.iterdir() if child.is_dir())
    except OSError:
        return []
