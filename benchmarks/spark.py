"""Fluss in Spark, compared with Spark without Fluss: one warm session, alternating sides.

`./dev bench spark [--rows N] [--pairs N] [--bootstrap HOST:PORT] [--only read,write,...]` writes N
rows (5 million) of six columns into four buckets, and the same rows into Parquet files:

- read: all columns to nowhere, beside Spark reading the Parquet files: how many times as fast;
- floor: the same beside a Python source that gives as many rows of the same columns out of memory,
  and that source beside Parquet: what Spark itself takes to start workers and copy Arrow;
- column: one column by name, beside all of them;
- write: the Parquet files' rows into a Fluss log, beside an empty sink of the same kind;
- stream: from an append to its row being visible behind a running query, warm;
- buckets: a fifth of the rows in 1 000 buckets of 5 partitions, beside the same in 8 buckets.

Wall-clock time and processor time of Spark and its workers are shown, because machines are shared.
A cluster is started where none is named.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fluss
import fluss_spark
from benchmarks._measure import cluster, machine
from fluss.session import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 5_000_000
BUCKETS = 4
CHUNK_ROWS = 250_000
PARTITIONS = 5
BUCKETS_MANY = 200
BUCKETS_FEW = 8
PAIRS = 5
LATENCIES = 20
WARM = 5
WARM_ROUNDS = 4
VISIBLE_S_MAX = 300.0
NAMES = 1_000
# The rows of a batch as Fluss gives them here.
FLOOR_BATCH_ROWS = 25_000


def main() -> None:
    """Write the rows, run the cases, and print."""
    parser = argparse.ArgumentParser(description="Fluss in Spark.")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--bootstrap", default=os.environ.get("FLUSS_TEST_BOOTSTRAP"))
    parser.add_argument("--only", default=",".join(_CASES))
    given = parser.parse_args()
    with (
        cluster(given.bootstrap) as bootstrap,
        tempfile.TemporaryDirectory(prefix="fluss-bench-") as folder,
    ):
        database = f"spark_{uuid.uuid4().hex[:8]}"
        with fluss.connect(f"fluss://{bootstrap}/{database}") as session:
            session.create_database(database)
            before = set(_descendants(os.getpid()))
            spark = _spark(Path(folder))
            try:
                bench = Bench(
                    spark=spark,
                    session=session,
                    servers=bootstrap,
                    database=database,
                    folder=Path(folder),
                    rows=given.rows,
                    pairs=given.pairs,
                    others=frozenset(before),
                )
                bench.write_tables()
                print(f"{given.rows:,} rows x 6 columns in {BUCKETS} buckets\n{machine()}\n")
                for name in given.only.split(","):
                    _CASES[name](bench)
            finally:
                spark.stop()
                session.drop_database(database, cascade=True)


def _spark(folder: Path) -> SparkSession:
    return fluss_spark.session(
        "bench",
        master="local[2]",
        spark__ui__enabled=False,
        spark__log__level="OFF",
        spark__driver__memory="3g",
        spark__sql__shuffle__partitions=2,
        spark__sql__warehouse__dir=folder / "warehouse",
        # A busy machine is slow to start a worker.
        spark__python__authenticate__socketTimeout="120s",
    )


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The environment of the cases.

    Args:
        others: The processes that do not belong to Spark.
    """

    spark: SparkSession
    session: Session
    servers: str
    database: str
    folder: Path
    rows: int
    pairs: int
    others: frozenset[int]

    @property
    def parquet(self) -> str:
        """Return the folder of the rows as Parquet files."""
        return str(self.folder / "rows")

    def fluss(self, table: str, **options: object) -> DataFrame:
        """A table in Spark."""
        reader = self.spark.read.format("fluss").option("bootstrap.servers", self.servers)
        for name, value in options.items():
            reader = reader.option(name, str(value))
        return reader.load(f"{self.database}.{table}")

    def write_tables(self) -> None:
        """Write the rows in both forms."""
        (self.folder / "rows").mkdir()
        step = -(-self.rows // BUCKETS)
        for number, start in enumerate(range(0, self.rows, step)):
            chunks = _chunks(start, min(start + step, self.rows))
            first = next(chunks)
            if number == 0:
                self.session.create_table("rows", first, buckets=BUCKETS, bucket_key=["id"])
                self.session.create_table("written", first, buckets=BUCKETS, bucket_key=["id"])
            table = self.session.table("rows")
            with pq.ParquetWriter(self.folder / "rows" / f"{number}.parquet", first.schema) as out:
                for chunk in (first, *chunks):
                    out.write_table(chunk)
                    table.append(chunk)

    def turns(self, mine: Callable[[], object], other: Callable[[], object]) -> Turns:
        """Run both sides alternately after an unmeasured warm-up."""
        for _ in range(WARM_ROUNDS):
            mine()
            other()
        taken: tuple[list[Taken], list[Taken]] = ([], [])
        for number in range(self.pairs):
            sides = [(taken[0], mine), (taken[1], other)]
            for into, work in sides if number % 2 == 0 else reversed(sides):
                into.append(self.taken(work))
        return Turns(mine=tuple(taken[0]), other=tuple(taken[1]))

    def taken(self, work: Callable[[], object]) -> Taken:
        """Measure one side: wall-clock time, and processor time of Spark."""
        cpu, wall = self._cpu_s(), time.perf_counter()
        work()
        return Taken(wall_s=time.perf_counter() - wall, cpu_s=self._cpu_s() - cpu)

    def _cpu_s(self) -> float:
        return sum(map(_cpu_of, set(_descendants(os.getpid())) - self.others))


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Wall-clock time, and processor time of Spark and its workers."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """The times of two alternating sides."""

    mine: tuple[Taken, ...]
    other: tuple[Taken, ...]

    def summary(self, *, longer: bool = False) -> str:
        """Format the speed of the first side relative to the second, or its relative time."""
        said = []
        for which in ("wall_s", "cpu_s"):
            pairs = [
                (getattr(mine, which), getattr(other, which))
                for mine, other in zip(self.mine, self.other, strict=True)
            ]
            ratios = [a / b if longer else b / a for a, b in pairs]
            middle = statistics.median(ratios)
            spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
            times = "{:.2f} s, {:.2f} s".format(*(statistics.median(each) for each in zip(*pairs)))  # noqa: B905 - pairs
            said.append(f"{which.removesuffix('_s')} {middle:.2f} ({spread}; {times})")
        return ", ".join(said)


# --- cases ----------------------------------------------------------------------------------------


def _read(bench: Bench) -> None:
    turns = bench.turns(
        lambda: _to_nowhere(bench.fluss("rows")),
        lambda: _to_nowhere(bench.spark.read.parquet(bench.parquet)),
    )
    print(f"read all, times as fast as Parquet     {turns.summary()}   target >= 0.6")


def _floor(bench: Bench) -> None:
    bench.spark.dataSource.register(_source_in_memory(next(_chunks(0, FLOOR_BATCH_ROWS))))
    tasks = bench.fluss("rows").rdd.getNumPartitions()

    def from_memory(rows: int) -> None:
        reader = bench.spark.read.format("in_memory").option("tasks", tasks)
        _to_nowhere(reader.option("rows", rows).load())

    turns = bench.turns(lambda: _to_nowhere(bench.fluss("rows")), lambda: from_memory(bench.rows))
    print(f"read all, as long as Spark's own floor {turns.summary(longer=True)}")
    turns = bench.turns(
        lambda: from_memory(bench.rows),
        lambda: _to_nowhere(bench.spark.read.parquet(bench.parquet)),
    )
    print(f"the floor, times as fast as Parquet    {turns.summary()}")
    turns = bench.turns(lambda: from_memory(0), lambda: from_memory(bench.rows))
    print(f"the floor of no rows, part of all rows {turns.summary(longer=True)}")


def _column(bench: Bench) -> None:
    turns = bench.turns(
        lambda: _to_nowhere(bench.fluss("rows", columns="id")),
        lambda: _to_nowhere(bench.fluss("rows")),
    )
    print(f"one column, times as fast as all       {turns.summary()}   target >= 1.6")


def _write(bench: Bench) -> None:
    bench.spark.dataSource.register(_empty_sink())
    frame = bench.spark.read.parquet(bench.parquet)

    def to_fluss() -> None:
        writer = frame.write.format("fluss").option("bootstrap.servers", bench.servers)
        writer.mode("append").save(f"{bench.database}.written")

    turns = bench.turns(
        to_fluss, lambda: frame.write.format("empty_sink").mode("append").save("nowhere")
    )
    print(f"write, times as fast as an empty sink  {turns.summary()}   target >= 0.6")


def _stream(bench: Bench) -> None:
    schema = pa.schema([("id", pa.int64())])
    source = bench.session.create_table("from", schema, buckets=1)
    target = bench.session.create_table("into", schema, primary_key=["id"], buckets=1)
    reader = bench.spark.readStream.format("fluss").option("bootstrap.servers", bench.servers)
    query = (
        reader.option("start", "earliest")
        .load(f"{bench.database}.from")
        .writeStream.format("fluss")
        .option("bootstrap.servers", bench.servers)
        .option("checkpointLocation", str(bench.folder / "stream"))
        .start(f"{bench.database}.into")
    )
    seconds = []
    try:
        for number in range(LATENCIES + WARM):
            begun = time.perf_counter()
            source.append({"id": [number]})
            while not target.lookup([number])["_found"][0].as_py():
                if not query.isActive or time.perf_counter() - begun > VISIBLE_S_MAX:
                    raise AssertionError(f"row {number} did not come: {query.exception()}")
                time.sleep(0.005)
            seconds.append(time.perf_counter() - begun)
    finally:
        query.stop()
    warm = sorted(seconds[WARM:])
    print(
        f"append to visible, warm                median {statistics.median(warm):.2f} s, "
        f"fastest {warm[0]:.2f} s, slowest {warm[-1]:.2f} s   target <= 0.8 s"
    )


def _buckets(bench: Bench) -> None:
    rows = pa.concat_tables(_chunks(0, max(bench.rows // 5, PARTITIONS))).combine_chunks()
    parts = pa.array(np.arange(rows.num_rows) % PARTITIONS).cast(pa.string())
    rows = rows.append_column("part", parts)
    for name, buckets in (("many", BUCKETS_MANY), ("few", BUCKETS_FEW)):
        parted = ["part"] if name == "many" else None
        table = bench.session.create_table(
            name, rows, buckets=buckets, bucket_key=["id"], partition_by=parted
        )
        for part in range(PARTITIONS if parted else 0):
            table.create_partition({"part": str(part)})
        table.append(rows)
    turns = bench.turns(
        lambda: _to_nowhere(bench.fluss("many")), lambda: _to_nowhere(bench.fluss("few"))
    )
    print(f"1000 buckets, times as long as 8       {turns.summary(longer=True)}   target <= 3")


_CASES: dict[str, Callable[[Bench], None]] = {
    "read": _read,
    "floor": _floor,
    "column": _column,
    "write": _write,
    "stream": _stream,
    "buckets": _buckets,
}


# --- helpers --------------------------------------------------------------------------------------


def _chunks(start: int, stop: int) -> Iterator[pa.Table]:
    names = pa.array([f"name {each}" for each in range(NAMES)])
    for begin in range(start, stop, CHUNK_ROWS):
        count = min(CHUNK_ROWS, stop - begin)
        rng = np.random.default_rng(begin)
        yield pa.table(
            {
                "id": pa.array(np.arange(begin, begin + count)),
                "name": names.take(pa.array(rng.integers(0, NAMES, count))),
                "x": rng.random(count),
                "k": pa.array(rng.integers(0, 100, count).astype(np.int32)),
                "at": pa.array(np.arange(begin, begin + count) * 1_000, pa.timestamp("us")),
                "note": pa.array(rng.integers(0, 2**40, count)).cast(pa.string()),
            }
        )


def _to_nowhere(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _source_in_memory(chunk: pa.Table) -> type[Any]:
    """A source of the same columns that repeats one batch: option `rows` in option `tasks`."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
    from pyspark.sql.pandas.types import from_arrow_schema

    (batch,) = chunk.combine_chunks().to_batches()
    schema = from_arrow_schema(chunk.schema, prefer_timestamp_ntz=True)

    class Reader(DataSourceReader):
        def __init__(self, rows: int, tasks: int) -> None:
            self._rows, self._tasks = rows, tasks

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(each) for each in range(self._tasks)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - Spark's
            for start in range(0, self._rows // self._tasks, batch.num_rows):
                yield batch.slice(0, self._rows // self._tasks - start)

    class InMemory(DataSource):
        @classmethod
        def name(cls) -> str:
            return "in_memory"

        def schema(self) -> Any:
            return schema

        def reader(self, schema: Any) -> Reader:  # noqa: ARG002 - Spark's
            return Reader(int(self.options["rows"]), int(self.options["tasks"]))

    return InMemory


def _empty_sink() -> type[Any]:
    from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

    class Writer(DataSourceArrowWriter):
        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            for _ in iterator:
                pass
            return WriterCommitMessage()

    class EmptySink(DataSource):
        @classmethod
        def name(cls) -> str:
            return "empty_sink"

        def writer(self, schema: Any, overwrite: bool) -> Writer:  # noqa: ARG002, FBT001 - Spark's
            return Writer()

    return EmptySink


def _descendants(process: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(folder.name))
    waiting = [process]
    while waiting:
        found = children.get(waiting.pop(), [])
        yield from found
        waiting += found


def _cpu_of(process: int) -> float:
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        # Its own time and that of children it has waited for, in user and system mode.
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


if __name__ == "__main__":
    main()
