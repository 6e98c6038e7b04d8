"""Opening a log after a clean stop, after a crash, and after damage."""

import logging
import shutil
import threading
import time

import pytest

from fluss.errors import LocalServerError, WriterStateError
from fluss_server.log import log_files as files
from fluss_server.log.index_files import INDEX_INTERVAL_BYTES
from fluss_server.log.log_checkpoint import CHECKPOINT
from fluss_server.log.segment_file import Segment
from tests.support.servers.bucket_logs import append, batch_bytes, ids_in, opened, torn


def filled(directory, *, count=10, segment_bytes=1 << 20):
    log = opened(directory, segment_bytes=segment_bytes)
    for first in range(0, 3 * count, 3):
        append(log, batch_bytes(3, first=first, writer=(4, first // 3)), now_ms=1_000 + first)
    return log


def log_file(directory):
    return max(directory.glob("*.log"))


def crash(log, directory):
    """Leave the files as SIGKILL does, without a checkpoint of the end."""
    log.close_files()
    copy = directory.with_name(f"crashed-{directory.name}")
    shutil.copytree(directory, copy)
    return copy


def test_a_log_that_was_closed_is_opened_without_reading_it(tmp_path, monkeypatch):
    filled(tmp_path / "log-0").close()
    monkeypatch.setattr("fluss_server.log.log_recovery._scan", None)
    log = opened(tmp_path / "log-0")
    assert ids_in(log) == list(range(30))
    assert log.end_offset == 30


def test_a_log_that_was_not_closed_has_every_batch(tmp_path):
    directory = crash(filled(tmp_path / "log-0"), tmp_path / "log-0")
    log = opened(directory)
    assert ids_in(log) == list(range(30))
    assert append(log, batch_bytes(1, writer=(4, 10))) == [30]


def test_writers_are_known_after_a_crash(tmp_path):
    directory = crash(filled(tmp_path / "log-0", segment_bytes=500), tmp_path / "log-0")
    log = opened(directory, segment_bytes=500)
    assert append(log, batch_bytes(3, writer=(4, 9))) == [27]
    with pytest.raises(WriterStateError):
        append(log, batch_bytes(3, writer=(4, 11)))


def test_writers_are_known_without_their_snapshots(tmp_path):
    directory = crash(filled(tmp_path / "log-0", segment_bytes=500), tmp_path / "log-0")
    for path in directory.glob("*.writers"):
        path.write_bytes(b"garbage")
    log = opened(directory, segment_bytes=500)
    assert append(log, batch_bytes(3, writer=(4, 8))) == [24]


@pytest.mark.parametrize("kept", [1, 11, 12, 20, 47, 48, 60, -1])
def test_a_torn_end_is_cut_exactly_at_the_last_whole_batch(tmp_path, kept, caplog):
    directory = crash(filled(tmp_path / "log-0"), tmp_path / "log-0")
    whole = log_file(directory).read_bytes()
    extra = batch_bytes(3, first=30)[:kept]
    log_file(directory).write_bytes(whole + extra)
    with caplog.at_level(logging.WARNING):
        log = opened(directory)
    assert ids_in(log) == list(range(30))
    assert log_file(directory).read_bytes() == whole
    (beside,) = torn(directory)
    assert beside.read_bytes() == extra
    assert "had not been acknowledged" in caplog.text
    assert append(log, batch_bytes(1)) == [30]


def test_zeros_that_a_file_system_left_are_cut(tmp_path):
    directory = crash(filled(tmp_path / "log-0"), tmp_path / "log-0")
    with log_file(directory).open("ab") as file:
        file.write(bytes(5_000))
    assert ids_in(opened(directory)) == list(range(30))


def test_a_last_batch_with_a_wrong_checksum_is_cut(tmp_path):
    directory = crash(filled(tmp_path / "log-0"), tmp_path / "log-0")
    data = bytearray(log_file(directory).read_bytes())
    data[-20] ^= 1
    log_file(directory).write_bytes(data)
    assert ids_in(opened(directory)) == list(range(27))


def test_a_damaged_batch_before_valid_ones_is_refused_with_its_position(tmp_path):
    directory = crash(filled(tmp_path / "log-0"), tmp_path / "log-0")
    size = len(batch_bytes(3, writer=(4, 0)))
    data = bytearray(log_file(directory).read_bytes())
    data[4 * size + 100] ^= 1
    log_file(directory).write_bytes(data)
    with pytest.raises(LocalServerError) as refused:
        opened(directory)
    assert str(log_file(directory)) in refused.value.message
    assert f"byte {refused.value.at}" in refused.value.message
    assert "--repair" in refused.value.hint
    assert log_file(directory).read_bytes() == bytes(data), "nothing was changed"


def test_the_remedy_in_the_refusal_works(tmp_path):
    directory = crash(filled(tmp_path / "log-0"), tmp_path / "log-0")
    size = len(batch_bytes(3, writer=(4, 0)))
    data = bytearray(log_file(directory).read_bytes())
    data[4 * size + 100] ^= 1
    log_file(directory).write_bytes(data)
    with pytest.raises(LocalServerError) as refused:
        opened(directory)
    log_file(directory).write_bytes(data[: refused.value.at])
    (directory / CHECKPOINT).unlink(missing_ok=True)
    assert ids_in(opened(directory)) == list(range(12))


def test_a_file_shorter_than_what_was_synced_is_a_refusal(tmp_path):
    log = filled(tmp_path / "log-0")
    log.sync()
    directory = crash(log, tmp_path / "log-0")
    data = log_file(directory).read_bytes()
    log_file(directory).write_bytes(data[:-200])
    with pytest.raises(LocalServerError, match="had been synced"):
        opened(directory)


def test_damage_before_the_last_sync_is_refused(tmp_path):
    log = filled(tmp_path / "log-0")
    log.sync()
    append(log, batch_bytes(1, first=30))
    directory = crash(log, tmp_path / "log-0")
    data = bytearray(log_file(directory).read_bytes())
    start = len(batch_bytes(3, writer=(4, 0))) * 6
    data[start : start + 48] = bytes(48)
    log_file(directory).write_bytes(data)
    with pytest.raises(LocalServerError, match="damaged at byte"):
        opened(directory)


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("content", [b"", b"garbage", bytes(24), b"\xff" * 24])
def test_damaged_indexes_are_rebuilt(tmp_path, suffix, content):
    log = opened(tmp_path / "log-0", segment_bytes=20_000)
    for moment in range(500):
        append(log, batch_bytes(2, first=2 * moment), now_ms=1_000 + moment)
    log.close()
    for path in (tmp_path / "log-0").glob(f"*.{suffix}"):
        path.write_bytes(content)
    log = opened(tmp_path / "log-0", segment_bytes=20_000)
    assert ids_in(log, 333) == list(range(333, 1000))
    assert log.offset_since(1_250) == 500
    log.close()


def test_a_damaged_checkpoint_only_costs_time(tmp_path):
    filled(tmp_path / "log-0").close()
    (tmp_path / "log-0" / CHECKPOINT).write_bytes(b"garbage")
    assert ids_in(opened(tmp_path / "log-0")) == list(range(30))


def test_a_sealed_segment_that_lost_its_end_is_a_refusal(tmp_path):
    directory = tmp_path / "log-0"
    filled(directory, segment_bytes=500).close()
    first = min(directory.glob("*.log"))
    first.write_bytes(first.read_bytes()[:-150])
    with pytest.raises(LocalServerError, match=first.name):
        opened(directory, segment_bytes=500)


# --- recovery points ----------------------------------------------------------------------------


def kept(directory):
    """A log of two hundred batches, with a recovery point after the first hundred."""
    log = opened(directory, segment_bytes=1 << 20)
    for moment in range(200):
        append(log, batch_bytes(2, first=2 * moment, writer=(4, moment)), now_ms=1_000 + moment)
        if moment == 99:
            log.sync()
            log.keep(log.recovery_point())
    log.sync()
    return log


def positions_read(monkeypatch):
    read, real = [], Segment.read_unchecked
    monkeypatch.setattr(
        Segment,
        "read_unchecked",
        lambda self, start, end: (read.append(start), real(self, start, end))[1],
    )
    return read


def test_nothing_before_the_recovery_point_is_read_again(tmp_path, monkeypatch):
    directory = crash(kept(tmp_path / "log-0"), tmp_path / "log-0")
    half = log_file(directory).stat().st_size // 2
    read = positions_read(monkeypatch)
    log = opened(directory)
    assert min(read) > half - 2 * INDEX_INTERVAL_BYTES
    assert append(log, batch_bytes(2, writer=(4, 199))) == [398]
    assert ids_in(log) == list(range(400))
    assert [log.offset_since(each) for each in (1_050, 1_150)] == [100, 300]


@pytest.mark.parametrize("suffix", ["index", "timeindex", "writers"])
@pytest.mark.parametrize("content", [b"", b"garbage", bytes(24)])
def test_a_damaged_recovery_point_is_not_used(tmp_path, suffix, content):
    directory = crash(kept(tmp_path / "log-0"), tmp_path / "log-0")
    for path in directory.glob(f"*.{suffix}"):
        path.write_bytes(content)
    log = opened(directory)
    assert append(log, batch_bytes(2, writer=(4, 199))) == [398]
    assert ids_in(log) == list(range(400))
    assert log.offset_since(1_150) == 300


def test_indexes_of_another_moment_are_not_used(tmp_path):
    log = kept(tmp_path / "log-0")
    earlier = {each: each.read_bytes() for each in (tmp_path / "log-0").glob("*.*index")}
    log.keep(log.recovery_point())
    for path, data in earlier.items():
        path.write_bytes(data)
    log = opened(crash(log, tmp_path / "log-0"))
    assert ids_in(log) == list(range(400))
    assert append(log, batch_bytes(2, writer=(4, 199))) == [398]


def test_writers_of_batches_lost_in_a_power_cut_are_forgotten(tmp_path):
    log = kept(tmp_path / "log-0")
    log.keep(log.recovery_point())
    directory = crash(log, tmp_path / "log-0")
    size = len(batch_bytes(2, writer=(4, 0)))
    with log_file(directory).open("r+b") as file:
        file.truncate(150 * size)
    (directory / CHECKPOINT).unlink()
    log = opened(directory)
    for moment in range(150, 250):
        append(log, batch_bytes(2, writer=(5, moment - 150)))
    again = opened(crash(log, directory))
    with pytest.raises(WriterStateError):
        append(again, batch_bytes(2, writer=(4, 199)))


def test_a_segment_is_sealed_while_its_recovery_point_is_stored(tmp_path, monkeypatch):
    """Both write the snapshot of the same writers; neither may remove the other's file."""
    log = opened(tmp_path / "log-0")
    real, begun, busy = files.replace_file, threading.Event(), set()

    def replace_slowly(path, data, *, durable):
        assert path not in busy
        busy.add(path)
        if path.suffix == ".writers":
            begun.set()
            time.sleep(0.3)
        real(path, data, durable=durable)
        busy.remove(path)

    append(log, batch_bytes(3, writer=(4, 0)))
    recovery_point = log.recovery_point()
    monkeypatch.setattr(files, "replace_file", replace_slowly)
    keeper = threading.Thread(target=log.keep, args=(recovery_point,))
    keeper.start()
    assert begun.wait(10)
    log.roll()
    keeper.join()
    assert {each.suffix for each in (tmp_path / "log-0").iterdir()} >= {".index", ".writers"}
    append(log, batch_bytes(3, first=3, writer=(4, 1)))
    log.publish()
    assert ids_in(opened(crash(log, tmp_path / "log-0"))) == list(range(6))
