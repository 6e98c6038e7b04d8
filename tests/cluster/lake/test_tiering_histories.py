"""Random histories with random moments of rounds: the lake is the server's state, each time."""

from __future__ import annotations

import random
import uuid

import pytest

from fluss.model.extent import Extent
from fluss_lake.tiering import round_driver
from tests.cluster.lake.conftest import LAKE
from tests.support.lake.rounds import one_round

COLUMNS = {"id": "BIGINT", "n": "BIGINT", "text": "STRING"}
ENGINES = {
    "plain": {},
    "image wal": {"table.changelog.image": "wal"},
    "first row": {"table.merge-engine": "first_row"},
    "versioned": {
        "table.merge-engine": "versioned",
        "table.merge-engine.versioned.ver-column": "n",
    },
}
ROUNDS, KEYS = 5, 60


def rows_of(table, **options):
    return table.scan(**options).to_arrow().sort_by("id")


def assert_same(table):
    expected = rows_of(table, lake="off")
    assert rows_of(table, lake="only") == expected
    assert rows_of(table) == expected
    return expected


def write(table, rng, *, deletes):
    for _ in range(rng.randrange(1, 5)):
        keys = [rng.randrange(KEYS) for _ in range(rng.randrange(1, 40))]
        whole = [{"id": key, "n": rng.randrange(50), "text": f"t{rng.random()}"} for key in keys]
        table.upsert(whole)
        if deletes and rng.random() < 0.7:
            table.delete([(rng.randrange(KEYS),) for _ in range(rng.randrange(1, 15))])


@pytest.mark.parametrize("mode", ["equality-deletes", "copy-on-write"])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_lake_is_the_state(session, engine, mode):
    name = f"h_{uuid.uuid4().hex[:8]}"
    session.create_table(
        name, COLUMNS, primary_key="id", buckets=2, properties={**LAKE, **ENGINES[engine]}
    )
    session.alter_table(name, set_properties={"tiering.write-mode": mode})
    table, rng = session.table(name), random.Random(f"{engine} {mode}")
    keeps_changes = engine in {"plain", "image wal"}
    for _ in range(ROUNDS):
        write(table, rng, deletes=keeps_changes)
        # Small bounds: a round may end between the two halves of an update.
        for _ in range(rng.randrange(1, 4)):
            one_round(table, rows_max=rng.choice([7, 33, 1_000]), memory_bytes=64 * 1024)
            assert rows_of(table) == rows_of(table, lake="off")
        while one_round(table).snapshot_id is not None:
            pass
        assert_same(table)


@pytest.mark.parametrize("mode", ["equality-deletes", "copy-on-write"])
def test_the_state_is_copied_where_changes_are_gone(session, monkeypatch, mode):
    name = f"gone_{uuid.uuid4().hex[:8]}"
    session.create_table(name, COLUMNS, primary_key="id", buckets=2, properties=LAKE)
    table, rng = session.table(name), random.Random(3)

    def trimmed_by(share):
        async def found(cluster, places):
            extents = await fetch_extents(cluster, places)
            return {
                bucket: Extent(earliest=int(each.end * share), end=each.end)
                for bucket, each in extents.items()
            }

        return found

    fetch_extents = round_driver.fetch_extents
    # For the first time, then with a lake, and after all that has been copied is gone.
    for share in (0.5, 0.9, 1.0, 0.0):
        write(table, rng, deletes=True)
        monkeypatch.setattr(round_driver, "fetch_extents", trimmed_by(share))
        assert one_round(table, write_mode=None).snapshot_id is not None
        monkeypatch.undo()
        assert_same(table)
    assert one_round(table).snapshot_id is None
