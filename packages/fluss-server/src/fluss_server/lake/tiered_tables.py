"""The tiered part of each table: snapshots, the files with their offsets, and the tiered offsets.

Storage threads read and write the files. The event loop changes the snapshots, with the catalog. A
worker names files by their paths. The server accepts only files that it has written for the table,
because it deletes the files of snapshots that are not kept.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.errors import CorruptDataError, FlussError
from fluss.model.paths import TableBucket
from fluss_server.catalog.catalog import Catalog
from fluss_server.catalog.catalog_entries import TableEntry
from fluss_server.damage_errors import damaged
from fluss_server.data_layout import lake_directory
from fluss_server.lake.lake_snapshots import KnownSnapshot, LakeRecord, record_from_json
from fluss_server.lake.offsets_file import Offsets, offsets_from_json, offsets_to_json
from fluss_server.log import log_files as files
from fluss_server.server_config import ServerConfig
from fluss_server.server_errors import request_error

SUFFIX: Final = ".offsets"
_FILE_BYTES_MAX: Final = 64 << 20
_SCHEME: Final = "file:"
_REMEDY: Final = (
    "Restore the file from a backup, or prepare a snapshot with ignore_previous_table_offsets and the "
    "offsets of all buckets."
)
# A commit may remove the file before it is read; the next attempt finds its successor.
_ATTEMPTS_MAX: Final = 5


class TieredTables:
    """The snapshots of the lake that a server knows.

    Args:
        config: The configuration of the server.
        catalog: Its catalog, which keeps them.
    """

    def __init__(self, config: ServerConfig, catalog: Catalog) -> None:
        self._directory = config.directory.absolute()
        self._is_durable = config.is_durable
        self._catalog = catalog
        self._ends: dict[int, dict[tuple[int | None, int], int]] = {}

    def record(self, table: TableEntry) -> LakeRecord:
        """Return the record of a table's lake."""
        return record_from_json(self._catalog.lake.record(table.table_id))

    def commit(
        self, table: TableEntry, added: KnownSnapshot, *, earliest_kept: int | None, now_ms: int
    ) -> list[Path]:
        """Record a snapshot; return the files that are not needed any more.

        Only the event loop may call it, after the files of the snapshot have been read.
        """
        known = self.record(table)
        record = known.with_snapshot(added, earliest_kept=earliest_kept, now_ms=now_ms)
        self._catalog.lake.put_record(table, record.to_json_object())
        return [self._path(table, name) for name in sorted(known.files - record.files)]

    def raise_ends(self, table: TableEntry, offsets: Offsets) -> None:
        """Note that the lake has the rows below these offsets."""
        known = self._ends.setdefault(table.table_id, {})
        for bucket, offset in offsets.items():
            known[bucket] = max(known.get(bucket, 0), offset)

    def forget(self, table_id: int) -> None:
        """Forget a table that was dropped, or is no longer tiered."""
        self._ends.pop(table_id, None)

    # --- on storage threads -----------------------------------------------------------------------

    def end_of(self, table: TableEntry, bucket: TableBucket) -> int:
        """Return the offset below which the lake has all rows of a bucket.

        Raises:
            FlussError: The file of the newest snapshot is missing or damaged.
        """
        if table.table_id not in self._ends:
            self.raise_ends(table, self.newest(table)[1])
        return self._ends[table.table_id].get((bucket.partition_id, bucket.bucket_id), 0)

    def newest(self, table: TableEntry) -> tuple[int | None, Offsets]:
        """Return the newest snapshot and its offsets; None and no offsets if there is none.

        Raises:
            FlussError: Its file is missing or damaged.
        """
        return self.snapshot(table, None) or (None, {})

    def snapshot(
        self, table: TableEntry, snapshot_id: int | None, *, is_readable: bool = False
    ) -> tuple[int, Offsets] | None:
        """Return a snapshot and its offsets; None if the snapshot is unknown.

        Args:
            table: The table.
            snapshot_id: The snapshot; None for the newest.
            is_readable: Whether to return the newest snapshot whose readable offsets are known.

        Raises:
            FlussError: Its file is missing or damaged.
        """
        attempts = 0
        while True:
            record = self.record(table)
            found = record.find(snapshot_id)
            named = None if found is None else (found.snapshot_id, found.tiered)
            if is_readable:
                named = record.readable
            if named is None:
                return None
            try:
                return named[0], self._read(table, named[1])
            except FileNotFoundError:
                attempts += 1
                if attempts == _ATTEMPTS_MAX:
                    why = f"is missing; it has the offsets of snapshot {named[0]} of {table.path}"
                    path = self._path(table, named[1])
                    raise damaged(path, why, hint=_REMEDY) from None

    def store(self, table: TableEntry, offsets: Offsets) -> str:
        """Write the offsets of a snapshot before its commit; return the path for the worker.

        Raises:
            OSError: The file cannot be written.
        """
        path = self._path(table, f"{uuid.uuid4()}{SUFFIX}")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = offsets_to_json(table.table_id, offsets)
        files.replace_file(path, text.encode(), durable=self._is_durable)
        if self._is_durable:
            for directory in (path.parent, *path.parents[1:4]):
                files.sync_directory(directory)
        return f"{_SCHEME}{path.as_posix()}"

    def check_file(self, table: TableEntry, given: str) -> tuple[str, Offsets]:
        """Return the name and the offsets of a file that a worker names.

        Raises:
            FlussError: This server has not written the file for the table.
        """
        path = Path(f"/{given.removeprefix(_SCHEME).lstrip('/')}")
        known = self._path(table, path.name)
        if path != known or path.suffix != SUFFIX:
            raise _not_ours(table, given)
        try:
            return path.name, self._read(table, path.name)
        except FileNotFoundError:
            raise _not_ours(table, given) from None

    def _read(self, table: TableEntry, name: str) -> Offsets:
        path = self._path(table, name)
        with path.open("rb") as file:
            text = file.read(_FILE_BYTES_MAX)
        try:
            return offsets_from_json(text, table_id=table.table_id)
        except CorruptDataError as error:
            raise damaged(path, "is damaged", hint=_REMEDY) from error

    def _path(self, table: TableEntry, name: str) -> Path:
        return self._directory / lake_directory(table.path, table.table_id) / "metadata" / name


def remove_files(paths: list[Path]) -> None:
    """Remove the files of snapshots that are not kept."""
    for path in paths:
        path.unlink(missing_ok=True)


def _not_ours(table: TableEntry, given: str) -> FlussError:
    return request_error(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        f"{given} is not a file of offsets of {table.path} (table {table.table_id}) on this server.",
        hint="Name the path that PREPARE_LAKE_TABLE_SNAPSHOT returned.",
    )
