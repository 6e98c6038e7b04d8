"""What a writer of many tables must leave behind, computed in Python from the same random steps.

`Model` does each step with the writer and with dicts. In the end each log must have each row once
and in order, and each key its last values. `Following` reads the logs meanwhile, and goes on by its
cursor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any, Self

import pyarrow as pa

from fluss.errors import ConnectError, FlussError
from fluss.session import FollowMany, Session, WriteMany

LOG = {"n": "BIGINT", "seed": "BIGINT"}
KEYED = {"id": "BIGINT NOT NULL", "name": "STRING", "age": "BIGINT"}
LOGS, KEYS = ("log_a", "log_b"), ("keyed_a", "keyed_b")
# Failures are over soon, and so are the pauses after them.
SETTINGS = {"retry.backoff-ms": "5", "retry.backoff-max-ms": "50", "writer.batch-timeout": "5ms"}
END_S = 60.0
OPENED_WITHIN_S = 30.0


def create_tables(session: Session, **properties: str) -> None:
    """Create two logs of one bucket, and two primary-key tables of two."""
    more: dict[str, Any] = {"properties": properties} if properties else {}
    for name in LOGS:
        session.create_table(name, LOG, buckets=1, **more)
    for name in KEYS:
        session.create_table(name, KEYED, primary_key="id", buckets=2, **more)


class Model:
    """What the tables must have; each step is done here and by the writer."""

    def __init__(self, random: Random, writer: WriteMany) -> None:
        self.random, self.writer = random, writer
        self.logs = dict.fromkeys(LOGS, 0)
        self.rows: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in KEYS}
        self._steps: list[Callable[[], None]] = [
            self._append,
            self._upsert,
            self._update,
            self._delete,
            self._route,
        ]

    def step(self) -> None:
        """Write something."""
        self.random.choice(self._steps)()

    def flush(self) -> None:
        """Wait for all rows so far; each reported table has some."""
        assert not [each for each in self.writer.flush().values() if not each.rows]

    def check(self, session: Session) -> None:
        """Compare the primary-key tables with what was written; `Following` compares the logs."""
        for name in KEYS:
            found = session.table(name).to_arrow().to_pylist()
            assert {each["id"]: each for each in found} == self.rows[name]

    def _append(self) -> None:
        name, count = self.random.choice(LOGS), self.random.randint(1, 4)
        first = self.logs[name]
        rows = [{"n": number, "seed": 1} for number in range(first, first + count)]
        self.logs[name] += count
        self.writer.append(name, rows[0] if count == 1 else rows)

    def _upsert(self) -> None:
        name, key = self._key()
        row = {"id": key, "name": str(self.random.random()), "age": self.random.randint(0, 9)}
        self.rows[name][key] = row
        self.writer.upsert(name, dict(row))

    def _update(self) -> None:
        name, key = self._key()
        age = self.random.randint(10, 99)
        self.rows[name].setdefault(key, {"id": key, "name": None})["age"] = age
        self.writer.update(name, {"id": key, "age": age})

    def _delete(self) -> None:
        name, key = self._key()
        self.rows[name].pop(key, None)
        self.writer.delete(name, key)

    def _route(self) -> None:
        rows: list[dict[str, Any]] = []
        for _ in range(self.random.randint(0, 12)):
            if self.random.random() < 0.5:
                name = self.random.choice(LOGS)
                rows.append({"table": name, "_change_type": "insert", "n": self.logs[name]})
                self.logs[name] += 1
                continue
            name, key = self._key()
            if self.random.random() < 0.3:
                self.rows[name].pop(key, None)
                rows.append({"table": name, "_change_type": "delete", "id": key})
            else:
                row = {"id": key, "name": "routed", "age": self.random.randint(0, 9)}
                self.rows[name][key] = row
                rows.append({"table": name, "_change_type": "update_after", **row})
        columns = ["table", "_change_type", "n", "seed", "id", "name", "age"]
        types = [pa.string(), pa.string(), *[pa.int64()] * 3, pa.string(), pa.int64()]
        schema = pa.schema(list(zip(columns, types, strict=True)))
        self.writer.route(pa.Table.from_pylist(rows, schema=schema))

    def _key(self) -> tuple[str, int]:
        return self.random.choice(KEYS), self.random.randint(0, 5)


class Following:
    """A reader of the logs, and the rows that it has given out; a context manager."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._reader = self._opened("earliest")
        self.seen: dict[str, list[int]] = {session.table(name).name: [] for name in LOGS}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def take(self) -> None:
        """Take what has arrived; a lost connection is no end."""
        try:
            for name, batch in self._reader.poll(0.05):
                self.seen[name] += batch.column("n").to_pylist()
        except FlussError as error:
            # The rows come with a later poll.
            assert error.is_retriable or isinstance(error, ConnectError)  # noqa: PT017

    def reopen(self) -> None:
        """Go on with another reader, by the cursor."""
        cursor = str(self._reader.cursor())
        self._reader.close()
        self._reader = self._opened(cursor)

    def check(self, model: Model) -> None:
        """Read to the end, and compare: no row is lost, repeated or out of order."""
        expected = {
            self._session.table(name).name: list(range(count)) for name, count in model.logs.items()
        }
        end = time.monotonic() + END_S
        while self.seen != expected and time.monotonic() < end:
            self.take()
        assert self.seen == expected

    def _opened(self, start: str) -> FollowMany:
        """Open a reader; a connection that is cut in its first request is an error by design."""
        end = time.monotonic() + OPENED_WITHIN_S
        while True:
            try:
                return self._session.follow_many(LOGS, start=start, columns=["n"])
            except ConnectError:
                assert time.monotonic() < end, "no connection in time"
                time.sleep(0.05)
