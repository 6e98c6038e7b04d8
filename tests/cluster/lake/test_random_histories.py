"""Random histories with rounds of tiering at random moments: unions give the rows of a model."""

from __future__ import annotations

import random

import polars as pl
import pytest

import fluss_polars
from tests.cluster.lake.conftest import LAKE
from tests.support.lake.plain_tiering import tier_state
from tests.support.lake.readers import READERS

STEPS, KEYS, PARTS = 14, 60, 2
IMAGE, MERGE = "table.changelog.image", "table.merge-engine"
KINDS = {
    "plain": {},
    "image wal": {IMAGE: "wal"},
    "first_row": {MERGE: "first_row"},
    "versioned": {MERGE: "versioned", "table.merge-engine.versioned.ver-column": "v"},
}


class History:
    """A partitioned table, and the rows that it must have."""

    def __init__(self, session, name, properties, seed):
        session.create_table(
            name,
            {"id": "BIGINT", "part": "STRING", "v": "INT", "text": "STRING"},
            primary_key=["id", "part"],
            partition_by=["part"],
            bucket_key=["id"],
            buckets=2,
            properties={**LAKE, **properties},
        )
        self.table, self.rng, self.rows = session.table(name), random.Random(seed), {}
        self.merge = properties.get(MERGE)

    def step(self):
        kinds = ["upsert", "upsert"] if self.merge else ["upsert", "upsert", "partial", "delete"]
        kind = self.rng.choice(kinds)
        keys = {
            (self.rng.randrange(KEYS), f"p{self.rng.randrange(PARTS)}")
            for _ in range(self.rng.randrange(1, 25))
        }
        given = [
            {"id": id_, "part": part, "v": self.rng.randrange(9), "text": f"t{self.rng.random()}"}
            for id_, part in sorted(keys)
        ]
        getattr(self, kind)(given)

    def upsert(self, given):
        self.table.upsert(given)
        for row in given:
            key, before = (row["id"], row["part"]), self.rows.get((row["id"], row["part"]))
            is_kept = self.merge == "first_row" and before is not None
            is_older = self.merge == "versioned" and before is not None and row["v"] < before["v"]
            if not is_kept and not is_older:
                self.rows[key] = row

    def partial(self, given):
        cut = [{name: row[name] for name in ("id", "part", "v")} for row in given]
        self.table.update(cut)
        for row in cut:
            before = self.rows.get((row["id"], row["part"]), {"text": None})
            self.rows[row["id"], row["part"]] = {**before, **row}

    def delete(self, given):
        self.table.delete([{name: row[name] for name in ("id", "part")} for row in given])
        for row in given:
            self.rows.pop((row["id"], row["part"]), None)

    def expected(self):
        return [tuple(self.rows[key][each] for each in NAMES) for key in sorted(self.rows)]


NAMES = ("id", "part", "v", "text")


def sorted_rows(rows):
    return sorted(tuple(each[name] for name in NAMES) for each in rows.to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_a_union_gives_the_rows_of_the_model(lake_cluster, session, iceberg, kind):
    history = History(session, f"h_{kind.replace(' ', '_')}", KINDS[kind], seed=len(kind))
    tiered = False
    for _ in range(STEPS):
        history.step()
        if history.rng.random() < 0.35:
            tier_state(history.table, lake_cluster.bootstrap_servers, iceberg(history.table))
            tiered = True
        read = history.rng.choice(READERS)
        assert sorted_rows(read(history.table, session)) == history.expected(), read.__name__
        filtered = history.table.scan(filter="v >= 4 AND part = 'p1'").to_arrow()
        matching = [each for each in history.expected() if each[2] >= 4 and each[1] == "p1"]
        assert sorted_rows(filtered) == matching
    assert tiered
    assert "lake: snapshot" in history.table.scan().explain()
    lazy = fluss_polars.scan_fluss(history.table).select(pl.len())
    assert lazy.collect().item() == len(history.rows)
