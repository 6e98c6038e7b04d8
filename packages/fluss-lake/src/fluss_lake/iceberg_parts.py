"""Reads manifests through parts of pyiceberg that are not in its public interface.

pyiceberg does not plan scans of tables with equality deletes, and the lake of a primary-key table
has them. So this file reads the manifests entry by entry. For reading, it is the only file to check
against a new minor version of pyiceberg (for writing: `iceberg_writes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFileContent, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import DoubleType, FloatType, IntegerType, LongType, PrimitiveType

from fluss.errors import SnapshotNotFoundError
from fluss.lake.lake_format import without_lake

DATA: Final = DataFileContent.DATA
_FIELD_ID: Final = b"PARQUET:field_id"
_NARROW_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of one column in a file or manifest; None for a bound that is not known.

    Attributes:
        lowest: A lower bound of the values.
        highest: An upper bound of the values.
        nulls: How many values are NULL.
    """

    lowest: Any = None
    highest: Any = None
    nulls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file of a snapshot.

    Attributes:
        content: Whether the file has rows, position deletes or equality deletes.
        path: The path of the file.
        format: The file format, such as `PARQUET`.
        partition: The partition values by the names of the partition fields.
        rows: How many rows the file has.
        size_bytes: The size of the file.
        sequence: The sequence number of the commit; it decides which deletes apply to which rows.
        equality_ids: The ids of the key columns of equality deletes.
        bounds: The bounds of columns by their names.
    """

    content: DataFileContent
    path: str
    format: str
    partition: Mapping[str, Any]
    rows: int
    size_bytes: int
    sequence: int
    equality_ids: tuple[int, ...]
    bounds: Mapping[str, Bounds]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFiles:
    """The live files of a snapshot, deletes included.

    Attributes:
        entries: The files.
        manifests: How many manifests the snapshot has.
        manifests_left_out: How many manifests were not read.
    """

    entries: tuple[Entry, ...]
    manifests: int
    manifests_left_out: int


MayHave = Callable[[Mapping[str, Bounds]], bool]


def live_files(table: Table, snapshot_id: int, may_have: MayHave | None = None) -> LiveFiles:
    """Find the live files of a snapshot.

    Args:
        table: The table.
        snapshot_id: The snapshot.
        may_have: Decides whether a manifest is read, from the bounds of its partition values by
            the names of the partition fields; None to read all manifests.

    Raises:
        SnapshotNotFoundError: The table does not have the snapshot.
    """
    snapshot = table.snapshot_by_id(snapshot_id)
    if snapshot is None:
        raise SnapshotNotFoundError(
            f"The lake does not have the snapshot {snapshot_id} any more.",
            hint=without_lake(
                "If it has just been expired, plan the scan again. Otherwise the lake's table was "
                "rolled back, or the catalog has another table of this name."
            ),
            snapshot_id=snapshot_id,
        )
    manifests = snapshot.manifests(table.io)
    kept = [
        each for each in manifests if may_have is None or may_have(_partition_bounds(table, each))
    ]
    return LiveFiles(
        entries=tuple(entry for each in kept for entry in _entries(table, each)),
        manifests=len(manifests),
        manifests_left_out=len(manifests) - len(kept),
    )


def entries_of(table: Table, snapshot_id: int) -> tuple[Entry, ...]:
    """All live files of a snapshot; see `live_files`."""
    return live_files(table, snapshot_id).entries


def paths_of_all_snapshots(table: Table) -> set[str]:
    """The paths of the files of all snapshots of a table; each manifest is read once."""
    manifests = {
        manifest.manifest_path: manifest
        for snapshot in table.metadata.snapshots
        for manifest in snapshot.manifests(table.io)
    }
    return {
        entry.data_file.file_path
        for manifest in manifests.values()
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    }


def snapshots_of(table: Table) -> list[tuple[int, int]]:
    """The id and the time of each snapshot that a table still has, the newest first."""
    found = [(each.snapshot_id, each.timestamp_ms) for each in table.metadata.snapshots]
    return sorted(found, key=lambda each: each[1], reverse=True)


def _entries(table: Table, manifest: ManifestFile) -> Iterator[Entry]:
    schema, fields = table.schema(), _partition_fields(table, manifest)
    for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
        file = entry.data_file
        yield Entry(
            content=file.content,
            path=file.file_path,
            format=file.file_format.value,
            partition={name: file.partition[place] for place, name in enumerate(fields)},
            rows=file.record_count,
            size_bytes=file.file_size_in_bytes,
            sequence=entry.sequence_number or 0,
            equality_ids=tuple(file.equality_ids or ()),
            bounds=_bounds_of(file, schema) if file.content is DATA else {},
        )


def open_file(io: FileIO, path: str) -> Any:
    """Open a file of a table for pyarrow."""
    return io.new_input(path).open(seekable=True)


def local_path(io: FileIO, path: str) -> str | None:
    """The path of a file of a table on a local disk, as pyarrow opens it; None for a store."""
    if not isinstance(io, PyArrowFileIO):
        return None
    scheme, _, found = io.parse_location(path, io.properties)
    return found if scheme == "file" else None


def places_by_id(schema: pa.Schema) -> dict[int, int]:
    """The positions of a file's columns by their field ids."""
    ids = [(field.metadata or {}).get(_FIELD_ID) for field in schema]
    return {int(each): place for place, each in enumerate(ids) if each is not None}


def _partition_fields(table: Table, manifest: ManifestFile) -> list[str]:
    return [field.name for field in table.specs()[manifest.partition_spec_id].fields]


def _partition_bounds(table: Table, manifest: ManifestFile) -> dict[str, Bounds]:
    """The bounds of the partition values in a manifest, by the names of the partition fields."""
    spec = table.specs()[manifest.partition_spec_id]
    kinds = spec.partition_type(table.schema()).fields
    found = {}
    for kind, summary in zip(kinds, manifest.partitions or (), strict=False):
        if isinstance(kind.field_type, PrimitiveType):
            found[kind.name] = Bounds(
                lowest=_value(kind.field_type, summary.lower_bound),
                highest=_value(kind.field_type, summary.upper_bound),
                nulls=None if summary.contains_null else 0,
            )
    return found


def _bounds_of(file: Any, schema: Schema) -> dict[str, Bounds]:
    lower, upper = file.lower_bounds or {}, file.upper_bounds or {}
    nulls = file.null_value_counts or {}
    found = {}
    for field in schema.fields:
        if isinstance(field.field_type, PrimitiveType):
            found[field.name] = Bounds(
                lowest=_value(field.field_type, lower.get(field.field_id)),
                highest=_value(field.field_type, upper.get(field.field_id)),
                nulls=nulls.get(field.field_id),
            )
    return found


def _value(kind: PrimitiveType, data: bytes | None) -> Any:
    if data is None:
        return None
    if len(data) == _NARROW_BYTES and isinstance(kind, LongType | DoubleType):
        # The column was narrower when the file was written.
        kind = IntegerType() if isinstance(kind, LongType) else FloatType()
    return from_bytes(kind, data)
