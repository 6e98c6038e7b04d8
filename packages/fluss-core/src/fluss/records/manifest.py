"""Two JSON files that servers keep beside remote data: what a tiered log and a snapshot contain.

`{uuid}.manifest` lists the segments of a bucket's remote log (Java: `RemoteLogManifestJsonSerde`),
`_METADATA` the files of one KV snapshot (Java: `CompletedSnapshotJsonSerde`). Both are read with
suspicion and written as Java does; the files they name are fetched elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self
from uuid import UUID

from fluss.model.json_values import (
    Json,
    as_integer,
    as_list,
    as_object,
    as_text,
    corrupt,
    json_text,
    parse_json,
)

_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSegment:
    """One segment of a tiered log.

    Args:
        segment_id: The directory its files are in.
        start_offset: The first offset in the file.
        end_offset: The offset behind the last one in the file.
        logical_start_offset: Where reading begins, where that is later than the file does.
        logical_end_offset: Where reading ends, where that is earlier than the file does.
        max_timestamp: The newest commit timestamp in it, in milliseconds.
        size_bytes: The size of its log file.
    """

    segment_id: UUID
    start_offset: int
    end_offset: int
    logical_start_offset: int | None = None
    logical_end_offset: int | None = None
    max_timestamp: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogManifest:
    """The segments of one bucket's remote log, oldest first.

    Args:
        database: The table's database.
        table: The table's name.
        partition: The partition's name, None where the table has none.
        table_id: The table's id.
        partition_id: The partition's id.
        bucket_id: The bucket.
        highest_copied_end_offset: How far the log was ever copied, where segments have gone since.
        segments: The segments.
    """

    database: str
    table: str
    partition: str | None = None
    table_id: int
    partition_id: int | None = None
    bucket_id: int
    highest_copied_end_offset: int | None = None
    segments: tuple[RemoteSegment, ...]

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a manifest.

        Raises:
            CorruptDataError: The text is not one.
        """
        what = "remote log manifest"
        node = parse_json(text, what)
        _check_version(node, what)
        return cls(
            database=as_text(node, "database", what),
            table=as_text(node, "table", what),
            partition=_optional_text(node, "partition_name", what),
            table_id=as_integer(node, "table_id", what),
            partition_id=_optional_integer(node, "partition_id", what),
            bucket_id=as_integer(node, "bucket_id", what),
            highest_copied_end_offset=_optional_integer(node, "highest_copied_end_offset", what),
            segments=tuple(
                _segment(as_object(each, what), what)
                for each in as_list(node, "remote_log_segments", what)
            ),
        )

    def to_json(self) -> str:
        """The manifest as Java writes it."""
        return json_text(
            _without_none(
                {
                    "version": _VERSION,
                    "database": self.database,
                    "table": self.table,
                    "partition_name": self.partition,
                    "table_id": self.table_id,
                    "partition_id": self.partition_id,
                    "bucket_id": self.bucket_id,
                    "highest_copied_end_offset": self.highest_copied_end_offset,
                    "remote_log_segments": [_segment_json(each) for each in self.segments],
                }
            )
        )


def _segment(node: Mapping[str, Any], what: str) -> RemoteSegment:
    text = as_text(node, "segment_id", what)
    try:
        segment_id = UUID(text)
    except ValueError:
        raise corrupt(what, f"the segment id {text!r} is not a UUID") from None
    segment = RemoteSegment(
        segment_id=segment_id,
        start_offset=as_integer(node, "start_offset", what),
        end_offset=as_integer(node, "end_offset", what),
        logical_start_offset=_optional_integer(node, "logical_start_offset", what),
        logical_end_offset=_optional_integer(node, "logical_end_offset", what),
        max_timestamp=as_integer(node, "max_timestamp", what),
        size_bytes=as_integer(node, "size_in_bytes", what),
    )
    if not 0 <= segment.start_offset <= segment.end_offset or segment.size_bytes < 0:
        raise corrupt(what, f"the segment {text} has offsets or a size that cannot be")
    return segment


def _segment_json(segment: RemoteSegment) -> Json:
    return _without_none(
        {
            "segment_id": str(segment.segment_id),
            "start_offset": segment.start_offset,
            "end_offset": segment.end_offset,
            "logical_start_offset": segment.logical_start_offset,
            "logical_end_offset": segment.logical_end_offset,
            "max_timestamp": segment.max_timestamp,
            "size_in_bytes": segment.size_bytes,
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFile:
    """One file of a KV snapshot: where it is, how long, and its name in the database directory."""

    path: str
    size_bytes: int
    local_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoIncrementRange:
    """Numbers of an auto-increment column that were handed out but perhaps not used."""

    column_id: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KvSnapshot:
    """The files of one snapshot of a primary-key bucket.

    Args:
        table_id: The table's id.
        partition_id: The partition's id, None where the table has none.
        bucket_id: The bucket.
        snapshot_id: The snapshot.
        location: Its directory.
        shared_files: Files that other snapshots use, too.
        private_files: Files of this one alone.
        incremental_size_bytes: What this snapshot added to the store.
        log_offset: The changelog offset from which to go on.
        row_count: How many rows there are, where the server knew.
        auto_increment_ranges: The state of auto-increment columns.
    """

    table_id: int
    partition_id: int | None = None
    bucket_id: int
    snapshot_id: int
    location: str
    shared_files: tuple[SnapshotFile, ...]
    private_files: tuple[SnapshotFile, ...]
    incremental_size_bytes: int
    log_offset: int
    row_count: int | None = None
    auto_increment_ranges: tuple[AutoIncrementRange, ...] = ()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a `_METADATA` file.

        Raises:
            CorruptDataError: The text is not one.
        """
        what = "KV snapshot"
        node = parse_json(text, what)
        _check_version(node, what)
        handle = as_object(node.get("kv_snapshot_handle"), what)
        ranges = as_list(node, "auto_inc_id_range", what) if "auto_inc_id_range" in node else []
        return cls(
            table_id=as_integer(node, "table_id", what),
            partition_id=_optional_integer(node, "partition_id", what),
            bucket_id=as_integer(node, "bucket_id", what),
            snapshot_id=as_integer(node, "snapshot_id", what),
            location=as_text(node, "snapshot_location", what),
            shared_files=_files(handle, "shared_file_handles", what),
            private_files=_files(handle, "private_file_handles", what),
            incremental_size_bytes=as_integer(handle, "snapshot_incremental_size", what),
            log_offset=as_integer(node, "log_offset", what),
            row_count=_optional_integer(node, "row_count", what),
            auto_increment_ranges=tuple(_range(as_object(each, what), what) for each in ranges),
        )

    def to_json(self) -> str:
        """The snapshot as Java writes it."""
        ranges = [
            {"column_id": each.column_id, "start": each.start, "end": each.end}
            for each in self.auto_increment_ranges
        ]
        return json_text(
            _without_none(
                {
                    "version": _VERSION,
                    "table_id": self.table_id,
                    "partition_id": self.partition_id,
                    "bucket_id": self.bucket_id,
                    "snapshot_id": self.snapshot_id,
                    "snapshot_location": self.location,
                    "kv_snapshot_handle": {
                        "shared_file_handles": [_file_json(each) for each in self.shared_files],
                        "private_file_handles": [_file_json(each) for each in self.private_files],
                        "snapshot_incremental_size": self.incremental_size_bytes,
                    },
                    "log_offset": self.log_offset,
                    "row_count": self.row_count,
                    "auto_inc_id_range": ranges or None,
                }
            )
        )


def _files(node: Mapping[str, Any], key: str, what: str) -> tuple[SnapshotFile, ...]:
    return tuple(_file(as_object(each, what), what) for each in as_list(node, key, what))


def _file(node: Mapping[str, Any], what: str) -> SnapshotFile:
    handle = as_object(node.get("kv_file_handle"), what)
    local_name = as_text(node, "local_path", what)
    # The name becomes a path in somebody's directory, so it must not lead out of it.
    if not local_name or local_name in {".", ".."} or set(local_name) & {"/", "\\", "\x00"}:
        raise corrupt(what, f"the local name {local_name!r} is not a file's name")
    return SnapshotFile(
        path=as_text(handle, "path", what),
        size_bytes=as_integer(handle, "size", what),
        local_name=local_name,
    )


def _file_json(file: SnapshotFile) -> Json:
    return {
        "kv_file_handle": {"path": file.path, "size": file.size_bytes},
        "local_path": file.local_name,
    }


def _range(node: Mapping[str, Any], what: str) -> AutoIncrementRange:
    return AutoIncrementRange(
        column_id=as_integer(node, "column_id", what),
        start=as_integer(node, "start", what),
        end=as_integer(node, "end", what),
    )


def _check_version(node: Mapping[str, Any], what: str) -> None:
    version = as_integer(node, "version", what)
    if version != _VERSION:
        raise corrupt(what, f"its version is {version}, and only {_VERSION} is known")


def _optional_integer(node: Mapping[str, Any], key: str, what: str) -> int | None:
    return as_integer(node, key, what) if key in node else None


def _optional_text(node: Mapping[str, Any], key: str, what: str) -> str | None:
    return as_text(node, key, what) if key in node else None


def _without_none(node: Json) -> Json:
    return {key: value for key, value in node.items() if value is not None}
