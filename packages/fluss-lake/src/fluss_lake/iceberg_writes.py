"""Writes files and snapshots of Iceberg, with parts of pyiceberg that are not its public API.

pyiceberg writes no equality deletes, cannot write a file into a given bucket, and retries a commit
after a conflict. So this file writes data files with Parquet's writer, and builds a snapshot from
manifests. The snapshot is committed only if the table's newest snapshot is still its base. For a
new minor version of pyiceberg, check this file and `iceberg_parts`, and no other.
"""

from __future__ import annotations

import errno
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import (
    _get_parquet_writer_kwargs,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.table import Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import (
    Operation,
    Snapshot,
    SnapshotSummaryCollector,
    Summary,
    update_snapshot_summaries,
)
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotsUpdate,
    SetSnapshotRefUpdate,
)
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType, IntegerType, ListType, NestedField, StructType

from fluss.errors import FlussError
from fluss_lake.lake_errors import LakeConflictError, check_base_is_there, conflict

BRANCH: Final = "main"
FORMAT_VERSION: Final = 2
EQUALITY_DELETES: Final = DataFileContent.EQUALITY_DELETES
# So many small manifests are merged into one; Iceberg's own default.
MANIFESTS_MAX: Final = 100
MANIFEST_BYTES: Final = 8 * 1024 * 1024
_COMPRESSION: Final = "deflate"
_UNWRITABLE: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES}


# --- files ------------------------------------------------------------------------------------


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow columns of files with this schema; each has the id of its field."""
    return schema_to_pyarrow(sanitize_column_names(schema))


@dataclass(slots=True, eq=False)
class ParquetFile:
    """One file of a table while it is written.

    Args:
        io: Where it is written.
        path: Its path.
        schema: Its columns.
        properties: The table's properties.
        without_dictionary: Columns whose values are all different.
    """

    io: FileIO
    path: str
    schema: Schema
    properties: Mapping[str, str]
    without_dictionary: Sequence[str] = ()
    _out: Any = None
    _writer: Any = None

    def write(self, rows: pa.Table) -> None:
        """Write rows as one row group. They must have the file's Arrow columns."""
        if self._writer is None:
            self._out = self.io.new_output(self.path).create(overwrite=True)
            ids = parquet_path_to_id_mapping(sanitize_column_names(self.schema))
            self._writer = pq.ParquetWriter(
                self._out,
                schema=arrow_schema(self.schema),
                store_decimal_as_integer=True,
                # With Arrow's schema in the file, readers would get large strings; files of Java
                # have none.
                store_schema=False,
                use_dictionary=[each for each in ids if each not in self.without_dictionary],
                **_get_parquet_writer_kwargs(dict(self.properties)),
            )
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))

    @property
    def size_bytes(self) -> int:
        """How much has been written so far."""
        return 0 if self._out is None else int(self._out.tell())

    def finish(
        self,
        *,
        partition: Sequence[Any],
        spec_id: int,
        equality_ids: Sequence[int] = (),
    ) -> DataFile:
        """Close the file, and describe it for a commit.

        Args:
            partition: Its partition values, in the order of the spec's fields.
            spec_id: The id of the partition spec.
            equality_ids: The ids of the key columns of a delete file; empty for a file of rows.
        """
        self._writer.close()
        size = self.size_bytes
        self._out.close()
        written = sanitize_column_names(self.schema)
        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=self._writer.writer.metadata,
            stats_columns=compute_statistics_plan(written, dict(self.properties)),
            parquet_column_mapping=parquet_path_to_id_mapping(written),
        )
        found = DataFile.from_args(
            content=EQUALITY_DELETES if equality_ids else DataFileContent.DATA,
            file_path=self.path,
            file_format=FileFormat.PARQUET,
            partition=Record(*partition),
            file_size_in_bytes=size,
            sort_order_id=None,
            equality_ids=list(equality_ids) or None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )
        found.spec_id = spec_id
        return found

    def abandon(self) -> None:
        """Close the file without its footer; the caller removes it."""
        for resource in (self._writer, self._out):
            if resource is not None:
                with suppress(OSError, pa.ArrowException):  # the disk may be full
                    resource.close()


@dataclass(frozen=True, slots=True)
class _PlaceOfPartition:
    """A partition, as pyiceberg's location provider takes it."""

    spec: PartitionSpec
    schema: Schema
    record: Sequence[Any]

    def to_path(self) -> str:
        return self.spec.partition_to_path(Record(*self.record), self.schema)


def data_path(
    location: str,
    properties: Mapping[str, str],
    schema: Schema,
    spec: PartitionSpec,
    record: Sequence[Any],
    name: str,
) -> str:
    """The path of a file of a partition.

    Args:
        location: The table's location.
        properties: The table's properties.
        schema: The table's columns.
        spec: The table's partition spec.
        record: The partition values.
        name: The file's name.
    """
    place: Any = _PlaceOfPartition(spec, schema, record)
    provider = load_location_provider(location, dict(properties))
    return provider.new_data_location(name, partition_key=place)


# --- snapshots --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Change:
    """What a snapshot changes.

    Attributes:
        added: New files, of rows or of deletes.
        removed: The paths of files that are no longer part of the table.
        properties: Properties for the snapshot's summary.
        is_rewrite: Whether the rows stay the same, as in a compaction.
    """

    added: Sequence[DataFile] = ()
    removed: frozenset[str] = frozenset()
    properties: Mapping[str, str] = field(default_factory=dict)
    is_rewrite: bool = False

    @property
    def operation(self) -> Operation:
        """Iceberg's name for this kind of change."""
        if self.is_rewrite:
            return Operation.REPLACE
        has_deletes = any(each.content is not DataFileContent.DATA for each in self.added)
        return Operation.OVERWRITE if has_deletes or self.removed else Operation.APPEND


def commit_change(table: Table, base_id: int | None, change: Change) -> int:
    """Commit a snapshot on top of another one; return its id.

    There is no retry. If the catalog does not answer, the table is loaded again to see whether it
    has the snapshot.

    Args:
        table: The table; its metadata are those of the base, or newer.
        base_id: The base snapshot; None if the table has none yet.
        change: What the snapshot changes.

    Raises:
        LakeConflictError: The table's newest snapshot is another one; nothing was committed.
        FlussError: The files of the snapshot cannot be written; nothing was committed.
    """
    made = _SnapshotMaker(table, base_id, change)
    try:
        made.check_base()
        snapshot = made.snapshot()
        to_snapshot: dict[str, Any] = {
            "snapshot-id": snapshot.snapshot_id,
            "ref-name": BRANCH,
            "type": SnapshotRefType.BRANCH,
        }
        updates = (AddSnapshotUpdate(snapshot=snapshot), SetSnapshotRefUpdate(**to_snapshot))
        head: dict[str, Any] = {"snapshot-id": base_id, "ref": BRANCH}
        requirements = (
            AssertTableUUID(uuid=table.metadata.table_uuid),
            AssertRefSnapshotId(**head),
        )
        table.catalog.commit_table(table, requirements, updates)
    except CommitFailedException as error:
        made.remove_files()
        raise conflict(table, str(error)) from error
    except LakeConflictError:
        made.remove_files()
        raise
    except Exception as error:
        # The answer may have been lost: the table shows whether it has the snapshot. If the table
        # cannot be loaded either, the files stay, because a snapshot may refer to them.
        table.refresh()
        if table.snapshot_by_id(made.snapshot_id) is None:
            made.remove_files()
            if isinstance(error, OSError) and error.errno in _UNWRITABLE:
                raise _unwritable(table, error) from error
            check_base_is_there(table, base_id, error)
            raise
    table.refresh()
    return made.snapshot_id


def expire_snapshots(table: Table, ids: Sequence[int]) -> tuple[int, int]:
    """Remove snapshots from a table, and the files that no other snapshot has.

    Args:
        table: The table, as it is now.
        ids: The ids of the snapshots; the newest snapshot must not be among them.

    Returns:
        How many files were removed, and how many could not be removed.

    Raises:
        LakeConflictError: Another program has committed a snapshot meanwhile.
    """
    gone, newest = set(ids), table.current_snapshot()
    if not gone or newest is None:
        return 0, 0
    io = table.io
    old = [each for each in table.metadata.snapshots if each.snapshot_id in gone]
    kept = [each for each in table.metadata.snapshots if each.snapshot_id not in gone]
    try:
        manifests = {one.manifest_path: one for each in old for one in each.manifests(io)}
        live = {one.manifest_path: one for each in kept for one in each.manifests(io)}
        unused = [each for path, each in manifests.items() if path not in live]
        files = {path for each in unused for path in _files_in(each, io)}
        if files:
            files -= {path for each in live.values() for path in _files_in(each, io)}
    except OSError as error:
        for snapshot_id in (newest.snapshot_id, *ids):
            check_base_is_there(table, snapshot_id, error)
        raise
    head: dict[str, Any] = {"snapshot-id": newest.snapshot_id, "ref": BRANCH}
    removed: dict[str, Any] = {"snapshot-ids": sorted(gone)}
    try:
        table.catalog.commit_table(
            table,
            (AssertTableUUID(uuid=table.metadata.table_uuid), AssertRefSnapshotId(**head)),
            (RemoveSnapshotsUpdate(**removed),),
        )
    except CommitFailedException as error:
        raise conflict(table, str(error)) from error
    table.refresh()
    paths = [
        *files,
        *(each.manifest_path for each in unused),
        *(each.manifest_list for each in old),
    ]
    left = remove_files(io, paths)
    return len(paths) - len(left), len(left)


def _files_in(manifest: ManifestFile, io: FileIO) -> Iterator[str]:
    """The paths of the live files of a manifest."""
    for entry in manifest.fetch_manifest_entry(io, discard_deleted=True):
        yield entry.data_file.file_path


def _unwritable(table: Table, error: OSError) -> FlussError:
    """The error of a snapshot whose files cannot be written."""
    name = ".".join(table.name())
    why = " ".join(str(error).split())[:300] or type(error).__name__
    return FlussError(
        f"The snapshot of the lake of {name} cannot be written: {why}.",
        hint="The disk may be full, or the worker may not be allowed to write. Nothing was committed; "
        "the next round starts where this one did.",
        table=name,
    )


class _Manifests(ManifestWriterV2):
    """Writes a manifest of rows or of deletes; pyiceberg writes only manifests of rows."""

    def __init__(self, kind: ManifestContent, *given: Any) -> None:
        super().__init__(*given)
        self._kind = kind

    def content(self) -> ManifestContent:
        return self._kind

    @property
    def _meta(self) -> dict[str, str]:
        kind = "deletes" if self._kind is ManifestContent.DELETES else "data"
        return {**super()._meta, "content": kind}

    def _with_partition(self, format_version: Any) -> Schema:
        """The columns of the manifest, with `equality_ids` as a list of ints.

        pyiceberg 0.12.0 declares a list of longs, at which Iceberg's Java reader fails.
        """
        columns = super()._with_partition(format_version)
        return Schema(*(_with_int_ids(each) for each in columns.fields))

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc_type is None:
            super().__exit__(exc_type, exc_value, traceback)


def _with_int_ids(column: NestedField) -> NestedField:
    kind: IcebergType = column.field_type
    if isinstance(kind, StructType):
        kind = StructType(*(_with_int_ids(each) for each in kind.fields))
    elif isinstance(kind, ListType) and column.name == "equality_ids":
        kind = ListType(element_id=kind.element_id, element=IntegerType(), element_required=True)
    return NestedField(
        field_id=column.field_id,
        name=column.name,
        field_type=kind,
        required=column.required,
        doc=column.doc,
    )


class _SnapshotMaker:
    """Makes one snapshot: its manifests, its list of manifests, its summary."""

    def __init__(self, table: Table, base_id: int | None, change: Change) -> None:
        self._table, self._base_id, self._change = table, base_id, change
        self._metadata = table.metadata
        self.snapshot_id: int = self._metadata.new_snapshot_id()
        self._commit_id = uuid.uuid4()
        self._paths: list[str] = []
        self._removed: list[DataFile] = []

    def check_base(self) -> None:
        """Refuse a base that is not the table's newest snapshot."""
        newest = self._table.current_snapshot()
        found = None if newest is None else newest.snapshot_id
        if found != self._base_id:
            raise conflict(self._table, f"it is {found}, and not {self._base_id}")

    def snapshot(self) -> Snapshot:
        """Write the manifests and their list."""
        manifests = [*self._added_manifests(), *self._kept_manifests()]
        path = self._new_path(f"snap-{self.snapshot_id}-0-{self._commit_id}.avro")
        sequence = self._metadata.next_sequence_number()
        with write_manifest_list(
            format_version=FORMAT_VERSION,
            output_file=self._table.io.new_output(path),
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=self._base_id,
            sequence_number=sequence,
            avro_compression=_COMPRESSION,
        ) as writer:
            writer.add_manifests(manifests)
        facts: dict[str, Any] = {
            "snapshot-id": self.snapshot_id,
            "parent-snapshot-id": self._base_id,
            "manifest-list": path,
            "sequence-number": sequence,
            "summary": self._summary(),
            "schema-id": self._metadata.current_schema_id,
        }
        return Snapshot(**facts)

    def remove_files(self) -> None:
        """Remove the manifests and their list; no snapshot refers to them."""
        remove_files(self._table.io, self._paths)

    # --- manifests ----------------------------------------------------------------------------

    def _added_manifests(self) -> Iterator[ManifestFile]:
        groups: dict[tuple[ManifestContent, int], list[ManifestEntry]] = defaultdict(list)
        for file in self._change.added:
            entry = ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED,
                snapshot_id=self.snapshot_id,
                sequence_number=None,
                file_sequence_number=None,
                data_file=file,
            )
            groups[_kind_of(file), file.spec_id].append(entry)
        for (kind, spec_id), entries in groups.items():
            yield self._written(kind, spec_id, entries)

    def _kept_manifests(self) -> Iterator[ManifestFile]:
        base = None if self._base_id is None else self._metadata.snapshot_by_id(self._base_id)
        if base is None:
            return
        kept: dict[tuple[ManifestContent, int], list[ManifestFile]] = defaultdict(list)
        missing = set(self._change.removed)
        for manifest in base.manifests(self._table.io):
            if not missing:
                kept[manifest.content, manifest.partition_spec_id].append(manifest)
                continue
            without = self._without_removed(manifest, missing)
            if without is not None:
                kept[without.content, without.partition_spec_id].append(without)
        if missing:
            raise conflict(self._table, f"{len(missing)} files are no longer part of it")
        for (kind, spec_id), manifests in kept.items():
            small = [each for each in manifests if each.manifest_length < MANIFEST_BYTES]
            if len(small) < MANIFESTS_MAX:
                yield from manifests
            else:
                yield from (each for each in manifests if each.manifest_length >= MANIFEST_BYTES)
                yield self._written(kind, spec_id, self._entries_of(small))

    def _without_removed(self, manifest: ManifestFile, missing: set[str]) -> ManifestFile | None:
        """The manifest, or a new one that marks the removed files as deleted."""
        entries = manifest.fetch_manifest_entry(self._table.io, discard_deleted=True)
        found = [each for each in entries if each.data_file.file_path in missing]
        if not found:
            return manifest
        missing -= {each.data_file.file_path for each in found}
        self._removed += [each.data_file for each in found]
        gone = {each.data_file.file_path for each in found}
        return self._written(
            manifest.content,
            manifest.partition_spec_id,
            [
                _with_status(
                    each,
                    ManifestEntryStatus.DELETED
                    if each.data_file.file_path in gone
                    else ManifestEntryStatus.EXISTING,
                    self.snapshot_id,
                )
                for each in entries
            ],
        )

    def _entries_of(self, manifests: Iterable[ManifestFile]) -> Iterator[ManifestEntry]:
        for manifest in manifests:
            for entry in manifest.fetch_manifest_entry(self._table.io, discard_deleted=False):
                if entry.status is not ManifestEntryStatus.DELETED:
                    yield _with_status(entry, ManifestEntryStatus.EXISTING, self.snapshot_id)
                elif entry.snapshot_id == self.snapshot_id:
                    yield entry

    def _written(
        self, kind: ManifestContent, spec_id: int, entries: Iterable[ManifestEntry]
    ) -> ManifestFile:
        path = self._new_path(f"{self._commit_id}-m{len(self._paths)}.avro")
        with _Manifests(
            kind,
            self._metadata.specs()[spec_id],
            self._metadata.schema(),
            self._table.io.new_output(path),
            self.snapshot_id,
            _COMPRESSION,
        ) as writer:
            for entry in entries:
                writer.add_entry(entry)
        return writer.to_manifest_file()

    def _new_path(self, name: str) -> str:
        path = self._table.location_provider().new_metadata_location(name)
        self._paths.append(path)
        return path

    # --- summary ------------------------------------------------------------------------------

    def _summary(self) -> Summary:
        schema, specs = self._metadata.schema(), self._metadata.specs()
        counts = SnapshotSummaryCollector()
        for file in self._change.added:
            counts.add_file(file, schema, specs[file.spec_id])
        for file in self._removed:
            counts.remove_file(file, schema, specs[file.spec_id])
        base = None if self._base_id is None else self._metadata.snapshot_by_id(self._base_id)
        # `update_snapshot_summaries` refuses REPLACE; its totals are counted like OVERWRITE's.
        counted = update_snapshot_summaries(
            Summary(Operation.OVERWRITE, **counts.build(), **self._change.properties),
            None if base is None or base.summary is None else _texts(base.summary),
        )
        return Summary(self._change.operation, **_texts(counted))


def _texts(summary: Summary) -> dict[str, str]:
    return dict(summary.additional_properties)


def _kind_of(file: DataFile) -> ManifestContent:
    is_rows = file.content is DataFileContent.DATA
    return ManifestContent.DATA if is_rows else ManifestContent.DELETES


def _with_status(
    entry: ManifestEntry, status: ManifestEntryStatus, snapshot_id: int
) -> ManifestEntry:
    is_deleted = status is ManifestEntryStatus.DELETED
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=snapshot_id if is_deleted else entry.snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=entry.data_file,
    )


def remove_files(io: FileIO, paths: Iterable[str]) -> list[str]:
    """Remove files; return the paths of those that exist and could not be removed."""
    left = []
    for path in paths:
        try:
            io.delete(path)
        except FileNotFoundError:
            continue
        except OSError:
            left.append(path)
    return left
