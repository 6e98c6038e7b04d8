"""A pipeline that writes clicks from files into tables, and can be killed at any moment.

    files ─ ingest ─▶ raw ─┬─ clean ──────▶ clicks ─┬─ minutes ─▶ minutes (by key: for queries)
                           └─ quarantine ─▶ quarantine             └─ history ─▶ Parquet by day
    raw, clicks, quarantine, minutes ─ lake ─▶ Iceberg (where the cluster has a lake)

Five streaming queries, each with its own checkpoint in the work folder. After a restart each query
continues at its checkpoint: logs are appended exactly once, keys are upserted, and Parquet files
count when they are committed. A line that is not a click is written to the quarantine with the
reason, and does not stop the pipeline.

The step `lake` copies the rows of all tables into their lake, as tasks of the same Spark session.
It needs no checkpoint, because the newest snapshot of the lake has its end offsets. Copied rows may
expire from the logs; a query still returns every row, from the lake and from the log.

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
from fluss.errors import FlussError

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
TABLES = {"raw": RAW, "clicks": CLICKS, "quarantine": QUARANTINE, "minutes": MINUTES}
KEYS = {"minutes": ["minute", "page"]}
BUCKET_KEYS = {"minutes": "page"}  # a table in Iceberg has one
# How a line is parsed before it is validated: times as texts, numbers as wide integers.
WRITTEN = "id string, user string, page string, at string, spent_ms bigint"
SPENT_MS_MAX = 24 * 60 * 60 * 1000
LOOK_S = 0.2
TOO_SLOW, STARTS_MAX = "Python worker failed to connect back", 20
INTERRUPTED = threading.Event()
LATE_MAX = "1 day"  # a click that arrives later is in `clicks`, but no longer in `minutes`
FRESHNESS_S = 10  # how far the lake may lag behind
NO_LAKE = (
    "The tables have no lake, and their rows as long as the logs are kept. "
    "`fluss server --lake` has one."
)


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
        keep_log: How long the logs of new tables are kept, such as "1d"; Fluss's default otherwise.
            Rows that the lake does not have yet are kept longer.
    """

    spark: SparkSession
    servers: str
    database: str
    source: Path
    work: Path
    files_per_batch: int = 10
    rows_per_batch: int = 100_000
    keep_log: str | None = None

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

    @property
    def url(self) -> str:
        """The address of the database."""
        return f"fluss://{self.servers}/{self.database}"

    def create_tables(self) -> None:
        """Create missing tables, and give them to the lake if the cluster has one."""
        properties = {"table.datalake.freshness": f"{FRESHNESS_S}s"}
        if self.keep_log is not None:
            properties["table.log.ttl"] = self.keep_log
        with fluss.connect(self.url) as session:
            session.create_database(self.database, ignore_if_exists=True)
            for name, schema in TABLES.items():
                session.create_table(
                    name,
                    schema,
                    primary_key=KEYS.get(name),
                    bucket_key=BUCKET_KEYS.get(name),
                    buckets=2,
                    properties=properties,
                    ignore_if_exists=True,
                )
                # A cluster with a lake notes its format in every new table.
                options = session.table(name).info.options
                if options.datalake_format is not None and not options.datalake_enabled:
                    session.alter_table(name, set_properties={"table.datalake.enabled": "true"})

    @property
    def has_lake(self) -> bool:
        """Whether the tables are copied into a lake."""
        with fluss.connect(self.url) as session:
            return all(session.table(name).info.options.datalake_enabled for name in TABLES)

    def run(self) -> None:
        """Run all steps over the present files, and end."""
        for name in self.steps:
            queries = {name: self.start(name)}
            keep_running(queries, self.start)
            if INTERRUPTED.is_set():
                return
            rows = sum(each.numInputRows for each in queries[name].recentProgress)
            print(f"{name:<11}{rows:>9,} rows read")
        if not self.has_lake:
            print(NO_LAKE)
            return
        copied, errors = self.copy(now=True)
        print(f"{'lake':<11}{copied:>9,} rows copied")
        for each in errors:
            raise each

    def follow(self, seconds: float = 1.0) -> None:
        """Run all queries until Ctrl-C. `keep_copying` is the step `lake`.

        Each query starts some processes, so the next one is started when it has begun.
        """

        def started(name: str) -> StreamingQuery:
            return self.start(name, every=f"{seconds} seconds")

        queries = {}
        for name in self.steps:
            queries[name] = started(name)
            while not has_begun(queries[name]) and not INTERRUPTED.wait(LOOK_S):
                pass
        keep_running(queries, started)

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

    # --- the lake ---------------------------------------------------------------------------------

    def copy(self, *, now: bool = False) -> tuple[int, list[FlussError]]:
        """Copy rows into the lake: all of them, or those of the tables that are due.

        Returns:
            How many rows and changes were copied, and the errors of tables that were not.
        """
        tables = [f"{self.database}.{name}" for name in TABLES]
        done = fluss_spark.tier(self.spark, tables, cluster=self.url, now=now, once=not now)
        return done.changes, list(done.errors.values())

    def keep_copying(self, stopping: threading.Event) -> None:
        """Copy rows until `stopping` is set; a lake that cannot be reached stops nothing else."""
        while not stopping.is_set():
            try:
                _, errors = self.copy()
            except FlussError as error:
                errors = [error]
            for each in errors:
                print(f"lake: {each}", file=sys.stderr)
            stopping.wait(FRESHNESS_S)

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


def keep_running(
    queries: dict[str, StreamingQuery], start_again: Callable[[str], StreamingQuery]
) -> None:
    """Wait until all queries have ended, one has failed, or Ctrl-C was pressed; then stop all.

    Spark gives a Python process of a source or sink 10 s to start, and no setting changes that. On
    a busy machine a query may fail for it; started again, it continues at its checkpoint.
    """
    starts_left = STARTS_MAX
    try:
        while not INTERRUPTED.wait(LOOK_S):
            have_ended = not any(query.isActive for query in queries.values())
            for name, query in queries.items():
                error = query.exception()
                if error is None:
                    continue
                if TOO_SLOW not in str(error) or not starts_left:
                    raise error
                starts_left -= 1
                queries[name], have_ended = start_again(name), False
            if have_ended:
                return
        # Spark logs a traceback for each task that it cancels.
        SparkSession.active().sparkContext.setLogLevel("OFF")
    finally:
        for query in queries.values():
            query.stop()  # what a query says of its end does not matter then


def has_begun(query: StreamingQuery) -> bool:
    """Whether a query has read rows, waits for some, or has ended."""
    is_waiting = query.status["message"].startswith("Waiting")
    return is_waiting or query.lastProgress is not None or not query.isActive


def follow(pipeline: Pipeline) -> None:
    """Run all steps until Ctrl-C, or until one has failed."""
    print("Running until Ctrl-C.")
    if not pipeline.has_lake:
        print(NO_LAKE)
        pipeline.follow()
        return
    stopping = threading.Event()
    copying = threading.Thread(target=pipeline.keep_copying, args=(stopping,))
    copying.start()
    try:
        pipeline.follow()
    finally:
        stopping.set()
        copying.join()  # a round that has begun is committed


def main() -> None:
    """Run it on the files of a folder."""
    parser = argparse.ArgumentParser(description="Clicks from files to tables.")
    parser.add_argument("url", help="the cluster, fluss://host:9123")
    parser.add_argument("source", type=Path, help="the folder of the files")
    parser.add_argument("work", type=Path, help="the folder of checkpoints and Parquet files")
    parser.add_argument("--database", default="clicks")
    parser.add_argument("--files-per-batch", type=int, default=10)
    parser.add_argument("--follow", action="store_true", help="run until Ctrl-C")
    parser.add_argument(
        "--keep-log", help="how long new tables keep their logs, such as 1d; 7d otherwise"
    )
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
        keep_log=given.keep_log,
    )
    # PySpark's own handler cancels running tasks, with a traceback for each.
    signal.signal(signal.SIGINT, lambda *_: INTERRUPTED.set())
    pipeline.create_tables()
    if given.follow:
        follow(pipeline)
    else:
        pipeline.run()
    spark.stop()
    if INTERRUPTED.is_set():
        sys.exit("Stopped; run the same command to continue.")


if __name__ == "__main__":
    main()
