"""The unit of work of tiering: write the files of one offset range of one bucket.

This is the seam between deciding and writing. A driver plans `RangeTask`s and commits all
`WrittenRange`s together (`round_driver.commit_round`). A thread, another process or a Spark
executor runs each task: with `write_range`, or with `carry_out` if it has no connection yet. A task
and its result hold no connection and no secret; both can be pickled. The process that runs a task
opens the connection and the lake's files itself.

A task may run twice, or fail halfway: each run gives its files new names, and no reader sees them
before the commit. Files that are not committed are removed: the driver removes those of finished
tasks, and a failing task removes its own.
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

# A task may hold so many bytes of changes in memory; further changes are spilled to disk. The
# buffers of its readers and writers come on top. 500 000 changes of 60 bytes fit. With half of it
# they were spilled, and a round of 2 million changes took 1.05 s of processor time, not 0.62 s.
MEMORY_BYTES: Final = 128 * 1024 * 1024
FILE_BYTES: Final = 256 * 1024 * 1024


class WriteMode(StrEnum):
    """How the rows of a primary-key table are replaced in its lake."""

    # Separate files of deletes by key, as Flink's job writes them. Cheap to write.
    EQUALITY_DELETES = "equality-deletes"
    # Files with replaced rows are rewritten, so that every reader of Iceberg can read the table.
    COPY_ON_WRITE = "copy-on-write"


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeTask:
    """A task: write the changes of a bucket between two offsets.

    Attributes:
        table_path: The table.
        table_id: The table's id; a table that was dropped and created again has another one.
        bucket: The bucket.
        partition_name: The bucket's partition; None if the table has no partitions.
        start: The first offset.
        stop: One past the last offset.
        round_id: The id of the round; it is part of the files' names.
        target: Where files are written.
        mode: How rows are replaced.
        state: How the state at `stop` is read, if the log no longer has all changes. The state
            replaces all files that the lake has of the bucket.
        present: The files that the lake has of the bucket, if some may be rewritten.
        at_ms: The timestamp that rows of a state get.
        file_bytes: A file of this size is closed, and the next one is opened.
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
    """The result of a task.

    Attributes:
        bucket: The bucket.
        end: One past the last offset whose change was written.
        max_timestamp_ms: When the last change was committed; None if there were no changes.
        files: The new files, of rows and of deletes.
        removed: The paths of files that the new ones replace.
        changes: How many changes were read.
        rows: How many rows were written.
        deletes: How many keys were deleted.
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
        return [file.file_path for file in self.files]

    @property
    def size_bytes(self) -> int:
        """The size of the files."""
        return sum(file.file_size_in_bytes for file in self.files)


def describe(task: RangeTask) -> dict[str, Any]:
    """The facts of a task for the context of its errors."""
    return {
        "table": str(task.table_path),
        "partition": task.partition_name,
        "bucket": task.bucket.bucket_id,
        "offset": task.start,
    }
