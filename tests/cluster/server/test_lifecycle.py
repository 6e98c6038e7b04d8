"""Start and stop: locks, signals, crashes, damage, attaching, automatic partitions."""

import asyncio
import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from fluss.errors import ConfigError, LocalServerError
from fluss.model.schema.schema import Schema
from fluss.model.types.factory import DataTypes
from fluss.records.log.log_batch import iter_log_batches
from fluss.wire import messages as pb
from fluss_server import LocalCluster
from fluss_server.data_layout import CATALOG, DATA
from fluss_server.directory_lock import is_served, read_holder
from fluss_server.log.bucket_log import BucketLog
from fluss_server.maintenance import remove_tree
from fluss_server.server_config import Durability, ServerConfig
from fluss_server.temporary_folder import PREFIX
from tests.support.servers.bucket_logs import batch_bytes
from tests.support.servers.embedded import PATIENCE_S, Clock, running
from tests.support.servers.embedded_table import LogTable
from tests.support.servers.ledgers import as_killed, ended_cleanly
from tests.support.servers.raw_client import RawConnection

DAY_MS = 86_400_000


def ids_of(table):
    found, offset = [], 0
    while records := table.fetch(offset).records:
        for batch in iter_log_batches(records, tail="refuse"):
            offset = batch.next_offset
            found.append((batch.header.writer_id, batch.header.batch_sequence))
    return found


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


def filled(connection, *, batches=5):
    table = LogTable(connection)
    for sequence in range(batches):
        assert table.produce(batch_bytes(3, writer=(1, sequence))).base_offset == 3 * sequence
    return table


def test_written_rows_are_there_after_a_clean_stop(tmp_path, connect):
    with LocalCluster(tmp_path / "data") as cluster:
        table = filled(connect(cluster.bootstrap_servers))
        table_id, pid = table.id, cluster.pid
    assert ended_cleanly(tmp_path / "data")
    with LocalCluster(tmp_path / "data") as cluster:
        assert cluster.pid != pid
        again = LogTable(connect(cluster.bootstrap_servers))
        assert again.id == table_id
        assert ids_of(again) == [(1, each) for each in range(5)]
        assert again.produce(batch_bytes(3, writer=(1, 4))).base_offset == 12


@pytest.mark.parametrize("durability", ["process", "disk", "none"])
def test_acknowledged_rows_survive_kill_9(tmp_path, durability, connect):
    cluster = LocalCluster(tmp_path / "data", durability=durability).start()
    filled(connect(cluster.bootstrap_servers))
    cluster.kill()
    with LocalCluster(tmp_path / "data", durability=durability) as cluster:
        again = LogTable(connect(cluster.bootstrap_servers))
        assert ids_of(again) == [(1, each) for each in range(5)]
        assert again.produce(batch_bytes(3, writer=(1, 4))).base_offset == 12


def test_a_second_server_for_a_directory_is_refused_with_the_address_of_the_first(tmp_path):
    with LocalCluster(tmp_path / "data") as cluster:
        command = [
            sys.executable,
            "-m",
            "fluss_server",
            "-d",
            str(tmp_path / "data"),
            "--port",
            "0",
        ]
        second = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert second.returncode == 1
        assert f"process {cluster.pid}" in second.stderr
        assert cluster.bootstrap_servers in second.stderr


def test_a_second_server_is_refused_where_the_lock_file_was_removed(tmp_path, connect):
    with running(tmp_path) as first:
        table = LogTable(connect(first.address))
        assert table.produce(batch_bytes(1)).base_offset == 0
        (tmp_path / "LOCK").unlink()
        with pytest.raises(LocalServerError, match="is served by"), running(tmp_path):
            pass
        assert is_served(tmp_path)
        assert table.produce(batch_bytes(1, first=1)).base_offset == 1
    with running(tmp_path) as second:
        assert LogTable(connect(second.address)).fetch().high_watermark == 2


def test_a_removed_lock_file_is_created_again_with_the_address(tmp_path):
    with running(tmp_path) as server:
        (tmp_path / "LOCK").unlink()
        server.on_loop(server.server._maintenance.run_round)
        assert read_holder(tmp_path).bootstrap_servers == server.address
        assert is_served(tmp_path)
    assert not is_served(tmp_path)


def test_a_second_cluster_attaches_and_does_not_stop_the_server(tmp_path, connect):
    with LocalCluster(tmp_path / "data") as first:
        with LocalCluster(tmp_path / "data") as second:
            assert second.is_attached
            assert second.bootstrap_servers == first.bootstrap_servers
        connect(first.bootstrap_servers).call(pb.ListDatabasesRequest())
    assert not is_served(tmp_path / "data")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_server_cleanly(tmp_path, number, connect):
    command = [sys.executable, "-m", "fluss_server", "-d", str(tmp_path), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert "fluss server ready at 127.0.0.1:" in line
    assert "durability process: acknowledged rows survive kill -9" in line
    filled(connect(read_holder(tmp_path).bootstrap_servers))
    process.send_signal(number)
    assert process.wait(20) == 0
    assert ended_cleanly(tmp_path)
    process.stdout.close()


def test_a_server_stops_with_the_process_that_started_it(tmp_path):
    program = (
        "import sys, os; from fluss_server import LocalCluster\n"
        f"c = LocalCluster({str(tmp_path)!r}).start(); print(c.pid, flush=True); os._exit(1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    until = time.monotonic() + 20
    while is_served(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_served(tmp_path), done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_is_ended_leaves_no_temporary_folder(tmp_path, number):
    program = (
        "import fluss, time; session = fluss.connect('embedded:'); print('ready', flush=True)\n"
        "time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    process.stdout.readline()
    (folder,) = tmp_path.glob(f"{PREFIX}{process.pid}-*")
    process.send_signal(number)
    assert process.wait(20) == -number
    until = time.monotonic() + 20
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert list(tmp_path.iterdir()) == []
    process.stdout.close()


async def test_a_cluster_is_an_asynchronous_context_manager_too(connect):
    async with LocalCluster() as cluster:
        directory = cluster.directory
        await asyncio.to_thread(lambda: filled(connect(cluster.bootstrap_servers)))
    assert not directory.exists()


def test_a_server_in_a_thread_serves_the_same(tmp_path, connect):
    with LocalCluster(tmp_path / "data", in_thread=True) as cluster:
        assert cluster.pid == os.getpid()
        filled(connect(cluster.bootstrap_servers))
    with LocalCluster(tmp_path / "data") as cluster:
        assert len(ids_of(LogTable(connect(cluster.bootstrap_servers)))) == 5


def test_users_have_their_own_port(connect):
    with LocalCluster(users={"ali": "secret"}, in_thread=True) as cluster:
        guarded = connect(cluster.sasl_bootstrap_servers)
        guarded.log_in("ali", "secret")
        guarded.call(pb.ListDatabasesRequest())


# --- refusals to start --------------------------------------------------------------------------


def started(directory, **config):
    with running(directory, **config):
        pass


def test_a_port_in_use_is_named(tmp_path):
    with running(tmp_path / "one") as first:
        port = int(first.address.split(":")[1])
        with pytest.raises(LocalServerError, match=f"cannot listen on 127.0.0.1:{port}"):
            started(tmp_path / "two", port=port)
    started(tmp_path / "two")


def test_a_damaged_catalog_is_named_and_not_changed(tmp_path, connect):
    with running(tmp_path) as server:
        filled(connect(server.address))
    damaged = b"no sqlite at all" * 100
    (tmp_path / CATALOG).write_bytes(damaged)
    with pytest.raises(LocalServerError, match=CATALOG) as refused:
        started(tmp_path)
    assert "--repair" in refused.value.hint
    assert (tmp_path / CATALOG).read_bytes() == damaged


def test_a_missing_catalog_beside_data_is_a_refusal(tmp_path, connect):
    with running(tmp_path) as server:
        filled(connect(server.address))
    (tmp_path / CATALOG).unlink()
    with pytest.raises(LocalServerError, match="is missing"):
        started(tmp_path)
    assert any((tmp_path / DATA).rglob("*.log"))


def test_a_catalog_of_a_newer_version_is_a_refusal(tmp_path, connect):
    started(tmp_path)
    connection = sqlite3.connect(tmp_path / CATALOG)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(LocalServerError, match="format 99"):
        started(tmp_path)


def test_a_damaged_segment_is_refused_again_at_the_next_start(tmp_path, connect):
    with running(tmp_path) as server:
        filled(connect(server.address))
    (segment,) = (tmp_path / DATA).rglob("*.log")
    data = bytearray(segment.read_bytes())
    data[300] ^= 1
    segment.write_bytes(data)
    as_killed(tmp_path)
    (segment.parent / "synced").unlink()
    for _ in range(2):  # a failed start must not count as a clean end
        with pytest.raises(LocalServerError, match="damaged at byte"):
            started(tmp_path)
    assert segment.read_bytes() == bytes(data)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_is_named(tmp_path):
    (tmp_path / "data").mkdir(mode=0o500)
    with pytest.raises(LocalServerError, match="cannot be used"):
        started(tmp_path / "data")


def test_a_file_in_place_of_the_directory_is_named(tmp_path):
    (tmp_path / "data").write_text("here")
    with pytest.raises(LocalServerError, match="cannot be used"):
        started(tmp_path / "data")


def test_only_passwords_open_the_server_to_other_machines(tmp_path):
    with pytest.raises(ConfigError, match="this machine only"):
        ServerConfig(directory=tmp_path, sasl_host="0.0.0.0")
    with pytest.raises(ConfigError, match="no port requires"):
        ServerConfig(directory=tmp_path, users={"a": "b"})
    with pytest.raises(ConfigError, match="needs at least one user"):
        ServerConfig(directory=tmp_path, sasl_port=0)


# --- maintenance --------------------------------------------------------------------------------


def auto_partitioned(connection, **properties):
    schema = (
        Schema.builder().column("id", DataTypes.int()).column("day", DataTypes.string()).build()
    )
    return LogTable(
        connection,
        "daily",
        schema,
        partition_keys=["day"],
        properties={
            "table.auto-partition.enabled": "true",
            "table.auto-partition.time-unit": "DAY",
            "table.auto-partition.time-zone": "UTC",
            "table.auto-partition.num-retention": "2",
            **properties,
        },
    )


def partitions_of(table):
    listed = table.connection.call(pb.ListPartitionInfosRequest(table_path=table.path))
    return [each.partition_spec.partition_key_values[0].value for each in listed.partitions_info]


def day(clock, offset=0):
    moment = datetime.fromtimestamp((clock.now_ms + offset * DAY_MS) / 1000, UTC)
    return moment.strftime("%Y%m%d")


def test_automatic_partitions_are_created_ahead_and_dropped_when_expired(tmp_path, connect):
    clock = Clock()
    with running(tmp_path, clock=clock) as server:
        table = auto_partitioned(connect(server.address))
        assert partitions_of(table) == [day(clock, each) for each in (0, 1)]
        for _ in range(4):
            clock.now_ms += DAY_MS
            server.on_loop(lambda: keep(server))
        assert partitions_of(table) == [day(clock, each) for each in (-2, -1, 0, 1)]


def keep(server):
    for table in server.node.catalog.tables:
        server.node.update_partitions(table)


def test_rows_older_than_the_table_keeps_them_are_deleted(tmp_path, connect):
    clock = Clock()
    with running(tmp_path, clock=clock) as server:
        table = LogTable(connect(server.address), properties={"table.log.ttl": "1h"})
        table.produce(batch_bytes(3))
        clock.now_ms += 3_600_001
        maintenance = server.server._maintenance
        (tablet,) = server.node.tablets
        server.on_loop(lambda: maintenance._expire(tablet))
        assert table.fetch(0).error_code == 19
        assert table.fetch(-2).high_watermark == 3
        assert table.produce(batch_bytes(1)).base_offset == 3


def test_the_files_of_a_dropped_table_are_deleted(tmp_path, connect):
    with running(tmp_path) as server:
        table = filled(connect(server.address))
        assert list((tmp_path / DATA).rglob("*.log"))
        table.connection.call(
            pb.DropTableRequest(table_path=table.path, ignore_if_not_exists=False)
        )
        server.on_loop(server.node.finish_background)
        assert not list((tmp_path / DATA).rglob("*.log"))
        assert server.node.catalog.pending_deletions() == []


def test_a_directory_that_another_thread_removes_too_is_not_reported_as_deleted_too_early(
    tmp_path, monkeypatch
):
    def overtaken(path):
        raise FileNotFoundError(path / "partition")

    monkeypatch.setattr("fluss_server.maintenance.shutil.rmtree", overtaken)
    assert not remove_tree(tmp_path)
    assert remove_tree(tmp_path / "gone")


def test_the_next_start_deletes_what_a_crash_left_of_a_dropped_table(
    tmp_path, monkeypatch, connect
):
    monkeypatch.setattr("fluss_server.server_node.remove_tree", lambda _: False)
    with running(tmp_path) as server:
        table = filled(connect(server.address))
        table.connection.call(
            pb.DropTableRequest(table_path=table.path, ignore_if_not_exists=False)
        )
    assert list((tmp_path / DATA).rglob("*.log"))
    monkeypatch.undo()
    with running(tmp_path) as server:
        server.on_loop(server.node.finish_background)
        assert not list((tmp_path / DATA).rglob("*.log"))


def test_in_disk_mode_an_acknowledgement_waits_for_a_sync(tmp_path, monkeypatch, connect):
    synced = []
    real = os.fdatasync
    monkeypatch.setattr(
        "fluss_server.log.log_files._sync", lambda fd: (synced.append(fd), real(fd))[1]
    )
    with running(tmp_path, durability=Durability.DISK) as server:
        table = LogTable(connect(server.address))
        before = len(synced)
        table.produce(batch_bytes(1))
        assert len(synced) > before
        assert table.fetch().high_watermark == 1


def test_others_are_served_while_the_first_rows_of_a_bucket_wait_for_the_disk(
    tmp_path, monkeypatch, connect
):
    created, may_continue = BucketLog.create_files, threading.Event()

    def slowly(log):
        assert may_continue.wait(PATIENCE_S)
        created(log)

    with running(tmp_path) as server:
        tables = [
            LogTable(connect(server.address), "events", bucket_count=40),
            LogTable(connect(server.address), "other"),
        ]
        tables[1].produce(batch_bytes(2))
        monkeypatch.setattr(BucketLog, "create_files", slowly)
        request = tables[0].produce_request(batch_bytes(1))
        for bucket in range(1, 40):
            request.buckets_req.add(bucket_id=bucket, records=batch_bytes(1))
        with ThreadPoolExecutor(1) as pool:
            answered = pool.submit(tables[0].connection.call, request)
            assert tables[1].fetch().high_watermark == 2  # on the event loop, and by its threads
            may_continue.set()
            answers = answered.result(PATIENCE_S).buckets_resp
        assert [(each.bucket_id, each.base_offset) for each in answers] == [
            (bucket, 0) for bucket in range(40)
        ]
    with running(tmp_path) as server:
        table = LogTable(connect(server.address), "events", bucket_count=40)
        assert [table.fetch(bucket=each).high_watermark for each in range(40)] == [1] * 40


def test_a_refused_batch_leaves_no_files(tmp_path, connect):
    with running(tmp_path) as server:
        table = LogTable(connect(server.address))
        assert table.produce(batch_bytes(1)[:-1]).HasField("error_code")
        assert not list((tmp_path / DATA).rglob("*.log"))
        assert table.produce(batch_bytes(1)).base_offset == 0


def test_the_lock_file_names_the_holder_of_a_directory(tmp_path):
    with running(tmp_path) as server:
        holder = read_holder(tmp_path)
        assert (holder.pid, holder.bootstrap_servers) == (os.getpid(), server.address)
        assert json.loads((tmp_path / "LOCK").read_bytes()[1:])["pid"] == os.getpid()
    assert read_holder(tmp_path) is None


def test_a_failing_disk_is_reported_and_the_next_start_has_the_acknowledged_rows(
    tmp_path, connect, monkeypatch
):
    def broken(descriptor):
        raise OSError(errno.EIO, "Input/output error")

    def run_on_a_failing_disk():
        with running(tmp_path, durability=Durability.DISK) as server:
            table = filled(connect(server.address))
            with monkeypatch.context() as patched:
                patched.setattr("fluss_server.log.log_files.sync", broken)
                assert table.produce(batch_bytes(1)).error_code == 26
            assert table.fetch().high_watermark == 15
            assert table.produce(batch_bytes(1)).error_code == 26

    with pytest.raises(LocalServerError, match="not everything could be written to disk"):
        run_on_a_failing_disk()
    assert not ended_cleanly(tmp_path)
    with running(tmp_path) as server:
        table = LogTable(connect(server.address))
        assert ids_of(table)[:5] == [(1, each) for each in range(5)]
