"""The data source behind `format("fluss")`, and the manual of its options.

Spark asks it for a schema, a reader or a writer; each is made by a file of its own, imported when
it is needed, because every worker imports this one.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from fluss.errors import UnsupportedOperationError
from fluss_spark.error_context import (
    READ_AGAIN,
    RUN_AGAIN,
    START_AGAIN,
    ErrorContext,
    log_for_spark,
)
from fluss_spark.spark_options import FlussOptions, read_options
from fluss_spark.worker_memory import freeze_modules


class FlussDataSource(DataSource):
    """Apache Fluss tables in Spark.

    Reading a table as it is now, or a range of its log::

        spark.read.format("fluss").load("db.events")
        spark.read.format("fluss").option("columns", "id,amount").load("db.events")
        spark.read.format("fluss").option("start", "2026-01-01").load("db.events")
        spark.read.format("fluss").load("db.customers$changelog")

    Reading a stream::

        spark.readStream.format("fluss").option("startingOffsets", "earliest").load("db.events")

    Writing: logs are appended to, primary-key tables upserted::

        df.write.format("fluss").mode("append").save("db.events")
        df.write.format("fluss").mode("append").option("operation", "delete").save("db.customers")

    In SQL::

        CREATE TEMPORARY VIEW events USING fluss OPTIONS (path 'db.events', columns 'id,amount')
        INSERT INTO events SELECT ...          -- a table of Spark's catalog cannot stand for one
        fluss_spark.register_views(spark, "db")    # in Python: a view for every table

    Options of reading, all optional, in any case; Kafka's names are understood as well:

    - `columns`: the columns to read, separated by commas, metadata columns among them. Spark does
      not pass the columns that a query uses to a Python source; `.schema(...)` and
      `fluss_spark.table(..., columns=)` name them, too.
    - `filter`: which rows, as `id >= 90 AND kind IN ('a', 'b')`: partitions, buckets and offsets
      that have none are not read, whole keys are looked up. `.where(...)` is evaluated by Spark
      alone, because Spark mixes up pushed filters of several queries.
    - `start`, `end` (`startingOffsets`, `endingOffsets`, `startingTimestamp`, `endingTimestamp`,
      `scan.startup.mode`): a time, `-10m`, an offset, `earliest`, `latest`, or JSON of offsets by
      bucket, `{"0": 17}`, or by partition and bucket, `{"2026-01-01/0": 17}`.
    - `as_of`: the state, or the log, as it was; `tail`, `limit`: so many rows; `mode`: state, log,
      changelog, binlog, which the names `db.t$changelog` and `db.t$binlog` also select;
      `with_metadata`: true, or which of `_log_offset`, `_commit_timestamp`, `_bucket`,
      `_partition`, `_change_type`, with `metadata_prefix` for other names; `partitions`,
      `missing_partitions`, `on_trimmed`, `order`, `max_parallel`, `strategy`: as in every scan.
    - `minPartitions`, `maxPartitions`: how many tasks; by default as many as run concurrently.
    - `timeZone`: that of times in `filter` without a zone; `format` adds the session's, where
      `fluss_spark.enable` has been called.
    - `nanoseconds`: `cut` to the microseconds that Spark has, or `long`, whole numbers.

    Options of streams: `start` is `latest` by default, and may be `full`, the state of a table and
    then its changes; `maxOffsetsPerTrigger`; `failOnDataLoss` (true).

    Options of writing: `operation` (append, upsert, delete, update), `targetColumns` of an update,
    `createIfNotExists` with `primaryKey`, `partitionBy`, `bucketNum` and properties of Fluss
    (`table.log.ttl`), `exactlyOnce` (auto, required, never), `mayDiffer`, columns whose values
    another attempt at a task may change. A column `_change_type` makes a frame a changelog that is
    applied.

    Settings of the client have their own names (`bootstrap.servers`, `security.sasl.username`);
    secrets may be markers such as `${env:FLUSS_PASSWORD}`, which are looked up on each worker.

    A frame is pinned when it is first used: load it again to see later rows.
    """

    # How many tasks Spark runs concurrently, where `fluss_spark.enable` knows that.
    parallelism: int | None = None
    # Spark plans with a source that it just created, and commits with one that it unpickled.
    _was_unpickled = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._was_unpickled = True

    @classmethod
    def name(cls) -> str:
        """Return the word in `format(...)`."""
        return "fluss"

    def schema(self) -> StructType:
        """Return the columns of the table, or the requested ones."""
        from fluss_spark.spark_types import CUT, LONG, spark_schema
        from fluss_spark.table_access import scan_of

        options, error_context = self._read_options("read", READ_AGAIN)
        with error_context:
            kept = options.choice("nanoseconds", (CUT, LONG), CUT)
            found = spark_schema(scan_of(options).schema, nanoseconds=kept)
        freeze_modules("schema")
        return found

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        from fluss_spark.batch_reader import FlussBatchReader

        options, error_context = self._read_options("read", READ_AGAIN)
        with error_context:
            return FlussBatchReader(options, schema, self.parallelism)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a streaming query."""
        from fluss_spark.stream_reader import FlussStreamReader

        options, error_context = self._read_options("read", START_AGAIN)
        with error_context:
            return FlussStreamReader(options, schema, self.parallelism)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark calls it so
        """Return the writer of a frame."""
        from fluss_spark.spark_writer import FlussBatchWriter

        options, error_context = self._read_options("write", RUN_AGAIN)
        with error_context:
            if overwrite:
                raise UnsupportedOperationError(
                    "Fluss tables cannot be overwritten: there is no atomic way to do it.",
                    hint="mode('append'), after dropping and creating the table if it should be "
                    "empty",
                )
            return FlussBatchWriter(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, N802 - Spark's
        """Return the writer of micro-batches."""
        from fluss_spark.spark_writer import FlussStreamWriter

        options, error_context = self._read_options("write", START_AGAIN)
        with error_context:
            if overwrite:
                raise UnsupportedOperationError(
                    "The output mode 'complete' would overwrite the table with every micro-batch.",
                    hint="outputMode('append'); or outputMode('update') with "
                    "foreachBatch(fluss_spark.upsert_batches('db.t'))",
                )
            return FlussStreamWriter(options, schema, is_for_commit=self._was_unpickled)

    def _read_options(self, what: str, again: str) -> tuple[FlussOptions, ErrorContext]:
        """Return the checked options, and the context for errors about their table."""
        log_for_spark()
        with ErrorContext(""):
            options = read_options(self.options, what=what)
        return options, ErrorContext(options.name, again)
