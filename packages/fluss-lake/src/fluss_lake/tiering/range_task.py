"""The unit of work of tiering: write the files of one range of one bucket.

This is the seam between deciding and writing. A driver plans `RangeTask`s, has each of them
carried out somewhere (`write_range`, or `carry_out` in a process without a connection: in a thread,
in another process, in an executor of Spark), and commits all `WrittenRange`s together
(`round_driver.commit_round`). A task has no connection and no secret in it, and neither has what
comes back; both can be pickled. The process that carries a task out brings a table of its
own connection, and access to the lake's files.

A task may be carried out twice, or end halfway: its files have names of their own each time, and
no reader sees them before the commit. Files that are not committed are removed: by the driver,
which knows the paths of what came back, and by the task itself where it fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from pyiceberg.manifest import DataFile

from fluss.lake.lake_format import LakePart
from fluss.model.paths import TableBucket, TablePath
from fluss.state.state_planner import StatePlan
from fluss_lake.tiering.lake_target import LakeTarget

# What a task may hold in memory, its readers and writers aside; further changes wait on disk.
MEMORY_BYTES: Final = 64 * 1024 * 1024
FILE_BYTES: Final = 256 * 1024 * 1024


class WriteMode(StrEnum):
    """How the rows of a primary-key table are replaced in its lake."""

    # Deletes by key, in files of their own: as Flink's job writes them. Cheap to write.
    EQUALITY_DELETES = "equality-deletes"
    # Files with replaced rows are written again, so that every reader of Iceberg reads the table.
    COPY_ON_WRITE = "copy-on-write"


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeTask:
    """What is written: the changes of a bucket between two offsets.

    Attributes:
        table_path: The table.
        table_id: Its id; a table that was made again has another one.
        bucket: The bucket.
        partition_name: Its partition.
        start: The first offset.
        stop: One past the last.
        round_id: The round; files are named by it.
        target: Where files are written.
        mode: How rows are replaced.
        state: How the state at `stop` is read, where the changes are not all there any more: it
            replaces all that the lake has of the bucket.
        present: The files that the lake has of the bucket, where they are written again.
        at_ms: The time that rows of a state get.
        file_bytes: When a file is large enough.
        memory_bytes: How much memory changes may take.
    """

    table_path: TablePath
    table_id: int
    bucket: TableBucket
    partition_name: str | None
    start: int
    stop: int
    round_id: str
    target: LakeTarget
    mode: WriteMode = WriteMode.EQUALITY_DELETES
    state: StatePlan | None = None
    present: LakePart | None = None
    at_ms: int = 0
    file_bytes: int = FILE_BYTES
    memory_bytes: int = MEMORY_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRange:
    """What was written of a task.

    Attributes:
        bucket: The bucket.
        end: One past the last offset that the files have the changes of.
        max_timestamp_ms: When the last of them was committed; None where there were none.
        files: The files, of rows and of deletes.
        removed: The paths of files that they replace.
        changes: How many changes were read.
        rows: How many rows were written.
        deletes: How many keys are deleted by it.
    """

    bucket: TableBucket
    end: int
    max_timestamp_ms: int | None
    files: tuple[DataFile, ...]
    removed: frozenset[str] = frozenset()
    changes: int = 0
    rows: int = 0
    deletes: int = 0

    @property
    def paths(self) -> list[str]:
        """The paths of the files."""
        return [each.file_path for each in self.files]

    @property
    def size_bytes(self) -> int:
        """The size of the files."""
        return sum(each.file_size_in_bytes for each in self.files)


def describe(task: RangeTask) -> dict[str, Any]:
    """The facts of a task that errors name."""
    return {
        "table": str(task.table_path),
        "partition": task.partition_name,
        "bucket": task.bucket.bucket_id,
        "offset": task.start,
    }
