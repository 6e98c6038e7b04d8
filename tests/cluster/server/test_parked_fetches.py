"""Fetches that wait for rows, while their buckets change."""

import inspect
from types import SimpleNamespace

import pyarrow as pa
import pytest

import fluss
from fluss.error_codes import ErrorCode
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss_server.handlers.serve_fetch import fetch_log
from fluss_server.handlers.serve_tables import drop_table
from fluss_server.request_handler import Call
from tests.support.servers.embedded import running

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def server(tmp_path):
    with running(tmp_path) as made:
        yield made


async def drain():
    pass


CALLER = SimpleNamespace(is_closed=False, drain=drain)


def call(key):
    return Call(key=key, version=0, caller=CALLER)


def parked_fetch(*table_ids):
    request = pb.FetchLogRequest(
        follower_server_id=-1, max_bytes=1_000_000, min_bytes=1, max_wait_ms=5_000
    )
    for table_id in table_ids:
        table = request.tables_req.add(table_id=table_id, projection_pushdown_enabled=False)
        table.buckets_req.add(bucket_id=0, fetch_offset=0, max_fetch_bytes=1_000_000)
    return request


def test_a_table_that_is_dropped_before_its_fetch_waits_is_an_error_of_its_bucket(server):
    with fluss.connect(f"fluss://{server.address}/fluss") as session:
        kept = session.create_table("kept", SCHEMA, buckets=1).info.table_id
        gone = session.create_table("gone", SCHEMA, buckets=1).info.table_id

    async def fetch_and_drop():
        answer = fetch_log(server.node, call(ApiKey.FETCH_LOG), parked_fetch(kept, gone))
        assert inspect.isawaitable(answer)  # it found no rows, and has not begun to wait for any
        path = pb.PbTablePath(database_name="fluss", table_name="gone")
        drop = pb.DropTableRequest(table_path=path, ignore_if_not_exists=False)
        dropped = drop_table(server.node, call(ApiKey.DROP_TABLE), drop)
        if inspect.isawaitable(dropped):
            await dropped
        return await answer

    answer = server.on_loop(fetch_and_drop)
    of_kept, of_gone = (each.buckets_resp[0] for each in answer.tables_resp)
    assert of_kept.error_code is None
    assert of_gone.error_code == ErrorCode.UNKNOWN_TABLE_OR_BUCKET_EXCEPTION
