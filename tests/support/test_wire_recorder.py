"""The recorder itself: it forwards traffic unchanged, and reports it correctly."""

import socket
import struct

import pytest

from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from tests.support.scripted.scripted_peer import ScriptedPeer, close, error, success
from tests.support.servers.raw_client import RawClient, RawConnection, RefusedError
from tests.support.servers.wire_recorder import WireRecorder


def recorder_before(script):
    peer = ScriptedPeer(script)
    return peer, lambda: WireRecorder(f"{peer.host}:{peer.port}")


def metadata(host, port):
    node = {"node_id": 3, "host": host, "port": port}
    return pb.MetadataResponse(tablet_servers=[node], coordinator_server=node)


def test_clients_connect_to_servers_only_through_the_recorder():
    def script(request):
        if request.api_key == ApiKey.GET_METADATA:
            return success(request, metadata(peer.host, peer.port).SerializeToString())
        return success(request, b"")

    peer, recorder = recorder_before(script)
    with peer, recorder() as wire, RawClient(wire.bootstrap) as client:
        with wire.recording() as seen:
            told = client.metadata()
            assert f"127.0.0.1:{told.tablet_servers[0].port}" == wire.bootstrap
            client.call(pb.LookupRequest(table_id=1, buckets_req=[{"bucket_id": 2}]), to=3)
        assert seen.counts() == {"GET_METADATA": 2, "LOOKUP": 1}
        assert seen.of("GET_METADATA")[0].answer.tablet_servers[0].port == peer.port
        (asked,) = seen.buckets("LOOKUP")
        assert (asked.table_id, asked.bucket_id, asked.keys) == (1, 2, 0)
        with wire.recording() as later:
            pass
        assert later.counts() == {}


def test_a_refusal_is_passed_on_and_kept():
    peer, recorder = recorder_before(lambda request: error(request, 7, "no"))
    with peer, recorder() as wire, RawClient(wire.bootstrap) as client:
        with wire.recording() as seen, pytest.raises(RefusedError, match="7: no"):
            client.call(pb.ListDatabasesRequest())
        (only,) = seen.of("LIST_DATABASES")
        assert (only.answer_kind, only.answer.error_code) == (1, 7)


def test_unknown_apis_are_forwarded():
    peer, recorder = recorder_before(lambda request: success(request, request.body[::-1]))
    with peer, recorder() as wire:
        connection = RawConnection(wire.bootstrap)
        with wire.recording() as seen:
            assert connection.call_bytes(9_999, b"abc") == b"cba"
        assert [each.api for each in seen.exchanges] == ["9999"]
        assert seen.buckets() == []
        connection.close()


def test_a_closed_connection_closes_the_other_side():
    peer, recorder = recorder_before(lambda _: None)
    with peer, recorder() as wire:
        host, port = wire.bootstrap.rsplit(":", 1)
        client = socket.create_connection((host, int(port)), 5)
        client.sendall(struct.pack(">ihhi", 8, ApiKey.LIST_DATABASES, 0, 1))
        while not peer.requests:
            pass
        peer.hang_up()
        assert client.recv(1) == b""
        close(client)
