"""A disk that is full, damaged or read-only, and requests that are too large.

The request fails with an error, other requests are served, and acknowledged rows are kept.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fluss.errors import LocalServerError
from fluss.wire import messages as pb
from fluss_server.data_layout import DATA
from fluss_server.directory_lock import read_holder
from fluss_server.server_config import Limits
from tests.support.differential.differential_servers import ServerUnderComparison
from tests.support.differential.differential_tables import DifferentialTable
from tests.support.servers.bucket_logs import batch_bytes
from tests.support.servers.crashing_load import KIND_BY_NAME, state_of
from tests.support.servers.embedded import running
from tests.support.servers.embedded_table import LogTable
from tests.support.servers.raw_client import RawConnection, RefusedError

# In units of 512 bytes: the size limit of a file. The catalog must fit before the logs are full.
FULL_AT_BLOCKS = 400
STORAGE, KV_STORAGE = 26, 11
ROWS = 4_000


def keyed_table(client):
    table = DifferentialTable(KIND_BY_NAME["keyed"])
    client.call(
        pb.CreateTableRequest(
            table_path=client.path(table.name),
            table_json=table.descriptor.to_json().encode(),
            ignore_if_exists=True,
        )
    )
    return table


def put(client, table, keys, *, name="word"):
    records = [((key, name, key, None), False) for key in keys]
    request = pb.PutKvRequest(acks=-1, table_id=client.table_id(table.name), timeout_ms=1_000)
    request.buckets_req.add(bucket_id=0, records=table.kv_batch(records, schema_id=1))
    (answer,) = client.call(request).buckets_resp
    return answer


def fill_until_refused(write):
    """Write until a refusal; return how many writes were acknowledged, and the refusal."""
    for count in range(10_000):
        answer = write(count)
        if answer.HasField("error_code"):
            return count, answer
    raise AssertionError("the disk never became full")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit for files")
def test_a_full_disk_is_reported_and_nothing_acknowledged_is_lost(tmp_path):
    limited = f'ulimit -f {FULL_AT_BLOCKS}; exec "$0" -m fluss_server -d "$1" --port 0'
    command = ["sh", "-c", limited, sys.executable, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdout.readline()
    client = ServerUnderComparison(read_holder(tmp_path).bootstrap_servers, "fluss")
    small, events = LogTable(client.connection, "small"), LogTable(client.connection)
    appended, refused = fill_until_refused(
        lambda count: events.produce(batch_bytes(500, writer=(1, count)))
    )
    assert refused.error_code == STORAGE
    assert "disk" in refused.error_message
    table = keyed_table(client)
    filled, refused = fill_until_refused(
        lambda count: put(client, table, range(100 * count, 100 * count + 100), name="w" * 50)
    )
    assert refused.error_code == STORAGE
    # Small requests are served, and earlier rows are readable.
    assert small.produce(batch_bytes(3)).base_offset == 0
    assert events.fetch().high_watermark == 500 * appended
    assert len(state_of(client, table)) == 100 * filled
    client.close()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with running(tmp_path) as server:
        client = ServerUnderComparison(server.address, "fluss")
        events = LogTable(client.connection)
        assert events.fetch().high_watermark == 500 * appended
        assert events.produce(batch_bytes(500, writer=(1, appended))).base_offset == 500 * appended
        assert len(state_of(client, table)) == 100 * filled
        client.close()


# --- the store of rows by key -------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path):
    """A directory with a primary-key table, flushed and closed."""
    with running(tmp_path) as server:
        client = ServerUnderComparison(server.address, "fluss")
        table = keyed_table(client)
        for first in range(0, ROWS, ROWS // 10):
            # Names that do not compress, so that there are many blocks.
            put(client, table, range(first, first + ROWS // 10), name=os.urandom(100).hex())
        client.close()
    return tmp_path, table


@pytest.mark.parametrize("pattern", ["*.sst", "CURRENT", "MANIFEST-*"])
def test_a_damaged_store_is_named_and_rebuilt_from_the_log(stored, pattern):
    directory, table = stored
    (folder,) = (directory / DATA).rglob("kv-0")
    damaged = max(folder.glob(pattern), key=lambda path: path.stat().st_size)
    content = bytearray(damaged.read_bytes())
    for position in range(len(content) // 2, min(len(content) // 2 + 40, len(content))):
        content[position] ^= 0x5A
    damaged.write_bytes(content)
    with running(directory) as server:
        client = ServerUnderComparison(server.address, "fluss")
        other = LogTable(client.connection)
        code, text = refusal_of_a_whole_scan(client, table)
        if code == 0:  # RocksDB fell back to an earlier state, and the log had the rest
            assert pattern == "MANIFEST-*"
            assert sorted(state_of(client, table)) == list(range(ROWS))
        else:
            assert code == KV_STORAGE
            assert str(folder) in text
            assert "remove this folder" in text
        assert other.produce(batch_bytes(3)).base_offset == 0, "others are not disturbed"
        client.close()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    with running(directory) as server:
        client = ServerUnderComparison(server.address, "fluss")
        assert sorted(state_of(client, table)) == list(range(ROWS))
        client.close()


def refusal_of_a_whole_scan(client, table):
    request = pb.LimitScanRequest(
        table_id=client.table_id(table.name), bucket_id=0, limit=1_000_000
    )
    answer = client.call(request)
    return answer.error_code, answer.error_message


# --- directories and requests -------------------------------------------------------------------


def test_a_directory_where_nothing_can_be_written_is_named():
    # Not even root may write there.
    with pytest.raises(LocalServerError, match="cannot be used"), running(Path("/proc/fluss")):
        pass


def test_a_request_above_the_limit_is_refused_before_it_is_read(tmp_path):
    with running(tmp_path, limits=Limits(frame_bytes_max=100_000)) as server:
        other = LogTable(RawConnection(server.address))
        large = LogTable(RawConnection(server.address))
        # The server closes the connection; whether its error arrives depends on unread data.
        with pytest.raises((OSError, RefusedError)):
            large.produce(batch_bytes(20_000))
        assert other.produce(batch_bytes(3)).base_offset == 0
        other.connection.close()
        large.connection.close()


def test_a_batch_larger_than_a_segment_gets_its_own_segment(tmp_path):
    with running(tmp_path, segment_bytes=10_000) as server:
        table = LogTable(RawConnection(server.address))
        for count in (3, 5_000, 3):
            table.produce(batch_bytes(count))
        assert table.fetch(3).records[12] == 0
        assert table.fetch(5_003).high_watermark == 5_006
        table.connection.close()
        assert len(list((tmp_path / DATA).rglob("*.log"))) == 3
