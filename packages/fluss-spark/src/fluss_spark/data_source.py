"""`format("fluss")`: what Spark asks a data source for, each answered by a file of its own."""

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


class FlussDataSource(DataSource):
    """Apache Fluss tables in Spark.

    Reading a table as it is now, or a stretch of its log::

        spark.read.format("fluss").load("db.events")
        spark.read.format("fluss").option("columns", "id,amount").load("db.events")
        spark.read.format("fluss").option("start", "2026-01-01").load("db.events")
        spark.read.format("fluss").load("db.customers$changelog")

    Reading what comes::

        spark.readStream.format("fluss").option("startingOffsets", "earliest").load("db.events")

    Writing: logs are appended to, primary-key tables upserted::

        df.write.format("fluss").mode("append").save("db.events")
        df.write.format("fluss").mode("append").option("operation", "delete").save("db.customers")

    In SQL::

        CREATE TEMPORARY VIEW events USING fluss OPTIONS (path 'db.events', columns 'id,amount')
        INSERT INTO events SELECT ...          -- a table of Spark's catalog cannot stand for one
        fluss_spark.register_views(spark, "db")    # in Python: a view for every table

    Options of reading, all optional, in any case; Kafka's names are understood as well:

    - `columns`: those wanted, with commas, metadata columns among them. Spark tells a Python source
      nothing about the columns a query uses; `.schema(...)` and `fluss_spark.table(..., columns=)`
      name them, too.
    - `filter`: which rows, as `id >= 90 AND kind IN ('a', 'b')`: partitions, buckets and offsets
      that have none are not read, whole keys are looked up. `.where(...)` is Spark's alone, because
      Spark mixes up the filters that it pushes of several queries.
    - `start`, `end` (`startingOffsets`, `endingOffsets`, `startingTimestamp`, `endingTimestamp`,
      `scan.startup.mode`): a time, `-10m`, an offset, `earliest`, `latest`, or JSON of offsets by
      bucket, `{"0": 17}`, or by partition and bucket, `{"2026-01-01/0": 17}`.
    - `as_of`: the state, or the log, as it was; `tail`, `limit`: so many rows; `mode`: state, log,
      changelog, binlog, as `db.t$changelog` and `db.t$binlog` say in the name; `with_metadata`:
      true, or which of `_log_offset`, `_commit_timestamp`, `_bucket`, `_partition`, `_change_type`,
      with `metadata_prefix` for other names; `partitions`, `missing_partitions`, `on_trimmed`,
      `order`, `max_parallel`, `strategy`: as in every scan.
    - `minPartitions`, `maxPartitions`: how many tasks; as many as run at once, by default.
    - `timeZone`: that of times in `filter` without a zone; `format` adds the session's, where
      `fluss_spark.enable` has been called.
    - `nanoseconds`: `cut` to the microseconds that Spark has, or `long`, whole numbers.

    Of streams: `start` is `latest` by default, and may be `full`, the state of a table and then its
    changes; `maxOffsetsPerTrigger`; `failOnDataLoss` (true).

    Of writing: `operation` (append, upsert, delete, update), `targetColumns` of an update,
    `createIfNotExists` with `primaryKey`, `partitionBy`, `bucketNum` and properties of Fluss
    (`table.log.ttl`), `exactlyOnce` (auto, required, never), `mayDiffer`, columns whose values
    another attempt at a task may change. A column `_change_type` makes a frame a changelog that is
    applied.

    Settings of the client have their own names (`bootstrap.servers`, `security.sasl.username`);
    secrets may be markers such as `${env:FLUSS_PASSWORD}`, which are looked up on each worker.

    A frame is pinned when it is first used: load it again to see what came since.
    """

    # How many tasks Spark runs at once, where `fluss_spark.enable` knows that.
    parallelism: int | None = None
    # Spark plans with a source that it has just made, and commits with one that it was sent.
    _was_sent = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._was_sent = True

    @classmethod
    def name(cls) -> str:
        """The word in `format(...)`."""
        return "fluss"

    def schema(self) -> StructType:
        """The columns of the table, or those that were asked for."""
        from fluss_spark.spark_types import CUT, LONG, spark_schema
        from fluss_spark.table_access import schema_of

        options, telling = self._asked("read", READ_AGAIN)
        with telling:
            kept = options.choice("nanoseconds", (CUT, LONG), CUT)
            return spark_schema(schema_of(options), nanoseconds=kept)

    def reader(self, schema: StructType) -> DataSourceReader:
        """What reads the table once."""
        from fluss_spark.batch_reader import FlussBatchReader

        options, telling = self._asked("read", READ_AGAIN)
        with telling:
            return FlussBatchReader(options, schema, self.parallelism)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """What reads the log as it grows."""
        from fluss_spark.stream_reader import FlussStreamReader

        options, telling = self._asked("read", START_AGAIN)
        with telling:
            return FlussStreamReader(options, schema, self.parallelism)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark calls it so
        """What writes a frame."""
        from fluss_spark.spark_writer import FlussBatchWriter

        options, telling = self._asked("write", RUN_AGAIN)
        with telling:
            if overwrite:
                raise UnsupportedOperationError(
                    "Fluss tables are not overwritten: there is no way to do it at once.",
                    hint="mode('append'), after dropping and creating the table where it should be "
                    "empty",
                )
            return FlussBatchWriter(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, N802 - Spark's
        """What writes micro-batches."""
        from fluss_spark.spark_writer import FlussStreamWriter

        options, telling = self._asked("write", START_AGAIN)
        with telling:
            if overwrite:
                raise UnsupportedOperationError(
                    "The output mode 'complete' would overwrite the table with every micro-batch.",
                    hint="outputMode('append'); or outputMode('update') with "
                    "foreachBatch(fluss_spark.upsert_batches('db.t'))",
                )
            return FlussStreamWriter(options, schema, is_for_commit=self._was_sent)

    def _asked(self, what: str, again: str) -> tuple[FlussOptions, ErrorContext]:
        """What Spark was given, and how errors about that table say what to do."""
        log_for_spark()
        with ErrorContext(""):
            options = read_options(self.options, what=what)
        return options, ErrorContext(options.name, again)
