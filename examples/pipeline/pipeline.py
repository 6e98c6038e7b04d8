"""Clicks from files into tables that can be queried: a pipeline that survives kills at any moment.

    files ─ ingest ─▶ raw ─┬─ clean ──────▶ clicks ─┬─ minutes ─▶ minutes (by key: for queries)
                           └─ quarantine ─▶ quarantine             └─ history ─▶ Parquet by day

Five streaming queries, each with its own checkpoint in the work folder. After a restart each query
continues at its checkpoint: logs are appended exactly once, keys are upserted, and Parquet files
count when they are committed. A line that is not a click goes to the quarantine with the reason,
and does not stop the pipeline.

    python examples/pipeline/pipeline.py fluss://127.0.0.1:9123 clicks/ work/
    python examples/pipeline/pipeline.py fluss://127.0.0.1:9123 clicks/ work/ --follow
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, functions as f
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

import fluss
import fluss_spark

RAW = pa.schema([("file", pa.string()), ("line", pa.string())])
CLICKS = pa.schema(
    [
        ("id", pa.string()),
        ("user", pa.string()),
        ("page", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("spent_ms", pa.int32()),
    ]
)
QUARANTINE = pa.schema([*RAW, ("reason", pa.string())])
MINUTES = pa.schema(
    [
        ("minute", pa.timestamp("us", tz="UTC")),
        ("page", pa.string()),
        ("clicks", pa.int64()),
        ("spent_ms", pa.int64()),
    ]
)
# How a line is parsed before it is validated: times as texts, numbers as wide integers.
WRITTEN = "id string, user string, page string, at string, spent_ms bigint"
SPENT_MS_MAX = 24 * 60 * 60 * 1000
LOOK_S = 0.2
INTERRUPTED = threading.Event()
LATE_MAX = "1 day"  # a click that arrives later is in `clicks`, but no longer in `minutes`


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """The pipeline of one database.

    Args:
        spark: The Spark session that runs it.
        servers: The cluster's bootstrap servers.
        database: The database of its tables.
        source: The folder of the files; files may be added while it runs.
        work: The folder of its checkpoints and of the Parquet files.
        files_per_batch: How many files a micro-batch takes.
        rows_per_batch: How many rows of a log a micro-batch takes.
    """

    spark: SparkSession
    servers: str
    database: str
    source: Path
    work: Path
    files_per_batch: int = 10
    rows_per_batch: int = 100_000

    @property
    def steps(self) -> dict[str, Callable[[], DataStreamWriter]]:
        """The queries in the order in which rows pass through them."""
        return {
            "ingest": self.ingest,
            "clean": self.clean,
            "quarantine": self.quarantine,
            "minutes": self.minutes,
            "history": self.history,
        }

    @property
    def parquet(self) -> Path:
        """The folder of the history."""
        return self.work / "history"

    def create_tables(self) -> None:
        """Create missing tables."""
        with fluss.connect(f"fluss://{self.servers}/{self.database}") as session:
            session.create_database(self.database, ignore_if_exists=True)
            for name, schema in (("raw", RAW), ("clicks", CLICKS), ("quarantine", QUARANTINE)):
                session.create_table(name, schema, buckets=2, ignore_if_exists=True)
            session.create_table(
                "minutes", MINUTES, primary_key=["minute", "page"], buckets=2, ignore_if_exists=True
            )

    def run(self) -> None:
        """Run all steps over the present files, and end."""
        for name in self.steps:
            query = self.start(name)
            wait_for(query)
            if INTERRUPTED.is_set():
                return
            rows = sum(each.numInputRows for each in query.recentProgress)
            print(f"{name:<11}{rows:>9,} rows read")

    def follow(self, seconds: float = 1.0) -> list[StreamingQuery]:
        """Start all steps; they run until they are stopped."""
        return [self.start(name, every=f"{seconds} seconds") for name in self.steps]

    def start(self, name: str, *, every: str | None = None) -> StreamingQuery:
        """Start one step: over the present rows, or until it is stopped."""
        writer = (
            self.steps[name]()
            .queryName(f"{self.database}-{name}")
            .option("checkpointLocation", str(self.work / "checkpoints" / name))
        )
        if every is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=every).start()

    # --- steps ------------------------------------------------------------------------------------

    def ingest(self) -> DataStreamWriter:
        """Lines of files, as they are, to the log `raw`."""
        lines = (
            self.spark.readStream.option("maxFilesPerTrigger", self.files_per_batch)
            .text(str(self.source))
            .select(f.element_at(f.split("_metadata.file_path", "/"), -1).alias("file"), "value")
            .withColumnRenamed("value", "line")
        )
        return self.into(lines, "raw")

    def clean(self) -> DataStreamWriter:
        """Lines that are clicks, to the log `clicks`."""
        return self.into(self.checked().where("reason IS NULL").select(CLICKS.names), "clicks")

    def quarantine(self) -> DataStreamWriter:
        """The other lines, each with what is wrong with it, to the log `quarantine`."""
        bad = self.checked().where("reason IS NOT NULL").select(QUARANTINE.names)
        return self.into(bad, "quarantine")

    def minutes(self) -> DataStreamWriter:
        """Clicks by minute and page, upserted whenever they change."""
        counted = (
            self.log("clicks")
            .withWatermark("at", LATE_MAX)
            .groupBy(f.window("at", "1 minute").start.alias("minute"), "page")
            .agg(f.count("*").alias("clicks"), f.sum("spent_ms").alias("spent_ms"))
        )
        upsert = fluss_spark.upsert_batches(
            f"{self.database}.minutes", **{"bootstrap.servers": self.servers}
        )
        return counted.writeStream.outputMode("update").foreachBatch(upsert)

    def history(self) -> DataStreamWriter:
        """Clicks as Parquet files, by day."""
        days = self.log("clicks").withColumn("day", f.to_date("at"))
        return (
            days.writeStream.format("parquet").partitionBy("day").option("path", str(self.parquet))
        )

    # --- shared by the steps ----------------------------------------------------------------------

    def checked(self) -> DataFrame:
        """The lines of `raw`, parsed; with a reason if a line is not a click."""
        read = self.log("raw").withColumn("parsed", f.from_json("line", WRITTEN))
        at = f.try_to_timestamp(f.col("parsed.at"))
        return read.select(
            "file",
            "line",
            "parsed.id",
            "parsed.user",
            "parsed.page",
            at.alias("at"),
            f.expr("try_cast(parsed.spent_ms AS int)").alias("spent_ms"),
            _reason(at).alias("reason"),
        )

    def log(self, table: str) -> DataFrame:
        """A log of the database, from its start."""
        return (
            self.spark.readStream.format("fluss")
            .option("bootstrap.servers", self.servers)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", self.rows_per_batch)
            .load(f"{self.database}.{table}")
        )

    def into(self, frame: DataFrame, table: str) -> DataStreamWriter:
        """Append a frame to a log of the database."""
        return (
            frame.writeStream.format("fluss")
            .option("bootstrap.servers", self.servers)
            .option("path", f"{self.database}.{table}")
        )


def _reason(at: Column) -> Column:
    """The reason why a line is not a click; NULL for a click."""
    spent = f.col("parsed.spent_ms")
    return (
        f.when(f.coalesce(f.col("parsed.id"), f.col("parsed.user"), f.col("parsed.page")).isNull(),
               "no JSON of a click")
        .when(f.col("parsed.id").isNull(), "no id")
        .when(f.col("parsed.user").isNull(), "no user")
        .when(f.col("parsed.page").isNull(), "no page")
        .when(at.isNull(), "no time")
        .when(spent.isNull() | (spent < 0) | (spent > SPENT_MS_MAX), "no time spent")
    )  # fmt: skip


def wait_for(*queries: StreamingQuery) -> None:
    """Wait until all queries have ended, one has failed, or Ctrl-C was pressed; then stop all."""
    while any(query.isActive for query in queries) and not any(map(_failed, queries)):
        if INTERRUPTED.wait(LOOK_S):
            # Spark logs a traceback for each task that it cancels.
            SparkSession.active().sparkContext.setLogLevel("OFF")
            break
    for query in queries:
        query.stop()
    for error in filter(None, map(_failed, queries)):
        raise error


def _failed(query: StreamingQuery) -> Exception | None:
    return query.exception()


def main() -> None:
    """Run it on the files of a folder."""
    parser = argparse.ArgumentParser(description="Clicks from files to tables.")
    parser.add_argument("url", help="the cluster, fluss://host:9123")
    parser.add_argument("source", type=Path, help="the folder of the files")
    parser.add_argument("work", type=Path, help="the folder of checkpoints and Parquet files")
    parser.add_argument("--database", default="clicks")
    parser.add_argument("--files-per-batch", type=int, default=10)
    parser.add_argument("--follow", action="store_true", help="run until Ctrl-C")
    given = parser.parse_args()
    spark = fluss_spark.session(
        "clicks",
        spark__ui__enabled=False,
        spark__sql__shuffle__partitions=4,  # of a laptop; 200 otherwise, each a task
    )
    pipeline = Pipeline(
        spark=spark,
        servers=given.url.removeprefix("fluss://").rstrip("/"),
        database=given.database,
        source=given.source,
        work=given.work,
        files_per_batch=given.files_per_batch,
    )
    # PySpark's own handler cancels running tasks, with a traceback for each.
    signal.signal(signal.SIGINT, lambda *_: INTERRUPTED.set())
    pipeline.create_tables()
    if given.follow:
        print("Running until Ctrl-C.")
        wait_for(*pipeline.follow())
    else:
        pipeline.run()
    spark.stop()
    if INTERRUPTED.is_set():
        sys.exit("Stopped; run the same command to continue.")


if __name__ == "__main__":
    main()
