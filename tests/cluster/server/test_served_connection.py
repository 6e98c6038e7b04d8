"""The server on the wire: order, long polls, invalid input, slow clients, limits, logins."""

import socket
import struct
import time
from contextlib import closing, suppress

import pytest

from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss_server.handlers import HANDLERS
from fluss_server.server_config import Limits
from tests.support.servers.bucket_logs import batch_bytes
from tests.support.servers.embedded import running
from tests.support.servers.embedded_table import LogTable
from tests.support.servers.raw_client import RawConnection, RefusedError

PASSWORD = "open sesame"
PATIENCE_S = 30
PARKED_MS = 600_000  # longer than any test waits


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    limits = Limits(connections_max=600, frame_bytes_max=8 << 20)
    users = {"ali": PASSWORD}
    directory = tmp_path_factory.mktemp("server")
    with running(directory, limits=limits, users=users, sasl_port=0) as server:
        yield server


@pytest.fixture
def connection(server):
    opened = RawConnection(server.address, timeout_s=PATIENCE_S)
    yield opened
    opened.close()


@pytest.fixture
def table(connection, request):
    return LogTable(connection, request.node.originalname[:150])


def send(connection, request, request_id, *, api_key=None):
    name = type(request).__name__.removesuffix("Request")
    keys = {key.message: key for key in ApiKey}
    body = request.SerializeToString()
    head = struct.pack(">ihhi", 8 + len(body), api_key or keys[name], 0, request_id)
    connection._socket.sendall(head + body)


def connections(server, listener=0):
    return server.on_loop(lambda: set(server.server._listeners[listener]._connections))


def unfinished_bytes(server):
    return sum(each.unfinished_bytes for each in connections(server))


def wait_until(condition):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.005)


def is_alive(server):
    other = RawConnection(server.address)
    other.call(pb.ListDatabasesRequest())
    other.close()
    return True


def closed_by_peer(sock):
    sock.settimeout(PATIENCE_S)
    try:
        while sock.recv(65_536):
            pass
    except ConnectionResetError:
        pass
    return True


def test_versions_are_those_of_the_handlers_and_no_role_is_named(connection):
    answer = connection.call(
        pb.ApiVersionsRequest(client_software_name="t", client_software_version="1")
    )
    assert {each.api_key for each in answer.api_versions} == set(HANDLERS)
    assert not answer.HasField("server_type")


def test_requests_in_one_write_are_all_answered(table):
    for request_id in range(100, 120):
        send(table.connection, table.produce_request(batch_bytes(1)), request_id)
    answers = [table.connection.read_frame() for _ in range(20)]
    assert [each[1] for each in answers] == list(range(100, 120))
    bases = [pb.ProduceLogResponse.FromString(body).buckets_resp[0] for _, _, body in answers]
    assert [each.base_offset for each in bases] == list(range(20))


def test_large_and_small_batches_of_one_connection_keep_their_order(table):
    large = batch_bytes(40_000)
    for request_id in range(6):
        written = large if request_id % 2 == 0 else batch_bytes(1)
        send(table.connection, table.produce_request(written), request_id)
    bases = {}
    for _ in range(6):
        _, request_id, body = table.connection.read_frame()
        bases[request_id] = pb.ProduceLogResponse.FromString(body).buckets_resp[0].base_offset
    assert [bases[each] for each in range(6)] == [0, 40_000, 40_001, 80_001, 80_002, 120_002]


def test_a_waiting_fetch_does_not_block_later_requests(table):
    send(table.connection, table.fetch_request(0, wait_ms=PARKED_MS), 1)
    send(table.connection, pb.ListDatabasesRequest(), 2)
    assert table.connection.read_frame()[1] == 2
    send(table.connection, table.produce_request(batch_bytes(2)), 3)
    assert {table.connection.read_frame()[1], table.connection.read_frame()[1]} == {1, 3}


def test_a_waiting_fetch_wakes_when_rows_arrive(server, table):
    for number in range(20):
        writer = RawConnection(server.address)
        send(table.connection, table.fetch_request(number, wait_ms=PARKED_MS), number)
        wait_until(lambda: any(one.is_busy for one in connections(server)))
        writer.call(table.produce_request(batch_bytes(1)))
        _, _, body = table.connection.read_frame()
        assert pb.FetchLogResponse.FromString(body).tables_resp[0].buckets_resp[0].records
        writer.close()


def test_a_waiting_fetch_ends_at_its_time_limit(table):
    began = time.perf_counter()
    answer = table.fetch(0, wait_ms=300)
    assert 0.28 < time.perf_counter() - began < PATIENCE_S
    assert answer.records == b""
    assert answer.high_watermark == 0


def test_a_fetch_without_min_bytes_does_not_wait(table):
    request = table.fetch_request(0, wait_ms=PARKED_MS)
    request.min_bytes = 0
    (answered,) = table.connection.call(request).tables_resp
    assert answered.buckets_resp[0].records == b""
    assert table.fetch(0).records == b""


def test_a_waiting_fetch_reports_that_its_table_was_dropped(server, table):
    send(table.connection, table.fetch_request(0, wait_ms=PARKED_MS), 1)
    other = RawConnection(server.address)
    other.call(pb.DropTableRequest(table_path=table.path, ignore_if_not_exists=False))
    other.close()
    _, _, body = table.connection.read_frame()
    assert pb.FetchLogResponse.FromString(body).tables_resp[0].buckets_resp[0].error_code == 21


# --- bad input ----------------------------------------------------------------------------------


def test_an_unknown_api_is_refused_and_the_connection_stays_open(connection):
    for key in (999, 1013, 1043, 5, -1):
        with pytest.raises(RefusedError) as refused:
            connection.call_bytes(key, b"")
        assert refused.value.code == 2
    connection.call(pb.ListDatabasesRequest())


@pytest.mark.parametrize("body", [b"\xff" * 40, b"\x0a\x05ab", b"\x08"])
def test_an_invalid_body_is_refused_and_the_connection_stays_open(connection, body):
    for key in (ApiKey.CREATE_TABLE, ApiKey.PRODUCE_LOG, ApiKey.GET_METADATA, ApiKey.LOOKUP):
        with pytest.raises(RefusedError) as refused:
            connection.call_bytes(key, body)
        assert refused.value.code == 3
    connection.call(pb.ListDatabasesRequest())


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        struct.pack(">i", -1) + b"x" * 20,
        struct.pack(">i", 0),
        struct.pack(">i", 2**31 - 1) + b"x" * 64,
        struct.pack(">i", (8 << 20) + 1),
        struct.pack(">ih", 3, 1000) + b"x",
    ],
)
def test_an_invalid_frame_closes_only_its_connection(server, garbage):
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), 5) as sock:
        sock.sendall(garbage)
        assert closed_by_peer(sock)
    assert is_alive(server)


def listener_of(server):
    return server.server._listeners[0]


def test_an_incomplete_frame_closes_the_connection_after_its_time(server):
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), 5) as sock:
        sock.sendall(struct.pack(">ihhi", 1_000, 1000, 0, 1))
        wait_until(lambda: unfinished_bytes(server) > 0)
        now, seen = server.on_loop(server.loop.time), unfinished_bytes(server)
        server.on_loop(lambda: listener_of(server).close_idle(now + 20))
        sock.sendall(b"x")  # a byte now and then does not extend the time
        wait_until(lambda: unfinished_bytes(server) != seen)
        server.on_loop(lambda: listener_of(server).close_idle(now + 40))
        assert closed_by_peer(sock)
    assert is_alive(server)


def test_an_idle_connection_is_closed_and_one_with_a_waiting_fetch_is_not(server, table):
    host, port = server.address.split(":")
    send(table.connection, table.fetch_request(0, wait_ms=PARKED_MS), 1)
    wait_until(lambda: any(each.is_busy for each in connections(server)))
    before = connections(server)
    with socket.create_connection((host, int(port)), 5) as sock:
        wait_until(lambda: connections(server) - before)
        now = server.on_loop(server.loop.time)
        server.on_loop(lambda: listener_of(server).close_idle(now + 601))
        assert closed_by_peer(sock)
    with closing(RawConnection(server.address)) as writer:
        writer.call(table.produce_request(batch_bytes(1)))
    assert table.connection.read_frame()[1] == 1


def unsent_bytes(server):
    return server.on_loop(
        lambda: max(
            each._transport.get_write_buffer_size()
            for each in listener_of(server)._connections
            if each._transport is not None
        )
    )


def test_a_client_that_reads_nothing_gets_a_bounded_buffer(server, connection):
    table = LogTable(connection, "slow_reader")
    for _ in range(8):
        table.produce(batch_bytes(40_000))
    host, port = server.address.split(":")
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    slow.connect((host, int(port)))
    body = table.fetch_request(0).SerializeToString()
    frame = struct.pack(">ihhi", 8 + len(body), ApiKey.FETCH_LOG, 0, 7) + body
    slow.sendall(frame * 200)  # 200 answers of 6 MB each
    wait_until(lambda: unsent_bytes(server) > 0)
    time.sleep(0.5)  # time for more than its share
    assert 0 < unsent_bytes(server) < 40 << 20
    assert table.fetch(0).records, "others are served"
    slow.close()


def test_five_hundred_connections_are_served(server):
    opened = [RawConnection(server.address) for _ in range(500)]
    assert all(len(each.call(pb.ListDatabasesRequest()).database_name) for each in opened)
    for connection in opened:
        connection.close()


def test_a_connection_beyond_the_limit_gets_an_error(server, connection):
    host, port = server.address.split(":")
    opened = [socket.create_connection((host, int(port)), 5) for _ in range(600)]
    try:
        wait_until(lambda: len(connections(server)) == 600)
        with socket.create_connection((host, int(port)), 5) as last:
            assert b"600 connections, its limit" in last.recv(4_096)
            assert closed_by_peer(last)
        connection.call(pb.ListDatabasesRequest())
    finally:
        for peer in opened:
            peer.close()
        wait_until(lambda: len(connections(server)) < 100)
    assert is_alive(server)


# --- passwords ----------------------------------------------------------------------------------


def test_nothing_is_served_before_the_login(server):
    guarded = RawConnection(server.sasl_address)
    with pytest.raises(RefusedError) as refused:
        guarded.call(pb.ListDatabasesRequest())
    assert refused.value.code == 46
    guarded.call(pb.ApiVersionsRequest(client_software_name="t", client_software_version="1"))
    with pytest.raises(RefusedError) as refused:
        guarded.log_in("ali", "wrong")
    assert refused.value.code == 46
    guarded.log_in("ali", PASSWORD)
    guarded.call(pb.ListDatabasesRequest())
    found = guarded.call(pb.MetadataRequest()).coordinator_server
    assert f"{found.host}:{found.port}" == server.sasl_address
    guarded.close()


def test_repeated_wrong_passwords_close_only_their_connection(server):
    guarded = RawConnection(server.sasl_address)
    for attempt in range(10):
        with pytest.raises(RefusedError):
            guarded.log_in("ali", f"guess {attempt}")
    with pytest.raises(OSError):  # noqa: PT011 - reset or closed, as the system has it
        guarded.log_in("ali", PASSWORD)
    guarded.close()
    assert is_alive(server)


def test_a_connection_without_a_login_is_closed(server):
    host, port = server.sasl_address.split(":")
    with socket.create_connection((host, int(port)), 5) as sock:
        wait_until(lambda: connections(server, 1))
        now = server.on_loop(server.loop.time)
        server.on_loop(lambda: server.server._listeners[1].close_idle(now + 61))
        assert closed_by_peer(sock)


def open_guarded(server):
    host, port = server.sasl_address.split(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


@pytest.mark.parametrize("length", [16_385, 8 << 20, 2**31 - 1])
def test_before_the_login_a_long_request_is_refused_by_its_length(server, length):
    with open_guarded(server) as sock:
        sock.sendall(struct.pack(">i", length))
        answer = sock.makefile("rb").read()
    assert b"Before the login" in answer
    assert b"16384" in answer


def test_after_the_login_requests_have_their_usual_length(server):
    guarded = RawConnection(server.sasl_address)
    guarded.log_in("ali", PASSWORD)
    table = LogTable(guarded, "after_the_login")
    assert table.produce(batch_bytes(100_000)).base_offset == 0
    guarded.close()


def test_connections_that_do_not_log_in_are_replaced_by_newer_ones(tmp_path):
    limits = Limits(logins_pending_max=8)
    with running(tmp_path, limits=limits, users={"ali": PASSWORD}, sasl_port=0) as server:
        user = RawConnection(server.sasl_address)
        user.log_in("ali", PASSWORD)
        silent = [open_guarded(server) for _ in range(20)]
        wait_until(lambda: len(connections(server, 1)) == 9)
        assert all(closed_by_peer(each) for each in silent[:12])
        late = RawConnection(server.sasl_address)
        late.log_in("ali", PASSWORD)
        for connection in (user, late):
            connection.call(pb.ListDatabasesRequest())
            connection.close()
        for peer in silent:
            peer.close()


def test_requests_before_the_login_wait_for_a_client_that_takes_no_answers(server):
    body = pb.ApiVersionsRequest(client_software_name="t", client_software_version="1")
    frame = body.SerializeToString()
    frame = struct.pack(">ihhi", 8 + len(frame), int(ApiKey.API_VERSIONS), 0, 1) + frame
    known = connections(server, 1)
    with open_guarded(server) as sock:
        sock.setblocking(False)

        def is_full():
            with suppress(BlockingIOError):
                sock.send(frame * 1_000)
            return any(not each._is_reading for each in connections(server, 1) - known)

        wait_until(is_full)
        (stranger,) = connections(server, 1) - known
        assert stranger._queued_bytes + stranger.unfinished_bytes < 256 << 10


def test_a_login_on_the_plain_port_gets_an_error(connection):
    with pytest.raises(RefusedError) as refused:
        connection.log_in("ali", PASSWORD)
    assert refused.value.code == 46
