"""A program that interrupts every blocking call with SIGINT, and prints how long each took.

Its server is paused (SIGSTOP) before each call, so that no call can finish. A thread sends SIGINT
to the process while the call waits; afterwards the server is resumed.

    python -m tests.support.servers.interrupted_calls IMPORTS HANDLER

IMPORTS are the modules that are imported first, separated by commas; HANDLER is `default` or `own`
(a handler that the program installs before the imports). Each line of the output is a JSON object:
the name of the call, what it raised, and after how many seconds.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

SIGNAL_AFTER_S = 0.1
BYTES_LARGE = 400_000


class OwnError(Exception):
    """The exception that the program's own handler raises."""


def main(imports: str, handler: str) -> None:
    """Run all calls of the imported modules."""
    if handler == "own":
        signal.signal(signal.SIGINT, _raise_own)
    names = [name for name in imports.split(",") if name]
    for name in names:
        importlib.import_module(name)
    from fluss_server import LocalCluster

    with tempfile.TemporaryDirectory() as folder, LocalCluster(folder) as cluster:
        stage = _Stage(cluster)
        for name, call in _calls(stage, set(names)):
            sys.stdout.write(f"{json.dumps(_interrupted(name, call, cluster.pid))}\n")
            sys.stdout.flush()
        stage.session.close()


def _raise_own(*_: object) -> None:
    raise OwnError


def _interrupted(name: str, call: Callable[[], Any], pid: int) -> dict[str, Any]:
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    def wake() -> None:  # ends a call that cannot be interrupted
        os.kill(pid, signal.SIGCONT)

    timers = [threading.Timer(SIGNAL_AFTER_S, interrupt), threading.Timer(4.0, wake)]
    raised = "nothing"
    os.kill(pid, signal.SIGSTOP)
    try:
        for timer in timers:
            timer.start()
        _call(call)
    except BaseException as error:  # noqa: BLE001 - the program reports what was raised
        raised = type(error).__name__
    ended = time.monotonic()
    os.kill(pid, signal.SIGCONT)
    for timer in timers:
        timer.cancel()
    return {"call": name, "raised": raised, "after_s": ended - sent[0] if sent else -1.0}


def _call(call: Callable[[], Any]) -> None:
    try:
        call()
    finally:
        # Polars raises KeyboardInterrupt by itself, and Python's handler may raise a moment later.
        time.sleep(0.01)


class _Stage:
    """Tables and sessions for the calls."""

    def __init__(self, cluster: Any) -> None:
        import pyarrow as pa

        import fluss

        self.cluster = cluster
        self.url = f"fluss://{cluster.bootstrap_servers}"
        self.session = fluss.connect(self.url)
        self.session.create_database("d")
        self.rows = pa.table({"id": range(1_000), "x": [float(n) for n in range(1_000)]})
        self.log = self.session.append("d.log", self.rows, create=True, buckets=2) and (
            self.session.table("d.log")
        )
        self.keyed = self.session.create_table("d.keyed", self.rows, primary_key=["id"], buckets=2)
        self.keyed.upsert(self.rows)
        self.large = pa.table({"id": range(BYTES_LARGE // 8), "x": [0.5] * (BYTES_LARGE // 8)})

    def fresh(self, **settings: Any) -> Any:
        """Return a session with its own connection."""
        import fluss

        _Stage.number += 1
        return fluss.connect(self.url, request_timeout_ms=60_000 + _Stage.number, **settings)

    number = 0


def _calls(stage: _Stage, modules: set[str]) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield from _session_calls(stage)
    if "pandas" in modules:
        yield from _pandas_calls(stage)
    if "polars" in modules:
        yield from _polars_calls(stage)
    if "duckdb" in modules:
        yield from _duckdb_calls(stage)
    yield from _dialect_calls(stage)  # the last: asyncio.run() installs Python's handler again


def _session_calls(stage: _Stage) -> Iterator[tuple[str, Callable[[], Any]]]:
    import fluss

    session, log, keyed, rows = stage.session, stage.log, stage.keyed, stage.rows
    one = fluss.col("id") == 7
    yield "connect", stage.fresh
    yield "databases", session.databases
    yield "table", lambda: session.table("d.log")
    yield "create_table", lambda: session.create_table("d.new", rows)
    yield "offsets", log.offsets
    yield "append", lambda: log.append(rows)
    yield "upsert", lambda: keyed.upsert(rows)
    yield "delete", lambda: keyed.delete(rows.select(["id"]))
    yield "lookup", lambda: keyed.lookup([1, 2, 3])
    for name, scan in {
        "to_arrow": log.scan(),
        "to_arrow by bucket": log.scan(order="bucket"),
        "to_arrow by time": log.scan(order="timestamp"),
        "state": keyed.scan(),
        "state by limit scans": keyed.scan(strategy="limit_scan"),
        "state by changelog": keyed.scan(strategy="changelog"),
        "binlog": keyed.scan(mode="binlog"),
        "scan by key": keyed.scan(filter=one),
    }.items():
        scan.splits()  # so that the read is what waits
        yield name, scan.to_arrow
        yield f"{name}, as a stream", lambda scan=scan: scan.to_reader().read_all()
    yield "plan", lambda: log.scan().splits()
    yield "count", log.count
    yield "iterate", lambda: list(log.scan())
    follow = log.follow(start="latest")
    follow.poll(0.01)
    yield "follow, iterated", lambda: next(iter(follow))
    yield "follow, polled", lambda: follow.poll(30.0)
    yield "follow, closed", lambda: follow.poll(30.0)
    follow.close()
    for name, use in {
        "dataset to_table": lambda data: data.to_table(),
        "dataset head": lambda data: data.head(5),
        "dataset count_rows": lambda data: data.count_rows(),
        "dataset reader": lambda data: data.scanner().to_reader().read_all(),
        "dataset batches": lambda data: list(data.to_batches()),
    }.items():
        data = log.scan().to_dataset()
        yield name, lambda data=data, use=use: use(data)
    yield "waiting for another thread's plan", lambda: _wait_for_other_plan(log.scan())
    yield "waiting for another thread's connection", lambda: _wait_for_other_connection(stage)
    small = stage.fresh(writer_buffer_memory_size=65_536, writer_batch_size=16_384)
    table = small.table("d.log")
    yield "append, buffer full", lambda: table.append(stage.large)
    yield "session close", small.close
    yield from _cluster_calls()


def _cluster_calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    from fluss_server import LocalCluster

    other = LocalCluster().start()

    def stop() -> None:
        os.kill(other.pid, signal.SIGSTOP)
        other.stop()

    yield "LocalCluster stop", stop
    yield "LocalCluster start", lambda: LocalCluster().start()
    yield "LocalCluster start in a thread", _start_slowly_in_a_thread


def _start_slowly_in_a_thread() -> None:
    from fluss_server import LocalCluster, local_cluster as local

    run = local._Thread._run

    def slow(thread: Any) -> None:  # a server in a thread may be ready before the signal
        time.sleep(4 * SIGNAL_AFTER_S)
        run(thread)

    local._Thread._run = slow  # type: ignore[method-assign]
    try:
        LocalCluster(in_thread=True).start()
    finally:
        local._Thread._run = run  # type: ignore[method-assign]


def _wait_for_other_plan(scan: Any) -> None:
    threading.Thread(target=scan.splits, daemon=True).start()
    time.sleep(0.05)
    scan.splits()


def _wait_for_other_connection(stage: _Stage) -> None:
    threading.Thread(target=stage.fresh, daemon=True).start()
    time.sleep(0.05)
    stage.fresh()


def _dialect_calls(stage: _Stage) -> Iterator[tuple[str, Callable[[], Any]]]:
    import fluss
    import fluss.aio

    config = {"bootstrap.servers": stage.cluster.bootstrap_servers}

    async def opened(module: Any) -> tuple[Any, Any]:
        connection = await module.FlussConnection.create(module.Config(config))
        return connection, await connection.get_table(fluss.TablePath("d", "log"))

    async def scanner_of(module: Any, *, batches: bool) -> tuple[Any, Any]:
        connection, table = await opened(module)
        scan = table.new_scan()
        make = scan.create_record_batch_log_scanner if batches else scan.create_log_scanner
        scanner = await make()
        scanner.subscribe_buckets({0: 0, 1: 0})
        return connection, scanner

    for name, batches, use in (
        ("poll", False, lambda scanner: scanner.poll(30_000)),
        ("poll_arrow", True, lambda scanner: scanner.poll_arrow(30_000)),
        ("to_arrow", True, lambda scanner: scanner.to_arrow()),
        ("batch reader", True, lambda scanner: scanner.to_arrow_batch_reader().read_all()),
    ):
        _, scanner = asyncio.run(scanner_of(fluss, batches=batches))
        yield f"scanner {name}", lambda use=use, scanner=scanner: use(scanner)
        _, scanner = asyncio.run(scanner_of(fluss, batches=batches))

        async def inside(use: Any = use, scanner: Any = scanner) -> None:
            use(scanner)

        yield f"scanner {name} in a task", lambda inside=inside: asyncio.run(inside())
    for module in (fluss, fluss.aio):
        yield f"{module.__name__} create", lambda module=module: asyncio.run(opened(module))
        _, table = asyncio.run(opened(module))
        writer = table.new_append().create_writer()

        async def flushed(writer: Any = writer) -> None:
            writer.append({"id": 1, "x": 0.5})
            await writer.flush()

        yield f"{module.__name__} flush", lambda flushed=flushed: asyncio.run(flushed())


def _pandas_calls(stage: _Stage) -> Iterator[tuple[str, Callable[[], Any]]]:
    import pandas as pd

    importlib.import_module("fluss.pandas")
    url = f"{stage.url}/d.log"
    frame = stage.rows.to_pandas()
    yield "read_fluss", lambda: pd.read_fluss(url)
    yield "read_fluss in chunks", lambda: list(pd.read_fluss(url, chunksize=100))
    yield "read_fluss with progress", lambda: pd.read_fluss(url, progress=lambda *_: None)
    yield "df.fluss.append", lambda: frame.fluss.append(url)


def _polars_calls(stage: _Stage) -> Iterator[tuple[str, Callable[[], Any]]]:
    import polars as pl

    importlib.import_module("fluss_polars")
    url = f"{stage.url}/d.log"
    yield "scan_fluss", lambda: pl.scan_fluss(url).collect(engine="streaming")
    yield "read_fluss of Polars", lambda: pl.read_fluss(url)
    yield "df.fluss.append of Polars", lambda: pl.DataFrame(stage.rows).fluss.append(url)
    yield "lf.fluss.append", lambda: pl.DataFrame(stage.rows).lazy().fluss.append(url)


def _duckdb_calls(stage: _Stage) -> Iterator[tuple[str, Callable[[], Any]]]:
    import fluss_duckdb

    connection = fluss_duckdb.connect(url=stage.url)
    yield "sql", lambda: connection.sql("FROM fluss('d.log')").fetchall()
    yield "execute", lambda: connection.execute("FROM fluss('d.log')").fetchall()
    yield "connect of DuckDB", lambda: fluss_duckdb.connect(url=stage.url, request_timeout_ms=777)
    connection.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
