"""Servers that are unreachable for a moment, and for longer: retries and errors."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import socket
import threading
import time
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

import fluss
from fluss.connection.config_sources import resolve
from fluss.errors import AuthenticationError, ConnectError
from fluss.session import with_retries
from fluss_server.local_cluster import LocalCluster
from fluss_spark import FlussDataSource, error_context
from fluss_spark.first_connection import log_retry, shared_session
from fluss_spark.spark_types import spark_schema
from tests.support.scripted.micro_batches import MicroBatches, given, rows

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def server(tmp_path):
    """A server of this test's own, with a log `d.log` of two rows."""
    local = LocalCluster(tmp_path / "server", durability="process").start()
    with fluss.connect(f"fluss://{local.bootstrap_servers}/d") as session:
        session.create_database("d")
        session.create_table("log", SCHEMA, buckets=1).append({"id": [1, 2]})
    yield local
    local.stop()


@pytest.fixture
def away(server, tmp_path):
    """A context in which the server is gone first, and comes back after a second."""

    class Away:
        def __enter__(self):
            self.port = int(server.bootstrap_servers.rpartition(":")[2])
            server.kill()
            self.thread = threading.Thread(target=self._return)
            self.thread.start()

        def _return(self):
            time.sleep(1)
            self.server = LocalCluster(
                tmp_path / "server", durability="process", port=self.port
            ).start()

        def __exit__(self, *_):
            self.thread.join()
            self.server.stop()

    return Away


def settings_for(server, **more):
    """Settings under which this process has no connection yet, so that it opens its first."""
    more.setdefault("operation-timeout", "60s")
    return {"bootstrap.servers": server.bootstrap_servers, **more}


@pytest.mark.one_server
def test_first_connections_wait_for_a_server_that_is_away(server, away, caplog):
    options = {**settings_for(server), "path": "d.log"}
    with away():
        stream = MicroBatches(options={**options, "start": "earliest"})
        assert [each["id"] for each in rows(given(stream.available_now()))] == [1, 2]
    assert caplog.text.count("trying to connect for up to 60 s: Cannot connect") == 1


@pytest.mark.one_server
@pytest.mark.parametrize("is_stream", [True, False])
def test_a_write_waits_for_a_server_that_is_away(server, away, is_stream):
    options = {**settings_for(server, **{"connect-timeout": "50s"}), "path": "d.log"}
    source = FlussDataSource(options)
    with away():
        make = source.streamWriter if is_stream else source.writer
        writer = make(spark_schema(SCHEMA), overwrite=False)
        assert writer.write(iter(pa.table({"id": [3]}).to_batches())).rows == 1


def test_only_what_may_heal_is_tried_again_and_not_for_ever(caplog):
    error_context._logged_until.clear()
    tried = []

    def connect(error):
        tried.append(error)
        raise error

    config = resolve({"bootstrap.servers": "127.0.0.1:1", "operation-timeout": "300ms"}).config
    refused = ConnectError("Cannot connect to anybody.")
    caplog.set_level(logging.WARNING)
    with pytest.raises(
        ConnectError, match=r"anybody\. It was retried for 0\.3 s \(operation-timeout"
    ):
        with_retries(lambda: connect(refused), config, log_retry)
    assert len(tried) > 2
    assert caplog.text.count("trying to connect") == 1
    tried.clear()
    with pytest.raises(AuthenticationError):
        with_retries(lambda: connect(AuthenticationError("No.")), config, log_retry)
    assert len(tried) == 1
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(ConnectError, match="operation-timeout"):
        shared_session({"bootstrap.servers": f"127.0.0.1:{port}", "operation-timeout": "100ms"})


def test_a_micro_batch_is_given_up_without_asking_servers(server):
    # Where that fails, Spark reports `Writing job failed.` in place of what did fail.
    source = FlussDataSource({**settings_for(server), "path": "d.log"})
    schema = spark_schema(SCHEMA)
    source.streamWriter(schema, overwrite=False)
    server.kill()
    sent = pickle.loads(pickle.dumps(source))  # noqa: S301 - as Spark sends it
    began_s = time.monotonic()
    sent.streamWriter(schema, overwrite=False).abort([None], 0)
    assert time.monotonic() - began_s < 5


def test_what_a_task_reports_is_in_the_exception_of_the_query(spark, server, tmp_path):
    (tmp_path / "source").mkdir()
    pq.write_table(pa.table({"id": [3]}), tmp_path / "source" / "a.parquet")
    pid, options = server.pid, settings_for(server, **{"operation-timeout": "500ms"})

    def killing(batches):
        for each in batches:
            os.kill(pid, signal.SIGKILL)
            yield each

    frame = spark.readStream.schema("id bigint").parquet(str(tmp_path / "source"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own, of the newest pandas
        frame = frame.mapInArrow(killing, frame.schema)
    writer = frame.writeStream.format("fluss").options(**options).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start("d.log")
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(300)
    said = str(query.exception())
    assert "d.log" in said
    assert "NETWORK_EXCEPTION, code 1]" in said
    assert "start the query again with the same checkpoint" in said
