"""A log of which most is in S3, on the cluster of `tests/support/objects/fix_objects.py`."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import fluss
from tests.support.servers.fix_cluster import IMPATIENT
from tests.support.servers.read_harness import eventually

ROWS_AT_ONCE = 500
BATCHES = 70
ROWS = ROWS_AT_ONCE * BATCHES
SEGMENTS_MIN = 5
LOCAL_SEGMENTS = {"table.log.tiered.local-segments": "1"}
SCHEMA = pa.schema([("id", pa.int64()), ("noise", pa.string())])
# Failures are over soon, and a test that waits for the end of patience does so for a second.
FAST = {"retry.backoff-ms": "5", "retry.backoff-max-ms": "50"}


def fill(bootstrap, gate):
    """Create a database with a log of one bucket in many segments; return its URL."""
    url = f"fluss://{bootstrap}/objects"
    with fluss.connect(url, **IMPATIENT) as session:
        session.create_database("objects")
        table = session.create_table("log", SCHEMA, buckets=1, properties=LOCAL_SEGMENTS)
        numbers = random.Random(1)
        for start in range(0, ROWS, ROWS_AT_ONCE):
            noise = [numbers.randbytes(200).hex() for _ in range(ROWS_AT_ONCE)]
            table.append({"id": [*range(start, start + ROWS_AT_ONCE)], "noise": noise})

        def has_moved():
            gate.gets.clear()
            table.scan(columns=["id"]).to_arrow()
            return len({get.path for get in gate.gets}) >= SEGMENTS_MIN

        eventually(has_moved)
    return url


@pytest.fixture(scope="session")
def filled(s3_cluster, gate):
    """The URL of a database, with a log of one bucket in many segments."""
    return fill(s3_cluster.bootstrap_servers, gate)


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
