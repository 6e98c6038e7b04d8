"""Reading a table once: planned on the driver, where offsets are fixed, and read on the workers.

A task costs Spark tens of milliseconds, so the splits of a scan are packed into about as many
partitions as there are cores. A partition carries its splits and how to connect; a worker
connects once and keeps the connection for the tasks that follow.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from fluss.connector import ScanSplit, open_split
from fluss_spark.options import FlussOptions
from fluss_spark.tables import scan_of, settings_of
from fluss_spark.types import arrow_schema, loses_digits, to_spark

PARTITIONS_LEAST = 4


@dataclass(frozen=True)
class SplitsPartition(InputPartition):
    """Splits that one task reads.

    Args:
        splits: The splits; empty where the scan has none.
        settings: How to connect.
        order: In which order their rows come.
    """

    splits: tuple[ScanSplit, ...]
    settings: dict[str, Any] = field(repr=False)
    order: str = "none"

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Their rows, in Spark's schema."""
        if not self.splits:
            return
        for batch in open_split(self.splits, config=self.settings, order=self.order):
            if batch.num_rows:
                yield to_spark(batch.select(schema.names), schema)


class FlussBatchReader(DataSourceReader):
    """A scan as Spark's planner and workers see it."""

    def __init__(self, options: FlussOptions, schema: StructType) -> None:
        self._options = options
        self._schema = arrow_schema(schema)
        self.filters: tuple[Filter, ...] = ()
        # Spark refuses a class that overrides pushFilters while its setting for it is off. On the
        # instance, and claiming to be the inherited method, it is used when the setting is on.
        self.pushFilters = _Pushing(self)  # type: ignore[method-assign]

    def partitions(self) -> Sequence[InputPartition]:
        """Fix the offsets, and share the splits out."""
        options = self._options
        with scan_of(options, columns=self._schema.names, filters=self.filters) as (
            session,
            _,
            scan,
        ):
            lost = loses_digits(scan.schema)
            if lost:
                warnings.warn(
                    f"{options.table}: {', '.join(lost)} have nanoseconds; Spark's times end at "
                    "microseconds, and the last digits are cut.",
                    stacklevel=1,
                )
            splits = scan.splits()
            settings = settings_of(session)
        order = str(options.scan.get("order", "none"))
        together = order != "none" or "limit" in options.scan or "tail" in options.scan
        least = options.number("minPartitions", 1)
        most = options.number("maxPartitions", max(PARTITIONS_LEAST, os.cpu_count() or 1, least))
        packs = [splits] if together else packed(splits, most)
        return [SplitsPartition(tuple(each), settings, order) for each in packs if each] or [
            SplitsPartition((), settings)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition, on a worker."""
        if not isinstance(partition, SplitsPartition):
            raise TypeError(f"{type(partition).__name__} is no partition of this reader")
        return partition.batches(self._schema)


class _Pushing:
    """`pushFilters`, without looking overridden."""

    __func__ = DataSourceReader.pushFilters

    def __init__(self, reader: FlussBatchReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> list[Filter]:
        self._reader.filters = tuple(filters)
        return filters  # Spark applies them again: pushing only spares reading


def packed(splits: Sequence[ScanSplit], count: int) -> list[list[ScanSplit]]:
    """Share splits out so that packs have about the same number of rows."""
    packs: list[list[ScanSplit]] = [[] for _ in range(min(count, len(splits)))]
    loads = [0] * len(packs)
    for each in sorted(splits, key=lambda split: split.rows_max, reverse=True):
        lightest = loads.index(min(loads))
        packs[lightest].append(each)
        loads[lightest] += each.rows_max + 1
    return packs
