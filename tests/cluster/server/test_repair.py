"""`--repair`: remaining rows are served, losses are reported, nothing is deleted."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys

import pytest

from fluss.errors import LocalServerError
from fluss.wire import messages as pb
from fluss_server.data_layout import CATALOG, DATA, LEDGER
from tests.support.servers.bucket_logs import batch_bytes
from tests.support.servers.embedded import Clock, running
from tests.support.servers.embedded_table import LogTable
from tests.support.servers.raw_client import RawConnection

SEGMENT_BYTES = 700
ROWS = 60


@pytest.fixture
def filled(tmp_path):
    directory = tmp_path / "data"
    with running(directory, segment_bytes=SEGMENT_BYTES) as server:
        connection = RawConnection(server.address)
        table = LogTable(connection, "events", bucket_count=2)
        LogTable(connection, "empty")
        for first in range(0, ROWS, 3):
            for bucket in (0, 1):
                table.produce(batch_bytes(3, first=first, writer=(1, first // 3)), bucket=bucket)
        connection.close()
    return directory


def log_of(directory, bucket=0):
    (found,) = (directory / DATA / "fluss").glob(f"events-*/log-{bucket}")
    return found


def ends_after_repair(directory):
    """Return the high watermarks of both buckets, of a repairing server and of the next one."""
    found = []
    for repair in (True, False):
        with running(directory, segment_bytes=SEGMENT_BYTES, repair=repair) as server:
            connection = RawConnection(server.address)
            table = LogTable(connection, "events", bucket_count=2)
            answers = [table.fetch(-2, bucket=bucket) for bucket in (0, 1)]
            found.append([(each.log_start_offset, each.high_watermark) for each in answers])
            connection.close()
    assert found[0] == found[1]
    return found[0]


def test_an_undamaged_directory_is_not_changed(filled, caplog):
    assert ends_after_repair(filled) == [(0, ROWS), (0, ROWS)]
    assert not list(filled.glob("aside-*"))
    assert "repair" not in caplog.text


def test_a_lost_catalog_is_rebuilt_from_the_manifests(filled, caplog):
    known = subprocess.run(["ls", filled / DATA / "fluss"], capture_output=True, check=True).stdout
    for path in filled.glob(f"{CATALOG}*"):
        path.unlink()
    assert ends_after_repair(filled) == [(0, ROWS), (0, ROWS)]
    with running(filled) as server:
        connection = RawConnection(server.address)
        tables = connection.call(pb.ListTablesRequest(database_name="fluss")).table_name
        assert sorted(tables) == ["empty", "events"]
        assert LogTable(connection, "fresh").id == 2
        connection.close()
    assert "fluss.events is taken from" in caplog.text
    assert known.split() == [b"empty-1", b"events-0", b"manifest.json"]


def test_catalog_and_ledger_can_be_lost_together(filled):
    for path in [*filled.glob(f"{CATALOG}*"), filled / LEDGER]:
        path.unlink()
    assert ends_after_repair(filled) == [(0, ROWS), (0, ROWS)]
    with running(filled) as server:
        connection = RawConnection(server.address)
        # The assigned writer ids are not known; a reused id would lose rows.
        assert connection.call(pb.InitWriterRequest()).writer_id > 1_000_000
        connection.close()


@pytest.mark.parametrize("what", ["cut", "zeroed", "removed"])
def test_a_damaged_ledger_is_rebuilt(filled, what):
    if what == "removed":
        (filled / LEDGER).unlink()
    else:
        data = (filled / LEDGER).read_bytes()
        (filled / LEDGER).write_bytes(data[:5_000] if what == "cut" else bytes(len(data)))
    assert ends_after_repair(filled) == [(0, ROWS), (0, ROWS)]


def test_a_table_lost_by_a_damaged_write_ahead_log_is_recovered(tmp_path):
    directory = tmp_path / "data"
    with running(directory) as server:
        connection = RawConnection(server.address)
        LogTable(connection, "early")
        LogTable(connection, "events", bucket_count=2).produce(batch_bytes(3))
        connection.close()
        shutil.copytree(directory, tmp_path / "killed")
    wal = tmp_path / "killed" / f"{CATALOG}-wal"
    data = bytearray(wal.read_bytes())
    data[len(data) // 2] ^= 1
    wal.write_bytes(data)
    assert ends_after_repair(tmp_path / "killed") == [(0, 3), (0, 0)]


@pytest.mark.parametrize("at", [30, 400], ids=["in the first batch", "in the second"])
def test_a_log_ends_at_its_first_damage_and_the_rest_is_moved_aside(filled, caplog, at):
    segments = sorted(log_of(filled).glob("*.log"))
    data = bytearray(segments[2].read_bytes())
    data[at] ^= 1
    segments[2].write_bytes(data)
    begin = int(segments[2].stem)
    end = begin + (0 if at == 30 else 3)
    with caplog.at_level(logging.WARNING):
        assert ends_after_repair(filled) == [(0, end), (0, ROWS)]
    assert f"has lost the offsets from {end} to {ROWS - 1}" in caplog.text
    (aside,) = filled.glob("aside-*")
    kept = {path.name for path in aside.rglob("*") if path.is_file()}
    assert {path.name for path in segments[3:]} <= kept
    assert any(name.startswith(segments[2].stem) for name in kept)


def test_a_missing_first_segment_is_given_up_with_a_report(filled, caplog):
    segments = sorted(log_of(filled).glob("*.log"))
    segments[0].unlink()
    begin = int(segments[1].stem)
    assert ends_after_repair(filled) == [(begin, ROWS), (0, ROWS)]
    assert f"has lost the offsets from 0 to {begin - 1}" in caplog.text


def test_a_missing_log_is_given_up_with_a_report(filled, caplog):
    shutil.rmtree(log_of(filled))
    assert ends_after_repair(filled) == [(0, 0), (0, ROWS)]
    assert f"has lost the offsets from 0 to {ROWS - 1}" in caplog.text


@pytest.mark.parametrize("which", [0, 2, -1], ids=["first", "middle", "newest"])
@pytest.mark.parametrize("size", ["same", "shorter"])
def test_a_segment_of_another_directory_is_never_used(filled, tmp_path, which, size):
    """Its batches are valid and have the right offsets; only their times differ."""
    clock = Clock(1_800_000_000_000)
    with running(tmp_path / "foreign", segment_bytes=SEGMENT_BYTES, clock=clock) as server:
        connection = RawConnection(server.address)
        table = LogTable(connection, "events", bucket_count=2)
        for first in range(0, ROWS, 3):
            table.produce(batch_bytes(3, first=first, writer=(1, first // 3)))
        connection.close()
    target = sorted(log_of(filled).glob("*.log"))[which]
    data = (log_of(tmp_path / "foreign") / target.name).read_bytes()
    assert len(data) == target.stat().st_size
    target.write_bytes(data if size == "same" else data[:312])
    assert ends_after_repair(filled) == [(0, int(target.stem)), (0, ROWS)]
    (aside,) = filled.glob("aside-*")
    assert any(data.startswith(path.read_bytes()) for path in aside.rglob(f"{target.stem}.cut-*"))


def test_an_earlier_state_of_the_newest_segment_is_used_to_its_end(filled):
    """It belongs to this log: its recorded checksums match."""
    newest = max(log_of(filled).glob("*.log"))
    begin, size = int(newest.stem), newest.stat().st_size
    with running(filled, segment_bytes=1 << 20) as server:
        connection = RawConnection(server.address)
        table = LogTable(connection, "events", bucket_count=2)
        for first in range(ROWS, 2 * ROWS, 3):
            table.produce(batch_bytes(3, first=first, writer=(1, first // 3)))
        connection.close()
    with newest.open("r+b") as file:
        file.truncate(size + 312 * 18)
    end = begin + (size + 312 * 18) // 312 * 3
    assert ends_after_repair(filled)[0] == (0, end)


def test_rows_of_another_bucket_are_never_used(filled):
    first, second = log_of(filled), log_of(filled, 1)
    first.rename(first.with_name("aside"))
    second.rename(first)
    first.with_name("aside").rename(second)
    assert ends_after_repair(filled) == [(0, 0), (0, 0)]
    (aside,) = filled.glob("aside-*")
    assert len(list(aside.rglob("segments"))) == 2


def test_an_unknown_directory_is_moved_aside(filled):
    table = log_of(filled).parent
    shutil.copytree(table, table.with_name("events-9"))
    assert ends_after_repair(filled) == [(0, ROWS), (0, ROWS)]
    (aside,) = filled.glob("aside-*")
    assert (aside / DATA / "fluss" / "events-9").is_dir()


def test_the_command_line_repairs_once(filled):
    (filled / LEDGER).unlink()
    command = [sys.executable, "-m", "fluss_server", "-d", str(filled), "--port", "0"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1
    assert f"{filled / LEDGER} is missing" in refused.stderr
    assert "--repair" in refused.stderr
    process = subprocess.Popen(
        [*command, "--repair"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert "ready at" in process.stdout.readline()
    process.terminate()
    _, message = process.communicate(timeout=60)
    assert f"{filled / LEDGER} is missing" in message
    with running(filled):
        pass


def test_a_catalog_of_a_newer_version_is_not_repaired(filled):
    import sqlite3

    connection = sqlite3.connect(filled / CATALOG)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(LocalServerError, match="format 99"), running(filled, repair=True):
        pass
    assert not list(filled.glob("aside-*"))
