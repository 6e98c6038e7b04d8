"""The ledger: reading it back, detecting damage, and detecting another server."""

from contextlib import closing
from threading import Thread

import pytest

from fluss.model.paths import TableBucket
from fluss_server.damage_errors import DamagedDataError
from fluss_server.ledger import DirectoryState, Ledger
from fluss_server.ledger_marks import LogMark, NextNumbers
from fluss_server.system_boot import NO_BOOT, boot_id
from tests.support.servers.ledgers import as_after_a_power_cut, as_killed, ended_cleanly, head_of

BUCKETS = [
    TableBucket(table, bucket, partition_id=partition)
    for table in (3, 1 << 40)
    for partition in (None, 0, 7)
    for bucket in range(12)
]


def mark(number: int) -> LogMark:
    return LogMark(
        generation=number, end_offset=number + 1, segment=number, size=number, headers_crc=number
    )


@pytest.fixture
def path(tmp_path):
    with closing(Ledger.create(tmp_path / "ledger", is_durable=True)) as ledger:
        ledger.begin()
        for number, bucket in enumerate(BUCKETS):
            ledger.entry(bucket).write(mark(0))
            ledger.entry(bucket).write(mark(number))
        ledger.seal(5, bytes(range(16)), NextNumbers(table_id=3, partition_id=4, writer_id=5))
    return tmp_path / "ledger"


def reopened(path):
    return closing(Ledger.open(path, is_durable=False))


def test_everything_is_read_back(path):
    with reopened(path) as ledger:
        assert set(ledger.buckets()) == set(BUCKETS)
        assert [ledger.entry(bucket).mark for bucket in BUCKETS] == [
            mark(number) for number in range(len(BUCKETS))
        ]
        assert ledger.entry(TableBucket(9, 9)).mark is None
        assert (ledger.found_head.sequence, ledger.found_head.check) == (5, bytes(range(16)))
        assert ledger.found_head.next_numbers == NextNumbers(
            table_id=3, partition_id=4, writer_id=5
        )


def test_threads_that_need_a_new_page_concurrently_get_different_slots(path, monkeypatch):
    mine, theirs = ([TableBucket(5, at, partition_id=each) for at in range(150)] for each in (1, 2))
    slots = []
    with reopened(path) as ledger:
        other = Thread(target=lambda: slots.extend(map(ledger.claim, theirs)))
        write_head = ledger._write_head

        def overtaken(**changes):
            if not other.ident:
                other.start()
                other.join(0.1)  # it waits for the page, or is done by then
            write_head(**changes)

        monkeypatch.setattr(ledger, "_write_head", overtaken)
        slots += map(ledger.claim, mine)
        other.join()
        for bucket in (*mine, *theirs):
            ledger.entry(bucket).write(mark(bucket.bucket))
    assert len(set(slots)) == len(mine) + len(theirs)
    with reopened(path) as ledger:
        assert set(ledger.buckets()) == {*BUCKETS, *mine, *theirs}


def test_slots_of_a_dropped_table_are_used_again(path):
    with reopened(path) as ledger:
        ledger.forget(3, 0)
        ledger.forget(1 << 40)
        size = path.stat().st_size
        for bucket in range(48):
            ledger.entry(TableBucket(4, bucket)).write(mark(bucket))
    assert path.stat().st_size == size
    with reopened(path) as ledger:
        assert {bucket.table_id for bucket in ledger.buckets()} == {3, 4}
        assert ledger.entry(TableBucket(4, 47)).mark == mark(47)


def test_every_flipped_byte_is_detected(path):
    whole = path.read_bytes()
    said = [at for at, byte in enumerate(whole) if byte]
    for at in said:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(DamagedDataError, match="wrong checksum") as refused:
            Ledger.open(path, is_durable=False)
        assert str(path) in refused.value.message


def test_a_truncated_ledger_is_detected(path):
    whole = path.read_bytes()
    for size in (0, 10, 4_096, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(DamagedDataError, match=str(path)):
            Ledger.open(path, is_durable=False)


def test_marks_are_exact_after_a_kill_and_a_clean_stop_and_not_after_a_power_cut(path):
    directory = path.parent
    as_killed(directory)
    with reopened(path) as ledger:
        assert ledger.marks_are_exact == (boot_id() != NO_BOOT)
    as_after_a_power_cut(directory)
    with reopened(path) as ledger:
        assert not ledger.marks_are_exact
        ledger.end()
    assert ended_cleanly(directory)
    with reopened(path) as ledger:
        assert ledger.marks_are_exact


def test_a_new_ledger_has_no_marks(tmp_path):
    with closing(Ledger.create(tmp_path / "ledger", is_durable=False)) as ledger:
        assert not ledger.marks_are_exact
    assert head_of(tmp_path).state is DirectoryState.NEW


def test_a_server_whose_ledger_was_removed_or_taken_over_writes_no_more(path):
    with reopened(path) as first, reopened(path) as second:
        first.begin()
        first.check()
        second.begin()
        second.check()
        with pytest.raises(DamagedDataError, match="Another server"):
            first.check()
        with pytest.raises(DamagedDataError, match="Another server"):
            first.entry(BUCKETS[0]).check()
        path.rename(path.with_name("elsewhere"))
        with pytest.raises(DamagedDataError, match="removed or replaced"):
            second.check()
