"""What is dropped without `close` stops: it asks servers for nothing more and keeps no socket."""

import asyncio
import contextlib
import gc
import socket
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import fluss
import fluss.aio
import fluss.pandas
import fluss_duckdb
import fluss_polars
from fluss.connection import shared_connections as connections
from fluss.waiting import in_thread

pytestmark = pytest.mark.one_server  # what stops is the client

SETTLE_S = 15.0
QUIET_S = 0.4
THREAD_ROUNDS = 300


@pytest.fixture
def busy(session):
    """A table with too many rows for one answer, so that its reader is never done."""
    table = session.create_table("busy", pa.schema([("id", pa.int64())]), buckets=2)
    for start in range(0, 400_000, 20_000):
        table.append(pa.table({"id": range(start, start + 20_000)}))
    return table


def fetches(session):
    counted = session.counters()["requests"].get("FETCH_LOG", {"sent": 0})
    return counted["sent"]


def is_quiet(session):
    """Whether no fetch is sent any more, once those in flight have ended."""
    gc.collect()
    end = time.monotonic() + SETTLE_S
    while time.monotonic() < end:
        before = fetches(session)
        time.sleep(QUIET_S)
        if fetches(session) == before:
            return True
    return False


def first_batch_of_follow(session, table):
    for _ in table.follow(start="earliest"):
        break


def polled_follow(session, table):
    table.follow().poll(0)


def first_batch_of_scan(session, table):
    next(iter(table.scan()))


def first_batch_by_bucket(session, table):
    next(iter(table.scan(order="bucket")))


def first_batch_by_time(session, table):
    next(iter(table.scan(order="timestamp")))


def first_batch_of_reader(session, table):
    table.scan().to_reader().read_next_batch()


def stream_that_nobody_reads(session, table):
    table.scan().__arrow_c_stream__()


def imported_stream(session, table):
    pa.RecordBatchReader.from_stream(table.scan()).read_next_batch()


def first_batch_of_dataset(session, table):
    next(iter(table.scan().to_dataset().to_batches()))


def dataset_reader(session, table):
    table.scan().to_dataset().scanner().to_reader().read_next_batch()


def first_frame_of_pandas(session, table):
    import pandas as pd

    next(iter(pd.read_fluss(table, chunksize=100)))


def first_rows_of_polars(session, table):
    for _ in pl.scan_fluss(table).collect_batches(chunk_size=100):
        break


def first_row_of_duckdb(session, table):
    with fluss_duckdb.connect(session=session) as connection:
        connection.execute(f"FROM fluss('{table.name}')").fetchone()


async def opened(module, session, table):
    config = module.Config({"bootstrap.servers": session.config.bootstrap_servers})
    connection = await module.FlussConnection.create(config)
    return connection, await connection.get_table(table.name)


async def scanner_of(module, session, table, *, batches):
    connection, found = await opened(module, session, table)
    scan = found.new_scan()
    make = scan.create_record_batch_log_scanner if batches else scan.create_log_scanner
    scanner = await make()
    scanner.subscribe_buckets({0: 0, 1: 0})
    return connection, scanner


DROPPED = [
    first_batch_of_follow,
    polled_follow,
    first_batch_of_scan,
    first_batch_by_bucket,
    first_batch_by_time,
    first_batch_of_reader,
    stream_that_nobody_reads,
    imported_stream,
    first_batch_of_dataset,
    dataset_reader,
    first_frame_of_pandas,
    first_rows_of_polars,
    first_row_of_duckdb,
]


@pytest.mark.parametrize("drop", DROPPED)
def test_a_read_that_is_dropped_fetches_no_more(session, busy, drop):
    drop(session, busy)
    assert is_quiet(session)
    assert busy.scan(tail=3).to_arrow().num_rows == 3


@pytest.mark.parametrize("module", [fluss, fluss.aio], ids=["fluss", "fluss.aio"])
@pytest.mark.parametrize("way", ["subscribed", "polled", "iterated", "reader"])
async def test_a_scanner_that_is_dropped_fetches_no_more(session, busy, module, way):
    connection, scanner = await scanner_of(module, session, busy, batches=way != "polled")
    if way == "polled":
        polled = scanner.poll(1_000)
        if module is fluss.aio:
            await polled
    elif way == "reader":
        (await asyncio.to_thread(scanner.to_arrow_batch_reader)).read_next_batch()
    elif way == "iterated" and module is fluss.aio:
        async for _ in scanner:
            break
    elif way == "iterated":
        scanner.poll_record_batch(1_000)
    del scanner
    assert await asyncio.to_thread(is_quiet, connection)
    closed = connection.close()
    if module is fluss.aio:
        await closed


def test_a_follow_that_is_broken_off_and_kept_can_be_read_on(session, events):
    follow = events.follow(start="earliest")
    rows = next(iter(follow)).num_rows
    gc.collect()
    for batch in follow:
        rows += batch.num_rows
        if rows == 1_000:
            break
    assert rows == 1_000


# --- sockets --------------------------------------------------------------------------------------


def sockets():
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found += str(each.readlink()).startswith("socket:")
    return found


def become(count_max):
    end = time.monotonic() + SETTLE_S
    while sockets() > count_max and time.monotonic() < end:
        gc.collect()
        time.sleep(0.05)
    return sockets()


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors")


@needs_proc
def test_sessions_that_are_dropped_give_their_sockets_back(cluster, events):
    events.count()
    before = sockets()
    for number in range(20):
        dropped = fluss.connect(f"fluss://{cluster.bootstrap}", request_timeout_ms=70_000 + number)
        assert dropped.table(events.name).count() == 1_000
        next(iter(dropped.table(events.name).follow(start="earliest")))
    del dropped
    assert become(before) <= before


@needs_proc
async def test_connections_that_are_dropped_give_their_sockets_back(session, events):
    events.count()
    before = sockets()
    for module in (fluss, fluss.aio):
        connection, scanner = await scanner_of(module, session, events, batches=True)
        admin = await connection.get_admin() if module is fluss else connection.get_admin()
        del connection
        gc.collect()
        assert await admin.list_databases()  # what was made with it keeps the connection
        assert scanner.get_subscribed_buckets()
        del scanner, admin
    assert await asyncio.to_thread(become, before) <= before


def test_rows_of_a_dropped_connection_are_delivered(session, events):
    async def append():
        _, table = await opened(fluss, session, events)
        table.new_append().create_writer().append({"id": 5_000, "day": "x", "x": 0.5})

    asyncio.run(append())
    end = time.monotonic() + SETTLE_S
    while events.count() == 1_000 and time.monotonic() < end:
        gc.collect()
    assert events.count() == 1_001


def test_a_table_of_a_dropped_session_goes_on(cluster, events):
    table = fluss.connect(f"fluss://{cluster.bootstrap}", request_timeout_ms=72_000).table(
        events.name
    )
    gc.collect()
    assert table.count() == 1_000


def test_idle_connections_of_adapters_are_limited(cluster, events, monkeypatch):
    monkeypatch.setattr(connections, "IDLE_MAX", 2)
    for number in range(5):
        url = f"fluss://{cluster.bootstrap}/{events.name}?request-timeout={80 + number}s"
        assert fluss_polars.read_fluss(url).height == 1_000
    idle = [entry for entry in connections._entries.values() if not entry.sessions]
    assert len(idle) <= 2


# --- threads --------------------------------------------------------------------------------------


@pytest.fixture
def switching_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow  # a race is looked for
def test_threads_that_open_and_close_sessions_do_not_disturb_each_other(cluster, switching_often):
    settings = {"bootstrap.servers": cluster.bootstrap, "request-timeout": "63s"}
    errors = []

    def work():
        try:
            for _ in range(THREAD_ROUNDS):
                with fluss.connect(config=settings) as one:
                    one.databases()
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_one_cluster_that_hangs_does_not_keep_sessions_of_others_waiting(cluster):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"fluss://127.0.0.1:{silent.getsockname()[1]}"
        short = dict.fromkeys(("request-timeout", "operation-timeout", "connect-timeout"), "2s")
        hanging = in_thread(lambda: fluss.connect(url, config=short), "hanging")
        time.sleep(0.1)
        with fluss.connect(f"fluss://{cluster.bootstrap}") as one:
            assert one.databases()
        assert not hanging.done()
        with pytest.raises(fluss.FlussError):
            hanging.result()
