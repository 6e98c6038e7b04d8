"""Segments of a log in S3: read with the token of the cluster, and nothing more than is needed."""

import logging
import pickle

import pytest

from fluss import col
from fluss.errors import RemoteAccessError, RemoteFileNotFoundError, RemoteUnavailableError
from fluss.net.plan_remote_reads import ATTEMPTS_MAX
from tests.cluster.objects.conftest import ROWS, ROWS_AT_ONCE
from tests.support.objects.s3_gate import BUCKET, Fault

pytestmark = pytest.mark.slow  # a server and a store are started
ALL = list(range(ROWS))


def ids(scan):
    return scan.to_arrow().column("id").to_pylist()


def test_all_rows_are_read_once_over_the_end_of_what_has_moved(table, gate):
    assert ids(table.scan()) == ALL
    paths = [get.path for get in gate.gets]
    assert len(paths) == len(set(paths)) > 3, "one request for each small file"
    assert {get.access_key for get in gate.gets} <= gate.issued.keys()
    assert all(path.startswith(f"{BUCKET}/remote/log/objects/log-") for path in paths)


def test_reads_are_counted(connect, gate):
    session = connect()
    session.table("log").scan().to_arrow()
    counted = session.counters()
    assert counted["remote_reads"] == len(gate.gets)
    assert counted["remote_bytes_read"] == gate.body_bytes


def test_a_filter_on_offsets_reads_their_segments_only(table, gate):
    assert ids(table.scan()) == ALL
    files = {get.path for get in gate.gets}
    gate.gets.clear()
    start = ROWS_AT_ONCE * 6
    few = (col("_log_offset") >= start) & (col("_log_offset") < start + 10)
    assert ids(table.scan(filter=few)) == ALL[start : start + 10]
    logs = {get.path for get in gate.gets if get.path.endswith(".log")}
    assert len(logs) == 1 < len(files)


def test_no_more_reads_are_in_flight_than_options_allow(connect, gate):
    for parts, threads, segments, most in ((4, 3, 9, 3), (2, 9, 9, 2), (9, 9, 2, 2), (1, 9, 9, 1)):
        options = {
            "scanner.remote-log.read-concurrency": str(parts),
            "remote-file.download-thread-num": str(threads),
            "scanner.remote-log.prefetch-num": str(segments),
        }
        gate.reset()
        gate.delay_s = 0.1
        assert ids(connect(**options).table("log").scan()) == ALL
        # A busy machine may begin a read after others have ended.
        assert min(2, most) <= max(get.in_flight for get in gate.gets) <= most, options


# --- failures that pass ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=500, code="InternalError"),
        Fault(status=503, code="SlowDown"),
        Fault(status=503, code="ServiceUnavailable"),
        Fault(status=429, code="TooManyRequests"),
        Fault(status=502),
        Fault(body_bytes_max=1_000),
        Fault(body_bytes_max=0),
        Fault(delay_s=2.0),
    ],
    ids=["500", "slow-down", "503", "429", "502", "cut", "cut-at-once", "timeout"],
)
def test_a_read_that_fails_for_a_while_is_repeated(connect, gate, fault):
    session = connect(**{"request-timeout": "1s"})
    gate.fail_next(fault, fault)
    assert ids(session.table("log").scan()) == ALL
    assert session.counters()["retries"] == 2


def test_repetitions_are_bounded_and_the_error_says_what_to_do(connect, gate):
    session = connect(**{"remote-file.download-thread-num": "1"})
    gate.fault_of = lambda _: Fault(status=503, code="SlowDown")
    with pytest.raises(RemoteUnavailableError, match=r"\.log cannot be read: SlowDown") as caught:
        session.table("log").scan().to_arrow()
    assert caught.value.code == "SlowDown"
    assert caught.value.is_retriable
    assert "remote.data.dir" in caught.value.hint
    of_first = [get for get in gate.gets if get.path == gate.gets[0].path]
    assert ATTEMPTS_MAX <= len(of_first) <= ATTEMPTS_MAX + 1, "a caller may go on after the error"


def test_a_store_that_is_not_there_is_reported_soon(connect):
    options = {"remote-file.storage-options": {"endpoint_url": "http://127.0.0.1:9"}}
    with pytest.raises(RemoteUnavailableError, match=r"127\.0\.0\.1:9"):
        connect(**options).table("log").scan().to_arrow()


# --- failures that stay ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind", "hint"),
    [
        (Fault(status=403, code="AccessDenied"), RemoteAccessError, "s3:GetObject"),
        (Fault(status=404, code="NoSuchKey"), RemoteFileNotFoundError, "have expired"),
        (Fault(status=404, code="NoSuchBucket"), RemoteFileNotFoundError, "endpoint_url"),
        (Fault(status=403, code="SignatureDoesNotMatch"), RemoteAccessError, "credentials"),
    ],
    ids=lambda each: each.code if isinstance(each, Fault) else None,
)
def test_a_failure_that_stays_is_typed_and_not_repeated(connect, gate, fault, kind, hint):
    session = connect(**{"remote-file.download-thread-num": "1"})
    gate.fault_of = lambda _: fault
    with pytest.raises(kind, match=rf"s3://fluss/.*\.log cannot be read: {fault.code}") as caught:
        session.table("log").scan().to_arrow()
    assert hint in caught.value.hint
    assert caught.value.path.startswith("s3://fluss/remote/log/objects/log-")
    copied = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert (type(copied), copied.code) == (kind, fault.code)
    of_first = [get for get in gate.gets if get.path == gate.gets[0].path]
    # A segment that is missing may have been replaced: the server is asked for it again.
    assert len(of_first) == (3 if kind is RemoteFileNotFoundError else 1)


def test_a_scan_after_a_failure_is_whole(connect, gate):
    session = connect()
    gate.fault_of = lambda _: Fault(status=403, code="AccessDenied")
    with pytest.raises(RemoteAccessError):
        session.table("log").scan().to_arrow()
    gate.reset()
    assert ids(session.table("log").scan()) == ALL


# --- credentials ----------------------------------------------------------------------------------


def test_own_credentials_replace_those_of_the_cluster(connect, gate):
    own = {"key": "server-key", "secret": "server-secret"}
    session = connect(**{"remote-file.storage-options": own})
    assert ids(session.table("log").scan()) == ALL
    assert not gate.gets, "the gate counts what is read with credentials that it has issued"


def test_credentials_of_the_environment_are_used_where_that_is_asked_for(
    connect, gate, monkeypatch
):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "server-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "server-secret")
    assert ids(connect(**{"remote-file.credentials": "own"}).table("log").scan()) == ALL
    assert not gate.gets
    assert ids(connect().table("log").scan()) == ALL
    assert gate.gets, "the cluster's are used by default, whatever the environment has"


def test_own_credentials_that_are_wrong_are_reported(connect):
    own = {"key": "unknown-key", "secret": "wrong-secret"}
    session = connect(**{"remote-file.storage-options": own})
    with pytest.raises(RemoteAccessError, match="InvalidAccessKeyId") as caught:
        session.table("log").scan().to_arrow()
    assert "wrong-secret" not in repr(caught.value) + str(caught.value)


def test_secrets_are_shown_nowhere(connect, gate, caplog):
    caplog.set_level(logging.DEBUG, logger="fluss")
    own = {"secret": "my-own-secret", "key": "server-key"}
    session = connect(**{"remote-file.storage-options": own})
    shown = [repr(session), repr(session.config), repr(session.table("log").scan().explain())]
    session = connect()
    scan = session.table("log").scan()
    scan.to_arrow()
    gate.fault_of = lambda _: Fault(status=403, code="AccessDenied")
    with pytest.raises(RemoteAccessError) as caught:
        scan.to_arrow()
    shown += [repr(session), repr(scan), str(scan.explain()), str(session.counters())]
    shown += [repr(caught.value), str(caught.value), str(caught.getrepr(style="short"))]
    shown.append(caplog.text)
    for secret in {"my-own-secret", *gate.secrets}:
        assert not [text for text in shown if secret in text]
