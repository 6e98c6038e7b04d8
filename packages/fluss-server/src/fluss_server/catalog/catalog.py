"""The catalog: which databases, tables and partitions exist, and under which ids.

Everything is in memory. A change goes to the file first, to memory when the file has it, and then
into the manifests of the directories concerned (`manifests`).

The event loop alone calls it, except for `take_numbers`. A drop lists the directories it leaves in
the table `doomed`, in the same transaction. Only listed directories are deleted, never directories
that are merely unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.model.names import check_new_name
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.database import DatabaseDescriptor
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.partitions import PartitionSpec, qualified_partition_name
from fluss_server.catalog import lake_notes
from fluss_server.catalog.catalog_entries import (
    DatabaseEntry,
    PartitionEntry,
    ProducerOffsets,
    TableEntry,
    read_only,
)
from fluss_server.catalog.catalog_store import CatalogStore
from fluss_server.catalog.creation import BUCKETS_MAX, PARTITIONS_MAX
from fluss_server.catalog.manifests import (
    Manifest,
    Manifests,
    manifest_of_database,
    manifest_of_table,
)
from fluss_server.data_layout import (
    MANIFEST,
    database_manifest,
    partition_directory,
    table_directory,
    table_manifest,
)
from fluss_server.ledger_marks import NextNumbers
from fluss_server.server_errors import request_error

DEFAULT_DATABASE: Final = "fluss"
_FIRST_SCHEMA_ID: Final = 1
_WRITER_IDS_TAKEN: Final = 1_000
NEVER_MS: Final = 2**63 - 1


class Catalog:
    """The metadata of one server.

    Args:
        store: The file that keeps it.
        manifests: The manifests to keep up to date; None for no manifests.

    Raises:
        FlussError: A row of the file cannot be parsed.
    """

    def __init__(self, store: CatalogStore, manifests: Manifests | None = None) -> None:
        self._store = store
        self._manifests = manifests
        self._databases: dict[str, DatabaseEntry] = {}
        self._tables: dict[TablePath, TableEntry] = {}
        self._tables_by_id: dict[int, TableEntry] = {}
        self._partitions: dict[int, dict[str, PartitionEntry]] = {}
        self._partitions_by_id: dict[int, PartitionEntry] = {}
        self._producers: dict[str, ProducerOffsets] = {}
        self._writer_ids = iter(range(0))
        self.lake = lake_notes.LakeNotes(self, store)
        self._load()

    # --- databases ------------------------------------------------------------------------------

    @property
    def databases(self) -> list[DatabaseEntry]:
        """All databases, sorted by name."""
        return [self._databases[name] for name in sorted(self._databases)]

    def has_database(self, name: str) -> bool:
        """Return whether a database of this name exists."""
        return name in self._databases

    def database(self, name: str) -> DatabaseEntry:
        """Return the database of this name.

        Raises:
            DatabaseNotFoundError: It does not exist.
        """
        found = self._databases.get(name)
        if found is None:
            raise request_error(ErrorCode.DATABASE_NOT_EXIST, f"Database '{name}' does not exist.")
        return found

    def create_database(self, name: str, descriptor: DatabaseDescriptor, *, now_ms: int) -> None:
        """Create a database.

        Raises:
            DatabaseAlreadyExistsError: A database of this name exists.
        """
        if name in self._databases:
            raise request_error(
                ErrorCode.DATABASE_ALREADY_EXIST, f"Database {name} already exists."
            )
        check_new_name("database name", name)
        entry = DatabaseEntry(
            name=name, descriptor=descriptor, created_ms=now_ms, modified_ms=now_ms
        )
        with self._store.transaction():
            self._store.put("databases", name, descriptor.to_json(), now_ms, now_ms)
            self._unmark_manifest(name)
        self._databases[name] = entry
        self._describe_database(entry)

    def change_database(self, name: str, descriptor: DatabaseDescriptor, *, now_ms: int) -> None:
        """Replace a database's comment and properties."""
        entry = replace(self.database(name), descriptor=descriptor, modified_ms=now_ms)
        with self._store.transaction():
            self._store.put("databases", name, descriptor.to_json(), entry.created_ms, now_ms)
        self._databases[name] = entry
        self._describe_database(entry)

    def drop_database(self, name: str) -> list[TableEntry]:
        """Drop a database with all its tables; return the tables."""
        self.database(name)
        tables = self.tables_of(name)
        with self._store.transaction():
            for table in tables:
                self._drop_rows(table)
            self._store.delete("databases", name=name)
            if self._manifests is not None:
                self._mark_for_deletion([database_manifest(name)])
        for table in tables:
            self._forget(table)
            self._remove_manifest(table)
        del self._databases[name]
        self.remove_manifests()
        return tables

    # --- tables ---------------------------------------------------------------------------------

    @property
    def tables(self) -> list[TableEntry]:
        """All tables."""
        return list(self._tables.values())

    def tables_of(self, database: str) -> list[TableEntry]:
        """Return the tables of a database, sorted by name."""
        found = (each for each in self._tables.values() if each.path.database_name == database)
        return sorted(found, key=lambda each: each.path.table_name)

    def find_table(self, path: TablePath) -> TableEntry | None:
        """Return the table of this path; None where it does not exist."""
        return self._tables.get(path)

    def table(self, path: TablePath) -> TableEntry:
        """Return the table of this path.

        Raises:
            TableNotFoundError: It does not exist.
        """
        found = self._tables.get(path)
        if found is None:
            raise request_error(ErrorCode.TABLE_NOT_EXIST, f"Table '{path}' does not exist.")
        return found

    def find_table_by_id(self, table_id: int) -> TableEntry | None:
        """Return the table with this id; None where it does not exist."""
        return self._tables_by_id.get(table_id)

    def create_table(
        self, path: TablePath, descriptor: TableDescriptor, *, now_ms: int
    ) -> TableEntry:
        """Create a table from a descriptor that has been checked.

        Raises:
            DatabaseNotFoundError: Its database does not exist.
            TableAlreadyExistsError: A table of this path exists.
        """
        self.database(path.database_name)
        if path in self._tables:
            raise request_error(ErrorCode.TABLE_ALREADY_EXIST, f"Table {path} already exists.")
        with self._store.transaction():
            entry = TableEntry(
                path=path,
                table_id=self._store.take_numbers_here("table", 1),
                schema_id=_FIRST_SCHEMA_ID,
                descriptor=descriptor,
                schemas=read_only({_FIRST_SCHEMA_ID: descriptor.schema}),
                created_ms=now_ms,
                modified_ms=now_ms,
            )
            self._write_table(entry)
            self._write_schema(entry)
            self.drop_setting(lake_notes.creation_name(path))
        self._remember(entry)
        self.describe_table(entry)
        return entry

    def change_table(
        self, path: TablePath, descriptor: TableDescriptor, *, now_ms: int
    ) -> TableEntry:
        """Replace a table's properties or add a schema; return the new entry."""
        known = self.table(path)
        schema_id = known.schema_id + (descriptor.schema != known.descriptor.schema)
        is_rescaled = descriptor.bucket_count != known.descriptor.bucket_count
        entry = replace(
            known,
            bucket_count_epoch=known.bucket_count_epoch + is_rescaled,
            schema_id=schema_id,
            descriptor=descriptor,
            schemas=read_only({**known.schemas, schema_id: descriptor.schema}),
            modified_ms=now_ms,
        )
        with self._store.transaction():
            self._write_table(entry)
            if schema_id != known.schema_id:
                self._write_schema(entry)
            if is_rescaled:
                self._write_bucket_counts(entry)
            self.drop_setting(lake_notes.creation_name(path))
        self._remember(entry)
        self.describe_table(entry)
        return entry

    def drop_table(self, path: TablePath) -> TableEntry:
        """Drop a table; return its entry."""
        entry = self.table(path)
        with self._store.transaction():
            self._drop_rows(entry)
        self._forget(entry)
        self._remove_manifest(entry)
        return entry

    # --- partitions -----------------------------------------------------------------------------

    def partitions_of(self, table: TableEntry) -> list[PartitionEntry]:
        """Return the partitions of a table, sorted by name."""
        found = self._partitions.get(table.table_id, {})
        return [found[name] for name in sorted(found)]

    def find_partition(self, table: TableEntry, name: str) -> PartitionEntry | None:
        """Return the partition of this name; None where it does not exist."""
        return self._partitions.get(table.table_id, {}).get(name)

    def find_partition_by_id(self, partition_id: int) -> PartitionEntry | None:
        """Return the partition with this id; None where it does not exist."""
        return self._partitions_by_id.get(partition_id)

    def create_partition(self, table: TableEntry, name: str, spec: PartitionSpec) -> PartitionEntry:
        """Create a partition.

        Raises:
            PartitionAlreadyExistsError: A partition of this name exists.
            LimitExceededError: The table has as many partitions or buckets as it may have.
        """
        shown = qualified_partition_name(spec.spec_map)
        known = self._partitions.get(table.table_id, {})
        if name in known:
            raise request_error(
                ErrorCode.PARTITION_ALREADY_EXISTS,
                f"Partition '{shown}' already exists for table {table.path}",
            )
        if len(known) + 1 > PARTITIONS_MAX:
            raise request_error(
                ErrorCode.PARTITION_MAX_NUM_EXCEPTION,
                f"Exceed the maximum number of partitions for table {table.path}, only allow "
                f"{PARTITIONS_MAX} partitions.",
            )
        total = table.bucket_count + sum(each.bucket_count for each in known.values())
        if total > BUCKETS_MAX:
            raise request_error(
                ErrorCode.BUCKET_MAX_NUM_EXCEPTION,
                f"Adding partition '{name}' would result in {total} total buckets for table "
                f"{table.path}, exceeding the maximum of {BUCKETS_MAX} buckets.",
            )
        with self._store.transaction():
            entry = PartitionEntry(
                partition_id=self._store.take_numbers_here("partition", 1),
                table_id=table.table_id,
                name=name,
                bucket_count=table.bucket_count,
            )
            self._store.put("partitions", entry.partition_id, table.table_id, name)
            if table.bucket_count_epoch:
                self._write_bucket_count(entry)
        self._remember_partition(entry)
        if self._manifests is not None:
            self._manifests.make_directory(self.directory_of(table, entry))
        if table.bucket_count_epoch:
            self.describe_table(table)
        return entry

    def drop_partition(self, table: TableEntry, name: str, spec: PartitionSpec) -> PartitionEntry:
        """Drop a partition; return its entry.

        Raises:
            PartitionNotFoundError: No partition has this name.
        """
        entry = self.find_partition(table, name)
        if entry is None:
            raise request_error(
                ErrorCode.PARTITION_NOT_EXISTS,
                f"Partition '{qualified_partition_name(spec.spec_map)}' does not exist for table "
                f"{table.path}",
            )
        with self._store.transaction():
            self._store.delete("partitions", id=entry.partition_id)
            self._store.delete("counters", name=partition_buckets_name(entry.partition_id))
            self._mark_for_deletion([self.directory_of(table, entry)])
        del self._partitions[table.table_id][name]
        del self._partitions_by_id[entry.partition_id]
        return entry

    def directory_of(self, table: TableEntry, partition: PartitionEntry | None) -> Path:
        """Return the directory of a table or partition, relative to the data directory."""
        if partition is None:
            return table_directory(table.path, table.table_id)
        return partition_directory(
            table.path, table.table_id, partition.name, partition.partition_id
        )

    # --- numbers --------------------------------------------------------------------------------

    def next_writer_id(self) -> int:
        """Return an id that no writer has had; a restart skips the rest of a block of ids."""
        for writer_id in self._writer_ids:
            return writer_id
        first = self._store.take_numbers("writer", _WRITER_IDS_TAKEN)
        self._writer_ids = iter(range(first + 1, first + _WRITER_IDS_TAKEN))
        return first

    def take_numbers(self, table_id: int, column_id: int, count: int) -> int:
        """Take numbers for an auto-increment column; return how many had been taken before.

        Any thread may call it.
        """
        first = self._store.take_numbers(_numbers_name(table_id, column_id), count)
        entry = self._tables_by_id.get(table_id)
        if entry is not None:
            self.describe_table(entry)
        return first

    @property
    def next_numbers(self) -> NextNumbers:
        """The next free id of each counter."""
        return NextNumbers(
            table_id=self._store.next_number("table"),
            partition_id=self._store.next_number("partition"),
            writer_id=self._store.next_number("writer"),
        )

    # --- settings -------------------------------------------------------------------------------

    def setting(self, name: str) -> str | None:
        """Return a setting of the cluster; None where it was never set."""
        found = self._producers.get(setting_id(name))
        return None if found is None else bytes(found.body).decode()

    def put_setting(self, name: str, text: str) -> None:
        """Store a setting of the cluster."""
        self.put_producer(
            ProducerOffsets(producer_id=setting_id(name), expires_ms=NEVER_MS, body=text.encode())
        )

    def drop_setting(self, name: str) -> None:
        """Delete a setting in the open transaction; idempotent."""
        if self._producers.pop(setting_id(name), None) is not None:
            self._store.delete("producers", id=setting_id(name))

    # --- producers ------------------------------------------------------------------------------

    def producer(self, producer_id: str) -> ProducerOffsets | None:
        """Return the offsets that a producer registered, expired or not."""
        return self._producers.get(producer_id)

    def put_producer(self, offsets: ProducerOffsets) -> None:
        """Store the offsets of a producer, replacing its earlier ones."""
        with self._store.transaction():
            self._store.put(
                "producers", offsets.producer_id, offsets.expires_ms, bytes(offsets.body)
            )
        self._producers[offsets.producer_id] = offsets

    def drop_producers(self, ids: Iterable[str]) -> None:
        """Delete the offsets of producers; unknown ids are ignored."""
        known = [each for each in ids if each in self._producers]
        if not known:
            return
        with self._store.transaction():
            for producer_id in known:
                self._store.delete("producers", id=producer_id)
        for producer_id in known:
            del self._producers[producer_id]

    def expired_producers(self, *, now_ms: int) -> list[str]:
        """Return the ids of the producers whose offsets have expired."""
        return [key for key, each in self._producers.items() if each.expires_ms < now_ms]

    # --- deletions ------------------------------------------------------------------------------

    def pending_deletions(self) -> list[Path]:
        """Return the directories of dropped tables and partitions that may still be on disk."""
        return [Path(path) for (path,) in self._store.rows("SELECT path FROM doomed")]

    def deletion_done(self, path: Path) -> None:
        """Record that a directory has been deleted."""
        with self._store.transaction():
            self._store.delete("doomed", path=path.as_posix())

    # --- manifests ------------------------------------------------------------------------------

    def manifest_of_table(self, entry: TableEntry) -> Manifest:
        """Return the manifest that the directory of a table must have."""
        numbers = {
            str(position): self._store.next_number(_numbers_name(entry.table_id, position))
            for position in _numbered_positions(entry)
        }
        counts = {}
        if entry.bucket_count_epoch:
            counts = {each.partition_id: each.bucket_count for each in self.partitions_of(entry)}
        return manifest_of_table(entry, numbers, counts, self.lake.record(entry.table_id))

    def remove_manifests(self) -> None:
        """Remove the manifests of dropped databases; the files of tables are removed later."""
        for path in self.pending_deletions():
            # A table's directory never has this name, because it ends with a number.
            if path.name == MANIFEST and self._manifests is not None:
                self._manifests.remove(path)
                self.deletion_done(path)

    def _describe_database(self, entry: DatabaseEntry) -> None:
        if self._manifests is not None:
            self._manifests.put(
                database_manifest(entry.name),
                manifest_of_database(entry),
                sequence=self._store.contents.sequence,
            )

    def describe_table(self, entry: TableEntry) -> None:
        """Write the manifest of a table again."""
        if self._manifests is not None:
            self._manifests.put(
                table_manifest(entry.path, entry.table_id),
                self.manifest_of_table(entry),
                sequence=self._store.contents.sequence,
            )

    def _remove_manifest(self, entry: TableEntry) -> None:
        """Remove a dropped table's manifest, so that a repair cannot restore the table."""
        if self._manifests is not None:
            self._manifests.remove(table_manifest(entry.path, entry.table_id))

    def _unmark_manifest(self, database: str) -> None:
        self._store.delete("doomed", path=database_manifest(database).as_posix())

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    # --- memory and file ------------------------------------------------------------------------

    def _load(self) -> None:
        for name, text, created, modified in self._store.rows("SELECT * FROM databases"):
            self._databases[name] = DatabaseEntry(
                name=name,
                descriptor=DatabaseDescriptor.from_json(text),
                created_ms=created,
                modified_ms=modified,
            )
        schemas: dict[int, dict[int, Schema]] = {}
        for table_id, schema_id, text in self._store.rows("SELECT * FROM schemas"):
            schemas.setdefault(table_id, {})[schema_id] = Schema.from_json(text)
        for row in self._store.rows("SELECT * FROM tables"):
            table_id, database, name, schema_id, text, created, modified = row
            self._remember(
                TableEntry(
                    path=TablePath(database, name),
                    table_id=table_id,
                    schema_id=schema_id,
                    descriptor=TableDescriptor.from_json(text),
                    schemas=read_only(schemas[table_id]),
                    created_ms=created,
                    modified_ms=modified,
                    bucket_count_epoch=self._store.next_number(epoch_name(table_id)),
                )
            )
        for partition_id, table_id, name in self._store.rows("SELECT * FROM partitions"):
            table = self._tables_by_id[table_id]
            count = table.bucket_count
            if table.bucket_count_epoch:
                count = self._store.next_number(partition_buckets_name(partition_id)) or count
            self._remember_partition(
                PartitionEntry(
                    partition_id=partition_id, table_id=table_id, name=name, bucket_count=count
                )
            )
        for producer_id, expires, body in self._store.rows("SELECT * FROM producers"):
            self._producers[producer_id] = ProducerOffsets(
                producer_id=producer_id, expires_ms=expires, body=body
            )

    def _write_schema(self, entry: TableEntry) -> None:
        self._store.put(
            "schemas", entry.table_id, entry.schema_id, entry.descriptor.schema.to_json()
        )

    def _write_table(self, entry: TableEntry) -> None:
        self._store.put(
            "tables",
            entry.table_id,
            entry.path.database_name,
            entry.path.table_name,
            entry.schema_id,
            entry.descriptor.to_json(),
            entry.created_ms,
            entry.modified_ms,
        )

    def _write_bucket_counts(self, entry: TableEntry) -> None:
        """Store the epoch of a table, and at its first rescale the counts of all partitions."""
        self._store.require_rescales()
        self._store.put("counters", epoch_name(entry.table_id), entry.bucket_count_epoch)
        if entry.bucket_count_epoch == 1:
            for partition in self.partitions_of(entry):
                self._write_bucket_count(partition)

    def _write_bucket_count(self, entry: PartitionEntry) -> None:
        name = partition_buckets_name(entry.partition_id)
        self._store.put("counters", name, entry.bucket_count)

    def _drop_rows(self, entry: TableEntry) -> None:
        self._store.delete("counters", name=epoch_name(entry.table_id))
        for partition in self.partitions_of(entry):
            self._store.delete("counters", name=partition_buckets_name(partition.partition_id))
        self._store.delete("tables", id=entry.table_id)
        self._store.delete("schemas", table_id=entry.table_id)
        self._store.delete("partitions", table_id=entry.table_id)
        self.drop_setting(lake_notes.record_name(entry.table_id))
        self._mark_for_deletion(lake_notes.directories_of(entry))

    def _mark_for_deletion(self, paths: Iterable[Path]) -> None:
        for path in paths:
            self._store.put("doomed", path.as_posix())

    def _remember(self, entry: TableEntry) -> None:
        self._tables[entry.path] = self._tables_by_id[entry.table_id] = entry

    def _forget(self, entry: TableEntry) -> None:
        del self._tables[entry.path]
        del self._tables_by_id[entry.table_id]
        for partition in self._partitions.pop(entry.table_id, {}).values():
            del self._partitions_by_id[partition.partition_id]

    def _remember_partition(self, entry: PartitionEntry) -> None:
        self._partitions.setdefault(entry.table_id, {})[entry.name] = entry
        self._partitions_by_id[entry.partition_id] = entry


def epoch_name(table_id: int) -> str:
    """Return the name under which the bucket count epoch of a rescaled table is stored."""
    return f"epoch {table_id}"


def partition_buckets_name(partition_id: int) -> str:
    """Return the name under which the bucket count of a partition of such a table is stored."""
    return f"buckets {partition_id}"


def setting_id(name: str) -> str:
    """The row of a setting among those of producers, whose ids have no colon.

    So servers of earlier versions can still read the file.
    """
    return f"setting:{name}"


def _numbers_name(table_id: int, position: int) -> str:
    return f"column {table_id} {position}"


def _numbered_positions(entry: TableEntry) -> list[int]:
    schema = entry.descriptor.schema
    return [schema.column_index(name) for name in schema.auto_increment_columns]


def create_default_database(catalog: Catalog, *, now_ms: int) -> None:
    """Create the database that every new cluster has, where there is none."""
    if not catalog.databases:
        catalog.create_database(DEFAULT_DATABASE, DatabaseDescriptor(), now_ms=now_ms)
