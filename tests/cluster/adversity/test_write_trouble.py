"""Writing while connections break, servers stop to respond, and processes end."""

import subprocess
import sys
import textwrap
import time

import pyarrow as pa
import pytest

from fluss.errors import ClosedError, FlussError
from tests.support.scripted.scripted_peer import Proxy
from tests.support.servers.write_harness import wait

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


@pytest.fixture
def proxy(harness):
    (server,) = harness.cluster.view.tablet_servers.values()
    with Proxy(server.host, server.port) as made:
        yield made


def row(number):
    return {"id": number, "s": "x" * 50}


def ids(harness, table, **where):
    return [each["id"] for each in harness.rows(table, **where)]


def test_no_row_is_lost_duplicated_or_reordered_when_connections_are_cut(harness, proxy):
    table = harness.table(SCHEMA)
    core = harness.pool_behind(proxy, batch_bytes_max=400, batch_bytes_min=400).append_core(table)
    for number in range(3_000):
        core.append(row(number))
        if number % 400 == 399:
            proxy.cut()
    harness.flush(core)
    assert ids(harness, table) == list(range(3_000))


@pytest.mark.slow  # waits for a request to time out
def test_a_server_that_stopped_responding_gets_the_same_sequences_again(harness, proxy):
    table = harness.table(SCHEMA)
    pool = harness.pool_behind(proxy, request_timeout_ms=700)
    core = pool.append_core(table)
    wait(core.append(row(0)))
    proxy.stall()
    handles = []
    for number in range(1, 4):
        handles.append(core.append(row(number)))
        core.seal()
    time.sleep(1.5)
    proxy.flow()
    for handle in handles:
        wait(handle)
    assert ids(harness, table) == [0, 1, 2, 3]
    headers = [each.header for each in harness.batches(table)]
    assert [each.batch_sequence for each in headers] == [0, 1, 2, 3]


def test_rows_that_were_never_sent_are_not_in_doubt(harness, proxy):
    table = harness.table(SCHEMA)
    core = harness.pool_behind(proxy, delivery_timeout_ms=600, is_idempotent=False).append_core(
        table
    )
    proxy.refuse()
    began = time.monotonic()
    with pytest.raises(FlussError) as caught:
        wait(core.append(row(0)))
    assert time.monotonic() - began < 10
    assert not caught.value.in_doubt
    assert "1 rows for bucket 0" in caught.value.message
    with pytest.raises(FlussError):
        harness.flush(core)
    harness.flush(core)  # it was reported once


@pytest.mark.slow  # waits for a request to time out
def test_rows_without_an_answer_are_in_doubt(harness, proxy):
    table = harness.table(SCHEMA)
    pool = harness.pool_behind(proxy, request_timeout_ms=600, delivery_timeout_ms=500)
    core = pool.append_core(table)
    wait(core.append(row(0)))
    proxy.stall()
    with pytest.raises(FlussError) as caught:
        wait(core.append(row(1)))
    assert caught.value.in_doubt
    proxy.flow()
    time.sleep(0.3)
    # Whether row 1 was written or not, later rows are written with another writer id.
    wait(core.append(row(2)))
    headers = [each.header for each in harness.batches(table)]
    assert headers[-1].writer_id != headers[0].writer_id
    assert headers[-1].batch_sequence == 0
    assert ids(harness, table)[-1] == 2


def test_closing_reports_what_could_not_be_delivered(harness, proxy):
    table = harness.table(SCHEMA)
    pool = harness.pool_behind(proxy)
    core = pool.append_core(table)
    wait(core.append(row(0)))
    proxy.stall()
    handle = core.append(row(1))
    core.append(row(2))
    with pytest.warns(ResourceWarning, match="2 rows"):
        assert harness.run(pool.close(timeout_s=0.3)) == 2
    with pytest.raises(ClosedError):
        wait(handle)
    with pytest.raises(ClosedError):
        core.append(row(3))
    proxy.flow()


def test_rows_are_delivered_when_the_process_ends(harness, cluster):
    table = harness.table(SCHEMA)
    program = f"""
        from fluss.connection.config_to_settings import connection_settings
        from fluss.admin.admin import AdminCore
        from fluss.write.writer_pool import WriterPool
        from fluss.net.cluster_client import Cluster
        from fluss.net.engine_thread import engine
        from fluss.model.options.config import Config
        from fluss.model.paths import TablePath
        from fluss.write.write_batch import WriterSettings

        config = Config({{"bootstrap.servers": "{cluster.bootstrap}"}})

        async def connect():
            cluster = Cluster(connection_settings(config))
            await cluster.open()
            return cluster

        cluster = engine().run(connect())
        path = TablePath("{table.table_path.database_name}", "{table.table_path.table_name}")
        table = engine().run(AdminCore(cluster).get_table_info(path))
        pool = WriterPool(cluster, WriterSettings.of(config), engine=engine())
        engine().at_exit(lambda wait_s: pool.close(timeout_s=wait_s))
        core = pool.append_core(table)
        for number in range(100):
            core.append({{"id": number, "s": "x"}})
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)
    assert ids(harness, table) == list(range(100))
