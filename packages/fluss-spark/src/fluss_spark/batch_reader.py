"""Reads a table once: planned on the driver, where offsets are fixed, and read on the workers.

Spark can push filters into a Python source, and this one does not accept them. Spark 4.3 keeps one
plan for all queries of a frame: with filters pushed, the next query without a filter gets the rows
of the last one that had one, and two filters in one query are both replaced by the second. So rows
are left out by options instead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from fluss.errors import InvalidValueError
from fluss.scan import Order
from fluss_spark.error_context import READ_AGAIN, ErrorContext, with_error_context
from fluss_spark.spark_options import FlussOptions
from fluss_spark.spark_types import arrow_schema, check_declared, columns_losing_digits
from fluss_spark.table_access import scan_of, source_for
from fluss_spark.task_splits import (
    SplitsPartition,
    cut_splits,
    pack_splits,
    read_partition,
    rows_max_of,
    task_count,
)
from fluss_spark.worker_memory import freeze_modules

_LOG = logging.getLogger("fluss.spark")


class FlussBatchReader(DataSourceReader):
    """A scan as Spark's planner and workers see it.

    Args:
        options: The options of the format.
        schema: The columns that Spark requests.
        parallelism: How many tasks Spark runs concurrently, where that is known.
    """

    def __init__(
        self, options: FlussOptions, schema: StructType, parallelism: int | None = None
    ) -> None:
        if options.is_full and source_for(options).options.mode is not None:
            raise InvalidValueError(
                "A batch read gives the state or its changes; 'full' is both, and only for streams.",
                hint="leave start out; or spark.readStream",
                option="start",
            )
        self._options = options
        self._declared = schema
        self._schema = arrow_schema(schema)
        self._parallelism = parallelism
        self.error_context = ErrorContext(options.name, READ_AGAIN)

    @with_error_context
    def partitions(self) -> Sequence[InputPartition]:
        """Fix the offsets and distribute the splits over tasks."""
        options = self._options
        scan = scan_of(options, columns=self._schema.names)
        settings = source_for(options).config.written()  # markers of secrets stay markers
        check_declared(self._declared, scan.schema, scan.name)
        lost = columns_losing_digits(scan.schema, self._schema)
        if lost:
            _LOG.warning(
                "%s: %s have nanoseconds; Spark's times have microseconds, and the last digits are "
                "cut. nanoseconds=long gives whole numbers.",
                scan.name,
                ", ".join(lost),
            )
        splits = scan.splits()
        if scan.order is not Order.NONE:  # rows that have an order or a limit are one stream
            packs = [splits]
        else:
            pieces = cut_splits(splits, options.number("minPartitions", 1))
            packs = pack_splits(pieces, task_count(rows_max_of(splits), options, self._parallelism))
        stats = scan.stats
        _LOG.info(
            "%s: %d buckets in %d tasks, at most %d rows; %d buckets and %d partitions need not be "
            "read; columns %s; filter %s",
            scan.name,
            len(splits),
            len(packs),
            stats.rows_max,
            stats.buckets_pruned,
            stats.partitions_pruned,
            ", ".join(self._schema.names),
            scan.options.filter,
        )
        freeze_modules("plan")
        order, parallel = scan.order.value, scan.options.max_parallel
        return [
            SplitsPartition(tuple(each), settings, order, parallel) for each in packs if each
        ] or [SplitsPartition((), settings)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition, on a worker."""
        with self.error_context:
            yield from read_partition(partition, self._schema)
