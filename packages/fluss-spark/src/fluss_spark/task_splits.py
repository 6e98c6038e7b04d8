"""Distributes the splits of a scan over tasks, and reads those of one task.

A task costs Spark tens of milliseconds, so the splits of a scan are packed into about as many
partitions as tasks run concurrently, and few rows into one. A partition has its splits and how to
connect; a worker connects once and keeps the connection for later tasks.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from fluss.scan import Mode, ScanSplit, ScanStats, open_split
from fluss_spark.column_names import match_names
from fluss_spark.error_context import log_for_spark
from fluss_spark.first_connection import shared_session
from fluss_spark.spark_options import FlussOptions
from fluss_spark.spark_types import to_spark
from fluss_spark.worker_memory import freeze_modules

# Where the parallelism is unknown; the driver's machine need not be the workers'.
PARTITIONS_LEAST: Final = 4
# A task takes longer to start than to read fewer rows than these.
ROWS_WORTH_A_TASK: Final = 20_000
_LOG = logging.getLogger("fluss.spark")


@dataclass(frozen=True)
class SplitsPartition(InputPartition):
    """The splits that one task reads.

    Args:
        splits: The splits; empty where the scan has none.
        settings: How to connect.
        order: In which order their rows come.
        max_parallel: How many of them are read concurrently.
    """

    splits: tuple[ScanSplit, ...]
    settings: dict[str, Any] = field(repr=False)
    order: str = "none"
    max_parallel: int | None = None

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield their rows in Spark's schema."""
        for batch in self.rows():
            names = match_names(schema.names, batch.schema.names)
            yield to_spark(batch.select(names), schema)
        freeze_modules("read")

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield their rows as Fluss has them."""
        if not self.splits:
            return
        shared_session(self.settings)  # retries the first connection of this worker
        stats = ScanStats()
        reader = open_split(
            self.splits,
            config=self.settings,
            order=self.order,
            max_parallel=self.max_parallel,
            stats=stats,
        )
        for batch in reader:
            if batch.num_rows:
                yield batch
        _LOG.info(
            "%s: %d rows of %d buckets, %d bytes read",
            self.splits[0].table_path,
            stats.rows_returned,
            len(self.splits),
            stats.bytes_read,
        )


def read_partition(partition: InputPartition, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition that Spark passes back, in Spark's schema."""
    if not isinstance(partition, SplitsPartition):
        raise TypeError(f"{type(partition).__name__} is not a partition of format('fluss')")
    log_for_spark()
    return partition.batches(schema)


def task_count(rows: int, options: FlussOptions, parallelism: int | None) -> int:
    """Return the number of tasks for so many rows, within the limits of the options."""
    least = options.number("minPartitions", 1)
    usual = parallelism or max(PARTITIONS_LEAST, os.cpu_count() or 1)
    most = options.number("maxPartitions", max(usual, least))
    return min(most, max(least, -(-rows // ROWS_WORTH_A_TASK), 1))


def rows_max_of(splits: Iterable[ScanSplit]) -> int:
    """Return an upper bound of the rows of all splits."""
    return sum(split.rows_max for split in splits)


def pack_splits(splits: Sequence[ScanSplit], count: int) -> list[list[ScanSplit]]:
    """Pack splits so that packs have about the same number of rows.

    The same splits and count give the same packs in any process.
    """
    packs: list[list[int]] = [[] for _ in range(min(count, len(splits)))]
    loads = [0] * len(packs)
    for index in sorted(range(len(splits)), key=lambda each: -splits[each].rows_max):
        lightest = loads.index(min(loads))
        packs[lightest].append(index)
        loads[lightest] += splits[index].rows_max + 1
    return [[splits[index] for index in sorted(each)] for each in packs if each]


def cut_splits(splits: Sequence[ScanSplit], count: int) -> list[ScanSplit]:
    """Cut ranges of logs until there are so many splits, if there are enough rows."""
    pieces = list(splits)
    while 0 < len(pieces) < count:
        longest = max(range(len(pieces)), key=lambda each: pieces[each].rows_max)
        split = pieces[longest]
        middle = (split.start + split.stop) // 2
        if split.mode not in {Mode.LOG, Mode.CHANGELOG} or split.keys or middle == split.start:
            break
        pieces[longest : longest + 1] = [
            replace(split, stop=middle),
            replace(split, start=middle),
        ]
    return pieces
