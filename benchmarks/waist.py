"""Sessions and scans on a real server: plans, streams, counts, keyed state, filters.

`./dev bench waist` starts a server. `./dev bench waist host:port`, or FLUSS_TEST_BOOTSTRAP, names
one that runs, and nothing is left behind there. States and memory are always measured on separate
clusters. Figures are medians of several rounds; a comparison alternates both sides.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import fluss
from benchmarks._measure import Rounds, resident_bytes
from benchmarks._waist_states import measure_states
from fluss import col
from fluss.dialects.log_scanner import LogScanner
from fluss.log.log_scan import LogScanCore
from fluss.session import Session, Table
from fluss_testkit.java_cluster import JavaCluster

ROWS = 1_000_000
CHUNK_ROWS = 100_000
PARTITIONS = 200
BUCKETS = 5
ROUNDS = 7


def main() -> None:
    """Print the table."""
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("FLUSS_TEST_BOOTSTRAP")
    if given:
        _measure_on(given)
    else:
        with JavaCluster() as cluster:
            _measure_on(cluster.bootstrap_servers)
    # In a process of its own, whose memory nothing else has used.
    subprocess.run([sys.executable, "-m", "benchmarks._waist_objects"], check=True)


def _measure_on(bootstrap: str) -> None:
    database = f"waist_{uuid.uuid4().hex[:8]}"
    with fluss.connect(f"fluss://{bootstrap}/{database}") as session:
        session.create_database(database)
        resident = resident_bytes() / 1e6
        try:
            _measure(session, resident)
        finally:
            session.drop_database(database, cascade=True)


def _measure(session: Session, resident_mb: float) -> None:
    rows = _rows()
    log = _written(session.create_table("log", rows, buckets=4, bucket_key=["id"]), rows)
    keyed = session.create_table("keyed", rows, primary_key=["id"], buckets=4)
    began = time.perf_counter()
    keyed.upsert(rows)
    _line("upsert of an Arrow table", f"{ROWS / (time.perf_counter() - began):,.0f} rows/s")
    plain, scan = _alternating(lambda: _plain(log), lambda: log.scan().to_arrow())
    _line("the plain scanner", f"{ROWS / plain.median:,.0f} rows/s ({plain.spread})")
    _line("scan().to_arrow()", f"{ROWS / scan.median:,.0f} rows/s ({scan.spread})")
    _line("... beside the plain scanner", f"{plain.median / scan.median:.2f} times as fast")
    _line("scan().to_reader()", _rate(lambda: sum(each.num_rows for each in log.scan())))
    _line("count() by headers", _rate(log.count))
    _line("a filter of one row in ten", _rate(lambda: log.scan(filter=col("y") < 100_000).count()))
    _line("state of a keyed table", _rate(lambda: keyed.scan().to_arrow()))
    keys = rows.select(["id"]).slice(0, 100_000)
    _line("lookup of 100,000 keys", _rate(lambda: keyed.lookup(keys), count=100_000, of="keys"))
    _line("a plan over 5 buckets x 200 partitions", f"{_plan_s(session):.3f} s")
    _line(
        "memory above the level after connecting", f"{resident_bytes() / 1e6 - resident_mb:,.0f} MB"
    )
    for what, figure in measure_states(rows):
        _line(what, figure)


def _rows() -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "name": pa.array([f"name {each % 5_000}" for each in range(ROWS)]),
            "x": rng.random(ROWS),
            "y": rng.integers(0, 1_000_000, ROWS),
        }
    )


def _written(table: Table, rows: pa.Table) -> Table:
    for start in range(0, ROWS, CHUNK_ROWS):
        table.append(rows.slice(start, CHUNK_ROWS))
    return table


def _plain(table: Table) -> pa.Table:
    core = LogScanCore(table.__fluss_table__())
    engine = table.__fluss_table__().connection.engine
    scanner = LogScanner(engine, core, gives_batches=True, records_per_poll_max=500)
    scanner.subscribe_buckets(dict.fromkeys(range(4), fluss.EARLIEST_OFFSET))
    try:
        return scanner.to_arrow()
    finally:
        engine.run(core.close())


def _plan_s(session: Session) -> float:
    schema = pa.schema([("id", pa.int64()), ("part", pa.string())])
    table = session.create_table("parted", schema, partition_by=["part"], buckets=BUCKETS)
    for number in range(PARTITIONS):
        table.create_partition({"part": f"p{number:03d}"})
    table.scan().splits()  # leaders are elected and known
    before = _requests(session)
    times = [_seconds(lambda: table.scan().splits()) for _ in range(ROUNDS)]
    asked = {api: (sent - before.get(api, 0)) / ROUNDS for api, sent in _requests(session).items()}
    each = ", ".join(f"{api} {number:g}" for api, number in asked.items() if number)
    _line("requests of such a plan", each)
    return Rounds(seconds=tuple(times)).median


def _requests(session: Session) -> dict[str, int]:
    return {api: each["sent"] for api, each in session.counters()["requests"].items()}


def _rate(work: Callable[[], object], *, count: int = ROWS, of: str = "rows") -> str:
    work()
    times = Rounds(seconds=tuple(_seconds(work) for _ in range(ROUNDS)))
    return f"{count / times.median:,.0f} {of}/s ({times.spread})"


def _alternating(
    first: Callable[[], object], second: Callable[[], object]
) -> tuple[Rounds, Rounds]:
    first(), second()
    pairs = [(_seconds(first), _seconds(second)) for _ in range(ROUNDS)]
    one, other = zip(*pairs, strict=True)
    return Rounds(seconds=one), Rounds(seconds=other)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _line(what: str, figure: str) -> None:
    print(f"{what:<42} {figure}", flush=True)


if __name__ == "__main__":
    main()
