"""The parts of pyiceberg that it does not publish as an interface, and nothing else.

pyiceberg plans no scan of a table with equality deletes, which Fluss's tables with a primary key
have. So the manifests are read here entry by entry. A new minor version of pyiceberg needs a look
at this file, and at no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFileContent, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import PrimitiveType

from fluss.errors import SnapshotNotFoundError

DATA: Final = DataFileContent.DATA
_FIELD_ID: Final = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a file says about one column; None where it says nothing.

    Attributes:
        lowest: No value is less.
        highest: No value is greater.
        nulls: How many rows have none.
    """

    lowest: Any = None
    highest: Any = None
    nulls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file of a snapshot.

    Attributes:
        content: Rows, or deletes of one kind.
        path: Where it is.
        format: `PARQUET`, or another.
        partition: The values of its partition by the names of the partition fields.
        rows: How many rows it has.
        size_bytes: Its size.
        sequence: Its place in the order of commits, by which deletes apply to rows.
        equality_ids: The columns by which its deletes are compared.
        bounds: What it says about columns, by their names.
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


def entries_of(table: Table, snapshot_id: int) -> Iterator[Entry]:
    """The live files of a snapshot, deletes included.

    Raises:
        SnapshotNotFoundError: The table does not have the snapshot any more.
    """
    snapshot = table.snapshot_by_id(snapshot_id)
    if snapshot is None:
        raise SnapshotNotFoundError(
            f"The lake does not have the snapshot {snapshot_id} any more.",
            hint="It has been expired. Plan the scan again.",
            snapshot_id=snapshot_id,
        )
    schema = table.schema()
    for manifest in snapshot.manifests(table.io):
        fields = _partition_fields(table, manifest)
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


def places_by_id(schema: pa.Schema) -> dict[int, int]:
    """The places of a file's columns by the ids that Iceberg gives them."""
    ids = [(field.metadata or {}).get(_FIELD_ID) for field in schema]
    return {int(each): place for place, each in enumerate(ids) if each is not None}


def _partition_fields(table: Table, manifest: ManifestFile) -> list[str]:
    return [field.name for field in table.specs()[manifest.partition_spec_id].fields]


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
    return None if data is None else from_bytes(kind, data)
