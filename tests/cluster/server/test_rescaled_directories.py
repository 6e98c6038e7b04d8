"""Bucket counts of partitions on disk: they survive restarts and a lost catalog."""

import sqlite3

import pytest

from fluss import DataTypes, Schema
from fluss.errors import LocalServerError
from fluss.wire import messages as pb
from fluss_server.catalog import catalog_store
from fluss_server.data_layout import CATALOG, LEDGER
from tests.support.servers.bucket_logs import batch_bytes
from tests.support.servers.embedded import running
from tests.support.servers.embedded_table import LogTable
from tests.support.servers.raw_client import RawConnection

COUNTS = {"1": 2, "2": 5, "3": 3}
SCHEMA = Schema.builder().column("id", DataTypes.int()).column("name", DataTypes.string()).build()


def partitions_of(connection, table):
    request = pb.ListPartitionInfosRequest(table_path=table.path)
    return {
        each.partition_spec.partition_key_values[0].value: each
        for each in connection.call(request).partitions_info
    }


def create_partition(connection, table, value):
    request = pb.CreatePartitionRequest(table_path=table.path, ignore_if_not_exists=False)
    request.partition_spec.partition_key_values.add(key="name", value=value)
    connection.call(request)


def rescale(connection, table, count):
    request = pb.AlterTableRequest(table_path=table.path, ignore_if_not_exists=False)
    request.modify_bucket_count.new_bucket_count = count
    connection.call(request, version=1)


def opened(connection):
    return LogTable(
        connection, "grown", SCHEMA, partition_keys=["name"], bucket_keys=["id"], bucket_count=2
    )


@pytest.fixture
def directory(tmp_path):
    """A table with partitions of 2, 5 and 3 buckets, and a row in the last bucket of each."""
    with running(tmp_path / "data") as server:
        connection = RawConnection(server.address)
        table = opened(connection)
        for value, count in COUNTS.items():
            if count != 2:
                rescale(connection, table, count)
            create_partition(connection, table, value)
        for value, info in partitions_of(connection, table).items():
            request = table.produce_request(
                batch_bytes(1), bucket=COUNTS[value] - 1, partition=info.partition_id
            )
            request.buckets_req[0].routing_bucket_count = COUNTS[value]
            (answer,) = connection.call(request).buckets_resp
            assert not answer.error_code
        connection.close()
    return tmp_path / "data"


def check(directory, **config):
    with running(directory, **config) as server:
        connection = RawConnection(server.address)
        table = opened(connection)
        assert table.info().bucket_count_epoch == 2
        found = partitions_of(connection, table)
        assert {value: info.bucket_count for value, info in found.items()} == COUNTS
        for value, info in found.items():
            request = table.fetch_request(bucket=COUNTS[value] - 1, partition=info.partition_id)
            request.tables_req[0].buckets_req[0].routing_bucket_count = COUNTS[value]
            (answer,) = connection.call(request).tables_resp[0].buckets_resp
            assert (answer.error_code, answer.high_watermark) == (0, 1)
        connection.close()


def test_counts_survive_a_restart(directory):
    check(directory)


def test_counts_are_restored_with_a_lost_catalog(directory):
    for path in [*directory.glob(f"{CATALOG}*"), directory / LEDGER]:
        path.unlink()
    check(directory, repair=True)
    check(directory)


def test_earlier_versions_refuse_a_directory_with_rescaled_tables(directory, monkeypatch):
    with sqlite3.connect(directory / CATALOG) as catalog:
        assert catalog.execute("PRAGMA user_version").fetchone() == (3,)
    monkeypatch.setattr(catalog_store, "_NEWEST", 2)
    with pytest.raises(LocalServerError, match="format 3"), running(directory):
        pass


def test_a_dropped_table_leaves_no_counts(directory):
    with running(directory) as server:
        connection = RawConnection(server.address)
        table = opened(connection)
        connection.call(pb.DropTableRequest(table_path=table.path, ignore_if_not_exists=False))
        connection.close()
    with sqlite3.connect(directory / CATALOG) as catalog:
        names = [name for (name,) in catalog.execute("SELECT name FROM counters")]
    assert not [each for each in names if each.startswith(("epoch", "buckets"))]
