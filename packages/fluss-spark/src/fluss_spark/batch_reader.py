"""Reading a table once: planned on the driver, where offsets are fixed, and read on the workers.

Spark can push filters into a Python source, and this one does not take them. Spark 4.3 keeps one
plan for all queries of a frame: with filters pushed, the next query without any gets the rows of
the last one with some, and of two filters in one query both get the second. So what is not to be
read is said by options.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from fluss.errors import InvalidValueError
from fluss.model.options.scan_options import Order
from fluss_spark.error_context import READ_AGAIN, ErrorContext, told
from fluss_spark.spark_options import FlussOptions
from fluss_spark.spark_types import arrow_schema, check_declared, loses_digits
from fluss_spark.table_access import plan_scan, source_for
from fluss_spark.task_splits import (
    SplitsPartition,
    cut_to,
    packed,
    read_partition,
    rows_of,
    tasks_for,
)

_LOG = logging.getLogger("fluss.spark")


class FlussBatchReader(DataSourceReader):
    """A scan as Spark's planner and workers see it.

    Args:
        options: What was written beside the format.
        schema: The columns that Spark wants.
        parallelism: How many tasks Spark runs at once, where that is known.
    """

    def __init__(
        self, options: FlussOptions, schema: StructType, parallelism: int | None = None
    ) -> None:
        if options.is_full and source_for(options).options.mode is not None:
            raise InvalidValueError(
                "A batch read is of the state, or of its changes: 'full' is both, for streams.",
                hint="leave start out; or spark.readStream",
                option="start",
            )
        self._options = options
        self._declared = schema
        self._schema = arrow_schema(schema)
        self._parallelism = parallelism
        self.telling = ErrorContext(options.name, READ_AGAIN)

    @told
    def partitions(self) -> Sequence[InputPartition]:
        """Fix the offsets, and share the splits out."""
        options = self._options
        planned = plan_scan(options, columns=self._schema.names)
        scan, settings = planned.scan, planned.settings
        check_declared(self._declared, scan.schema, scan.name)
        lost = loses_digits(scan.schema, self._schema)
        if lost:
            _LOG.warning(
                "%s: %s have nanoseconds; Spark's times end at microseconds, and the last digits "
                "are cut. nanoseconds=long gives whole numbers.",
                scan.name,
                ", ".join(lost),
            )
        splits, asked = scan.splits(), planned.asked
        # What is cut or ordered is cut and ordered as a whole.
        if asked.order is not Order.NONE or asked.limit is not None or asked.tail is not None:
            packs = [splits]
        else:
            pieces = cut_to(splits, options.number("minPartitions", 1))
            packs = packed(pieces, tasks_for(rows_of(splits), options, self._parallelism))
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
            asked.filter,
        )
        order, parallel = asked.repeatable_order.value, asked.max_parallel
        return [
            SplitsPartition(tuple(each), settings, order, parallel) for each in packs if each
        ] or [SplitsPartition((), settings)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one partition, on a worker."""
        with self.telling:
            yield from read_partition(partition, self._schema)
