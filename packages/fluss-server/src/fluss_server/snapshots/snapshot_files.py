"""The KV snapshots of one bucket on disk.

A snapshot is a directory `snap-{id}` with the files of a RocksDB and `_METADATA`, which has the
fields of Fluss's (`CompletedSnapshotJsonSerde`). It is made under another name and renamed when all
of it is on the disk, and renamed again before it is removed: so a `snap-{id}` is always complete.
Files that did not change since the last one are hard links to the same bytes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fluss.model.paths import TableBucket
from fluss_server.log.log_files import replace_file, sync_directory

_LOG = logging.getLogger(__name__)
METADATA: Final = "_METADATA"
_VERSION: Final = 1
_NAME: Final = re.compile(r"snap-(\d+)")
_UNFINISHED: Final = "making"
_REMOVED: Final = "removed-"
_SHARED: Final = ".sst"


@dataclass(frozen=True, slots=True, kw_only=True)
class KvSnapshot:
    """One complete snapshot.

    Args:
        snapshot_id: Its number in its bucket; later ones have greater numbers.
        log_offset: It has all changes below this offset of the changelog.
        row_count: How many rows it has; None where they are not counted.
        directory: Where its files are.
        files: Their names.
    """

    snapshot_id: int
    log_offset: int
    row_count: int | None
    directory: Path
    files: Sequence[str]


class SnapshotFiles:
    """The snapshots of one bucket. One thread at a time changes them; any may read `complete`.

    Args:
        directory: Their directory.
        bucket: The bucket.
        directory_id: The data directory, by which snapshots of another one are recognized.
    """

    def __init__(self, directory: Path, bucket: TableBucket, directory_id: bytes) -> None:
        self.bucket = bucket
        self._directory = directory
        self._identity = {
            "table_id": bucket.table_id,
            "partition_id": bucket.partition_id,
            "bucket_id": bucket.bucket_id,
            "directory": directory_id.hex(),
        }
        self.complete: tuple[KvSnapshot, ...] = ()

    @property
    def latest(self) -> KvSnapshot | None:
        """The newest snapshot; None where there is none."""
        return self.complete[-1] if self.complete else None

    def find(self, snapshot_id: int) -> KvSnapshot | None:
        """Return a snapshot; None where it does not exist."""
        return next((each for each in self.complete if each.snapshot_id == snapshot_id), None)

    def load(self, *, end_offset: int) -> None:
        """Read what is on disk, and remove what is not complete.

        Args:
            end_offset: Where the changelog ends. Snapshots beyond it have changes that a crash or a
                repair took out of the log, and are removed.

        Raises:
            OSError: The disk refused.
        """
        found = []
        for path in sorted(self._directory.iterdir()) if self._directory.is_dir() else []:
            name = _NAME.fullmatch(path.name)
            snapshot = None if name is None else self._read(path, int(name.group(1)))
            if snapshot is not None and snapshot.log_offset <= end_offset:
                found.append(snapshot)
                continue
            if name is not None:
                _LOG.warning("%s is no snapshot of this log and is removed", path)
            self._remove(path)
        self.complete = tuple(sorted(found, key=lambda each: each.snapshot_id))

    def staging(self) -> Path:
        """Return the directory in which the next snapshot is made; it does not exist."""
        self._directory.mkdir(exist_ok=True)
        path = self._directory / _UNFINISHED
        shutil.rmtree(path, ignore_errors=True)
        return path

    def add(
        self, staging: Path, files: Sequence[str], *, log_offset: int, row_count: int | None
    ) -> KvSnapshot:
        """Make a snapshot of the files in `staging`, which are on the disk.

        Raises:
            OSError: The disk refused; the snapshot does not exist.
        """
        latest = self.latest
        snapshot_id = 0 if latest is None else latest.snapshot_id + 1
        directory = self._directory / f"snap-{snapshot_id}"
        snapshot = KvSnapshot(
            snapshot_id=snapshot_id,
            log_offset=log_offset,
            row_count=row_count,
            directory=directory,
            files=tuple(sorted(files)),
        )
        metadata = self._metadata(snapshot, staging)
        replace_file(staging / METADATA, json.dumps(metadata).encode(), durable=True)
        sync_directory(staging)
        staging.rename(directory)
        sync_directory(self._directory)
        self.complete = (*self.complete, snapshot)
        return snapshot

    def retire(
        self, newest: int, *, is_kept: Callable[[int], bool], changes: bool = True
    ) -> list[KvSnapshot]:
        """Forget snapshots beyond the newest ones but those that are kept; return them.

        Args:
            newest: How many of the newest are not retired.
            is_kept: Whether the snapshot with this id is not retired.
            changes: Whether they are forgotten; otherwise they are only returned.
        """
        if len(self.complete) <= newest:
            return []
        beyond = self.complete[: len(self.complete) - newest]
        gone = [each for each in beyond if not is_kept(each.snapshot_id)]
        if changes and gone:
            self.complete = tuple(each for each in self.complete if each not in gone)
        return gone

    def remove(self, snapshots: Sequence[KvSnapshot]) -> None:
        """Remove the files of retired snapshots."""
        for snapshot in snapshots:
            self._remove(snapshot.directory)

    def _remove(self, path: Path) -> None:
        """Remove a directory; what is left of it is removed by the next start."""
        doomed = path
        if _NAME.fullmatch(path.name):
            doomed = path.with_name(f"{_REMOVED}{path.name}")
            with contextlib.suppress(OSError):
                path.rename(doomed)
        if doomed.is_dir():
            shutil.rmtree(doomed, ignore_errors=True)
        else:
            doomed.unlink(missing_ok=True)

    def _metadata(self, snapshot: KvSnapshot, staging: Path) -> dict[str, Any]:
        def handles(names: list[str]) -> list[dict[str, Any]]:
            return [
                {
                    "kv_file_handle": {
                        "path": str(snapshot.directory / name),
                        "size": (staging / name).stat().st_size,
                    },
                    "local_path": name,
                }
                for name in names
            ]

        latest = self.latest
        known = () if latest is None else latest.files
        fresh = [name for name in snapshot.files if name not in known or _SHARED not in name]
        identity = {key: value for key, value in self._identity.items() if value is not None}
        return {
            "version": _VERSION,
            **identity,
            "snapshot_id": snapshot.snapshot_id,
            "snapshot_location": str(snapshot.directory),
            "kv_snapshot_handle": {
                "shared_file_handles": handles([n for n in snapshot.files if _SHARED in n]),
                "private_file_handles": handles([n for n in snapshot.files if _SHARED not in n]),
                "snapshot_incremental_size": sum((staging / n).stat().st_size for n in fresh),
            },
            "log_offset": snapshot.log_offset,
            **({} if snapshot.row_count is None else {"row_count": snapshot.row_count}),
        }

    def _read(self, path: Path, snapshot_id: int) -> KvSnapshot | None:
        """Read a snapshot; None where it is not one of this bucket."""
        try:
            found = json.loads((path / METADATA).read_bytes())
            handles = found["kv_snapshot_handle"]
            files = [
                each["local_path"]
                for kind in ("private_file_handles", "shared_file_handles")
                for each in handles[kind]
            ]
            snapshot = KvSnapshot(
                snapshot_id=snapshot_id,
                log_offset=int(found["log_offset"]),
                row_count=found.get("row_count"),
                directory=path,
                files=tuple(sorted(files)),
            )
            is_ours = all(found.get(key) == value for key, value in self._identity.items())
            is_known = found["version"] == _VERSION
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        is_whole = all((path / name).is_file() for name in files)
        return snapshot if is_ours and is_known and is_whole else None
