"""The log of one bucket: offsets, segments, indexes, time, retention, and writers."""

import errno

import pytest

from fluss.errors import OffsetOutOfRangeError, WriterStateError
from fluss.records.log.log_batch import iter_log_batches
from fluss_server.log import log_files as files
from tests.support.servers.bucket_logs import (
    SCHEMAS,
    append,
    batch_bytes,
    batches,
    ids_in,
    opened,
    rows_of,
)


@pytest.fixture
def log(tmp_path):
    log = opened(tmp_path / "log-0")
    yield log
    log.close_files()


def test_batches_get_consecutive_offsets(log):
    assert append(log, batch_bytes(3), batch_bytes(2)) == [0, 3]
    assert append(log, batch_bytes(1)) == [5]
    assert (log.start_offset, log.end_offset, log.high_watermark) == (0, 6, 6)


def test_the_bytes_are_kept_except_for_offset_and_time(log):
    sent = batch_bytes(3)
    append(log, batch_bytes(2), sent, now_ms=77)
    second = list(iter_log_batches(log.read(0, 1 << 20, at_least_one=True).data))[1]
    kept = second.data.to_pybytes()
    assert (second.base_offset, second.header.commit_timestamp) == (2, 77)
    assert kept[8:13] == sent[8:13]
    assert kept[21:] == sent[21:]
    second.verify_crc()


def test_unpublished_batches_are_not_read(log):
    append(log, batch_bytes(3))
    log.append(batches(batch_bytes(2)), now_ms=1)
    assert log.end_offset == 5
    assert log.high_watermark == 3
    assert len(ids_in(log)) == 3
    log.publish()
    assert len(ids_in(log)) == 5


def test_a_batch_that_was_cut_back_leaves_no_trace(log):
    append(log, batch_bytes(3, writer=(9, 0)))
    log.append(batches(batch_bytes(2, writer=(9, 1))), now_ms=1)
    log.cut_back(3)
    assert log.end_offset == 3
    assert append(log, batch_bytes(1, writer=(9, 1))) == [3]


def test_time_never_goes_backwards_in_a_log(log):
    append(log, batch_bytes(1), now_ms=500)
    append(log, batch_bytes(1), now_ms=100)
    stamped = [each.header.commit_timestamp for each in log.iter_batches(0)]
    assert stamped == [500, 500]


def test_a_full_segment_is_followed_by_another(tmp_path):
    log = opened(tmp_path / "log-0", segment_bytes=400)
    for first in range(0, 30, 3):
        append(log, batch_bytes(3, first=first))
    assert len(list((tmp_path / "log-0").glob("*.log"))) > 3
    assert ids_in(log) == list(range(30))
    assert ids_in(log, 17) == list(range(17, 30))
    assert [each.base_offset for each in log.iter_batches(12)] == [12, 15, 18, 21, 24, 27]
    log.close()


def test_a_reader_gets_whole_batches_within_its_limit(log):
    for first in range(300):
        append(log, batch_bytes(1, first=first))
    size = len(batch_bytes(1, first=100))
    read = log.read(120, size * 20 + 5, at_least_one=False)
    found = list(iter_log_batches(read.data, tail="refuse"))
    assert found[0].base_offset == 120
    assert 15 <= len(found) <= 20


def test_the_first_batch_is_returned_even_where_it_is_larger_than_the_limit(log):
    append(log, batch_bytes(50), batch_bytes(50))
    assert log.read(0, 10, at_least_one=False).data == b""
    (only,) = iter_log_batches(log.read(0, 10, at_least_one=True).data, tail="refuse")
    assert only.record_count == 50


def test_an_offset_inside_a_batch_gives_the_whole_batch(log):
    append(log, batch_bytes(5), batch_bytes(5))
    found = list(iter_log_batches(log.read(7, 1 << 20, at_least_one=True).data))
    assert [each.base_offset for each in found] == [5]


@pytest.mark.parametrize("offset", [-1, 4, 1 << 40])
def test_an_offset_outside_the_log_is_refused(log, offset):
    append(log, batch_bytes(3))
    with pytest.raises(OffsetOutOfRangeError) as refused:
        log.read(offset, 100, at_least_one=True)
    assert refused.value.error_code == 19


def test_a_timestamp_leads_to_the_first_batch_that_is_not_older(tmp_path):
    log = opened(tmp_path / "log-0", segment_bytes=6_000)
    for moment in range(200):
        append(log, batch_bytes(2), now_ms=1_000 + 10 * moment)
    assert log.offset_since(0) == 0
    assert log.offset_since(1_005) == 2
    assert log.offset_since(1_010) == 2
    assert log.offset_since(2_500) == 300
    assert log.offset_since(1_000 + 10 * 199) == 398
    assert log.offset_since(1_000 + 10 * 199 + 1) is None
    log.close()


def test_old_segments_are_deleted_and_the_newest_rows_stay(tmp_path):
    log = opened(tmp_path / "log-0", segment_bytes=400)
    for first in range(0, 30, 3):
        append(log, batch_bytes(3, first=first), now_ms=1_000 + first)
    assert log.expire(older_than_ms=1_015) > 0
    assert 0 < log.start_offset <= 15
    assert ids_in(log, log.start_offset) == list(range(log.start_offset, 30))
    with pytest.raises(OffsetOutOfRangeError):
        log.read(0, 100, at_least_one=True)
    log.close()


def test_even_the_newest_segment_expires_and_its_offsets_are_not_reused(tmp_path):
    log = opened(tmp_path / "log-0")
    append(log, batch_bytes(3), now_ms=1_000)
    assert log.expire(older_than_ms=5_000) == 1
    assert (log.start_offset, log.end_offset) == (3, 3)
    assert append(log, batch_bytes(1)) == [3]
    log.close()
    assert opened(tmp_path / "log-0").start_offset == 3


def test_a_floor_keeps_segments(tmp_path):
    log = opened(tmp_path / "log-0", segment_bytes=400)
    for first in range(0, 30, 3):
        append(log, batch_bytes(3, first=first))
    log.expire(older_than_ms=1 << 50, floor=14)
    assert log.start_offset <= 14
    log.close()


def test_the_size_of_a_log_is_limited_in_whole_segments(tmp_path):
    log = opened(tmp_path / "log-0", segment_bytes=400)
    for first in range(0, 60, 3):
        append(log, batch_bytes(3, first=first))
    log.expire(older_than_ms=None, bytes_max=1_000)
    assert 600 <= log.size_bytes <= 1_000
    log.close()


# --- idempotent writers -------------------------------------------------------------------------


def test_duplicates_of_the_last_five_batches_get_the_first_response(log):
    for sequence in range(7):
        assert append(log, batch_bytes(2, writer=(1, sequence))) == [2 * sequence]
    for sequence in range(2, 7):
        assert append(log, batch_bytes(2, writer=(1, sequence))) == [2 * sequence]
    assert log.end_offset == 14


@pytest.mark.parametrize(("sequence", "last"), [(0, 6), (1, 6), (8, 6), (2**31 - 1, 6)])
def test_older_batches_and_gaps_are_refused_with_both_numbers(log, sequence, last):
    for number in range(7):
        append(log, batch_bytes(1, writer=(1, number)))
    with pytest.raises(WriterStateError) as refused:
        append(log, batch_bytes(1, writer=(1, sequence)))
    assert refused.value.error_code == 31
    text = f": {sequence} (incoming batch seq.), {last} (current batch seq.)"
    assert text in refused.value.message


def test_an_unknown_writer_begins_at_zero(log):
    with pytest.raises(WriterStateError, match=r"-1 \(current batch seq\.\)"):
        append(log, batch_bytes(1, writer=(5, 3)))
    assert append(log, batch_bytes(1, writer=(5, 0))) == [0]


def test_a_request_that_begins_with_a_duplicate_loses_none_of_its_new_batches(log):
    append(log, batch_bytes(1, writer=(1, 0)))
    written = [batch_bytes(1, first=each, writer=(1, each)) for each in range(3)]
    assert append(log, *written) == [0, 1, 2]
    assert ids_in(log) == [0, 1, 2]


def test_a_request_with_one_batch_out_of_order_writes_none(log):
    with pytest.raises(WriterStateError):
        append(log, batch_bytes(1, writer=(1, 0)), batch_bytes(1, writer=(1, 2)))
    assert log.end_offset == 0


def test_an_idle_writer_expires_after_a_week(log):
    append(log, batch_bytes(1, writer=(1, 0)), now_ms=1_000)
    log.writers.expire(now_ms=1_000 + 7 * 86_400_000)
    assert len(log.writers) == 1
    log.writers.expire(now_ms=1_001 + 7 * 86_400_000)
    assert len(log.writers) == 0


# --- a disk that refuses ------------------------------------------------------------------------


def test_a_full_disk_refuses_a_write_and_the_log_continues_afterwards(log, monkeypatch):
    append(log, batch_bytes(3, writer=(1, 0)))

    def no_room(descriptor, buffers, at):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files.os, "pwritev", no_room)
        with pytest.raises(OSError, match="No space left"):
            append(log, batch_bytes(3, writer=(1, 1)))
    assert log.end_offset == 3
    assert append(log, batch_bytes(2, first=3, writer=(1, 1))) == [3]
    assert ids_in(log) == [0, 1, 2, 3, 4]


def test_a_short_write_is_completed(log, monkeypatch):
    write, pwrite = files.os.write, files.os.pwrite
    monkeypatch.setattr(
        files.os, "pwritev", lambda fd, buffers, at: pwrite(fd, b"".join(buffers)[:30], at)
    )
    monkeypatch.setattr(files.os, "write", lambda fd, data: write(fd, data[:40]))
    append(log, batch_bytes(3), batch_bytes(2, first=3))
    assert ids_in(log) == [0, 1, 2, 3, 4]


def test_after_a_failed_sync_the_log_takes_no_more_rows(log, monkeypatch):
    append(log, batch_bytes(3))

    def broken(descriptor):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files, "sync", broken)
    with pytest.raises(OSError, match="Input/output"):
        log.sync()
    monkeypatch.undo()
    with pytest.raises(OSError, match="restart the server"):
        log.sync()  # it would succeed, although the first one lost data
    with pytest.raises(OSError, match="restart the server"):
        append(log, batch_bytes(3))


def test_rows_are_read_with_the_schema_they_were_written_with(log):
    append(log, batch_bytes(3))
    (batch,) = log.iter_batches(0)
    assert batch.record_batch(SCHEMAS.layouts[1]).to_pydict() == rows_of(3).to_pydict()


def test_a_published_offset_cannot_be_cut_back(log):
    append(log, batch_bytes(3))
    with pytest.raises(AssertionError):
        log.cut_back(1)
