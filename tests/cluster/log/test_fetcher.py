"""The read path against a scripted server: what it asks for, gives back, and refuses."""

import os
import threading
import time
from contextlib import contextmanager

import anyio
import pyarrow as pa
import pytest

from fluss.connection.connection import ClientConnection
from fluss.dialects.awaited import LogScanner as AwaitedScanner
from fluss.dialects.log_scanner import LogScanner
from fluss.errors import (
    ClosedError,
    CorruptBatchError,
    FlussError,
    OffsetOutOfRangeError,
    PartitionNotFoundError,
    ProtocolError,
    RequestTimeoutError,
    TableNotFoundError,
)
from fluss.log import log_scan, range_reader
from fluss.log.log_scan import LogScanCore
from fluss.log.log_services import fetch_limits
from fluss.model.offsets import EARLIEST_OFFSET, LATEST_OFFSET
from fluss.model.options.config import Config
from fluss.model.schema.schema import Schema
from fluss.net.engine_thread import engine
from fluss.wire import messages as pb
from tests.support.scripted.scripted_cluster import PATH, ScriptedCluster

SCHEMA = Schema(pa.schema([("a", pa.int64()), ("b", pa.string())]))
WIDER = Schema(pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.int32())]))
FAST = {"retry.backoff-ms": "5", "retry.backoff-max-ms": "20", "operation-timeout": "2s"}
POLL_MS = 3_000
PATIENCE_S = 30


def rows(*numbers):
    return {"a": list(numbers), "b": [f"b{each}" for each in numbers]}


@contextmanager
def scanner_of(cluster, columns=None, *, gives_batches=True, start=None, **settings):
    """A scanner of the cluster's table, subscribed to all buckets by default."""
    config = Config({"bootstrap.servers": cluster.bootstrap} | FAST | settings)
    running = engine()
    connection = running.run(ClientConnection.open(running, config))
    try:
        core = LogScanCore(running.run(connection.table(PATH)), columns)
        scanner = LogScanner(running, core, gives_batches=gives_batches, records_per_poll_max=500)
        if start is not None:
            scanner.subscribe_buckets(dict.fromkeys(range(cluster.bucket_count), start))
        yield scanner
        running.run(core.close())
    finally:
        running.run(connection.close())


def numbers(table):
    return table.column("a").to_pylist()


def poll_until(scanner, count):
    """Rows of polls until there are so many; fails when they do not come."""
    found = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        found += numbers(scanner.poll_arrow(200))
    assert len(found) == count, found
    return found


# --- what is read ---------------------------------------------------------------------------------


def test_everything_up_to_now_can_be_read_again_and_again():
    with ScriptedCluster(SCHEMA, bucket_count=3) as cluster:
        for bucket in range(3):
            cluster.append(rows(bucket, bucket + 10), bucket)
            cluster.append(rows(bucket + 20), bucket)
        with scanner_of(cluster, start=EARLIEST_OFFSET) as scanner:
            first = scanner.to_arrow()
            assert sorted(numbers(first)) == sorted(
                bucket + plus for bucket in range(3) for plus in (0, 10, 20)
            )
            assert scanner.to_arrow().equals(first)


def test_buckets_that_wait_for_room_are_read_from_the_beginning():
    with ScriptedCluster(SCHEMA, bucket_count=8) as cluster:
        for bucket in range(8):
            for step in range(3):
                cluster.append(rows(100 * bucket + step), bucket)
        size = len(cluster.logs[0][0].data)
        with scanner_of(
            cluster, start=EARLIEST_OFFSET, **{"scanner.log.fetch.max-bytes": str(size * 2)}
        ) as scanner:
            found = numbers(scanner.to_arrow())
        assert sorted(found) == [100 * bucket + step for bucket in range(8) for step in range(3)]
        firsts = [each.tables_req[0].buckets_req[0].bucket_id for each in cluster.fetches]
        assert len(set(firsts)) == 8


def test_an_empty_log_is_read_immediately():
    with ScriptedCluster(SCHEMA, bucket_count=2) as cluster:
        for start in (EARLIEST_OFFSET, LATEST_OFFSET, 0):
            with scanner_of(cluster, start=start) as scanner:
                assert scanner.to_arrow().num_rows == 0


def test_batches_without_rows_take_their_offsets():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(1, 2))
        cluster.append(rows())
        cluster.append(rows(3))
        cluster.append(rows())
        with scanner_of(cluster, start=EARLIEST_OFFSET) as scanner:
            assert numbers(scanner.to_arrow()) == [1, 2, 3]


def test_reading_begins_at_an_offset_within_a_batch():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(0, 1, 2, 3))
        cluster.append(rows(4))
        with scanner_of(cluster, start=2) as scanner:
            (first, second) = scanner.poll_record_batch(POLL_MS)
            assert (first.base_offset, first.last_offset, second.base_offset) == (2, 3, 4)
            assert numbers(scanner.to_arrow()) == [2, 3, 4]


def test_a_batch_that_is_cut_off_is_fetched_again_whole():
    with ScriptedCluster(SCHEMA) as cluster:
        for number in range(5):
            cluster.append(rows(number))
        size = len(cluster.logs[0][0].data)
        with scanner_of(
            cluster,
            start=EARLIEST_OFFSET,
            **{"scanner.log.fetch.max-bytes-for-bucket": str(size + size // 2)},
        ) as scanner:
            assert numbers(scanner.to_arrow()) == [0, 1, 2, 3, 4]
        offsets = [each.tables_req[0].buckets_req[0].fetch_offset for each in cluster.fetches]
        assert offsets == [-2, 1, 2, 3, 4]


def test_a_bounded_read_ends_at_the_first_high_watermark_while_rows_are_written():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(0, 1, 2))

        def write_more(_):
            cluster.append(rows(99))
            return "as usual"

        size = len(cluster.logs[0][0].data)
        cluster.append(rows(3))
        cluster.high_watermarks[0] = 4
        cluster.on_fetch = write_more
        with scanner_of(
            cluster, start=0, **{"scanner.log.fetch.max-bytes-for-bucket": str(size)}
        ) as scanner:
            assert numbers(scanner.to_arrow()) == [0, 1, 2, 3]
        assert all(not each.HasField("min_bytes") for each in cluster.fetches)


def test_rows_that_a_filter_ruled_out_are_skipped():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(0, 1, 2))
        cluster.append(rows(3))

        def skip(asked):
            if asked.tables_req[0].buckets_req[0].fetch_offset >= 3:
                return "as usual"
            answer = pb.FetchLogResponse()
            answer.tables_resp.add(table_id=cluster.table_id).buckets_resp.add(
                bucket_id=0, high_watermark=4, filtered_end_offset=3, records=b""
            )
            return answer

        cluster.on_fetch = skip
        with scanner_of(cluster, start=EARLIEST_OFFSET) as scanner:
            assert numbers(scanner.to_arrow()) == [3]


def test_a_tail_sees_what_comes_in_and_keeps_its_place():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(0))
        with scanner_of(cluster, start=LATEST_OFFSET) as scanner:
            assert numbers(scanner.poll_arrow(50)) == []
            wait_until(lambda: cluster.fetches)
            cluster.append(rows(1, 2))
            assert poll_until(scanner, 2) == [1, 2]
            cluster.append(rows(3))
            assert poll_until(scanner, 1) == [3]
        assert all(each.min_bytes == 1 and each.max_wait_ms <= 20 for each in cluster.fetches)


def test_the_latest_offset_is_that_of_subscribing_not_of_the_first_read():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(0))
        with scanner_of(cluster, start=LATEST_OFFSET) as scanner:
            cluster.append(rows(1))
            assert poll_until(scanner, 1) == [1]


def test_a_partition_is_found_by_its_id():
    schema = Schema(pa.schema([("a", pa.int64()), ("b", pa.string()), ("p", pa.string())]))
    with ScriptedCluster(schema, partition=(5, "x")) as cluster:
        cluster.append({"a": [1], "b": ["b"], "p": ["x"]})
        with scanner_of(cluster) as scanner:
            scanner.subscribe_partition(5, 0, EARLIEST_OFFSET)
            assert numbers(scanner.to_arrow()) == [1]
            scanner.subscribe_partition(6, 0, EARLIEST_OFFSET)
            with pytest.raises(PartitionNotFoundError, match="no partition with the id 6"):
                scanner.to_arrow()
            assert numbers(scanner.poll_arrow(POLL_MS)) == [1]
            with pytest.raises(PartitionNotFoundError):
                scanner.poll_arrow(POLL_MS)


# --- ahead of the reader --------------------------------------------------------------------------


def test_the_next_fetch_leaves_before_anything_has_been_decoded():
    with ScriptedCluster(SCHEMA) as cluster:
        for number in range(4):
            cluster.append(rows(number))
        size = len(cluster.logs[0][0].data)
        with scanner_of(
            cluster, start=0, **{"scanner.log.fetch.max-bytes-for-bucket": str(size)}
        ) as scanner:
            taken = engine().run(scanner._core.take(3))
            assert taken
            wait_until(lambda: len(cluster.fetches) >= 4)


def test_a_reader_that_does_not_read_stops_the_fetches(monkeypatch):
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(*range(100)))
        size = len(cluster.logs[0][0].data)
        for _ in range(30):
            cluster.append(rows(*range(100)))
        with scanner_of(
            cluster, **{"scanner.log.fetch.max-bytes-for-bucket": str(size)}
        ) as scanner:
            from dataclasses import replace

            connection = scanner._core._handle.connection
            limits = replace(fetch_limits(connection), unread_bytes_max=3 * size)
            for module in (log_scan, range_reader):
                monkeypatch.setattr(module, "fetch_limits", lambda _: limits)
            scanner.subscribe(0, 0)
            scanner.poll_arrow(POLL_MS)
            wait_until(lambda: len(cluster.fetches) >= 3)
            time.sleep(0.3)  # time for all of them
            assert len(cluster.fetches) <= 6
            assert len(numbers(scanner.to_arrow())) == 3_100


# --- columns --------------------------------------------------------------------------------------


def test_a_projection_is_pushed_ascending_and_its_stale_checksum_is_not_checked():
    with ScriptedCluster(WIDER) as cluster:
        cluster.append({"a": [1], "b": ["x"], "c": [9]})
        with scanner_of(cluster, [2, 0], start=EARLIEST_OFFSET) as scanner:
            assert scanner.to_arrow().to_pydict() == {"c": [9], "a": [1]}
        (table,) = cluster.fetches[0].tables_req
        assert list(table.projected_fields) == [0, 2]


def test_the_checksum_of_a_whole_batch_is_checked():
    with ScriptedCluster(SCHEMA) as cluster:
        good = cluster.append(rows(1)).data
        at = good.index(b"b1")
        cluster.logs[0].clear()
        cluster.store(good[:at] + b"XX" + good[at + 2 :], 0, 1)
        damaged = pytest.raises(CorruptBatchError, match=r"bucket 0 of db\.t at offset 0.*checksum")
        with scanner_of(cluster, start=EARLIEST_OFFSET) as scanner, damaged:
            scanner.to_arrow()
        with scanner_of(
            cluster, start=EARLIEST_OFFSET, **{"scanner.log.check-crc": "false"}
        ) as scanner:
            assert scanner.to_arrow().to_pydict() == {"a": [1], "b": ["XX"]}


def test_a_late_column_is_null_in_old_batches_and_pushed_again_after_them():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(1, 2))
        cluster.schemas[2] = WIDER
        for number in (3, 4):
            cluster.append({"a": [number], "b": ["x"], "c": [number]}, schema_id=2)
        size = max(len(each.data) for each in cluster.logs[0])
        with scanner_of(
            cluster,
            [2, 0],
            start=EARLIEST_OFFSET,
            **{"scanner.log.fetch.max-bytes-for-bucket": str(size)},
        ) as scanner:
            assert scanner.to_arrow().to_pydict() == {"c": [None, None, 3, 4], "a": [1, 2, 3, 4]}
        pushed = [each.tables_req[0].projection_pushdown_enabled for each in cluster.fetches]
        assert pushed[:3] == [True, False, False]
        assert pushed[-1]


def test_a_whole_request_refused_for_a_late_column_is_asked_again_whole():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(1))
        cluster.refused_requests.append(34)
        with scanner_of(cluster, [0], start=EARLIEST_OFFSET) as scanner:
            assert numbers(scanner.to_arrow()) == [1]


def test_a_schema_that_is_newer_than_the_scanner_is_loaded():
    with ScriptedCluster(SCHEMA) as cluster, scanner_of(cluster, start=0) as scanner:
        cluster.schemas[2] = WIDER
        cluster.append({"a": [1], "b": ["x"], "c": [5]}, schema_id=2)
        assert scanner.poll_arrow(POLL_MS).to_pydict() == {"a": [1], "b": ["x"]}


def test_an_unknown_schema_is_named():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(1))
        with scanner_of(cluster, start=0) as scanner:
            assert poll_until(scanner, 1) == [1]
            cluster.schemas[2] = WIDER
            cluster.append({"a": [1], "b": ["x"], "c": [5]}, schema_id=2)
            del cluster.schemas[2]
            with pytest.raises(
                CorruptBatchError, match=r"at offset 1: a schema of \[2\] is unknown"
            ):
                poll_until(scanner, 1)


# --- trouble --------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [1, 3, 12, 21, 25, 44])
def test_a_passing_refusal_is_waited_out(code):
    with ScriptedCluster(SCHEMA, bucket_count=2) as cluster:
        cluster.append(rows(1), 0)
        cluster.append(rows(2), 1)
        cluster.faults[1].extend([code] * 3)
        with scanner_of(cluster, start=EARLIEST_OFFSET) as scanner:
            assert sorted(numbers(scanner.to_arrow())) == [1, 2]


def test_a_refused_request_is_waited_out_as_well():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(1))
        cluster.refused_requests.extend([12, 25])
        with scanner_of(cluster, start=EARLIEST_OFFSET) as scanner:
            assert numbers(scanner.to_arrow()) == [1]


def test_a_bucket_that_cannot_be_read_does_not_stop_the_others():
    with ScriptedCluster(SCHEMA, bucket_count=2) as cluster:
        cluster.append(rows(1), 0)
        cluster.faults[1].extend([48] * 100)
        with scanner_of(cluster, start=EARLIEST_OFFSET) as scanner:
            assert poll_with_errors(scanner, 1, FlussError) == [1]
            cluster.append(rows(2), 0)
            assert poll_with_errors(scanner, 1, FlussError) == [2]
            with pytest.raises(FlussError, match="as the test wants") as caught:
                scanner.poll_arrow(POLL_MS)
            assert (caught.value.table, caught.value.bucket) == ("db.t", 1)
            scanner.unsubscribe(1)
            assert numbers(scanner.poll_arrow(30)) == []


def test_the_error_of_one_bucket_is_raised_though_another_is_busy():
    with ScriptedCluster(SCHEMA, bucket_count=2) as cluster:
        stop = threading.Event()

        def write():
            number = 0
            while not stop.wait(0.001):
                number += 1
                cluster.append(rows(number), 0)

        cluster.faults[1].append(48)
        writer = threading.Thread(target=write)
        writer.start()
        try:
            with scanner_of(cluster, start=EARLIEST_OFFSET) as scanner:
                assert any(fails(lambda: scanner.poll_arrow(POLL_MS)) for _ in range(50))
        finally:
            stop.set()
            writer.join()


def test_a_lasting_refusal_ends_a_bounded_read_in_its_time():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.faults[0].extend([44] * 10_000)
        with scanner_of(cluster, start=0, **{"operation-timeout": "300ms"}) as scanner:
            begin = time.monotonic()
            with pytest.raises(FlussError) as caught:
                scanner.to_arrow()
            assert caught.value.error_code == 44
            assert 0.1 < time.monotonic() - begin < PATIENCE_S


def test_a_retriable_error_is_retried_after_it_has_been_reported():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(1))
        cluster.faults[0].extend([44] * 10_000)
        with scanner_of(cluster, start=0, **{"operation-timeout": "200ms"}) as scanner:
            with pytest.raises(FlussError):
                scanner.poll_arrow(POLL_MS)
            cluster.faults[0].clear()
            assert numbers(scanner.poll_arrow(POLL_MS)) == [1]


def test_an_offset_that_was_trimmed_is_refused_with_the_offsets_there_are():
    with ScriptedCluster(SCHEMA) as cluster:
        for number in range(4):
            cluster.append(rows(number))
        del cluster.logs[0][:2]
        with scanner_of(cluster, start=1) as scanner:
            with pytest.raises(OffsetOutOfRangeError, match="before 2 have been removed") as caught:
                scanner.to_arrow()
            assert (caught.value.earliest_offset, caught.value.latest_offset) == (2, 4)
        beyond = pytest.raises(OffsetOutOfRangeError, match="the log ends at 4")
        with scanner_of(cluster, start=9) as scanner, beyond:
            scanner.poll_arrow(POLL_MS)
        with scanner_of(cluster, start=EARLIEST_OFFSET) as scanner:
            assert numbers(scanner.to_arrow()) == [2, 3]


def test_a_log_that_went_backwards_is_not_read_further():
    with ScriptedCluster(SCHEMA) as cluster:
        for number in range(4):
            cluster.append(rows(number))
        with scanner_of(cluster, start=0) as scanner:
            assert poll_until(scanner, 4) == [0, 1, 2, 3]
            del cluster.logs[0][2:]
            with pytest.raises(FlussError, match="went backwards: it ends at offset 2") as caught:
                scanner.poll_arrow(POLL_MS)
            assert (caught.value.offset, caught.value.high_watermark) == (4, 2)


def test_a_high_watermark_that_lags_behind_a_new_leader_is_waited_for():
    with ScriptedCluster(SCHEMA) as cluster:
        for number in range(4):
            cluster.append(rows(number))
        with scanner_of(cluster, start=0) as scanner:
            assert poll_until(scanner, 4) == [0, 1, 2, 3]
            cluster.high_watermarks[0] = 2
            assert numbers(scanner.poll_arrow(60)) == []
            del cluster.high_watermarks[0]
            cluster.append(rows(4))
            assert poll_until(scanner, 1) == [4]


def test_a_lag_that_does_not_end_is_a_log_that_went_backwards():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(0, 1))
        with scanner_of(cluster, start=0, **{"operation-timeout": "200ms"}) as scanner:
            assert poll_until(scanner, 2) == [0, 1]
            cluster.high_watermarks[0] = 1
            with pytest.raises(FlussError, match="went backwards"):
                scanner.poll_arrow(POLL_MS)


def test_rows_that_are_announced_and_never_sent_end_the_read_in_time():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(1))
        cluster.high_watermarks[0] = 5
        with scanner_of(cluster, start=1, **{"operation-timeout": "200ms"}) as scanner:
            with pytest.raises(FlussError, match="the server sends none"):
                scanner.to_arrow()
            assert len(cluster.fetches) < 100


def test_a_dropped_table_is_reported():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(1))
        with scanner_of(cluster, start=0) as scanner:
            assert poll_until(scanner, 1) == [1]
            cluster.exists = False
            with pytest.raises(TableNotFoundError):
                scanner.poll_arrow(POLL_MS)


def test_a_table_that_was_created_again_is_another_one():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(1))
        with scanner_of(cluster, start=0) as scanner:
            assert poll_until(scanner, 1) == [1]
            cluster.table_id += 1
            with pytest.raises(TableNotFoundError, match="dropped and created again"):
                scanner.poll_arrow(POLL_MS)


def test_a_bucket_without_a_leader_is_waited_for_and_then_named():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(1))
        cluster.leads = False
        with scanner_of(cluster, start=0, **{"operation-timeout": "300ms"}) as scanner:
            with pytest.raises(FlussError, match=r"Bucket 0 of db\.t has no leader"):
                scanner.to_arrow()
            cluster.leads = True
            assert numbers(scanner.to_arrow()) == [1]


def test_an_answer_that_lacks_a_bucket_fails_that_bucket():
    with ScriptedCluster(SCHEMA, bucket_count=2) as cluster:
        cluster.append(rows(1), 0)

        def forget(asked):
            answer = cluster.fetch(asked)
            kept = [each for each in answer.tables_resp[0].buckets_resp if each.bucket_id == 0]
            del answer.tables_resp[0].buckets_resp[:]
            answer.tables_resp[0].buckets_resp.extend(kept)
            return answer

        cluster.on_fetch = forget
        with scanner_of(cluster, start=EARLIEST_OFFSET) as scanner:
            assert poll_with_errors(scanner, 1, ProtocolError) == [1]
            with pytest.raises(ProtocolError, match="leaves out bucket 1"):
                scanner.poll_arrow(POLL_MS)


def test_rows_before_a_damaged_batch_are_returned_first():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(1))
        good = cluster.append(rows(2))
        cluster.logs[0].pop()
        cluster.store(good.data[:12] + b"\x63" + good.data[13:], 1, 2)
        with scanner_of(cluster, start=0) as scanner:
            assert numbers(scanner.poll_arrow(POLL_MS)) == [1]
            for _ in range(2):
                with pytest.raises(CorruptBatchError, match="magic byte 99"):
                    scanner.poll_arrow(POLL_MS)


def test_a_damaged_body_is_returned_by_no_poll_and_rows_before_it_by_one():
    with ScriptedCluster(SCHEMA, bucket_count=2) as cluster:
        cluster.append(rows(1))
        good = cluster.append(rows(2)).data
        cluster.logs[0].pop()
        at = good.index(b"b2")
        cluster.store(good[:at] + b"XX" + good[at + 2 :], 1, 2)
        cluster.append(rows(3))
        for poll in ("poll_arrow", "poll_record_batch", "poll"):
            with scanner_of(cluster, start=0, gives_batches=poll != "poll") as scanner:
                found = getattr(scanner, poll)(POLL_MS)
                assert len(found) == 1
                for _ in range(2):
                    with pytest.raises(CorruptBatchError, match="checksum"):
                        getattr(scanner, poll)(POLL_MS)
                scanner.unsubscribe(0)
                assert len(getattr(scanner, poll)(20)) == 0


# --- subscribing, closing, cancelling -------------------------------------------------------------


def test_a_bucket_subscribed_again_is_read_from_the_new_offset_only():
    with ScriptedCluster(SCHEMA) as cluster:
        for number in range(10):
            cluster.append(rows(number))
        with scanner_of(cluster, start=0) as scanner:
            for offset in (5, 8, 2, 7):
                scanner.subscribe(0, offset)
            assert poll_until(scanner, 3) == [7, 8, 9]
            scanner.subscribe(0, 9)
            assert poll_until(scanner, 1) == [9]


def test_an_unsubscribed_bucket_returns_no_more_rows():
    with ScriptedCluster(SCHEMA, bucket_count=2) as cluster:
        cluster.append(rows(1), 0)
        cluster.append(rows(2), 1)
        with scanner_of(cluster, start=0) as scanner:
            scanner.unsubscribe(1)
            assert poll_until(scanner, 1) == [1]
            cluster.append(rows(3), 1)
            assert numbers(scanner.poll_arrow(50)) == []
            scanner.subscribe(1, 0)
            assert sorted(poll_until(scanner, 2)) == [2, 3]


def test_an_answer_for_a_bucket_that_has_been_unsubscribed_is_dropped():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.append(rows(*range(10)))
        asked = threading.Event()
        held = threading.Event()

        def hold(_):
            asked.set()
            held.wait(PATIENCE_S)
            return "as usual"

        cluster.on_fetch = hold
        with scanner_of(cluster, start=0) as scanner:
            scanner.poll_arrow(0)
            assert asked.wait(PATIENCE_S)
            scanner.unsubscribe(0)
            scanner.subscribe(0, 8)
            held.set()
            assert poll_until(scanner, 2) == [8, 9]


def test_a_poll_with_a_timeout_of_zero_does_not_wait():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.on_fetch = lambda _: None
        with scanner_of(cluster, start=0, **{"operation-timeout": "10min"}) as scanner:
            begin = time.monotonic()
            assert scanner.poll_arrow(0).num_rows == 0
            assert time.monotonic() - begin < PATIENCE_S


def test_a_server_that_never_answers_is_given_up_in_time():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.on_fetch = lambda _: None
        with scanner_of(
            cluster, start=0, **{"request-timeout": "100ms", "operation-timeout": "400ms"}
        ) as scanner:
            begin = time.monotonic()
            with pytest.raises(RequestTimeoutError):
                scanner.to_arrow()
            assert time.monotonic() - begin < PATIENCE_S


def test_closing_ends_every_wait():
    with ScriptedCluster(SCHEMA) as cluster:
        cluster.on_fetch = lambda _: None
        with scanner_of(cluster, start=0) as scanner:
            errors = []

            def wait(read):
                try:
                    read()
                except ClosedError as error:
                    errors.append(error)

            reads = [lambda: scanner.poll_arrow(60_000), scanner.to_arrow]
            threads = [threading.Thread(target=wait, args=(each,)) for each in reads]
            for each in threads:
                each.start()
            wait_until(lambda: len(scanner._core._fetchers) == 2)
            time.sleep(0.05)
            engine().run(scanner._core.close())
            for each in threads:
                each.join(PATIENCE_S)
            assert len(errors) == 2
            with pytest.raises(ClosedError):
                scanner.poll_arrow(0)


def test_a_cancelled_poll_loses_nothing():
    with ScriptedCluster(SCHEMA) as cluster, scanner_of(cluster, start=0) as scanner:

        async def give_up():
            with anyio.move_on_after(0.03):
                await engine().submit(scanner._take(60_000))

        anyio.run(give_up)
        cluster.append(rows(1, 2))
        assert poll_until(scanner, 2) == [1, 2]


def test_a_poll_cancelled_while_its_rows_are_on_the_way_leaves_them_to_the_next():
    with ScriptedCluster(SCHEMA) as cluster:
        for number in range(20):
            cluster.append(rows(number))
        with scanner_of(cluster, start=0) as scanner:

            async def give_up_at_the_worst_moment():
                taking = engine().submit(scanner._take(60_000))
                time.sleep(0.05)  # noqa: ASYNC251 - the engine has answered, this loop has not seen it
                taking.cancel()

            anyio.run(give_up_at_the_worst_moment)
            assert poll_until(scanner, 20) == list(range(20))


@pytest.mark.parametrize("gives_batches", [True, False])
def test_an_awaited_poll_cancelled_when_its_answer_is_there_leaves_it_to_the_next(gives_batches):
    async def give_up_and_go_on(core):
        scanner = AwaitedScanner(
            engine(), core, gives_batches=gives_batches, records_per_poll_max=500
        )
        scanner.subscribe(0, 0)
        poll = scanner.poll_arrow if gives_batches else scanner.poll
        given_up = poll(60_000)
        time.sleep(0.1)  # noqa: ASYNC251 - the engine has answered, this loop has not seen it
        given_up.cancel()
        found = []
        while len(found) < 20:
            rows = await poll(1_000)
            found += numbers(rows) if gives_batches else [each.row["a"] for each in rows]
        return found

    with ScriptedCluster(SCHEMA) as cluster:
        for number in range(20):
            cluster.append(rows(number))
        with scanner_of(cluster) as scanner:
            assert anyio.run(give_up_and_go_on, scanner._core) == list(range(20))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork()")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scanner_carried_over_a_fork_raises():
    with ScriptedCluster(SCHEMA) as cluster, scanner_of(cluster, start=0) as scanner:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            text = "no error"
            try:
                scanner.poll_arrow(1_000)
            except ClosedError as error:
                text = str(error)
            finally:
                os.write(writer, text.encode())
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            assert b"before this process was forked" in stream.read()
        os.waitpid(child, 0)


def fails(call):
    try:
        call()
    except FlussError:
        return True
    return False


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def poll_with_errors(scanner, count, kind):
    """Rows of polls until there are so many, whatever errors stand between them."""
    found = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        try:
            found += numbers(scanner.poll_arrow(100))
        except kind:
            continue
    return found
