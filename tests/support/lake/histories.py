"""Random histories of tables with a lake: what is written to a table, and the states it has had."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from fluss import DataTypes, Schema
from tests.support.lake.readers import READERS, Reader, values
from tests.support.lake.rounds import one_round

LAKE = {"table.datalake.enabled": "true"}
NAMES = ("id", "n", "text")
COLUMNS = {"id": "BIGINT", "n": "BIGINT", "text": "STRING"}
MERGE, IMAGE = "table.merge-engine", "table.changelog.image"
ENGINES = {
    "plain": {},
    "image wal": {IMAGE: "wal"},
    "first row": {MERGE: "first_row"},
    "versioned": {MERGE: "versioned", "table.merge-engine.versioned.ver-column": "n"},
    "aggregation": {MERGE: "aggregation"},
}
DELETES = {"plain", "image wal"}
PARTIAL = {"plain", "image wal", "aggregation"}
KEYS = 60


def sums() -> Schema:
    """The columns of an aggregation: a sum, and the greatest text."""
    schema = Schema.builder().column("id", DataTypes.bigint())
    schema = schema.column("n", DataTypes.bigint(), aggregation="sum")
    schema = schema.column("text", DataTypes.string(), aggregation="max")
    return schema.primary_key(["id"]).build()


class History:
    """A table, what is written to it, and the states that it has had."""

    def __init__(
        self,
        session: Any,
        engine: str,
        mode: str,
        seed: str,
        readers: Sequence[Reader] = READERS,
    ) -> None:
        name = f"h_{uuid.uuid4().hex[:8]}"
        how = {"buckets": 2, "properties": {**LAKE, **ENGINES[engine]}}
        if engine == "aggregation":
            session.create_table(name, sums(), **how)
        else:
            session.create_table(name, COLUMNS, primary_key="id", **how)
        session.alter_table(name, set_properties={"tiering.write-mode": mode})
        self.engine, self.rng, self.readers = engine, random.Random(seed), readers
        self.states: list[tuple[dict[int, int], pa.Table]] = []
        self.attach(session, name)

    def attach(self, session: Any, name: str) -> None:
        """Go on in a session of another server of the same data."""
        self.session, self.table = session, session.table(name)

    def write(self) -> None:
        """Write, and note the states."""
        for _ in range(self.rng.randrange(1, 5)):
            self._upsert()
            if self.engine in PARTIAL and self.rng.random() < 0.5:
                self.table.update(
                    [{"id": key, "n": self.rng.randrange(50)} for key in self._keys()]
                )
            if self.engine in DELETES and self.rng.random() < 0.7:
                self.table.delete([(key,) for key in self._keys()[:15]])
            self._note()

    def _keys(self) -> list[int]:
        return [self.rng.randrange(KEYS) for _ in range(self.rng.randrange(1, 40))]

    def _upsert(self) -> None:
        given = [
            {"id": key, "n": self.rng.randrange(50), "text": f"t{self.rng.random()}"}
            for key in self._keys()
        ]
        self.table.upsert(given)

    def _note(self) -> None:
        ends = {each["bucket"]: each["end"] for each in self.table.offsets().to_pylist()}
        self.states.append((ends, rows_of(self.table, lake="off")))

    def tier(self) -> None:
        """Make some rounds; a round may end between the two halves of an update."""
        bounds = {"rows_max": self.rng.choice([7, 33, 1_000]), "memory_bytes": 64 * 1024}
        for _ in range(self.rng.randrange(1, 4)):
            one_round(self.table, **bounds)
            self.check()

    def check(self) -> None:
        """Compare what an engine reads now, and one earlier state, with what is known."""
        expected = rows_of(self.table, lake="off")
        assert rows_of(self.table) == expected
        read = self.rng.choice(self.readers)
        assert values(read(self.table, self.session), NAMES) == values(expected, NAMES), read
        ends, state = self.rng.choice(self.states)
        assert rows_of(self.table, as_of=ends) == state, ends


def rows_of(table: Any, **options: Any) -> pa.Table:
    """The rows of a scan, in the order of their keys."""
    return table.scan(**options).to_arrow().sort_by("id")
