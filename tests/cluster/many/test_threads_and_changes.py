"""Threads share one writer, write every kind of rows, and change the table meanwhile.

Each thread has keys of its own. Whatever the others do, what it wrote last must be there: rows are
written in the order of the calls of a thread. Buffers are so small that they are sent at any
moment, and partitions appear with their first rows.
"""

import threading
from dataclasses import dataclass
from random import Random

import pyarrow as pa
import pytest

import fluss
from fluss.native import VARIABLE
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE

KEYS = 4
STEPS = 80
COLUMNS_MAX = 6
COLUMNS = {"id": "BIGINT NOT NULL", "part": "STRING NOT NULL", "name": "STRING", "age": "BIGINT"}
ROWS = pa.schema({"id": pa.int64(), "part": pa.string(), "name": pa.string(), "age": pa.int64()})
SMALL = {
    "writer.batch-timeout": "1ms",
    "writer.batch-size": "2kb",
    "writer.dynamic-batch-size-min": "512b",
    "writer.buffer.memory-size": "32kb",
    "writer.buffer.wait-timeout": "60s",
}


@dataclass
class Person:
    id: int
    part: str
    name: str | None = None
    age: int | None = None


class Writing:
    """What one thread writes, and what must be left of it."""

    def __init__(self, session, writer, names, seed, *, partitioned):
        self.session, self.writer, self.names = session, writer, names
        self.random = Random(seed)
        self.keys = [seed * KEYS + number for number in range(KEYS)]
        self.rows = {}
        self.partitioned = partitioned
        self.failure = None

    def run(self):
        often = [self.row] * 6 + [self.update] * 3 + [self.delete] * 2
        frames = [self.frame, self.partial, self.keys_of, self.changes, self.routed, self.stream]
        steps = [*often, *frames, self.typed, self.flush, self.alter]
        try:
            for _ in range(STEPS):
                self.random.choice(steps)()
        except BaseException as error:  # noqa: BLE001 - raised by the test's thread
            self.failure = error

    # --- steps ------------------------------------------------------------------------------

    def table(self):
        return self.random.choice(self.names)

    def new(self):
        key = self.random.choice(self.keys)
        part = str(key % 3) if not self.partitioned else f"p{key % 5}"
        age = self.random.randint(0, 1 << 30)
        return {"id": key, "part": part, "name": f"{age:x}" * self.random.randint(0, 9), "age": age}

    def keep(self, row, *, partial=False):
        kept = self.rows.setdefault(row["id"], {}) if partial else {}
        self.rows[row["id"]] = kept
        kept.update(row)
        kept.setdefault("name", None)
        kept.setdefault("age", None)

    def row(self):
        for _ in range(self.random.randint(1, 5)):
            row = self.new()
            self.keep(row)
            self.writer.upsert(self.table(), dict(row))

    def update(self):
        row = self.new()
        del row[self.random.choice(["name", "age"])]
        self.keep(row, partial=True)
        self.writer.update(self.table(), row)

    def delete(self):
        row = self.new()
        self.rows.pop(row["id"], None)
        self.writer.delete(self.table(), {"id": row["id"], "part": row["part"]})

    def several(self):
        return [self.new() for _ in range(self.random.randint(1, 60))]

    def frame(self):
        rows = self.several()
        for row in rows:
            self.keep(row)
        self.writer.upsert(self.table(), [dict(each) for each in rows])

    def partial(self):
        rows = [{name: each[name] for name in ("id", "part", "age")} for each in self.several()]
        for row in rows:
            self.keep(row, partial=True)
        self.writer.update(self.table(), pa.Table.from_pylist(rows, ROWS.remove(2)))

    def keys_of(self):
        rows = [self.new() for _ in range(self.random.randint(1, 3))]
        for row in rows:
            self.rows.pop(row["id"], None)
        self.writer.delete(
            self.table(), [{"id": each["id"], "part": each["part"]} for each in rows]
        )

    def typed(self):
        row = self.new()
        self.keep(row)
        self.writer.upsert(self.table(), Person(**row))

    def changes(self):
        rows = []
        for row in self.several():
            if self.random.random() < 0.3:
                self.rows.pop(row["id"], None)
                rows.append({"_change_type": "delete", **row, "name": None, "age": None})
            else:
                self.keep(row)
                rows.append({"_change_type": "insert", **row})
        self.writer.upsert(self.table(), rows)

    def routed(self):
        rows = self.several()
        given = [{"t": self.table(), **row} for row in rows]
        schema = pa.schema([("t", pa.string()), *ROWS])
        if self.random.random() < 0.5:
            self.writer.route(given, by="t")
        else:
            data = self.padded(pa.Table.from_pylist(given, schema))
            if not self.takes(lambda: self.writer.route(data, by="t")):
                return
        for row in rows:
            self.keep(row)

    def takes(self, write):
        """Whether a frame is taken; not if a thread has just added a column that it lacks."""
        try:
            write()
        except fluss.FlussError as error:
            assert "lacks the column" in str(error)  # noqa: PT017
            return False
        return True

    def padded(self, data):
        """With the columns that threads have added: a frame names all columns of its table."""
        for name in self.session.table(self.names[0]).schema.names:
            if name not in data.column_names:
                data = data.append_column(name, pa.nulls(len(data), pa.string()))
        return data

    def stream(self):
        rows = self.several()
        data = self.padded(pa.Table.from_pylist(rows, ROWS))
        if self.takes(lambda: self.writer.upsert(self.table(), data.to_reader(max_chunksize=7))):
            for row in rows:
                self.keep(row)

    def flush(self):
        self.writer.flush()

    def alter(self):
        columns = self.session.table(self.names[0]).schema.names
        name = f"more{len(columns)}"
        if len(columns) >= 4 + COLUMNS_MAX:
            return
        try:
            self.session.alter_table(self.names[0], add_columns={name: "STRING"})
        except fluss.FlussError as error:
            assert "exist" in str(error) or "more than once" in str(error)  # noqa: PT017
        # Only a row with a new column makes the writer look for it.
        row = self.new()
        self.keep(row)
        self.writer.upsert(self.table(), {**row, name: "x"})


@pytest.mark.slow  # hundreds of rows in batches of a few
@pytest.mark.parametrize("rows", ["python", "native"])
@pytest.mark.parametrize("kind", ["plain", "partitioned"])
@pytest.mark.parametrize("seed", range(24 if IS_EXHAUSTIVE else 1))
def test_threads_find_what_they_wrote_last(cluster, database, kind, rows, seed, monkeypatch):
    monkeypatch.setenv(VARIABLE, "off" if rows == "python" else "on")
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}", config=SMALL) as session:
        more = {"partition_by": ["part"]} if kind == "partitioned" else {}
        table = session.create_table(
            "people", COLUMNS, primary_key=["id", "part"], buckets=2, **more
        )
        writer = session.write_many()
        names = ["people", table.name]
        parts = [
            Writing(session, writer, names, seed * 10 + each, partitioned=bool(more))
            for each in range(3)
        ]
        threads = [threading.Thread(target=each.run) for each in parts]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for each in parts:
            if each.failure is not None:
                raise each.failure
        writer.close()
        expected = {key: row for each in parts for key, row in each.rows.items()}
        found = session.table("people").to_arrow().select(["id", "part", "name", "age"])
        assert {each["id"]: each for each in found.to_pylist()} == expected
