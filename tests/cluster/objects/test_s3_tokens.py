"""Tokens of the cluster for S3: fetched once, renewed before they expire, replaced when refused."""

import gc
import json
import time
import weakref

import anyio.to_thread
import pytest

from fluss.errors import RemoteAccessError
from fluss.net.cluster_client import Cluster
from fluss.net.plan_remote_reads import ATTEMPTS_MAX
from fluss.net.remote_files import RemoteFile
from fluss.wire import messages as pb
from tests.cluster.objects.conftest import ROWS
from tests.support.objects.s3_gate import Fault
from tests.support.servers.raw_client import RawClient

pytestmark = pytest.mark.slow  # a server and a store are started
ALL = list(range(ROWS))


def ids(scan):
    return scan.to_arrow().column("id").to_pylist()


def asked(session):
    return session.counters()["requests"]["GET_FILESYSTEM_SECURITY_TOKEN"]["answered"]


def test_the_server_hands_out_what_its_token_service_gave_it(s3_cluster, filled, gate):
    with RawClient(s3_cluster.bootstrap_servers) as client:
        answer = client.call(pb.GetFileSystemSecurityTokenRequest())
    assert answer.schema == "s3"
    assert answer.expiration_time / 1_000 - time.time() > 3_000
    facts = {each.key: each.value for each in answer.addition_info}
    assert facts == {
        "fs.s3a.endpoint": gate.endpoint,
        "fs.s3a.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
    }


def test_one_token_serves_all_scans_of_a_connection(connect):
    session = connect()
    for _ in range(3):
        assert ids(session.table("log").scan()) == ALL
    assert asked(session) == 1


@pytest.fixture
def uncached(monkeypatch, gate):
    """Let the cluster hand out new credentials for each request; servers keep theirs for a minute.

    The long form of this test waits for the servers (`tests/proofs/test_object_storage.py`).
    """
    original = Cluster.ask_any

    async def ask_any(cluster, request, answer_type):
        answer = await original(cluster, request, answer_type)
        if answer_type is pb.GetFileSystemSecurityTokenResponse:
            made = await anyio.to_thread.run_sync(gate.new_credentials)
            answer.token = json.dumps(made).encode()
        return answer

    monkeypatch.setattr(Cluster, "ask_any", ask_any)


@pytest.mark.usefixtures("uncached")
def test_a_token_that_expires_in_the_middle_of_a_scan_is_replaced(connect, gate):
    session = connect(**{"scanner.remote-log.read-concurrency": "1"})
    third_of_scan(gate, gate.expire)
    assert ids(session.table("log").scan()) == ALL, "no row is lost, and none comes twice"
    refused = [get for get in gate.gets if get.status == 400]
    before = {get.access_key for get in gate.gets[:3]}
    assert len(before) == len(refused) == 1
    assert {get.access_key for get in refused} == before
    assert len({get.access_key for get in gate.gets}) == 2
    assert asked(session) == 2


def third_of_scan(gate, act):
    """Do something as soon as a scan reads its third file."""

    def fault_of(_):
        if len(gate.gets) == 3:
            act()

    gate.fault_of = fault_of


@pytest.mark.usefixtures("uncached")
def test_a_token_that_expires_again_and_again_is_replaced_each_time(connect, gate):
    session = connect(**{"scanner.remote-log.read-concurrency": "1"})
    good = []

    def expire_sometimes(get):
        good.append(get)
        if len(good) % 4 == 0:
            gate.expire()

    gate.fault_of = expire_sometimes
    assert ids(session.table("log").scan()) == ALL
    assert asked(session) >= 3


def test_a_token_that_is_refused_for_a_moment_is_used_again(connect, gate):
    session = connect()
    gate.fail_next(*[Fault(status=400, code="ExpiredToken")] * 3)
    assert ids(session.table("log").scan()) == ALL
    assert asked(session) >= 2, "servers keep a token for a minute, and are asked for another"


def test_a_cluster_that_hands_out_refused_tokens_only_is_reported(connect, gate):
    session = connect(**{"remote-file.download-thread-num": "1"})
    gate.fault_of = lambda _: Fault(status=400, code="ExpiredToken")
    with pytest.raises(RemoteAccessError, match="ExpiredToken") as caught:
        session.table("log").scan().to_arrow()
    assert "clocks" in caught.value.hint
    assert len([get for get in gate.gets if get.path == gate.gets[0].path]) == ATTEMPTS_MAX


@pytest.mark.usefixtures("uncached")
def test_expired_tokens_are_not_kept(connect, gate):
    session = connect(**{"scanner.remote-log.read-concurrency": "1"})
    instances = weakref.WeakSet()
    original = RemoteFile._new_filesystem

    def spy(file):
        made = original(file)
        instances.add(made)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RemoteFile, "_new_filesystem", spy)
        for _ in range(3):
            assert ids(session.table("log").scan()) == ALL
            gate.expire()
    gc.collect()
    assert len(instances) <= 2
