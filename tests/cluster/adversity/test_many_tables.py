"""One writer and one reader of many tables while connections are cut and stalled at random.

A model in Python says what the tables must have in the end: each row of a log once and in order,
each key with its last values. The servers are reached through proxies, by `address.map`.
"""

import time
from contextlib import ExitStack, contextmanager
from random import Random

import pyarrow as pa
import pytest

import fluss
from fluss.errors import ConnectError, FlussError
from tests.support.scripted.scripted_peer import Proxy

LOG = {"n": "BIGINT", "seed": "BIGINT"}
KEYED = {"id": "BIGINT NOT NULL", "name": "STRING", "age": "BIGINT"}
LOGS, KEYS = ("log_a", "log_b"), ("keyed_a", "keyed_b")
STEPS = 250
SETTINGS = {"retry.backoff-ms": "5", "retry.backoff-max-ms": "50", "writer.batch-timeout": "5ms"}
END_S = 60.0


class Model:
    """What the tables have; each step is done here and by the writer."""

    def __init__(self, random, writer):
        self.random, self.writer = random, writer
        self.logs = dict.fromkeys(LOGS, 0)
        self.rows = {name: {} for name in KEYS}

    def append(self):
        name, count = self.random.choice(LOGS), self.random.randint(1, 4)
        first = self.logs[name]
        rows = [{"n": number, "seed": 1} for number in range(first, first + count)]
        self.logs[name] += count
        self.writer.append(name, rows[0] if count == 1 else rows)

    def upsert(self):
        name, key = self._key()
        row = {"id": key, "name": str(self.random.random()), "age": self.random.randint(0, 9)}
        self.rows[name][key] = row
        self.writer.upsert(name, dict(row))

    def update(self):
        name, key = self._key()
        age = self.random.randint(10, 99)
        self.rows[name].setdefault(key, {"id": key, "name": None})["age"] = age
        self.writer.update(name, {"id": key, "age": age})

    def delete(self):
        name, key = self._key()
        self.rows[name].pop(key, None)
        self.writer.delete(name, key)

    def route(self):
        rows = []
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

    def _key(self):
        return self.random.choice(KEYS), self.random.randint(0, 5)


@contextmanager
def behind_proxies(cluster, database):
    """A session through proxies, and the proxies."""
    url = f"fluss://{cluster.bootstrap}/{database}"
    with fluss.connect(url) as direct:
        addresses = {f"{each.host}:{each.port}" for each in direct.servers()}
    addresses.add(cluster.bootstrap)
    with ExitStack() as stack:
        proxies = {}
        for address in sorted(addresses):
            host, port = address.rsplit(":", 1)
            proxies[address] = stack.enter_context(Proxy(host, int(port)))
        ends = ",".join(f"{a}={each.host}:{each.port}" for a, each in proxies.items())
        session = stack.enter_context(fluss.connect(url, config={**SETTINGS, "address.map": ends}))
        yield session, list(proxies.values())


@pytest.mark.slow  # hundreds of steps, and connections that are cut between them
@pytest.mark.parametrize("seed", range(3))
def test_a_random_schedule_loses_repeats_and_reorders_nothing(cluster, database, seed):
    random = Random(seed)
    with behind_proxies(cluster, database) as (session, proxies):
        for name in LOGS:
            session.create_table(name, LOG, buckets=1)
        for name in KEYS:
            session.create_table(name, KEYED, primary_key="id", buckets=2)
        reader = session.follow_many(LOGS, start="earliest", columns=["n"])
        seen = {session.table(name).name: [] for name in LOGS}
        with session.write_many([*LOGS, *KEYS]) as writer:
            model = Model(random, writer)
            steps = [model.append, model.upsert, model.update, model.delete, model.route]
            for _ in range(STEPS):
                random.choice(steps)()
                match random.randint(0, 30):
                    case 0:
                        random.choice(proxies).cut()
                    case 1:
                        stalled = random.choice(proxies)
                        stalled.stall()
                        time.sleep(0.02)
                        stalled.flow()
                    case 2 | 3:
                        assert not [each for each in writer.flush().values() if not each.rows]
                    case 4:
                        take(reader, seen)
                    case 5:
                        cursor = str(reader.cursor())
                        reader.close()
                        reader = opened(session, cursor)
            writer.flush()
        for name in KEYS:
            rows = {each["id"]: each for each in session.table(name).to_arrow().to_pylist()}
            assert rows == model.rows[name]
        expected = {
            session.table(name).name: list(range(count)) for name, count in model.logs.items()
        }
        end = time.monotonic() + END_S
        while seen != expected and time.monotonic() < end:
            take(reader, seen)
        assert seen == expected
        reader.close()


def opened(session, cursor):
    """Open a reader; a connection that is cut during its first request is an error by design."""
    for _ in range(20):
        try:
            return session.follow_many(LOGS, start=cursor, columns=["n"])
        except ConnectError:
            time.sleep(0.05)
    raise AssertionError("no connection in 20 tries")


def take(reader, seen):
    try:
        for name, batch in reader.poll(0.05):
            seen[name] += batch.column("n").to_pylist()
    except FlussError as error:
        # A cut connection: the rows come with a later poll.
        assert error.is_retriable or isinstance(error, ConnectError)  # noqa: PT017
