"""Rows that expire are deleted from the log after a round has copied them, and are still read."""

from __future__ import annotations

import pytest

import fluss
from fluss.errors import OffsetOutOfRangeError
from fluss_server.lake.lake_settings import LakeLocation
from fluss_server.retention import expire_log
from tests.cluster.lake.conftest import LAKE
from tests.support.lake.rounds import one_round
from tests.support.servers.embedded import Clock, running

SEGMENT_BYTES = 2_000
TTL = {"table.log.ttl": "1s"}
ROWS, BATCH = 1_000, 100


@pytest.fixture
def server(tmp_path):
    clock = Clock()
    with running(
        tmp_path, lake=LakeLocation(), clock=clock, segment_bytes=SEGMENT_BYTES
    ) as started:
        started.clock = clock
        yield started


@pytest.fixture
def session(server):
    with fluss.connect(f"fluss://{server.address}/fluss") as opened:
        yield opened


def expire(server):
    """Let all rows expire; return where the only log begins then."""
    server.clock.now_ms += 10_000
    (tablet,) = server.node.tablets
    if tablet.state is not None:
        server.on_loop(tablet.state.flush)  # the changelog is kept as far as the state needs it
    server.on_loop(lambda: expire_log(server.node, tablet))
    server.on_loop(server.node.finish_background)
    return tablet.log.start_offset


def put(table, first):
    write = table.upsert if table.primary_key else table.append
    for start in range(first, first + ROWS, BATCH):
        write({"id": list(range(start, start + BATCH)), "n": [start] * BATCH})


def test_a_log_is_whole_after_its_rows_have_expired(server, session):
    table = session.create_table(
        "log", {"id": "BIGINT", "n": "BIGINT"}, buckets=1, properties={**LAKE, **TTL}
    )
    expected = []
    for number in range(3):
        put(table, number * ROWS)
        expected += range(number * ROWS, (number + 1) * ROWS)
        # Nothing is deleted that the lake does not have.
        assert expire(server) <= number * ROWS
        assert ids_of(table) == expected
        one_round(table)
        floor = expire(server)
        assert number * ROWS < floor <= (number + 1) * ROWS
        assert ids_of(table) == ids_of(table, start=0) == ids_of(table, lake="only") == expected
        assert ids_of(table, start=floor - 5) == expected[floor - 5 :]
        assert ids_of(table, start=10, end={0: floor + 1}) == expected[10 : floor + 1]
        assert ids_of(table, tail=ROWS + 7) == expected[-ROWS - 7 :]
        with pytest.raises(OffsetOutOfRangeError):
            ids_of(table, start=0, lake="off")
    assert table.count() == len(expected)


def test_a_state_is_that_of_the_server_after_its_changes_have_expired(server, session):
    table = session.create_table(
        "keys",
        {"id": "BIGINT", "n": "BIGINT"},
        primary_key="id",
        buckets=1,
        properties={**LAKE, **TTL},
    )
    for number in range(3):
        put(table, number * ROWS // 2)
        table.delete([(number,), (number + 50,)])
        one_round(table)
        (ended,) = table.offsets().to_pylist()
        before = rows_of(table, lake="off")
        assert expire(server) > 0
        table.upsert({"id": [number], "n": [-1]})
        assert rows_of(table) == rows_of(table, lake="off")
        assert rows_of(table, as_of={0: ended["end"]}) == before
    one_round(table)
    assert rows_of(table, lake="only") == rows_of(table, lake="off")


def ids_of(table, **options):
    return sorted(table.scan(columns=["id"], **options).to_arrow().column("id").to_pylist())


def rows_of(table, **options):
    return table.scan(**options).to_arrow().sort_by("id")
