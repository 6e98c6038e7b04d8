"""Rows in the remote store, as files made by hand that a scripted server points to."""

import threading
import time
from contextlib import contextmanager

import fsspec
import pyarrow as pa
import pytest

from fluss.connection.connection import ClientConnection
from fluss.dialects.log_scanner import LogScanner
from fluss.errors import (
    CorruptDataError,
    FlussError,
    MissingExtraError,
    ProtocolError,
    RemoteStorageError,
)
from fluss.log import remote_log
from fluss.log.log_scan import LogScanCore
from fluss.log.plan_fetch import Position
from fluss.log.range_reader import RangeReader
from fluss.model.offsets import EARLIEST_OFFSET
from fluss.model.options.config import Config
from fluss.model.paths import PhysicalTablePath
from fluss.model.schema.schema import Schema
from fluss.net.engine_thread import engine
from fluss.net.remote_files import RemoteFile, RemoteFiles
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from tests.support.scripted.remote_store import Store, token_answer
from tests.support.scripted.scripted_cluster import PATH, SERVED, ScriptedCluster

SCHEMA = Schema(pa.schema([("a", pa.int64())]))
FAST = {"retry.backoff-ms": "5", "retry.backoff-max-ms": "20", "operation-timeout": "2s"}
POLL_MS = 3_000


@pytest.fixture
def store(tmp_path):
    with ScriptedCluster(SCHEMA) as cluster:
        for start in range(0, 100, 10):
            cluster.append({"a": list(range(start, start + 10))})
        yield Store(cluster, tmp_path)


@contextmanager
def scanner_of(cluster, start=EARLIEST_OFFSET, **settings):
    running = engine()
    config = Config({"bootstrap.servers": cluster.bootstrap} | FAST | settings)
    connection = running.run(ClientConnection.open(running, config))
    try:
        core = LogScanCore(running.run(connection.table(PATH)))
        scanner = LogScanner(running, core, gives_batches=True, records_per_poll_max=500)
        scanner.subscribe(0, start)
        yield scanner
        running.run(core.close())
    finally:
        running.run(connection.close())


def numbers(table):
    return table.column("a").to_pylist()


@pytest.mark.parametrize("start", [EARLIEST_OFFSET, 0, 5, 20, 39, 40, 69, 70, 71, 99, 100])
def test_segments_and_the_log_after_them_are_read_without_a_gap(store, start):
    store.move(4)
    store.move(3)
    with scanner_of(store.cluster, start) as scanner:
        assert numbers(scanner.to_arrow()) == list(range(max(start, 0), 100))


def test_pieces_smaller_than_a_batch_grow_to_one(store, monkeypatch):
    monkeypatch.setattr(remote_log, "PIECE_BYTES", 16)
    store.move(7)
    with scanner_of(store.cluster) as scanner:
        assert numbers(scanner.to_arrow()) == list(range(100))


def test_a_bounded_read_may_end_within_a_segment(store):
    store.move(10)
    with scanner_of(store.cluster) as scanner:
        core = scanner._core
        ((bucket, offset),) = core.subscriptions().items()
        path = PhysicalTablePath(core.table.table_path)
        position = Position(bucket=bucket, path=path, offset=offset, stop=15)
        rows = [
            value
            for fetched in RangeReader(core._handle, [position], core.decoder.fetch_target)
            for each in core.decoder.decode(fetched)
            for value in each.batch.column(0).to_pylist()
        ]
    assert rows == list(range(15))


def test_a_reader_that_does_not_read_stops_the_reading_of_files(store, monkeypatch):
    monkeypatch.setattr(remote_log, "PIECE_BYTES", len(store.cluster.logs[0][0].data))
    reads = []
    original = RemoteFile.read
    monkeypatch.setattr(RemoteFile, "read", lambda *place: reads.append(place) or original(*place))
    store.move(10)
    with scanner_of(store.cluster) as scanner:
        engine().run(_bound(scanner, 1))
        deadline = time.monotonic() + 30
        while not reads and time.monotonic() < deadline:
            engine().run(_pump(scanner))
            time.sleep(0.01)
        time.sleep(0.2)
        assert len(reads) <= 1 + 4, "one is taken, and as many as may be are read ahead of it"
        assert numbers(scanner.to_arrow()) == list(range(100))


async def _bound(scanner, unread_bytes_max):
    follower = scanner._core._follower
    follower.plan.limits = type(follower.plan.limits)(unread_bytes_max=unread_bytes_max)


async def _pump(scanner):
    scanner._core._follower._pump()


@pytest.mark.parametrize(
    ("parts", "segments", "at_once_max", "most", "segments_max"),
    [(4, 9, 9, 4, 9), (1, 9, 9, 1, 1), (9, 2, 9, 4, 2), (9, 1, 9, 2, 1), (9, 9, 3, 3, 9)],
)
def test_parts_and_segments_are_read_ahead_up_to_their_limits(
    store, monkeypatch, parts, segments, at_once_max, most, segments_max
):
    monkeypatch.setattr(remote_log, "PIECE_BYTES", len(store.cluster.logs[0][0].data))
    for _ in range(5):
        store.move(2)
    in_flight, seen, segments_seen = set(), [], []
    lock = threading.Lock()

    def read(file, start, size):
        with lock:
            in_flight.add((file.path, start))
            seen.append(len(in_flight))
            segments_seen.append(len({path for path, _ in in_flight}))
        time.sleep(0.02)
        try:
            return original(file, start, size)
        finally:
            with lock:
                in_flight.discard((file.path, start))

    original = RemoteFile.read
    monkeypatch.setattr(RemoteFile, "read", read)
    settings = {
        "scanner.remote-log.read-concurrency": str(parts),
        "scanner.remote-log.prefetch-num": str(segments),
        "remote-file.download-thread-num": str(at_once_max),
    }
    with scanner_of(store.cluster, **settings) as scanner:
        assert numbers(scanner.to_arrow()) == list(range(100))
    assert most // 2 < max(seen) <= most
    assert max(segments_seen) <= segments_max


def test_a_file_that_has_been_replaced_is_asked_for_again(store):
    store.move(4)
    missing = store.path(0)
    kept = missing.read_bytes()
    missing.unlink()
    asked = []

    def put_back(request):
        asked.append(request)
        if len(asked) == 2:
            missing.write_bytes(kept)
        return store.answer(request)

    store.cluster.on_fetch = put_back
    with scanner_of(store.cluster) as scanner:
        assert numbers(scanner.to_arrow()) == list(range(100))


def test_a_file_that_is_not_there_is_named(store):
    store.move(4)
    store.path(0).unlink()
    with scanner_of(store.cluster) as scanner:
        with pytest.raises(FlussError, match=r"00000000000000000000\.log cannot be read") as caught:
            scanner.to_arrow()
        assert "must be reachable from here" in caught.value.hint
        assert len(store.cluster.fetches) == 3


@pytest.mark.parametrize(
    "damage", ["cut off", "cut off after a batch", "wrong byte", "no batch", "empty"]
)
def test_a_damaged_segment_is_reported_and_not_read(store, damage):
    store.move(4)
    data = bytearray(store.path(0).read_bytes())
    match damage:
        case "cut off after a batch":
            data = data[: store.start_positions[20]]
        case "cut off":
            data = data[: len(data) // 2 + 7]
        case "wrong byte":
            data[-1] ^= 0xFF
        case "no batch":
            data[8:12] = (2**31 - 1).to_bytes(4, "little")
        case _:
            data = bytearray()
    store.path(0).write_bytes(data)
    with scanner_of(store.cluster) as scanner, pytest.raises(CorruptDataError):
        scanner.to_arrow()


def test_columns_of_a_segment_are_projected_by_the_client(tmp_path):
    schema = Schema(pa.schema([("a", pa.int64()), ("b", pa.string())]))
    with ScriptedCluster(schema) as cluster:
        for start in range(0, 40, 10):
            cluster.append({"a": list(range(start, start + 10)), "b": ["x"] * 10})
        store = Store(cluster, tmp_path)
        store.move(2)
        running = engine()
        connection = running.run(
            ClientConnection.open(running, Config({"bootstrap.servers": cluster.bootstrap} | FAST))
        )
        core = LogScanCore(running.run(connection.table(PATH)), [0])
        scanner = LogScanner(running, core, gives_batches=True, records_per_poll_max=500)
        scanner.subscribe(0, EARLIEST_OFFSET)
        assert scanner.to_arrow().to_pydict() == {"a": list(range(40))}
        running.run(connection.close())


# --- files ----------------------------------------------------------------------------------------


def test_a_store_that_is_no_directory_is_read_through_fsspec(store):
    memory = fsspec.filesystem("memory")
    root = f"/fluss-{id(store)}"

    def write(name, data):
        memory.pipe_file(f"{root}/{name}", data)

    store.directory = f"memory:/{root}"
    store.move(4, write=write)
    store.cluster._get_filesystem_security_token = token_answer({})
    SERVED.append(ApiKey.GET_FILESYSTEM_SECURITY_TOKEN)
    try:
        with scanner_of(store.cluster) as scanner:
            assert numbers(scanner.to_arrow()) == list(range(100))
    finally:
        SERVED.remove(ApiKey.GET_FILESYSTEM_SECURITY_TOKEN)
        memory.rm(root, recursive=True)


class Tokens:
    """Answers for security tokens, as `Cluster.ask_any` gives them."""

    def __init__(self, *answers):
        self.answers = list(answers)

    async def ask_any(self, *_):
        return self.answers.pop(0)(None)


SECRETS = {"access_key_id": "id", "access_key_secret": "hidden", "security_token": "also-hidden"}


def prepared(tokens, count=1):
    files = RemoteFiles(tokens)

    async def prepare():
        return [await files.prepare("s3://bucket/file") for _ in range(count)]

    return engine().run(prepare())


def test_a_token_becomes_options_of_the_file_system_and_is_never_shown():
    facts = {
        "fs__s3a__endpoint": "minio:9000",
        "fs__s3a__region": "eu",
        "fs__s3a__path__style__access": "true",
    }
    (file,) = prepared(Tokens(token_answer(SECRETS, **facts)))
    limits = file.options["config_kwargs"]
    assert limits.pop("s3") == {"addressing_style": "path"}
    assert limits["retries"]["total_max_attempts"] == 1, "reads are repeated in one place only"
    assert {key: file.options[key] for key in file.options if key != "config_kwargs"} == {
        "key": "id",
        "secret": "hidden",
        "token": "also-hidden",
        "endpoint_url": "https://minio:9000",
        "client_kwargs": {"region_name": "eu"},
    }
    assert "hidden" not in repr(file)


def test_a_token_is_kept_until_it_is_about_to_expire():
    now_ms = int(time.time() * 1_000)
    lasting = token_answer(SECRETS, expires_ms=now_ms + 3_600_000)
    assert len(prepared(Tokens(lasting), count=3)) == 3
    ending = token_answer(SECRETS, expires_ms=now_ms)
    tokens = Tokens(ending, ending, ending)
    prepared(tokens, count=3)
    assert tokens.answers == []


def test_a_token_that_cannot_be_read_is_reported_and_not_shown():
    def garbage(_):
        return pb.GetFileSystemSecurityTokenResponse(schema="s3", token=b"top-secret{")

    with pytest.raises(ProtocolError, match="no JSON object") as caught:
        prepared(Tokens(garbage))
    assert "top-secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_whatever_a_file_system_raises_becomes_an_error_of_fluss(monkeypatch):
    class Broken:
        def cat_file(self, *_, **__):
            raise RuntimeError("credentials have expired")

    monkeypatch.setattr(RemoteFile, "_filesystem", lambda _: Broken())
    file = RemoteFile(path="s3://bucket/file", scheme="s3", options={})
    with pytest.raises(FlussError, match="s3://bucket/file cannot be read: credentials have"):
        file.read(0, 10)


def test_a_store_that_does_not_read_ranges_is_reported(monkeypatch):
    class Whole:
        def cat_file(self, *_, **__):
            return bytes(100)

    monkeypatch.setattr(RemoteFile, "_filesystem", lambda _: Whole())
    file = RemoteFile(path="s3://bucket/file", scheme="s3", options={})
    with pytest.raises(FlussError, match="the store sent 100 bytes of the 10 from 5 on"):
        file.read(5, 10)


@pytest.mark.parametrize("path", ["/data/x y", "file:///data/x%20y", "file:/data/x%20y"])
def test_local_files_are_read_as_they_are(path):
    async def prepare():
        return await RemoteFiles(Tokens()).prepare(path)

    file = engine().run(prepare())
    assert (file.path, file.scheme) == ("/data/x y", "")


def test_a_file_system_that_fsspec_does_not_have_is_named():
    file = RemoteFile(path="nosuch://x/y", scheme="nosuch", options={})
    with pytest.raises(MissingExtraError, match="no file system for nosuch"):
        file.read(0, 10)


def test_options_that_a_file_system_refuses_are_an_error_without_their_secrets(monkeypatch):
    class Needy:
        def __init__(self, **options):
            raise ValueError(f"account_name is missing, found {options}")

    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda _: Needy)
    options = {"token": "top-secret", "connection_string": "AccountKey=top-secret;"}
    file = RemoteFile(path="abfs://c@a/f", scheme="abfs", options=options)
    with pytest.raises(RemoteStorageError, match="abfs://c@a/f cannot be read: account") as caught:
        file.read(0, 10)
    assert "remote-file.storage-options" in caught.value.hint
    assert "top-secret" not in str(caught.value) + repr(caught.value.facts)
