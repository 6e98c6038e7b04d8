"""The checks of readiness, against scripted servers on local sockets."""

import socket
import threading
from contextlib import contextmanager

import pytest

from fluss.wire import messages
from fluss.wire.api import ApiKey, ServerApis, ServerRole
from fluss.wire.frame import ResponseHeader, ResponseType, write_response
from fluss_testkit.readiness import check_coordinator, check_port, check_tablet_server


@contextmanager
def scripted(*answers):
    """A server that sends one response on each connection, then closes it; yields its address."""

    def serve():
        for kind, body in answers:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                header = ResponseHeader(type=kind, request_id=1)
                connection.sendall(b"".join(write_response(header, [body])))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(timeout=5)


def versions(role):
    response = ServerApis.of([ApiKey.GET_METADATA], server_type=role).to_response()
    return ResponseType.SUCCESS, response.SerializeToString()


def metadata(tablet_servers, *, coordinator=True):
    response = messages.MetadataResponse()
    if coordinator:
        response.coordinator_server.CopyFrom(node(0))
    response.tablet_servers.extend(node(i) for i in range(tablet_servers))
    return ResponseType.SUCCESS, response.SerializeToString()


def node(number):
    return messages.PbServerNode(node_id=number, host="127.0.0.1", port=1)


def databases(*names):
    return ResponseType.SUCCESS, messages.ListDatabasesResponse(
        database_name=names
    ).SerializeToString()


def test_a_coordinator_that_knows_all_servers_is_ready():
    role = ServerRole.COORDINATOR
    with scripted(versions(role), metadata(2), databases("fluss")) as address:
        assert check_coordinator(address, 2) is None


@pytest.mark.parametrize(
    ("answers", "missing"),
    [
        ([versions(ServerRole.TABLET_SERVER)], "where a coordinator was expected"),
        ([versions(ServerRole.COORDINATOR), metadata(2, coordinator=False)], "no coordinator"),
        ([versions(ServerRole.COORDINATOR), metadata(1)], "1 of 2 tablet servers"),
        ([versions(ServerRole.COORDINATOR), metadata(2), databases()], "no database yet"),
    ],
)
def test_a_coordinator_that_lacks_something_is_not_ready_and_names_it(answers, missing):
    with scripted(*answers) as address:
        assert missing in check_coordinator(address, 2)


def test_a_tablet_server_is_ready_by_its_own_metadata():
    role = ServerRole.TABLET_SERVER
    with scripted(versions(role), metadata(3)) as address:
        assert check_tablet_server(address, 3) is None
    with scripted(versions(role), metadata(2)) as address:
        assert "2 of 3 tablet servers" in check_tablet_server(address, 3)


def test_an_error_frame_is_a_reason_not_to_be_ready():
    refusal = messages.ErrorResponse(error_code=23, error_message="not yet").SerializeToString()
    with scripted((ResponseType.ERROR, refusal)) as address:
        assert "not yet" in check_tablet_server(address, 1)


def test_a_server_with_an_invalid_or_no_response_is_not_ready():
    with scripted((ResponseType.SUCCESS, b"\xff\xff\xff")) as address:
        assert "does not answer" in check_coordinator(address, 1)
    port = int(address.rsplit(":", 1)[1])
    assert "does not answer" in check_coordinator(address, 1)
    assert "does not answer" in check_port(port)
