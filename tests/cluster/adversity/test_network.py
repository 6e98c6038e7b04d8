"""Networks that cut, stall, split and delay: every call succeeds or fails in time."""

import asyncio
import threading
import time
from contextlib import contextmanager

import pyarrow as pa
import pytest

from fluss.connection.connection import ClientConnection
from fluss.dialects.log_scanner import LogScanner
from fluss.errors import ConnectError, FlussError, ProtocolError, RequestTimeoutError
from fluss.log.log_scan import LogScanCore
from fluss.lookup.lookup_cores import key_lookup
from fluss.model.offsets import EARLIEST_OFFSET
from fluss.model.options.config import Config
from fluss.model.schema.schema import Schema
from fluss.model.servers import Address
from fluss.net.counters import Counters
from fluss.net.engine_thread import engine
from fluss.net.handoff import BlockingSink
from fluss.net.handshake import open_connection
from fluss.net.network_settings import ConnectionSettings
from fluss.net.server_connection import REQUESTS_IN_FLIGHT_MAX, ServerConnection
from fluss.wire.api import ApiKey
from tests.support.scripted.scripted_cluster import PATH, ScriptedCluster
from tests.support.scripted.scripted_peer import Proxy, ScriptedPeer, api_versions, success

SCHEMA = Schema(pa.schema([("id", pa.int64())]))
KEYED = Schema(pa.schema([pa.field("id", pa.int64(), nullable=False)]), ["id"])
PATIENT = {
    "retry.backoff-ms": "5",
    "retry.backoff-max-ms": "20",
    "connect-timeout": "5s",
    "request-timeout": "2s",
    "operation-timeout": "1min",
}
SHORT = PATIENT | {
    "request-timeout": "300ms",
    "operation-timeout": "1s",
}
SOON_S = 30.0


@contextmanager
def behind_proxy(schema=SCHEMA):
    """A cluster behind a proxy, and the proxy."""
    with ScriptedCluster(schema) as cluster, Proxy(cluster.peer.host, cluster.peer.port) as proxy:
        cluster.address = (proxy.host, proxy.port)
        yield cluster, proxy


@contextmanager
def table_over(proxy, settings=PATIENT):
    running = engine()
    config = Config({"bootstrap.servers": f"{proxy.host}:{proxy.port}"} | settings)
    connection = running.run(ClientConnection.open(running, config))
    try:
        yield running.run(connection.table(PATH))
    finally:
        running.run(connection.close())


@contextmanager
def scanner_over(proxy, settings=PATIENT):
    with table_over(proxy, settings) as table:
        core = LogScanCore(table)
        scanner = LogScanner(engine(), core, gives_batches=True, records_per_poll_max=500)
        scanner.subscribe(0, EARLIEST_OFFSET)
        yield scanner
        engine().run(core.close())


def fill(cluster, count):
    for number in range(count):
        cluster.append({"id": [number]})


def one_batch_at_a_time(cluster):
    size = max(len(each.data) for each in cluster.logs[0])
    return PATIENT | {"scanner.log.fetch.max-bytes-for-bucket": str(size)}


def ids(table):
    return table.column("id").to_pylist()


# --- connecting and shaking hands -----------------------------------------------------------------


def test_a_peer_that_closes_immediately_is_no_server():
    with behind_proxy() as (_, proxy):
        proxy.cut_after.extend([0] * 100)
        begin = time.monotonic()
        with pytest.raises(ConnectError):
            open_table(proxy, SHORT)
        assert time.monotonic() - begin < SOON_S


def test_a_handshake_that_is_cut_off_is_retried():
    with behind_proxy() as (cluster, proxy):
        fill(cluster, 3)
        with scanner_over(proxy) as scanner:
            assert ids(scanner.to_arrow()) == [0, 1, 2]
            proxy.cut_after.extend([1, 5, 9, 20])
            proxy.cut()
            assert ids(scanner.to_arrow()) == [0, 1, 2]


@pytest.mark.parametrize("when", ["before connecting", "after connecting"])
def test_a_peer_that_never_responds_times_out(when):
    with behind_proxy() as (cluster, proxy):
        fill(cluster, 3)
        begin = time.monotonic()
        if when == "before connecting":
            proxy.stall()
            with pytest.raises(FlussError):
                open_table(proxy, SHORT | {"connect-timeout": "300ms"})
        else:
            with scanner_over(proxy, SHORT) as scanner:
                proxy.stall()
                with pytest.raises((ConnectError, RequestTimeoutError)):
                    scanner.to_arrow()
                proxy.flow()
                assert ids(scanner.to_arrow()) == [0, 1, 2]
        assert time.monotonic() - begin < SOON_S


def open_table(proxy, settings):
    with table_over(proxy, settings):
        pass


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 4, 12, 60, 150, 300, 500, 900])
def test_a_read_continues_wherever_its_connections_are_cut(budget):
    with behind_proxy() as (cluster, proxy):
        fill(cluster, 10)
        with scanner_over(proxy, one_batch_at_a_time(cluster)) as scanner:
            proxy.cut_after.extend([budget] * 8)
            proxy.cut()
            assert ids(scanner.to_arrow()) == list(range(10))


def test_a_tail_continues_however_often_its_connection_is_cut():
    with behind_proxy() as (cluster, proxy), scanner_over(proxy) as scanner:
        stop = threading.Event()

        def cut_and_write():
            for number in range(100):
                cluster.append({"id": [number]})
                if number % 5 == 0:
                    proxy.cut()
                if stop.wait(0.005):
                    return

        worker = threading.Thread(target=cut_and_write)
        worker.start()
        try:
            found = []
            deadline = time.monotonic() + 2 * SOON_S
            while len(found) < 100 and time.monotonic() < deadline:
                found += ids(scanner.poll_arrow(200))
            assert found == list(range(100))
        finally:
            stop.set()
            worker.join()


def test_responses_in_single_bytes_are_reassembled():
    with behind_proxy() as (cluster, proxy):
        fill(cluster, 5)
        proxy.bytes_at_once_max = 1
        with scanner_over(proxy) as scanner:
            assert ids(scanner.to_arrow()) == list(range(5))


def test_a_slow_network_causes_no_errors():
    with behind_proxy() as (cluster, proxy):
        fill(cluster, 5)
        proxy.pause_s = 0.02
        with scanner_over(proxy, one_batch_at_a_time(cluster)) as scanner:
            assert ids(scanner.to_arrow()) == list(range(5))


def test_a_read_continues_after_a_stall():
    with behind_proxy() as (cluster, proxy):
        fill(cluster, 5)
        with scanner_over(proxy) as scanner:
            proxy.stall()
            threading.Timer(0.3, proxy.flow).start()
            assert ids(scanner.to_arrow()) == list(range(5))


def test_a_server_that_is_gone_ends_a_read_in_time():
    with behind_proxy() as (cluster, proxy):
        fill(cluster, 5)
        with scanner_over(proxy, SHORT) as scanner:
            assert ids(scanner.to_arrow()) == list(range(5))
            proxy.refuse()
            begin = time.monotonic()
            with pytest.raises(ConnectError):
                scanner.to_arrow()
            assert time.monotonic() - begin < SOON_S
            begin = time.monotonic()
            scanner.subscribe(0, 3)
            assert scanner.poll_arrow(50).num_rows == 0
            assert time.monotonic() - begin < SOON_S


# --- looking up -----------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 5, 40, 200])
def test_lookups_continue_wherever_their_connections_are_cut(budget):
    with behind_proxy(KEYED) as (_, proxy), table_over(proxy) as table:
        core = key_lookup(table)
        proxy.cut_after.extend([budget] * 5)
        proxy.cut()
        callers = []
        for number in range(20):
            caller = BlockingSink(core.decode)
            core.ask([number], caller)
            callers.append(caller)
        for caller in callers:
            assert caller.wait(SOON_S)
            assert caller.result() is None


def test_lookups_of_a_server_that_is_gone_end_in_time():
    with behind_proxy(KEYED) as (_, proxy), table_over(proxy, SHORT) as table:
        core = key_lookup(table)
        proxy.stall()
        caller = BlockingSink(core.decode)
        core.ask([1], caller)
        assert caller.wait(SOON_S)
        with pytest.raises((ConnectError, RequestTimeoutError)):
            caller.result()


# --- one connection -------------------------------------------------------------------------------


def connection_to(peer):
    settings = ConnectionSettings(bootstrap=(Address(peer.host, peer.port),))
    return engine().run(open_connection(settings.bootstrap[0], settings, counters=Counters()))


def ask(connection: ServerConnection, *, body=b"", timeout_ms=2_000):
    async def asking():
        return bytes(await connection.ask(ApiKey.LIST_DATABASES, [body], timeout_ms=timeout_ms))

    return engine().run(asking())


def greeting_then(answer):
    def script(request):
        if request.api_key == ApiKey.API_VERSIONS:
            return success(request, api_versions(ApiKey.LIST_DATABASES))
        return answer(request)

    return script


def test_an_error_answer_that_cannot_be_read_is_an_error():
    def garbage(request):
        body = b"\x01" + request.request_id.to_bytes(4, "big") + b"\xff\xff\xff"
        return len(body).to_bytes(4, "big") + body

    with ScriptedPeer(greeting_then(garbage)) as peer, pytest.raises(ProtocolError):
        ask(connection_to(peer))


def test_a_server_that_does_not_read_times_out():
    blocked = threading.Event()

    def stop_reading(_):
        blocked.wait(10)

    async def ask_much(connection):
        large = bytes(8 << 20)
        errors = []
        for _ in range(3):
            try:
                await connection.ask(ApiKey.LIST_DATABASES, [large], timeout_ms=200)
            except FlussError as error:
                errors.append(error)
        return errors

    with ScriptedPeer(greeting_then(stop_reading)) as peer:
        connection = connection_to(peer)
        begin = time.monotonic()
        errors = engine().run(ask_much(connection))
        blocked.set()
    assert isinstance(errors[0], RequestTimeoutError)
    assert len(errors) == 3
    assert time.monotonic() - begin < SOON_S


def test_requests_beyond_the_limit_wait_no_longer_than_their_timeout():
    held = []

    def hold(request):
        held.append(request)

    async def ask_many(connection):
        asks = [
            asyncio.ensure_future(connection.ask(ApiKey.LIST_DATABASES, [b""], timeout_ms=5_000))
            for _ in range(REQUESTS_IN_FLIGHT_MAX)
        ]
        await asyncio.sleep(0.05)
        with pytest.raises(RequestTimeoutError):
            await connection.ask(ApiKey.LIST_DATABASES, [b""], timeout_ms=50)
        for ask in asks[:-1]:
            ask.cancel()
        late = asyncio.ensure_future(
            connection.ask(ApiKey.LIST_DATABASES, [b"late"], timeout_ms=5_000)
        )
        await asyncio.sleep(0.1)
        connection.close()
        return await asyncio.gather(late, asks[-1], return_exceptions=True)

    with ScriptedPeer(greeting_then(hold)) as peer:
        connection = connection_to(peer)
        late, last = engine().run(ask_many(connection))
        assert any(each.body == b"late" for each in held)
    assert isinstance(late, ConnectError)
    assert isinstance(last, ConnectError)
