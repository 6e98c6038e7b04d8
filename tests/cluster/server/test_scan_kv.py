"""SCAN_KV: pages of one moment, and the end of a scan."""

import pyarrow as pa
import pytest

import fluss
from fluss.wire import messages as pb
from fluss_server.open_scans import SCANS_PER_BUCKET_MAX, TTL_MS
from tests.support.servers.embedded import Clock, running
from tests.support.servers.raw_client import RawConnection

ROWS = 500
CLOCK = Clock()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("server"), clock=CLOCK) as server:
        yield server


@pytest.fixture(scope="module")
def session(server):
    with fluss.connect(f"fluss://{server.address}/fluss") as session:
        yield session


@pytest.fixture
def connection(server):
    opened = RawConnection(server.address, timeout_s=10)
    yield opened
    opened.close()


@pytest.fixture
def table(session, connection, request):
    name = request.node.originalname[:100]
    session.create_table(name, frame(0, 0).schema, primary_key=["id"], buckets=1)
    session.upsert(name, frame(0, ROWS))
    yield Keyed(connection, name)
    session.drop_table(name)


def frame(first, last):
    ids = pa.array(range(first, last), pa.int64())
    words = [f"word {each}" for each in range(first, last)]
    return pa.table({"id": ids, "word": pa.array(words, pa.string())})


class Keyed:
    def __init__(self, connection, name):
        self.connection = connection
        path = pb.PbTablePath(database_name="fluss", table_name=name)
        self.id = connection.call(pb.GetTableInfoRequest(table_path=path)).table_id

    def begin(self, *, size=2_000, limit=None, **other):
        request = pb.ScanKvRequest(call_seq_id=0, batch_size_bytes=size, **other)
        request.bucket_scan_req.table_id = self.id
        request.bucket_scan_req.bucket_id = 0
        if limit is not None:
            request.bucket_scan_req.limit = limit
        return self.connection.call(request)

    def go_on(self, scan_id, page, *, size=2_000):
        return self.connection.call(
            pb.ScanKvRequest(scanner_id=scan_id, call_seq_id=page, batch_size_bytes=size)
        )

    def close(self, scan_id):
        return self.connection.call(pb.ScanKvRequest(scanner_id=scan_id, close_scanner=True))


def count(answer):
    return int.from_bytes(answer.records[5:9], "little")


def test_all_rows_are_read_page_by_page_during_writes(session, table):
    answer = table.begin()
    assert answer.log_offset == ROWS
    session.upsert("test_all_rows_are_read_page_by_page_during_writes", frame(ROWS, 2 * ROWS))
    rows, page, scan_id = count(answer), 0, answer.scanner_id
    while answer.has_more_results:
        page += 1
        answer = table.go_on(scan_id, page)
        assert not answer.HasField("log_offset")
        rows += count(answer)
    assert page > 2
    assert rows == ROWS
    assert answer.scanner_id == scan_id
    assert table.go_on(scan_id, page + 1).error_code == 67


def test_a_limit_counts_rows(table):
    answer = table.begin(limit=7, size=1 << 20)
    assert count(answer) == 7
    assert not answer.has_more_results


@pytest.mark.parametrize("page", [0, 2, -1])
def test_a_request_for_any_other_page_closes_the_scan(table, page):
    scan_id = table.begin().scanner_id
    assert table.go_on(scan_id, page).error_code == 68
    assert table.go_on(scan_id, 1).error_code == 67


def test_invalid_requests_are_error_68(table):
    assert table.begin(size=0).error_code == 68
    assert table.begin(scanner_id=b"x").error_code == 68
    assert table.begin(close_scanner=True).error_code == 68
    neither = pb.ScanKvRequest(call_seq_id=0, batch_size_bytes=10)
    assert table.connection.call(neither).error_code == 68


def test_closing_always_succeeds(table):
    scan_id = table.begin().scanner_id
    assert not table.close(scan_id).HasField("error_code")
    assert not table.close(b"never was").HasField("error_code")
    assert table.go_on(scan_id, 1).error_code == 67


def test_a_scan_beyond_the_limit_is_error_69(table):
    opened = [table.begin().scanner_id for _ in range(SCANS_PER_BUCKET_MAX)]
    assert table.begin().error_code == 69
    table.close(opened[0])
    assert not table.begin().HasField("error_code")


def test_an_idle_scan_expires(server, table):
    scan_id = table.begin().scanner_id
    CLOCK.now_ms += TTL_MS + 1
    server.on_loop(lambda: server.node.scans.expire(now_ms=CLOCK.now_ms))
    assert table.go_on(scan_id, 1).error_code == 66


def test_an_empty_bucket_has_an_offset_and_no_scan(session, connection):
    session.create_table("empty_scan", frame(0, 0).schema, primary_key=["id"], buckets=1)
    answer = Keyed(connection, "empty_scan").begin()
    assert (answer.has_more_results, answer.log_offset) == (False, 0)
    assert not answer.HasField("scanner_id")
    assert not answer.records


def test_a_scan_ends_when_its_table_is_dropped(server, session, connection):
    session.create_table("dropped_scan", frame(0, 0).schema, primary_key=["id"], buckets=1)
    session.upsert("dropped_scan", frame(0, ROWS))
    table = Keyed(connection, "dropped_scan")
    scan_id = table.begin().scanner_id
    session.drop_table("dropped_scan")
    assert table.go_on(scan_id, 1).error_code == 66
    assert len(server.node.scans) <= 20


def test_a_log_table_has_no_keys_to_scan(session, connection):
    session.create_table("log_scan", frame(0, 0).schema)
    assert Keyed(connection, "log_scan").begin().error_code == 20
