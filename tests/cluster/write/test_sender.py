"""The sender against a scripted server."""

import asyncio
import time
from dataclasses import replace

import pyarrow as pa
import pytest

from fluss.dialects.writers import AppendWriter
from fluss.errors import (
    AuthorizationError,
    FlussError,
    LimitExceededError,
    ProtocolError,
    RequestTimeoutError,
    WriterStateError,
)
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.net.cluster_client import Cluster
from fluss.net.engine_thread import engine
from fluss.net.network_settings import Address, ConnectionSettings
from fluss.net.server_connection import ServerConnection
from fluss.net.wait_notices import WaitNotices
from fluss.write.write_batch import WriterSettings
from fluss.write.write_result import JoinedResult
from fluss.write.writer_pool import WriterPool
from tests.support.scripted.scripted_tablet import SILENCE, TABLE_ID, ScriptedTablet
from tests.support.servers.write_harness import wait

PATH = TablePath("db", "t")
SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


def row(number):
    return {"id": number, "s": "x"}


class Bench:
    """A tablet server, and writers of a client that knows no other."""

    def __init__(self, tablet, **settings):
        self.tablet = tablet
        self.engine = engine()
        facts = {"delivery_timeout_ms": 5_000, "request_timeout_ms": 1_000} | settings
        self.settings = replace(WriterSettings(), **facts)
        self.cluster = Cluster(
            ConnectionSettings(
                bootstrap=(Address(tablet.host, tablet.port),),
                request_timeout_ms=self.settings.request_timeout_ms,
                retry_timeout_ms=2_000,
            ),
        )
        self.engine.run(self.cluster.open())
        self.pool = WriterPool(self.cluster, self.settings, engine=self.engine)

    def info(self, **facts):
        keys = facts.pop("primary_keys", None)
        descriptor = TableDescriptor(
            Schema(SCHEMA, keys), bucket_count=self.tablet.buckets, **facts
        )
        return TableInfo.of(descriptor, table_path=PATH, table_id=TABLE_ID, schema_id=1)

    def appender(self):
        return self.pool.append_core(self.info())

    def upserter(self):
        return self.pool.upsert_core(self.info(primary_keys=["id"]))

    def send(self, core, *numbers):
        """One batch per row, all in flight together."""
        handles = []
        for number in numbers:
            handles.append(core.append(row(number)))
            core.seal()
        return handles

    def close(self):
        self.engine.run(self.pool.close(timeout_s=1))
        self.engine.run(self.cluster.close())


@pytest.fixture
def tablet():
    with ScriptedTablet(PATH) as made:
        yield made


@pytest.fixture
def start(tablet):
    benches = []

    def make(**settings):
        benches.append(Bench(tablet, **settings))
        return benches[-1]

    yield make
    for each in benches:
        each.close()


def sequences(tablet):
    return [(writer, number) for writer, number, _ in tablet.log[0]]


def test_a_request_has_acks_and_the_wait_for_replicas(start, tablet):
    bench = start(acks=1, is_idempotent=False)
    wait(bench.appender().append(row(0)))
    (request,) = tablet.writes
    assert (request.acks, request.table_id, request.timeout_ms) == (1, TABLE_ID, 500)
    assert sequences(tablet) == [(-1, -1)]


def test_batches_of_a_bucket_are_in_flight_together_but_never_in_one_request(start, tablet):
    bench = start()
    for each in bench.send(bench.appender(), *range(8)):
        wait(each)
    assert sequences(tablet) == [(0, each) for each in range(8)]
    assert all(len(each.buckets_req) == 1 for each in tablet.writes)


@pytest.mark.parametrize("code", [12, 44, 21, 1, 25, 28, 29])
def test_what_may_heal_is_sent_again_under_its_number(start, tablet, code):
    bench = start()
    tablet.faults.extend([code, None, code])
    for each in bench.send(bench.appender(), 0, 1, 2):
        wait(each)
    assert sequences(tablet) == [(0, 0), (0, 1), (0, 2)]
    assert bench.cluster.counters.retries >= 2


def test_a_refused_batch_fails_alone_and_the_others_move_up(start, tablet):
    bench = start()
    tablet.faults.append(13)
    core = bench.appender()
    bad, *good = bench.send(core, 0, 1, 2)
    with pytest.raises(LimitExceededError):
        wait(bad)
    for each in good:
        wait(each)
    assert sequences(tablet) == [(0, 0), (0, 1)]
    with pytest.raises(LimitExceededError):
        bench.engine.run(core.flush())
    bench.engine.run(core.flush())


def test_concurrent_flushes_all_raise_the_failure_of_rows_they_waited_for(start, tablet):
    bench = start()
    tablet.faults.append(13)
    writer = AppendWriter(bench.engine, bench.appender())

    async def job(number):
        writer.append(row(number))
        await writer.flush()

    async def jobs():
        ended = await asyncio.gather(*(job(each) for each in range(3)), return_exceptions=True)
        await writer.flush()
        return ended

    ended = asyncio.run(jobs())
    assert len(tablet.log[0]) == 2, "the row of one job is lost"
    assert [type(each) for each in ended] == [LimitExceededError] * 3
    assert {each.progress.not_written for each in ended} == {1}


def test_a_failure_is_kept_for_the_next_flush_if_no_caller_waits_for_the_first(start, tablet):
    bench = start()
    tablet.faults.append(13)
    core = bench.appender()
    core.append(row(0))
    bench.engine.run(core.flushed())  # its caller has stopped waiting
    with pytest.raises(LimitExceededError):
        bench.engine.run(core.flush())
    bench.engine.run(core.flush())


def test_a_bucket_that_forgot_the_writer_gets_a_new_one(start, tablet):
    bench = start()
    core = bench.appender()
    wait(core.append(row(0)))
    tablet.forget_writers()
    for each in bench.send(core, 1, 2, 3):
        wait(each)
    assert sequences(tablet) == [(1, 0), (1, 1), (1, 2)]


def test_a_batch_in_doubt_is_not_repeated_to_a_bucket_that_forgot_the_writer(start, tablet):
    bench = start(request_timeout_ms=300)
    core = bench.appender()
    wait(core.append(row(0)))
    tablet.faults.append(SILENCE)
    tablet.forget_writers()
    with pytest.raises(WriterStateError) as caught:
        wait(core.append(row(1)))
    assert caught.value.in_doubt
    wait(core.append(row(2)))
    assert sequences(tablet) == [(1, 0)]


def test_what_stayed_here_is_not_in_doubt(start, monkeypatch):
    bench = start(delivery_timeout_ms=300)

    async def no_room(connection, *_, **__):
        raise RequestTimeoutError(f"There was no room on the way to {connection.address}.")

    core = bench.appender()
    wait(core.append(row(0)))
    monkeypatch.setattr(ServerConnection, "send", no_room)
    with pytest.raises(RequestTimeoutError, match="they were never sent") as caught:
        wait(core.append(row(1)))
    assert not caught.value.in_doubt
    assert "They can be written again" in caught.value.hint


def test_of_several_failures_one_that_is_in_doubt_is_raised(start, tablet):
    bench = start(request_timeout_ms=300, delivery_timeout_ms=200)
    core = bench.appender()
    wait(core.append(row(0)))
    tablet.faults.extend([13, SILENCE, 13])
    handles = bench.send(core, 1, 2)
    with pytest.raises(FlussError, match="may have been written or not") as joined:
        wait(JoinedResult(handles))
    assert joined.value.in_doubt
    with pytest.raises(FlussError, match="1 in doubt") as flushed:
        bench.engine.run(core.flush())
    progress = flushed.value.progress
    assert (progress.acknowledged, progress.in_doubt, progress.not_written) == (1, 1, 1)
    assert flushed.value.message.startswith(
        "Writing to db.t failed, with 1 rows acknowledged, 1 in doubt (sent, without an answer) "
        "and 1 not written: "
    )
    assert (progress.first_missing, progress.first_untaken) == (1, 3)
    assert sorted([*progress.doubtful, *progress.rows_to_write()]) == [1, 2]
    assert "The first 1 rows are in the table" in flushed.value.hint
    assert "can be written again" not in flushed.value.hint
    bench.engine.run(core.flush())
    assert core.progress.acknowledged == 0, "what was reported is not reported again"


def test_a_frame_is_taken_no_further_than_to_its_first_failure(start, tablet, caplog):
    bench = start(
        request_timeout_ms=300,
        delivery_timeout_ms=300,
        batch_bytes_max=8 * 1024,
        buffer_bytes_max=64 * 1024,
    )
    core = bench.appender()
    core.stops_at_failure = True
    rows = 200_000
    frame = pa.table({"id": range(rows), "s": ["x" * 20] * rows})
    tablet.faults.extend([None] * 3 + [SILENCE] * 10_000)
    core.append_arrow(frame)
    with pytest.raises(FlussError) as caught:
        bench.engine.run(core.flush())
    progress = caught.value.progress.of(rows)
    assert progress.total == rows
    assert 0 < progress.acknowledged < progress.first_untaken < rows
    assert progress.acknowledged == sum(count for *_, count in tablet.log[0])
    assert progress.first_missing == progress.acknowledged, "there is one bucket"
    assert progress.in_doubt
    left = {*range(progress.acknowledged), *progress.doubtful, *progress.rows_to_write()}
    assert left == set(range(rows))
    assert (
        len(
            [
                each
                for each in caplog.records
                if each.levelname == "WARNING" and each.name == "fluss.sender"
            ]
        )
        == 1
    )


def test_a_notice_names_the_server_that_a_writer_waits_for(start, tablet, caplog, monkeypatch):
    monkeypatch.setattr("fluss.net.wait_notices.NOTICE_AFTER_S", 0.1)
    monkeypatch.setattr("fluss.net.wait_notices.TICK_S", 0.02)
    monkeypatch.setattr("fluss.net.operation_deadline.notices", WaitNotices())
    bench = start(request_timeout_ms=5_000, delivery_timeout_ms=500)
    core = bench.appender()
    wait(core.append(row(0)))
    tablet.faults.append(SILENCE)
    with pytest.raises(FlussError):
        wait(core.append(row(1)))
    (notice,) = [each.getMessage() for each in caplog.records if each.name == "fluss.waiting"]
    address = f"{tablet.host}:{tablet.port}"
    assert notice.startswith(f"fluss: waiting for {address} to answer PRODUCE_LOG since")


def test_an_answer_that_leaves_a_bucket_out_is_no_success(start, tablet):
    bench = start()

    def leave_out(answer, _):
        del answer.buckets_resp[:]

    tablet.faults.append(leave_out)
    with pytest.raises(ProtocolError, match="lacks bucket 0"):
        wait(bench.appender().append(row(0)))


def test_pressure_slows_a_bucket_down(start, tablet):
    bench = start(throttle_ms_max=400)

    def press(_, found):
        found.pressure = 1.0

    tablet.faults.append(press)
    core = bench.upserter()
    (first,) = wait(core.upsert(row(0)))
    began = bench.engine.loop.time()
    wait(core.upsert(row(1)))
    assert bench.engine.loop.time() - began > 0.3
    assert first.offset == 1


def test_a_writer_id_that_is_refused_fails_what_waits_for_it(start, tablet):
    bench = start()
    tablet.init_faults.extend([48, 48])
    core = bench.appender()
    with pytest.raises(AuthorizationError):
        wait(core.append(row(0)))
    with pytest.raises(AuthorizationError):
        bench.engine.run(core.flush())
    tablet.init_faults.clear()
    wait(core.append(row(1)))


def test_a_writer_id_is_asked_for_again_while_that_may_help(start, tablet):
    bench = start()
    tablet.init_faults.extend([44, 44])
    wait(bench.appender().append(row(0)))
    assert sequences(tablet) == [(0, 0)]


def test_partial_updates_and_whole_rows_do_not_share_requests(start, tablet):
    bench = start()
    info = bench.info(primary_keys=["id"])
    whole = bench.pool.upsert_core(info)
    keys = bench.pool.upsert_core(info, target_columns=[0], agg_mode=1)
    handles = [whole.upsert(row(0)), keys.upsert([1])]
    for each in handles:
        wait(each)
    assert [list(each.target_columns) for each in tablet.writes] == [[], [0]]
    assert [each.HasField("agg_mode") for each in tablet.writes] == [False, True]


def test_statistics_are_written_only_where_the_server_knows_them(start, tablet):
    bench = start()
    properties = {"table.statistics.columns": "*"}
    core = bench.pool.append_core(bench.info(properties=properties))
    wait(core.append(row(0)))
    (old,) = tablet.writes
    assert old.buckets_req[0].records[12] == 0  # the magic byte of 0.9.1
    bench.cluster.offers_now = lambda _: True
    core = bench.pool.append_core(bench.info(properties=properties))
    wait(core.append(row(1)))
    assert tablet.writes[-1].buckets_req[0].records[12] == 1


def test_a_batch_outlives_the_delivery_timeout_no_longer_than_two_seconds(start, tablet):
    bench = start(delivery_timeout_ms=300, request_timeout_ms=60_000)
    tablet.faults.append(SILENCE)
    begin = time.monotonic()
    with pytest.raises(RequestTimeoutError, match=r"may have been written.*to answer PRODUCE_LOG"):
        wait(bench.appender().append(row(0)))
    assert time.monotonic() - begin < 0.3 + 2.0
