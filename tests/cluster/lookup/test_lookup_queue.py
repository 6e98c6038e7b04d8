"""Lookups against a scripted server: batching, and what follows from errors."""

import asyncio
import time
from contextlib import contextmanager

import pyarrow as pa
import pytest

from fluss.connection.connection import ClientConnection
from fluss.errors import ClosedError, CorruptDataError, FlussError, ProtocolError
from fluss.lookup.lookup_cores import key_lookup
from fluss.model.options.config import Config
from fluss.model.schema.schema import Schema
from fluss.net.engine_thread import engine
from fluss.net.handoff import BlockingSink, result_sink_here
from fluss.rows.formats.compacted_row import CompactedRowWriter
from fluss.wire import messages as pb
from tests.support.scripted.scripted_cluster import PATH, ScriptedCluster

SCHEMA = Schema(
    pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())]), ["id"]
)
WIDER = Schema(
    pa.schema(
        [pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("age", pa.int32())]
    ),
    ["id"],
)
FAST = {"retry.backoff-ms": "5", "retry.backoff-max-ms": "20", "operation-timeout": "2s"}
WAIT_S = 30


def key_of(number):
    return CompactedRowWriter([SCHEMA.column("id").data_type], is_key=True).write([number])


def put(cluster, number, *values, schema_id=1):
    schema = cluster.schemas[schema_id]
    row = CompactedRowWriter(schema.column_types).write([number, *values])
    cluster.values[key_of(number)] = schema_id.to_bytes(2, "little") + row


@contextmanager
def table_of(cluster, **settings):
    running = engine()
    config = Config({"bootstrap.servers": cluster.bootstrap} | FAST | settings)
    connection = running.run(ClientConnection.open(running, config))
    try:
        yield running.run(connection.table(PATH))
    finally:
        running.run(connection.close())


def start(core, key):
    caller = BlockingSink(core.decode)
    core.ask(key, caller)
    return caller


def answer_of(caller):
    assert caller.wait(WAIT_S), "no answer"
    return caller.result()


def look(core, key):
    return answer_of(start(core, key))


@pytest.fixture
def cluster():
    with ScriptedCluster(SCHEMA, bucket_count=3) as made:
        for number in range(50):
            put(made, number, f"n{number}")
        yield made


def test_a_row_is_found_and_a_missing_one_is_none(cluster):
    with table_of(cluster) as table:
        core = key_lookup(table)
        assert look(core, {"id": 7}) == {"id": 7, "name": "n7"}
        assert look(core, [8]) == {"id": 8, "name": "n8"}
        assert look(core, [999]) is None


def test_a_lone_lookup_is_sent_immediately_and_waiting_ones_together(cluster):
    with table_of(cluster, **{"lookup.max-inflight-requests": "1"}) as table:
        core = key_lookup(table)
        look(core, [0])
        cluster.lookups.clear()
        cluster.hold_lookups.clear()
        first = start(core, [0])
        wait_until(lambda: cluster.lookups)
        others = [start(core, [number]) for number in range(1, 50)]
        time.sleep(0.05)
        assert len(cluster.lookups) == 1
        cluster.hold_lookups.set()
        assert answer_of(first)["id"] == 0
        assert [answer_of(each)["id"] for each in others] == list(range(1, 50))
        assert len(cluster.lookups) == 2
        assert {each.bucket_id for each in cluster.lookups[1].buckets_req} == {0, 1, 2}


def test_lookupers_of_one_table_share_requests_without_mixing_up_answers(cluster):
    with table_of(cluster, **{"lookup.max-inflight-requests": "1"}) as table:
        cores = [key_lookup(table) for _ in range(3)]
        look(cores[0], [0])
        cluster.hold_lookups.clear()
        held = start(cores[0], [0])
        wait_until(lambda: len(cluster.lookups) == 2)
        asked = [(number, start(cores[number % 3], [number])) for number in range(50)]
        time.sleep(0.05)
        cluster.hold_lookups.set()
        assert answer_of(held)["id"] == 0
        for number, caller in asked:
            assert answer_of(caller)["id"] == number
        buckets = [each.bucket_id for each in cluster.lookups[-1].buckets_req]
        assert len(buckets) == len(set(buckets))


def test_a_request_carries_no_more_keys_than_is_set(cluster):
    with table_of(cluster, **{"lookup.max-batch-size": "10"}) as table:
        core = key_lookup(table)
        asked = [start(core, [number]) for number in range(50)]
        assert [answer_of(each)["id"] for each in asked] == list(range(50))
        assert all(
            sum(len(bucket.keys) for bucket in each.buckets_req) <= 10 for each in cluster.lookups
        )


def test_many_lookups_of_one_loop_are_few_requests(cluster):
    async def gather(core):
        futures = []
        for number in range(1_000):
            caller = result_sink_here(core.decode)
            core.ask([number % 50], caller)
            futures.append(caller.future)
        return await asyncio.gather(*futures)

    with table_of(cluster) as table:
        rows = asyncio.run(gather(key_lookup(table)))
    assert [each["id"] for each in rows] == [number % 50 for number in range(1_000)]
    assert len(cluster.lookups) < 100


@pytest.mark.parametrize("code", [1, 3, 12, 21, 25, 44])
def test_a_passing_refusal_is_waited_out(cluster, code):
    cluster.lookup_faults.extend([code] * 3)
    with table_of(cluster) as table:
        assert look(key_lookup(table), [5]) == {"id": 5, "name": "n5"}
    assert len(cluster.lookups) == 4


def test_a_lasting_refusal_ends_in_its_time(cluster):
    cluster.lookup_faults.extend([44] * 10_000)
    with table_of(cluster, **{"operation-timeout": "3s"}) as table:
        with pytest.raises(FlussError) as caught:
            look(key_lookup(table), [5])
        assert caught.value.error_code == 44


def test_a_lookup_is_sent_again_no_more_often_than_is_set(cluster):
    cluster.lookup_faults.extend([44] * 100)
    with table_of(cluster, **{"lookup.max-retries": "2"}) as table, pytest.raises(FlussError):
        look(key_lookup(table), [5])
    assert len(cluster.lookups) == 3


def test_a_permanent_error_is_raised_immediately(cluster):
    cluster.lookup_faults.append(48)
    with table_of(cluster) as table, pytest.raises(FlussError) as caught:
        look(key_lookup(table), [5])
    assert caught.value.error_code == 48


def test_each_waiter_has_an_error_of_its_own(cluster):
    cluster.lookup_faults.extend([48, 48])
    with table_of(cluster) as table:
        core = key_lookup(table)
        cluster.hold_lookups.clear()
        callers = [start(core, [5]) for _ in range(2)]
        cluster.hold_lookups.set()
        errors = []
        for each in callers:
            with pytest.raises(FlussError) as caught:
                answer_of(each)
            errors.append(caught.value)
    assert errors[0] is not errors[1]


def test_values_of_another_schema_are_read_with_theirs(cluster):
    cluster.schemas[2] = WIDER
    put(cluster, 1, "new", 30, schema_id=2)
    with table_of(cluster) as table:
        newest = key_lookup(table)
        assert look(newest, [1]) == {"id": 1, "name": "new", "age": 30}
        assert look(newest, [2]) == {"id": 2, "name": "n2", "age": None}


def test_a_schema_learned_after_the_table_was_got_is_asked_for(cluster):
    with table_of(cluster) as table:
        cluster.schemas[2] = WIDER
        put(cluster, 1, "new", 30, schema_id=2)
        core = key_lookup(table)
        assert look(core, [1]) == {"id": 1, "name": "new"}
        assert [look(core, [1]) for _ in range(3)] == [{"id": 1, "name": "new"}] * 3


def test_a_damaged_value_is_reported(cluster):
    cluster.values[key_of(1)] = b"\x01"
    cluster.values[key_of(2)] = b"\x01\x00\x00\x01"
    with table_of(cluster) as table:
        for number in (1, 2):
            with pytest.raises(CorruptDataError):
                look(key_lookup(table), [number])


def test_an_answer_with_too_few_values_is_refused(cluster):
    cluster._lookup = lambda _: pb.LookupResponse()
    with table_of(cluster) as table, pytest.raises(ProtocolError, match="does not answer the 1"):
        look(key_lookup(table), [1])


def test_a_key_of_a_partition_that_is_not_there_is_not_there():
    schema = Schema(
        pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                ("name", pa.string()),
                pa.field("p", pa.string(), nullable=False),
            ]
        ),
        ["id", "p"],
    )
    with ScriptedCluster(schema, partition=(5, "x")) as cluster:
        row = CompactedRowWriter(schema.column_types).write([1, "a", "x"])
        cluster.values[key_of(1)] = b"\x01\x00" + row
        with table_of(cluster) as table:
            core = key_lookup(table)
            assert look(core, {"id": 1, "p": "x"}) == {"id": 1, "name": "a", "p": "x"}
            assert look(core, {"id": 1, "p": "y"}) is None
        assert cluster.lookups[0].buckets_req[0].partition_id == 5


def test_closing_the_connection_answers_everybody(cluster):
    cluster.hold_lookups.clear()
    with table_of(cluster) as table:
        caller = start(key_lookup(table), [1])
        wait_until(lambda: cluster.lookups)
        engine().run(table.connection.close())
        with pytest.raises(ClosedError):
            answer_of(caller)
        with pytest.raises(ClosedError):
            look(key_lookup(table), [1])


def test_a_cancelled_lookup_harms_no_other(cluster):
    async def give_up(core):
        caller = result_sink_here(core.decode)
        core.ask([1], caller)
        caller.future.cancel()
        other = result_sink_here(core.decode)
        core.ask([2], other)
        return await other.future

    with table_of(cluster) as table:
        assert asyncio.run(give_up(key_lookup(table)))["id"] == 2


def wait_until(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)
