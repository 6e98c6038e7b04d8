"""States of moments before the present snapshot of a lake come from its older snapshots."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from fluss.errors import OffsetOutOfRangeError, UnsupportedOperationError
from tests.cluster.lake.conftest import LAKE
from tests.support.lake.plain_tiering import tier_state

BUCKETS, ROUNDS, KEYS = 2, 3, 120


def change(table, rng):
    ids = [rng.randrange(KEYS) for _ in range(80)]
    table.upsert(pa.table({"id": ids, "n": pa.array([rng.randrange(99) for _ in ids], pa.int32())}))
    table.delete([(rng.randrange(KEYS),) for _ in range(20)])


def in_order(rows):
    return rows.sort_by("id")


class Past:
    """A table, the state after each round of tiering, and the offsets of each."""

    def __init__(self, session, bootstrap, iceberg, image):
        name = f"past_{image}"
        session.create_table(
            name,
            {"id": "BIGINT", "n": "INT"},
            primary_key=["id"],
            buckets=BUCKETS,
            properties={**LAKE, "table.changelog.image": image},
        )
        self.table, rng = session.table(name), random.Random(3)
        self.states, self.offsets = [], []
        for _ in range(ROUNDS):
            change(self.table, rng)
            self.states.append(in_order(self.table.scan(as_of="latest", lake="off").to_arrow()))
            listed = self.table.offsets().to_pylist()
            self.offsets.append({each["bucket"]: each["end"] for each in listed})
            tier_state(self.table, bootstrap, iceberg(self.table))
        change(self.table, rng)


@pytest.fixture(scope="module", params=["full", "wal"])
def past(request, lake_cluster, session, iceberg):
    return Past(session, lake_cluster.bootstrap_servers, iceberg, request.param)


@pytest.fixture
def log_begins_at(monkeypatch):
    """Makes the logs seem to begin later, as retention lets them."""
    from fluss.model.extent import Extent
    from fluss.scan import scan_planner

    asked = scan_planner.fetch_extents

    def begin(offsets):
        async def fetch(cluster, places, **more):
            found = await asked(cluster, places, **more)
            return {
                bucket: Extent(earliest=offsets[bucket.bucket_id], end=each.end)
                for bucket, each in found.items()
            }

        monkeypatch.setattr(scan_planner, "fetch_extents", fetch)

    return begin


def ends_of(past, round_number):
    return [past.offsets[round_number][each] for each in range(BUCKETS)]


def test_the_state_of_an_older_snapshot_is_read_where_the_log_is_gone(past, log_begins_at):
    log_begins_at(ends_of(past, -1))
    for offsets, state in zip(past.offsets, past.states, strict=True):
        scan = past.table.scan(as_of=offsets)
        assert "lake: the lake has it as of offset" in scan.explain()
        assert in_order(scan.to_arrow()) == state


def test_the_changelog_leads_from_an_older_snapshot_to_a_later_offset(past, log_begins_at):
    log_begins_at(ends_of(past, 0))
    between = {bucket: end + 7 for bucket, end in past.offsets[0].items()}
    expected = past.table.scan(as_of=between, strategy="changelog", lake="off")
    if past.table.name.endswith("wal"):
        scan = past.table.scan(as_of=between)
        assert "the lake has it as of offset" in scan.explain()
        log_begins_at([0, 0])
        assert in_order(scan.to_arrow()) == in_order(expected.to_arrow())


def test_what_neither_has_is_refused_with_what_there_is(past, log_begins_at):
    log_begins_at(ends_of(past, -1))
    between = {bucket: end + 1 for bucket, end in past.offsets[0].items()}
    with pytest.raises(
        OffsetOutOfRangeError, match="The lake has the states at offsets"
    ) as refused:
        past.table.scan(as_of=between).count()
    for offsets in past.offsets:
        assert str(offsets[refused.value.bucket]) in str(refused.value)


def test_a_moment_of_what_only_the_lake_has_is_refused(past):
    with pytest.raises(UnsupportedOperationError, match="exclude each other"):
        past.table.scan(as_of=past.offsets[0], lake="only").count()
    assert past.table.scan(as_of="latest", lake="only").count() > 0
