"""Lookups in partitions that have expired: through the system's partition, and only there.

No server at hand has such a partition. The scripted one answers as Java's client 1.0.0 expects: a
bucket may be there several times, and the answer repeats the name of each original partition.
"""

import pyarrow as pa
import pytest

import fluss
from fluss.connection.connection import ClientConnection
from fluss.lookup.lookup_cores import key_lookup
from fluss.model.options.config import Config
from fluss.model.schema.schema import Schema
from fluss.net.engine_thread import engine
from fluss.net.handoff import BlockingSink
from fluss.rows.formats.compacted_row import CompactedRowWriter
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from tests.support.scripted.scripted_cluster import PATH, ScriptedCluster

HISTORY = (77, "__historical__")
SCHEMA = Schema(
    pa.schema(
        [
            pa.field("p", pa.string(), nullable=False),
            pa.field("id", pa.int64(), nullable=False),
            ("name", pa.string()),
        ]
    ),
    ["p", "id"],
)
KEEPS_HISTORY = {
    "table.auto-partition.enabled": "true",
    "table.auto-partition.time-unit": "DAY",
    "table.auto-partition.time-zone": "UTC",
    "table.datalake.historical-partition.enabled": "true",
}
THROTTLED = 73


class History(ScriptedCluster):
    """Has the partition of history, whose rows belong to original partitions."""

    rows: dict  # (original partition, id) -> name

    def _lookup(self, asked):
        self.lookups.append(asked)
        fault = self.lookup_faults.popleft() if self.lookup_faults else None
        answer = pb.LookupResponse()
        # Last first: answers are matched by their names, not by their places.
        for requested in reversed(asked.buckets_req):
            original = requested.original_partition_name
            bucket = answer.buckets_resp.add(
                bucket_id=requested.bucket_id,
                partition_id=requested.partition_id,
                original_partition_name=original,
            )
            if fault is not None:
                bucket.error_code = fault
                continue
            known = {
                encoded(each): name
                for (where, each), name in self.rows.items()
                if where == original
            }
            for key in getattr(requested, "keys"):  # noqa: B009 - a field
                value = bucket.values.add()
                if key in known:
                    value.values = stored(original, *known[key])
        return answer


def encoded(number):
    return CompactedRowWriter([SCHEMA.column("id").data_type], is_key=True).write([number])


def stored(day, number, name):
    row = CompactedRowWriter(SCHEMA.column_types).write([day, number, name])
    return (1).to_bytes(2, "little") + row


ROWS = {
    (day, number): (number, f"{day} {number}")
    for day in ("20200101", "20200102")
    for number in range(4)
}


@pytest.fixture(params=[1, 3], ids=["one bucket", "three buckets"])
def history(request):
    with History(
        SCHEMA, partition=HISTORY, properties=KEEPS_HISTORY, bucket_count=request.param
    ) as cluster:
        cluster.rows = ROWS
        yield cluster


@pytest.fixture
def table(history):
    url = f"fluss://{history.bootstrap}/db"
    with fluss.connect(url, **{"operation-timeout": "5s", "retry.backoff-ms": "5"}) as session:
        yield session.table("t")


KEYS = [(day, number) for number in range(6) for day in ("20200102", "20200101", "20200103")]
NAMES = [ROWS.get(key, (None, None))[1] for key in KEYS]


def asked_buckets(history):
    return [each for asked in history.lookups for each in asked.buckets_req]


def test_keys_of_expired_partitions_are_looked_up_in_history(history, table):
    found = table.lookup(KEYS)
    assert found["name"].to_pylist() == NAMES
    buckets = asked_buckets(history)
    assert {each.partition_id for each in buckets} == {HISTORY[0]}
    assert {each.original_partition_name for each in buckets} == {day for day, _ in KEYS}
    assert {each.routing_bucket_count for each in buckets} == {history.bucket_count}
    # One request may have a bucket several times, once for each original partition.
    (first, *_) = history.lookups
    told_apart = [(each.bucket_id, each.original_partition_name) for each in first.buckets_req]
    assert len(told_apart) == len(set(told_apart))
    assert len({bucket_id for bucket_id, _ in told_apart}) < len(told_apart)


def test_single_keys_are_looked_up_there_too_and_their_partitions_are_remembered(history):
    running = engine()
    config = Config({"bootstrap.servers": history.bootstrap, "operation-timeout": "5s"})
    connection = running.run(ClientConnection.open(running, config))
    try:
        core = key_lookup(running.run(connection.table(PATH)))
        for _ in range(2):
            history.asked.clear()
            callers = []
            for key in KEYS:
                callers.append(BlockingSink(core.decode))
                core.ask(list(key), callers[-1])
            found = [each.wait_for_result(lambda: None, None) for each in callers]
            assert [each and each["name"] for each in found] == NAMES
        assert ApiKey.GET_METADATA not in history.asked, "it asks for the partitions once"
    finally:
        running.run(connection.close())
    # One request may have a bucket several times, once for each original partition.
    told_apart = [
        [(each.bucket_id, each.original_partition_name) for each in asked.buckets_req]
        for asked in history.lookups
    ]
    assert all(len(each) == len(set(each)) for each in told_apart)
    assert any(len({bucket_id for bucket_id, _ in each}) < len(each) for each in told_apart)


def test_a_throttled_lookup_is_repeated(history, table):
    history.lookup_faults.append(THROTTLED)
    assert table.lookup(KEYS)["name"].to_pylist() == NAMES


@pytest.mark.parametrize(
    ("properties", "day"),
    [
        (KEEPS_HISTORY, "29990101"),  # not past
        (KEEPS_HISTORY, "2020"),  # not a day
        (KEEPS_HISTORY, "x0200101"),
        ({**KEEPS_HISTORY, "table.datalake.historical-partition.enabled": "false"}, "20200101"),
        ({**KEEPS_HISTORY, "table.auto-partition.enabled": "false"}, "20200101"),
    ],
)
def test_other_partitions_are_not_looked_up_in_history(properties, day):
    with History(SCHEMA, partition=HISTORY, properties=properties) as cluster:
        cluster.rows = {(day, 1): (1, "x")}
        with fluss.connect(f"fluss://{cluster.bootstrap}/db") as session:
            assert session.table("t").lookup([(day, 1)]).num_rows == 1
            assert session.table("t").lookup([(day, 1)])["name"].to_pylist() == [None]
        assert cluster.lookups == []


def test_without_history_there_is_no_row():
    with History(SCHEMA, partition=(5, "20990101"), properties=KEEPS_HISTORY) as cluster:
        cluster.rows = ROWS
        with fluss.connect(f"fluss://{cluster.bootstrap}/db") as session:
            assert session.table("t").lookup([("20200101", 1)])["name"].to_pylist() == [None]
        assert cluster.lookups == []
