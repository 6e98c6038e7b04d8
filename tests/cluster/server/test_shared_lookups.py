"""Lookups share the lock of a bucket with each other, and with nothing that changes its rows."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pyarrow as pa
import pytest

import fluss
from fluss.model.types.factory import DataTypes
from fluss.rows.formats.compacted_row import CompactedRowWriter
from fluss.wire.api import ApiKey
from fluss.wire.zero_copy.lookup_values import LookupBucket, LookupRequest
from fluss_server.handlers.serve_keys import lookup
from fluss_server.kv.kv_tablet import KvTablet
from fluss_server.request_handler import Call
from tests.support.servers.embedded import running

IDS = range(1_000)
PATIENCE_S = 20.0
KEYS = CompactedRowWriter([DataTypes.bigint().not_null()], is_key=True)


@pytest.fixture
def server(tmp_path):
    with running(tmp_path) as made:
        yield made


@pytest.fixture
def session(server):
    with fluss.connect(f"fluss://{server.address}/fluss") as made:
        yield made


@pytest.fixture
def table(session):
    schema = pa.schema([("id", pa.int64()), ("version", pa.int64())])
    made = session.create_table("rows", schema, primary_key=["id"], buckets=1)
    upsert(made, version=0)
    return made


def upsert(table, *, version):
    table.upsert({"id": list(IDS), "version": [version] * len(IDS)})


def request_of(table, ids):
    bucket = LookupBucket(bucket_id=0, keys=tuple(KEYS.write([each]) for each in ids))
    return LookupRequest(table_id=table.info.table_id, buckets_req=(bucket,))


def test_two_lookups_of_one_bucket_run_concurrently(server, table, monkeypatch):
    both = threading.Barrier(2, timeout=PATIENCE_S)
    plain = KvTablet.lookup

    def meet(state, keys):
        both.wait()
        return plain(state, keys)

    call = Call(key=ApiKey.LOOKUP, version=1, caller=SimpleNamespace())
    alone = server.on_loop(lambda: lookup(server.node, call, request_of(table, IDS)))
    monkeypatch.setattr(KvTablet, "lookup", meet)

    async def look_up_twice():
        first, second = (lookup(server.node, call, request_of(table, IDS)) for _ in range(2))
        return await asyncio.gather(first, second)

    for answer in server.on_loop(look_up_twice):
        assert answer == alone
        assert None not in answer.buckets_resp[0].values


def test_lookups_between_writes_see_whole_batches_in_order(server, table):
    """Readers on several connections; a batch with one version for all rows replaces another."""
    asked = pa.table({"id": list(IDS)})
    stop = threading.Event()
    seen = [[] for _ in range(3)]

    def read(versions):
        with fluss.connect(f"fluss://{server.address}/fluss") as reader:
            rows = reader.table("rows")
            while not stop.is_set():
                # One request: so many keys fit into the first one.
                versions.append(set(rows.lookup(asked)["version"].to_pylist()))

    with ThreadPoolExecutor(len(seen)) as pool:
        readers = [pool.submit(read, versions) for versions in seen]
        try:
            for version in range(1, 30):
                upsert(table, version=version)
                # A reader of the same connection sees its own write.
                assert set(table.lookup(asked)["version"].to_pylist()) == {version}
        finally:
            stop.set()
    for reader, versions in zip(readers, seen, strict=True):
        reader.result()
        assert {len(each) for each in versions} == {1}
        found = [next(iter(each)) for each in versions]
        assert found == sorted(found)
