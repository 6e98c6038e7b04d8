"""Files that are missing, shortened, exchanged or from another moment are refused by name."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from contextlib import contextmanager

import pytest

from fluss.errors import LocalServerError
from fluss.model.schema.schema import Schema
from fluss.model.types.factory import DataTypes
from fluss.records.kv.value_batch import read_value_batch
from fluss.records.log.log_batch import iter_log_batches
from fluss.wire import messages as pb
from fluss_server.data_layout import CATALOG, DATA, LEDGER, MANIFEST
from tests.support.differential.differential_servers import ServerUnderComparison
from tests.support.differential.differential_tables import KINDS, DifferentialTable
from tests.support.servers.bucket_logs import SCHEMA, batch_bytes
from tests.support.servers.embedded import running
from tests.support.servers.embedded_table import LogTable
from tests.support.servers.ledgers import as_after_a_power_cut, as_killed, head_of
from tests.support.servers.raw_client import RawConnection, RefusedError

SEGMENT_BYTES = 700
KIND_BY_NAME = {kind.name: kind for kind in KINDS}
WIDER = (
    Schema.builder()
    .column("id", DataTypes.int())
    .column("name", DataTypes.string())
    .column("n", DataTypes.bigint())
    .build()
)


@pytest.fixture
def connect():
    """A function that opens connections; they are closed after the test."""
    opened = []

    def connect(address):
        opened.append(RawConnection(address))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture(params=["killed", "ended"])
def filled(tmp_path, connect, request):
    """A directory with logs of several segments, of a server that was killed or stopped cleanly.

    There are many changes, so that sqlite's write-ahead log has most of them.
    """
    directory = tmp_path / "data"
    with running(directory, segment_bytes=SEGMENT_BYTES) as server:
        connection = connect(server.address)
        for number in range(5):
            LogTable(connection, f"table_{number}", bucket_count=2)
        table = LogTable(connection, "events", bucket_count=2)
        for sequence in range(20):
            for bucket in (0, 1):
                batch = batch_bytes(3, first=3 * sequence, writer=(1, sequence))
                assert table.produce(batch, bucket=bucket).base_offset == 3 * sequence
        if request.param == "killed":
            shutil.copytree(directory, tmp_path / "killed")
    return directory if request.param == "ended" else tmp_path / "killed"


def refusal_of(directory):
    with pytest.raises(LocalServerError) as refused, running(directory):
        pass
    assert "--repair" in refused.value.hint
    return refused.value.message


def log_directory(directory, bucket=0, table="events"):
    (found,) = (directory / DATA / "fluss").glob(f"{table}-*/log-{bucket}")
    return found


def answers(directory, connect, *, bucket=0):
    """Return the error of the start, or the response of a request."""
    try:
        with running(directory, segment_bytes=SEGMENT_BYTES) as server:
            answer = LogTable(connect(server.address), "events", bucket_count=2).fetch(
                bucket=bucket
            )
            return answer.error_message, answer.records
    except LocalServerError as error:
        return error.message, b""


# --- the catalog ----------------------------------------------------------------------------------


def killed_catalog(tmp_path, connect):
    """A catalog mostly in the write-ahead log, of a server that was killed."""
    directory = tmp_path / "data"
    with running(directory) as server:
        connection = connect(server.address)
        for number in range(4):
            table = LogTable(connection, f"table_{number}")
            table.produce(batch_bytes(3))
        request = pb.AlterTableRequest(table_path=table.path, ignore_if_not_exists=False)
        request.add_columns.add(
            column_name="late", data_type_json=b'{"type":"INTEGER"}', column_position_type=0
        )
        connection.call(request)
        shutil.copytree(directory, tmp_path / "killed")
    return tmp_path / "killed"


@pytest.mark.parametrize("part", [0.02, 0.05, 0.3, 0.6, 0.95, 0.999])
@pytest.mark.parametrize("how", ["flip", "cut"])
def test_a_damaged_write_ahead_log_is_a_refusal(tmp_path, connect, how, part):
    directory = killed_catalog(tmp_path, connect)
    wal = directory / f"{CATALOG}-wal"
    data = bytearray(wal.read_bytes())
    at = int(len(data) * part)
    data[at] ^= 4
    wal.write_bytes(bytes(data) if how == "flip" else bytes(data[:at]))
    before = wal.read_bytes()
    message = refusal_of(directory)
    assert CATALOG in message
    assert str(directory / LEDGER) in message
    assert wal.read_bytes() == before, "nothing was changed"


@pytest.mark.parametrize("names", [("-wal",), ("", "-wal", "-shm"), ("",)])
def test_a_removed_catalog_is_a_refusal(tmp_path, connect, names):
    directory = killed_catalog(tmp_path, connect)
    for name in names:
        (directory / f"{CATALOG}{name}").unlink()
    assert CATALOG in refusal_of(directory)


def test_catalog_and_ledger_gone_together_leave_the_tables(tmp_path, connect):
    directory = killed_catalog(tmp_path, connect)
    for path in [*directory.glob(f"{CATALOG}*"), directory / LEDGER]:
        path.unlink()
    assert str(directory / DATA) in refusal_of(directory)


@pytest.mark.parametrize("what", [(CATALOG,), (CATALOG, LEDGER), (LEDGER,)])
def test_an_earlier_catalog_is_a_refusal(tmp_path, connect, what):
    directory, kept = tmp_path / "data", tmp_path / "kept"
    with running(directory) as server:
        LogTable(connect(server.address), "early").produce(batch_bytes(3))
    kept.mkdir()
    for name in (CATALOG, LEDGER):
        shutil.copy(directory / name, kept / name)
    with running(directory) as server:
        connection = connect(server.address)
        LogTable(connection, "late").produce(batch_bytes(3))
        LogTable(connection, "later")
    for name in what:
        shutil.copy(kept / name, directory / name)
    message = refusal_of(directory)
    assert "earlier moment" in message or "changes are lost" in message


def test_a_changed_row_of_the_catalog_is_a_refusal(filled):
    """The change is made with sqlite itself, which leaves a valid file."""
    connection = sqlite3.connect(filled / CATALOG)
    connection.execute("UPDATE counters SET next = 0 WHERE name = 'table'")
    connection.commit()
    connection.close()
    assert "are not those that were written" in refusal_of(filled)


def test_one_change_that_only_the_catalog_has_is_accepted_after_a_kill(
    tmp_path, connect, monkeypatch
):
    directory = tmp_path / "data"
    with running(directory) as server:
        connection = connect(server.address)
        LogTable(connection, "early")
        with monkeypatch.context() as patched:
            patched.setattr(server.node.ledger, "seal", lambda *_: None)
            LogTable(connection, "late")
            shutil.copytree(directory, tmp_path / "killed")
            LogTable(connection, "later")
            shutil.copytree(directory, tmp_path / "impossible")
    with running(tmp_path / "killed") as server:
        connection = connect(server.address)
        tables = connection.call(pb.ListTablesRequest(database_name="fluss")).table_name
        assert sorted(tables) == ["early", "late"]
    assert "ledger" in refusal_of(tmp_path / "impossible")


def test_a_ledger_that_cannot_be_written_blocks_the_next_change(tmp_path, connect, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with running(tmp_path) as server:
        connection = connect(server.address)
        with monkeypatch.context() as patched:
            patched.setattr(server.node.ledger, "seal", full)
            LogTable(connection, "early")
            with pytest.raises(RefusedError) as refused:
                LogTable(connection, "late")
            assert refused.value.code == 26
        LogTable(connection, "late")
    with running(tmp_path):
        pass


def test_a_directory_that_the_catalog_does_not_know_is_a_refusal(filled):
    log = log_directory(filled)
    shutil.copytree(log.parent, log.parent.with_name("events-77"))
    assert "events-77" in refusal_of(filled)


def test_other_directories_are_ignored(filled):
    log = log_directory(filled)
    shutil.copytree(log.parent, log.parent.with_name("events.bak"))
    with running(filled):
        pass
    assert log.parent.with_name("events.bak").is_dir()


def test_manifests_are_written_again_where_they_are_missing_or_damaged(filled):
    first, second = sorted((filled / DATA).rglob(MANIFEST))[:2]
    known = first.read_bytes(), second.read_bytes()
    first.unlink()
    second.write_bytes(second.read_bytes()[:-30])
    with running(filled):
        pass

    def without_number(data):
        return [
            line for line in data.splitlines() if b"sequence" not in line and b"crc" not in line
        ]

    assert [without_number(path.read_bytes()) for path in (first, second)] == [
        without_number(data) for data in known
    ]


def test_a_dropped_database_is_no_contradiction_after_a_kill(tmp_path, connect, monkeypatch):
    directory = tmp_path / "data"
    monkeypatch.setattr("fluss_server.server_node.remove_tree", lambda _: False)
    with running(directory) as server:
        connection = connect(server.address)
        request = pb.CreateDatabaseRequest(database_name="shop", ignore_if_exists=False)
        connection.call(request)
        with monkeypatch.context() as patched:
            patched.setattr("fluss_server.catalog.catalog.Catalog.remove_manifests", lambda _: None)
            connection.call(
                pb.DropDatabaseRequest(
                    database_name="shop", ignore_if_not_exists=False, cascade=True
                )
            )
            shutil.copytree(directory, tmp_path / "killed")
    assert (tmp_path / "killed" / DATA / "shop" / MANIFEST).exists()
    with running(tmp_path / "killed") as server:
        assert not (tmp_path / "killed" / DATA / "shop").exists()
        connection = connect(server.address)
        connection.call(request)
    with running(tmp_path / "killed"):
        pass


# --- logs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [0, 3, -1])
def test_a_missing_segment_is_named(filled, connect, which):
    segments = sorted(log_directory(filled).glob("*.log"))
    segments[which].unlink()
    message, records = answers(filled, connect)
    assert f"{segments[which]} is missing" in message
    assert not records


@pytest.mark.parametrize("name", ["log-0", ".", "..", "../.."])
def test_a_missing_directory_is_named(filled, connect, name):
    log = log_directory(filled)
    gone = (log if name == "log-0" else log.parent / name).resolve()
    shutil.rmtree(gone)
    message = refusal_of(filled)
    assert f"{log} is missing" in message
    assert "offsets below 60" in message


@pytest.mark.parametrize("what", ["segments", "last segment", "both"])
def test_a_list_of_segments_that_is_missing_is_named(filled, connect, what):
    log = log_directory(filled)
    if what != "last segment":
        (log / "segments").unlink()
    if what != "segments":
        max(log.glob("*.log")).unlink()
    message, _ = answers(filled, connect)
    assert str(log) in message
    assert "is missing" in message


def test_a_log_that_was_cut_at_the_end_of_a_batch_is_named(filled, connect):
    newest = max(log_directory(filled).glob("*.log"))
    (size,) = struct.unpack_from("<8xi", newest.read_bytes())
    with newest.open("r+b") as file:
        file.truncate(newest.stat().st_size - size - 12)
    (newest.parent / "synced").unlink()
    message, records = answers(filled, connect)
    assert str(newest) in message
    assert "had been acknowledged" in message
    assert not records


def test_a_damaged_last_batch_is_not_taken_for_one_that_was_never_acknowledged(filled, connect):
    newest = max(log_directory(filled).glob("*.log"))
    data = bytearray(newest.read_bytes())
    data[-3] ^= 1
    newest.write_bytes(data)
    (newest.parent / "synced").unlink()
    message, records = answers(filled, connect)
    assert str(newest) in message
    assert not records


@pytest.mark.parametrize("at", [3, 15, 22, 60], ids=["offset", "time", "checksum", "body"])
@pytest.mark.parametrize("projected", [None, [0]])
@pytest.mark.parametrize("which", [0, 3, -1])
def test_a_flipped_bit_is_named_to_every_reader(filled, connect, at, projected, which):
    segment = sorted(log_directory(filled).glob("*.log"))[which]
    data = bytearray(segment.read_bytes())
    data[at] ^= 8
    segment.write_bytes(data)
    as_killed(filled) if which == 0 else None
    try:
        with running(filled, segment_bytes=SEGMENT_BYTES) as server:
            table = LogTable(connect(server.address), "events", bucket_count=2)
            offset, refused = 0, None
            while refused is None:
                answer = table.fetch(offset, projected=projected)
                if answer.HasField("error_code"):
                    refused = answer
                else:
                    *_, last = iter_log_batches(answer.records, verify_crc=projected is None)
                    offset = last.next_offset
            assert refused.error_code == -1, "clients send no request again for this"
            message = refused.error_message
            assert table.fetch(bucket=1).records, "the other bucket is served"
    except LocalServerError as error:
        message = error.message
    assert str(segment) in message


def test_exchanged_buckets_are_named(filled, connect):
    first, second = log_directory(filled), log_directory(filled, 1)
    first.rename(first.with_name("aside"))
    second.rename(first)
    first.with_name("aside").rename(second)
    for bucket in (0, 1):
        message, records = answers(filled, connect, bucket=bucket)
        assert "exchanged" in message
        assert not records


def test_exchanged_writer_snapshots_are_not_used(filled, connect):
    first, second = log_directory(filled), log_directory(filled, 1)
    for path in sorted(first.glob("*.writers")):
        other = second / path.name
        mine, theirs = path.read_bytes(), other.read_bytes()
        path.write_bytes(theirs)
        other.write_bytes(mine)
    with running(filled, segment_bytes=SEGMENT_BYTES) as server:
        table = LogTable(connect(server.address), "events", bucket_count=2)
        assert table.produce(batch_bytes(3, first=57, writer=(1, 19))).base_offset == 57
        assert table.produce(batch_bytes(3, first=60, writer=(1, 20))).base_offset == 60


def test_an_unlisted_segment_is_named(filled, connect):
    segments = sorted(log_directory(filled).glob("*.log"))
    extra = segments[0].with_name(f"{1:020d}.log")
    shutil.copy(segments[0], extra)
    message, _ = answers(filled, connect)
    assert str(extra) in message


def test_unsynced_rows_are_given_up_after_a_power_cut_with_a_warning(tmp_path, connect, caplog):
    directory = tmp_path / "data"
    with running(directory) as server:
        table = LogTable(connect(server.address))
        for sequence in range(10):
            table.produce(batch_bytes(3, first=3 * sequence, writer=(1, sequence)))
        shutil.copytree(directory, tmp_path / "cut")
    newest = max((tmp_path / "cut" / DATA).rglob("*.log"))
    with newest.open("r+b") as file:
        file.truncate(newest.stat().st_size * 4 // 10)
    shutil.copytree(tmp_path / "cut", tmp_path / "killed")
    assert "had been acknowledged" in refusal_of(tmp_path / "killed")
    as_after_a_power_cut(tmp_path / "cut")
    with running(tmp_path / "cut") as server:
        assert "before the last 18 rows were on the disk" in caplog.text
        table = LogTable(connect(server.address))
        assert table.fetch().high_watermark == 12
        assert table.produce(batch_bytes(3)).base_offset == 12
    with running(tmp_path / "cut") as server:
        assert LogTable(connect(server.address)).fetch().high_watermark == 15


def test_a_kill_during_the_start_of_a_segment_is_no_damage(tmp_path, connect, monkeypatch):
    """The kill happens at each step: the empty file, the list, and only then the ledger."""
    directory = tmp_path / "data"
    steps = []
    with running(directory, segment_bytes=SEGMENT_BYTES) as server:
        table = LogTable(connect(server.address))
        table.produce(batch_bytes(3, writer=(1, 0)))

        def copy_before(name, real):
            def call(*arguments, **more):
                steps.append(tmp_path / f"{len(steps)}-{name}")
                shutil.copytree(directory, steps[-1])
                return real(*arguments, **more)

            return call

        from fluss_server.ledger import LedgerEntry
        from fluss_server.log.segment_file import Segment
        from fluss_server.log.segment_list import SegmentList

        for kind, name in ((Segment, "create"), (SegmentList, "write"), (LedgerEntry, "write")):
            monkeypatch.setattr(kind, name, copy_before(name, getattr(kind, name)))
        (tablet,) = server.node.tablets
        server.on_loop(tablet.log.roll)
        monkeypatch.undo()
    assert [step.name.split("-")[1] for step in steps] == ["create", "write", "write"]
    for step in steps:
        with running(step, segment_bytes=SEGMENT_BYTES) as server:
            table = LogTable(connect(server.address))
            assert table.fetch().high_watermark == 3
            assert table.produce(batch_bytes(3, first=3, writer=(1, 1))).base_offset == 3
        with running(step, segment_bytes=SEGMENT_BYTES) as server:
            assert LogTable(connect(server.address)).fetch().high_watermark == 6


# --- rows by key ----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["killed", "ended"])
@pytest.mark.parametrize("gone", ["segment", "log-0", "kv-0 exchanged"])
def test_rows_by_key_are_not_served_without_their_log(tmp_path, how, gone):
    directory = tmp_path / "data"
    with running(directory) as server:
        client = ServerUnderComparison(server.address, "fluss")
        for name in ("keyed", "wide"):
            table = DifferentialTable(KIND_BY_NAME[name])
            client.call(
                pb.CreateTableRequest(
                    table_path=client.path(table.name),
                    table_json=table.descriptor.to_json().encode(),
                    ignore_if_exists=True,
                )
            )
            if name == "keyed":
                records = [((key, "name", key, None), False) for key in range(50)]
                request = pb.PutKvRequest(
                    acks=-1, table_id=client.table_id(table.name), timeout_ms=1_000
                )
                request.buckets_req.add(bucket_id=0, records=table.kv_batch(records, schema_id=1))
                (answer,) = client.call(request).buckets_resp
                assert not answer.HasField("error_code")
        client.close()
        shutil.copytree(directory, tmp_path / "killed")
    directory = directory if how == "ended" else tmp_path / "killed"
    (log,) = (directory / DATA).rglob("keyed_0-*/log-0")
    (rows,) = (directory / DATA).rglob("keyed_0-*/kv-0")
    if gone == "segment":
        next(log.glob("*.log")).unlink()
    elif gone == "log-0":
        shutil.rmtree(log)
    else:
        other = next((directory / DATA).glob("fluss/wide_0-*")) / "kv-0"
        rows.rename(other)
    try:
        with running(directory) as server:
            client = ServerUnderComparison(server.address, "fluss")
            name = "wide_0" if gone == "kv-0 exchanged" else "keyed_0"
            answer = client.call(
                pb.LimitScanRequest(table_id=client.table_id(name), bucket_id=0, limit=1_000)
            )
            client.close()
            message = answer.error_message
            assert not answer.records or not len(read_value_batch(answer.records).starts)
    except LocalServerError as error:
        message = error.message
    if gone == "kv-0 exchanged" and how == "killed":
        assert not message, "nothing of it was on the disk yet, so nothing was exchanged"
    else:
        assert str(directory / DATA) in message


# --- while the server runs ------------------------------------------------------------------------


@contextmanager
def robbed(directory):
    """A server whose files are removed while it runs, so that its stop fails."""
    with pytest.raises(LocalServerError, match="was removed"), running(directory) as server:
        yield server


@pytest.mark.parametrize("gone", ["data", "data/fluss", "a segment", "everything"])
def test_nothing_is_acknowledged_into_files_that_were_removed(tmp_path, connect, gone):
    with robbed(tmp_path / "served") as server:
        table = LogTable(connect(server.address))
        assert table.produce(batch_bytes(3)).base_offset == 0
        if gone == "a segment":
            next((tmp_path / "served").rglob("*.log")).unlink()
        elif gone == "everything":
            for path in (tmp_path / "served").iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        else:
            shutil.rmtree(tmp_path / "served" / gone)
        answer = table.produce(batch_bytes(3))
        assert answer.error_code == -1
        assert "was removed" in answer.error_message
        assert str(tmp_path / "served") in answer.error_message
        assert table.fetch().high_watermark == 3


def test_a_log_whose_directory_was_renamed_takes_no_more_rows_after_the_next_round(
    tmp_path, connect
):
    with robbed(tmp_path) as server:
        table = LogTable(connect(server.address))
        table.produce(batch_bytes(3))
        (tmp_path / DATA / "fluss").rename(tmp_path / DATA / "moved")
        server.on_loop(server.server._maintenance.run_round)
        assert "was removed or replaced" in table.produce(batch_bytes(3)).error_message


@pytest.mark.parametrize("name", [CATALOG, LEDGER])
def test_no_table_is_created_where_the_catalog_or_the_ledger_was_removed(tmp_path, connect, name):
    run = robbed if name == LEDGER else running
    with run(tmp_path) as server:
        connection = connect(server.address)
        table = LogTable(connection, "early")
        table.produce(batch_bytes(3))
        (tmp_path / name).unlink()
        with pytest.raises(RefusedError, match=name):
            LogTable(connection, "late")
        if name == LEDGER:
            server.on_loop(server.server._maintenance.run_round)
            assert name in table.produce(batch_bytes(3)).error_message


def test_a_new_table_never_gets_an_old_directory(tmp_path, connect):
    with running(tmp_path) as server:
        connection = connect(server.address)
        old = LogTable(connection, "events")
        old.produce(batch_bytes(3))
        next_id = old.id + 1
        shutil.copytree(
            tmp_path / DATA / "fluss" / f"events-{old.id}",
            tmp_path / DATA / "fluss" / f"late-{next_id}",
        )
        late = LogTable(connection, "late")
        assert late.id == next_id
        answer = late.fetch()
        assert not answer.records
        assert "exchanged" in answer.error_message
        assert "exchanged" in late.produce(batch_bytes(3)).error_message


def test_ids_continue_after_each_kind_of_end(filled, connect):
    next_numbers = head_of(filled).next_numbers
    with running(filled) as server:
        connection = connect(server.address)
        assert LogTable(connection, "fresh", SCHEMA).id >= next_numbers.table_id
        assert connection.call(pb.InitWriterRequest()).writer_id >= next_numbers.writer_id
