"""A real Fluss whose remote store is a local S3, and tables of which most is there.

The embedded server keeps its remote files in a directory; `docs/cookbook/tiered-s3.md` says so.
"""

from __future__ import annotations

import random
import string

import pyarrow as pa
import pytest

import fluss
from fluss_testkit.cluster_profiles import FAST_SNAPSHOTS, SMALL_SEGMENTS
from fluss_testkit.s3_profile import s3_store
from tests.support.objects.s3_gate import BUCKET, ROLE, SERVER_KEY, SERVER_SECRET, s3_gate
from tests.support.servers.fix_cluster import IMPATIENT
from tests.support.servers.read_harness import eventually

ROWS_AT_ONCE = 100
BATCHES = 40
ROWS = ROWS_AT_ONCE * BATCHES
SCHEMA = pa.schema([("id", pa.int64()), ("noise", pa.string())])
# Failures are over soon, and a test that waits for the end of patience does so for a second.
FAST = {"retry.backoff-ms": "5", "retry.backoff-max-ms": "50"}


@pytest.fixture(scope="session")
def gate():
    with s3_gate() as running:
        yield running


@pytest.fixture(scope="session")
def s3_cluster(start_cluster, gate):
    store = s3_store(
        f"s3://{BUCKET}/remote",
        endpoint=gate.endpoint,
        access_key=SERVER_KEY,
        secret_key=SERVER_SECRET,
        role=ROLE,
    )
    with start_cluster(SMALL_SEGMENTS, FAST_SNAPSHOTS, store) as running:
        yield running


@pytest.fixture(scope="session")
def filled(s3_cluster, gate):
    """The URL of a database, with a log of one bucket in many segments."""
    url = f"fluss://{s3_cluster.bootstrap_servers}/objects"
    with fluss.connect(url, **IMPATIENT) as session:
        session.create_database("objects")
        table = session.create_table("log", SCHEMA, buckets=1)
        numbers = random.Random(1)
        for start in range(0, ROWS, ROWS_AT_ONCE):
            noise = [
                "".join(numbers.choices(string.ascii_letters, k=200)) for _ in range(ROWS_AT_ONCE)
            ]
            table.append({"id": [*range(start, start + ROWS_AT_ONCE)], "noise": noise})

        def has_moved():
            gate.gets.clear()
            table.scan(columns=["id"]).to_arrow()
            return len({get.path for get in gate.gets}) >= BATCHES // 8

        eventually(has_moved)
    return url


@pytest.fixture
def connect(filled, gate):
    """A function that opens a session on the database; the gate has counted nothing yet."""
    opened = []

    def open_session(**options):
        for session in opened:
            session.close()  # the next one would take over its options
        opened.append(fluss.connect(filled, **{**IMPATIENT, **FAST, **options}))
        return opened[-1]

    gate.reset()
    yield open_session
    gate.reset()
    for session in opened:
        session.close()


@pytest.fixture
def table(connect):
    return connect().table("log")
