import asyncio
import socket
import threading

import numpy as np
import pytest

from fluss.errors import (
    AuthenticationError,
    ConnectError,
    FlussError,
    RequestTimeoutError,
    TableNotFoundError,
)
from fluss.model.servers import Address
from fluss.net.counters import Counters
from fluss.net.engine_thread import engine
from fluss.net.handshake import open_connection
from fluss.net.network_settings import ConnectionSettings, Login
from fluss.net.server_connection import ServerConnection
from fluss.wire.api import ApiKey
from fluss.wire.zero_copy.fetch_log import FETCH_LOG_RESPONSE
from tests.support.scripted.scripted_peer import (
    Proxy,
    ScriptedPeer,
    api_versions,
    error,
    success,
    varint,
)

GREETING = api_versions(1000, 1003, 1015, 1038)


def settings_for(peer, **changes):
    facts = {"connect_timeout_ms": 3_000, "request_timeout_ms": 2_000} | changes
    return ConnectionSettings(bootstrap=(Address(peer.host, peer.port),), **facts)


def connect(peer, **changes) -> ServerConnection:
    settings = settings_for(peer, **changes)
    return engine().run(open_connection(settings.bootstrap[0], settings, counters=Counters()))


def ask(connection, *, timeout_ms=2_000, body=b""):
    async def asking():
        answer = await connection.ask(ApiKey.LIST_DATABASES, [body], timeout_ms=timeout_ms)
        return bytes(answer)

    return engine().run(asking())


def greeting_then(answer):
    def script(request):
        if request.api_key == ApiKey.API_VERSIONS:
            return success(request, GREETING)
        return answer(request)

    return script


def test_a_request_gets_its_answer():
    with ScriptedPeer(greeting_then(lambda request: success(request, b"hello"))) as peer:
        connection = connect(peer)
        assert connection.apis.versions[1003] == (0, 0)
        assert ask(connection) == b"hello"


def test_answers_find_their_requests_in_any_order():
    held = []

    def answer(request):
        held.append(request)
        if len(held) < 3:
            return None
        return b"".join(success(each, each.body) for each in reversed(held))

    async def ask_all(connection):
        asks = [
            connection.ask(ApiKey.LIST_DATABASES, [body], timeout_ms=2_000)
            for body in (b"a", b"b", b"c")
        ]
        return [bytes(each) for each in await asyncio.gather(*asks)]

    with ScriptedPeer(greeting_then(answer)) as peer:
        assert engine().run(ask_all(connect(peer))) == [b"a", b"b", b"c"]


def test_the_servers_error_is_raised_by_its_code():
    def answer(request):
        return error(request, 7, "no such table")

    with ScriptedPeer(greeting_then(answer)) as peer:
        connection = connect(peer)
        with pytest.raises(TableNotFoundError, match="no such table"):
            ask(connection)
        assert connection.is_open


def test_a_request_without_an_answer_times_out_and_ends_the_connection():
    with ScriptedPeer(greeting_then(lambda _: None)) as peer:
        connection = connect(peer)
        with pytest.raises(RequestTimeoutError, match="LIST_DATABASES within 100 ms"):
            ask(connection, timeout_ms=100)
        assert not connection.is_open
        with pytest.raises(ConnectError):
            ask(connection)


def test_a_late_answer_is_dropped_and_the_connection_lives_on():
    late = threading.Event()
    first = []

    def answer(request):
        if not first:
            first.append(request)
            return None
        late.set()
        return success(first[0], b"late") + success(request, request.body)

    async def ask_twice(connection):
        slow = asyncio.ensure_future(
            connection.ask(ApiKey.LIST_DATABASES, [b"slow"], timeout_ms=150)
        )
        await asyncio.sleep(0.05)
        slow.cancel()
        return bytes(await connection.ask(ApiKey.LIST_DATABASES, [b"next"], timeout_ms=2_000))

    with ScriptedPeer(greeting_then(answer)) as peer:
        connection = connect(peer)
        assert engine().run(ask_twice(connection)) == b"next"
        assert late.is_set()
        assert connection.is_open


def large_fetch(records):
    """A FetchLogResponse with one bucket."""
    bucket = b"\x10\x00\x28\x07" + b"\x42" + varint(len(records)) + records
    table = b"\x08\x01\x12" + varint(len(bucket)) + bucket
    return b"\x0a" + varint(len(table)) + table


@pytest.mark.parametrize("size", [70_000, 300_001, 1_000_003])
def test_log_batches_of_a_large_answer_are_aligned_for_arrow(size):
    records = bytes(range(250)) * (size // 250 + 1)
    body = large_fetch(records[:size])
    with ScriptedPeer(greeting_then(lambda request: success(request, body))) as peer:
        connection = connect(peer)

        async def asking():
            return await connection.ask(ApiKey.FETCH_LOG, [b""], timeout_ms=5_000)

        answer = engine().run(asking())
    assert answer == body
    found = FETCH_LOG_RESPONSE.read(answer).tables_resp[0].buckets_resp[0].records[0]
    assert np.frombuffer(found, np.uint8).ctypes.data % 8 == 0


def test_a_large_answer_that_trickles_in_is_complete_and_so_is_what_follows():
    body = bytes(range(256)) * 3_000

    def script(request):
        if request.api_key == ApiKey.API_VERSIONS:
            return success(request, GREETING)
        return success(request, body if not request.body else request.body)

    with ScriptedPeer(script) as peer, Proxy(peer.host, peer.port) as proxy:
        proxy.bytes_at_once_max = 7_001
        connection = connect(proxy)
        for _ in range(2):
            assert ask(connection, timeout_ms=20_000) == body
            assert ask(connection, body=b"small") == b"small"


def test_a_server_that_hangs_up_within_a_large_answer_is_noticed_immediately():
    def answer(request):
        return success(request, bytes(1_000_000))[:600_000]

    with ScriptedPeer(greeting_then(answer)) as peer:
        connection = connect(peer)
        threading.Timer(0.2, peer.hang_up).start()
        with pytest.raises(ConnectError, match="lost"):
            ask(connection, timeout_ms=10_000)


def test_requests_in_flight_fail_when_the_server_hangs_up():
    with ScriptedPeer(greeting_then(lambda _: peer.hang_up())) as peer:
        connection = connect(peer)
        with pytest.raises(ConnectError, match="lost"):
            ask(connection)


def test_an_answer_split_into_single_bytes_is_put_together():
    with (
        ScriptedPeer(greeting_then(lambda request: success(request, b"x" * 300))) as peer,
        Proxy(peer.host, peer.port) as proxy,
    ):
        proxy.bytes_at_once_max = 1
        assert ask(connect(proxy)) == b"x" * 300


def test_a_refused_connection_fails_fast_and_names_the_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
    settings = ConnectionSettings(bootstrap=(Address(host, port),))
    with pytest.raises(ConnectError, match=f"{host}:{port}: connection refused"):
        engine().run(open_connection(settings.bootstrap[0], settings, counters=Counters()))


def test_another_kind_of_server_is_named():
    def serve(server):
        connection, _ = server.accept()
        connection.recv(1024)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        host, port = server.getsockname()
        settings = ConnectionSettings(bootstrap=(Address(host, port),), connect_timeout_ms=3_000)
        with pytest.raises(ConnectError, match="does not answer as a Fluss server") as caught:
            engine().run(open_connection(settings.bootstrap[0], settings, counters=Counters()))
        assert "HTTP" in caught.value.hint


def test_a_silent_listener_is_given_up_in_time():
    with ScriptedPeer(lambda _: None) as peer, pytest.raises(ConnectError):
        connect(peer, connect_timeout_ms=200)


def test_the_password_goes_to_the_server_and_nowhere_else():
    def script(request):
        if request.api_key == ApiKey.API_VERSIONS:
            return success(request, GREETING)
        if b"\x00ann\x00secret" in request.body:
            return success(request, b"\x0a\x00")
        return error(request, 46, "Authentication failed: invalid username or password")

    with ScriptedPeer(script) as peer:
        right = Login(username="ann", password=lambda: "secret")
        assert "secret" not in repr(right)
        assert connect(peer, login=right).is_open
        wrong = Login(username="ann", password=lambda: "wrong-one")
        with pytest.raises(AuthenticationError, match="did not accept user 'ann'") as caught:
            connect(peer, login=wrong)
        assert "wrong-one" not in str(caught.value) + repr(caught.value)


def test_a_server_that_is_still_loading_its_users_is_asked_again():
    attempts = []

    def script(request):
        if request.api_key == ApiKey.API_VERSIONS:
            return success(request, GREETING)
        attempts.append(request)
        if len(attempts) < 3:
            return error(request, 51, "not ready")
        return success(request, b"\x0a\x00")

    with ScriptedPeer(script) as peer:
        login = Login(username="ann", password=lambda: "secret")
        assert connect(peer, login=login).is_open
        assert len(attempts) == 3


def test_an_oversized_answer_ends_the_connection_before_it_is_received():
    def answer(_):
        return (2**30).to_bytes(4, "big")

    with ScriptedPeer(greeting_then(answer)) as peer:
        connection = connect(peer, frame_bytes_max=1_000_000)
        with pytest.raises(FlussError, match="1073741824"):
            ask(connection)
        assert not connection.is_open


def test_a_failure_frame_ends_the_connection_with_its_message():
    def answer(_):
        text = b"frame too large"
        body = b"\x08" + varint(-1) + b"\x12" + varint(len(text)) + text
        return (1 + len(body)).to_bytes(4, "big") + b"\x02" + body

    with ScriptedPeer(greeting_then(answer)) as peer:
        connection = connect(peer)
        with pytest.raises(FlussError, match="frame too large"):
            ask(connection)
        assert not connection.is_open
