"""Servers that name the bucket in the host name and get tokens without a role, end to end.

`s3.path-style-access` is false, so servers and clients send requests to `fluss.s3.test`, a name
that the servers' Java and this process resolve to the gate. No role is set, so the servers get the
tokens of clients with GetSessionToken.
"""

import socket

import pytest

import fluss
from fluss.errors import RemoteAccessError
from fluss_testkit.cluster_profiles import SMALL_SEGMENTS, Profile
from fluss_testkit.s3_profile import s3_store
from tests.cluster.objects.conftest import FAST, ROWS, fill
from tests.support.objects.s3_gate import BUCKET, SERVER_KEY, SERVER_SECRET, Fault, s3_gate
from tests.support.servers.fix_cluster import IMPATIENT

pytestmark = pytest.mark.slow  # a server and a store are started
ENDPOINT = "s3.test"
IN_HOST = f"{BUCKET}.{ENDPOINT}"


@pytest.fixture(scope="module")
def patched():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def names(patched, tmp_path_factory):
    """Resolve the names of the store, in the servers and here."""
    hosts = tmp_path_factory.mktemp("names") / "hosts"
    hosts.write_text(f"127.0.0.1 {ENDPOINT} {IN_HOST} localhost {socket.gethostname()}\n")
    patched.setenv("JDK_JAVA_OPTIONS", f"-Djdk.net.hosts.file={hosts}")
    original = socket.getaddrinfo

    def getaddrinfo(host, *given, **more):
        return original("127.0.0.1" if host in {ENDPOINT, IN_HOST} else host, *given, **more)

    patched.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.fixture(scope="module")
def gate():
    with s3_gate() as running:
        yield running


@pytest.fixture(scope="module")
def url(start_cluster, names, gate):
    """The URL of a database, with a log of one bucket in many segments."""
    store = s3_store(
        f"s3://{BUCKET}/remote",
        endpoint=f"http://{ENDPOINT}:{gate.port}",
        access_key=SERVER_KEY,
        secret_key=SERVER_SECRET,
        path_style=False,
    )
    megabyte = Profile(options={"log.segment.file-size": "1mb"})
    with start_cluster(SMALL_SEGMENTS, megabyte, store) as running:
        yield fill(running.bootstrap_servers, gate)


@pytest.fixture
def table(url, gate):
    gate.reset()
    with fluss.connect(url, **{**IMPATIENT, **FAST}) as session:
        yield session.table("log")
    gate.reset()


def ids(table):
    return table.scan().to_arrow().column("id").to_pylist()


def test_the_client_names_the_bucket_in_the_host_as_the_servers_do(table, gate):
    assert ids(table) == list(range(ROWS))
    assert {get.host for get in gate.gets} == {f"{IN_HOST}:{gate.port}"}
    assert all(get.path.startswith(f"{BUCKET}/remote/log/objects/log-") for get in gate.gets)


def test_the_tokens_are_those_of_get_session_token(table, gate):
    assert ids(table) == list(range(ROWS))
    assert set(gate.token_requests) == {"GetSessionToken"}
    keys = {get.access_key for get in gate.gets}
    assert len(keys) == 1
    assert keys <= gate.issued.keys(), "the gate refuses them without their session token"
    assert {get.status for get in gate.gets} == {200} or {206} <= {get.status for get in gate.gets}


def test_a_refused_session_token_is_an_error_of_its_own(table, gate):
    gate.fault_of = lambda _: Fault(status=400, code="ExpiredToken")
    with pytest.raises(RemoteAccessError, match="ExpiredToken") as caught:
        ids(table)
    shown = repr(caught.value) + str(caught.value)
    assert not [secret for secret in gate.secrets if secret in shown]


def test_an_own_endpoint_is_addressed_by_path(url, gate):
    own = {"endpoint_url": f"http://127.0.0.1:{gate.port}"}
    options = {**IMPATIENT, **FAST, "remote-file.storage-options": own}
    with fluss.connect(url, **options) as session:
        gate.reset()
        assert ids(session.table("log")) == list(range(ROWS))
    assert {get.host for get in gate.gets} == {f"127.0.0.1:{gate.port}"}
