"""Reading from S3 for long: tokens that expire by the clock, a store that fails, bounded memory.

A normal run reads a few megabytes under faults; `./dev prove s3` waits for tokens to expire, which
servers keep for a minute, and reads tens of megabytes.
"""

import json
import random
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest

import fluss
from fluss import col
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.objects.s3_gate import Fault
from tests.support.servers.fix_cluster import IMPATIENT
from tests.support.servers.read_harness import eventually

pytestmark = [
    pytest.mark.slow,  # a server and a store are started, and tokens have to expire
    pytest.mark.timeout(1_800),
]
COLUMNS = 8
ROWS_AT_ONCE = 6_000
BATCHES = 200 if IS_EXHAUSTIVE else 24
ROWS = ROWS_AT_ONCE * BATCHES
SCANS_UNDER_FAULTS = 60 if IS_EXHAUSTIVE else 6
MEMORY_GROWTH_MAX = 200 << 20
SCHEMA = pa.schema([("id", pa.int64()), *((f"c{each}", pa.int64()) for each in range(1, COLUMNS))])
ONE_AT_A_TIME = {"scanner.remote-log.read-concurrency": "1"}
FAST = {"retry.backoff-ms": "5", "retry.backoff-max-ms": "50", "request-timeout": "2s"}
MEASURED = """
import json, resource, sys, time
import fluss

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

with fluss.connect(sys.argv[1]) as session:
    scan = session.table(sys.argv[2]).scan()
    batches = iter(scan.to_reader())
    rows = next(batches).num_rows
    before, began = peak(), time.process_time()
    rows += sum(batch.num_rows for batch in batches)
    print(json.dumps({
        "rows": rows, "cpu_s": time.process_time() - began, "growth": peak() - before,
        "remote": session.counters()["remote_bytes_read"],
    }))
"""


def written(number):
    values = np.random.default_rng(number)
    first = number * ROWS_AT_ONCE
    columns = [values.integers(0, 2**62, ROWS_AT_ONCE) for _ in range(1, COLUMNS)]
    ids = np.arange(first, first + ROWS_AT_ONCE)
    return pa.Table.from_arrays([ids, *columns], schema=SCHEMA)


@pytest.fixture(scope="module")
def url(s3_cluster, gate):
    """A database with the same rows in a log in S3, and in one that stays on the server."""
    gate.reset()
    url = f"fluss://{s3_cluster.bootstrap_servers}/proof"
    with fluss.connect(url, **IMPATIENT) as session:
        session.create_database("proof")
        logs = [
            session.create_table(
                name, SCHEMA, buckets=1, properties={"table.log.tiered.local-segments": keeps}
            )
            for name, keeps in (("moved", "1"), ("kept", "100000"))
        ]
        for number in range(BATCHES):
            for log in logs:
                log.append(written(number))

        def has_moved():
            gate.gets.clear()
            logs[0].scan(columns=["id"]).to_arrow()
            return len({get.path for get in gate.gets}) >= BATCHES // 4

        eventually(has_moved, timeout_s=300)
    return url


def ids(session, **options):
    return session.table("moved").scan(columns=["id"], **options).to_arrow()["id"].to_numpy()


@pytest.mark.skipif(not IS_EXHAUSTIVE, reason="waits for minutes; ./dev prove s3")
@pytest.mark.parametrize("case", ["refused", "renewed"])
def test_a_scan_outlives_the_tokens_of_its_cluster(url, gate, case):
    """Servers keep a token for a minute, and hand it out with what is left of its life."""
    gate.reset()
    gate.token_life_s = 125.0 if case == "refused" else 90.0
    gate.refused_early_s = 60.0 if case == "refused" else 0.0
    time.sleep(65)  # until servers ask for another one
    with fluss.connect(url, **FAST, **ONE_AT_A_TIME) as session:
        gate.delay_s = 110 / BATCHES / 2  # a head and a column of each batch
        began = time.monotonic()
        assert np.array_equal(ids(session), np.arange(ROWS)), "no row is lost, and none comes twice"
        took_s = time.monotonic() - began
    refused = [get for get in gate.gets if get.status == 400]
    tokens = {get.access_key for get in gate.gets}
    sys.stderr.write(
        f"objects: {case}: {took_s:.0f} s, {len(gate.gets)} reads, {len(tokens)} tokens, "
        f"{len(refused)} reads refused as expired\n"
    )
    assert took_s > 130
    assert len(tokens) >= 3
    assert bool(refused) == (case == "refused")


def test_scans_of_a_store_that_fails_are_whole(url, gate):
    gate.reset()
    numbers = random.Random(3)
    faults = [
        Fault(status=503, code="SlowDown"),
        Fault(status=500, code="InternalError"),
        Fault(status=400, code="ExpiredToken"),
        Fault(body_bytes_max=0),
        Fault(body_bytes_max=1_000),
    ]
    gate.fault_of = lambda _: numbers.choice(faults) if numbers.random() < 0.15 else None
    with fluss.connect(url, **FAST) as session:
        for number in range(SCANS_UNDER_FAULTS):
            span = min(ROWS, ROWS_AT_ONCE * 12)
            start = numbers.randrange(ROWS - span + 1)
            stop = start + numbers.randrange(1, span)
            part = (col("_log_offset") >= start) & (col("_log_offset") < stop)
            columns = ["id"] if number % 2 else SCHEMA.names
            found = session.table("moved").scan(columns=columns, filter=part).to_arrow()
            assert np.array_equal(found["id"].to_numpy(), np.arange(start, stop))
            whole = pa.concat_tables(
                written(each)
                for each in range(start // ROWS_AT_ONCE, (stop - 1) // ROWS_AT_ONCE + 1)
            ).slice(start % ROWS_AT_ONCE, stop - start)
            assert found.combine_chunks().equals(whole.select(columns).combine_chunks())
    failed = len([get for get in gate.gets if get.status >= 400])
    sys.stderr.write(
        f"objects: {SCANS_UNDER_FAULTS} scans whole, {len(gate.gets)} reads, {failed} refused\n"
    )
    assert failed


def measured(url, table):
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, url, table],
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    return json.loads(done.stdout)


def test_memory_is_bounded_and_a_row_costs_little_more_than_one_of_a_server(url, gate):
    gate.reset()
    moved, kept = measured(url, "moved"), measured(url, "kept")
    for each in (moved, kept):
        assert each["rows"] == ROWS
        assert each["growth"] < MEMORY_GROWTH_MAX
    assert kept["remote"] == 0
    assert moved["remote"] > ROWS * COLUMNS * 8 * 0.5
    sys.stderr.write(
        f"objects: {moved['remote'] >> 20} MiB from S3 with {moved['growth'] >> 20} MiB of growth; "
        f"{moved['cpu_s'] / ROWS * 1e9:.0f} ns of processor time a row, "
        f"{kept['cpu_s'] / ROWS * 1e9:.0f} ns of a row that a server sends\n"
    )
