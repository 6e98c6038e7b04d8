"""The last lines of `benchmarks/server.py`: 500 connections, and readers that do not read.

It uses raw sockets, because no client requests so much without reading it.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import struct
import time
from collections.abc import Sequence
from typing import cast

import pyarrow as pa

import fluss
from benchmarks._measure import resident_bytes
from benchmarks._peer_bench import SCHEMA, data_of
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss_server import LocalCluster

CONNECTIONS = 500
SLOW_READERS = 50
ASKED_EACH = 100  # fetches of a megabyte each
FETCH_BYTES = 1 << 20
ROWS = 200_000
SAMPLES = 200
SETTLE_S = 2.0
_HEAD = struct.Struct(">ihhi")


def crowd_lines(options: argparse.Namespace) -> list[Sequence[str]]:
    """Measure connections, their memory, and the effect of slow readers on other clients."""
    del options
    with LocalCluster() as cluster, fluss.connect(cluster.url) as session:
        session.create_table("fluss.crowd", SCHEMA, buckets=1)
        session.append("fluss.crowd", data_of(ROWS))
        session.create_table("fluss.side", pa.schema([("id", pa.int64())]), buckets=1)
        found = session.table("fluss.crowd")
        return asyncio.run(_crowd(cluster, int(found.info.table_id)))


async def _crowd(cluster: LocalCluster, table_id: int) -> list[Sequence[str]]:
    host, port = cluster.bootstrap_servers.rsplit(":", 1)
    alone = await _latency(host, int(port))
    before = resident_bytes(cluster.pid)
    started = time.perf_counter()
    crowd = await asyncio.gather(
        *(asyncio.open_connection(host, int(port)) for _ in range(CONNECTIONS))
    )
    await asyncio.gather(*(_ask(*each) for each in crowd))
    taken = time.perf_counter() - started
    held = resident_bytes(cluster.pid) - before
    started = time.perf_counter()
    for _ in range(10):
        await asyncio.gather(*(_ask(*each) for each in crowd))
    rate = 10 * CONNECTIONS / (time.perf_counter() - started)
    before = resident_bytes(cluster.pid)
    for _, writer in crowd[:SLOW_READERS]:
        cast("asyncio.Transport", writer.transport).pause_reading()
        for number in range(ASKED_EACH):
            writer.write(_frame(ApiKey.FETCH_LOG, _fetch(table_id), number))
    await asyncio.sleep(SETTLE_S)
    slow = resident_bytes(cluster.pid) - before
    beside = await _latency(host, int(port))
    for _, writer in crowd:
        writer.transport.abort()
    asked = SLOW_READERS * ASKED_EACH * FETCH_BYTES / 1e6
    return [
        (f"{CONNECTIONS} connections, each answered once", f"{taken:.2f} s", "", "", ""),
        (f"memory of {CONNECTIONS} connections", f"{held / 1e6:.0f} MB", "", "", ""),
        (f"requests of {CONNECTIONS} concurrent connections", f"{rate:,.0f}/s", "", "", ""),
        (
            f"memory of {SLOW_READERS} who asked for {asked:,.0f} MB and do not read",
            f"{slow / 1e6:.0f} MB",
            "",
            "",
            "",
        ),
        (
            "an answer beside them, p50 (alone)",
            f"{beside * 1e3:.2f} ms ({alone * 1e3:.2f} ms)",
            "",
            "",
            "",
        ),
    ]


async def _latency(host: str, port: int) -> float:
    reader, writer = await asyncio.open_connection(host, port)
    taken = []
    for _ in range(SAMPLES):
        started = time.perf_counter()
        await _ask(reader, writer)
        taken.append(time.perf_counter() - started)
    writer.close()
    return statistics.median(taken)


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    request = pb.ListDatabasesRequest()
    writer.write(_frame(ApiKey.LIST_DATABASES, request.SerializeToString(), 7))
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    answer = await reader.readexactly(length)
    if answer[0]:
        raise ValueError("the server refused a request")


def _frame(key: ApiKey, body: bytes, request_id: int) -> bytes:
    return _HEAD.pack(_HEAD.size - 4 + len(body), int(key), 0, request_id) + body


def _fetch(table_id: int) -> bytes:
    request = pb.FetchLogRequest(follower_server_id=-1, max_bytes=FETCH_BYTES)
    table = request.tables_req.add(table_id=table_id, projection_pushdown_enabled=False)
    table.buckets_req.add(bucket_id=0, fetch_offset=0, max_fetch_bytes=FETCH_BYTES)
    return request.SerializeToString()
