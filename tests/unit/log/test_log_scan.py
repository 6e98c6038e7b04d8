"""Which servers get a filter, and what a scan reads for it."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from fluss.connection.connection import TableHandle
from fluss.log.log_scan import LogScanCore
from fluss.model.paths import TablePath
from fluss.model.predicates.predicate import col
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo

COLUMNS = pa.schema([("id", pa.int32()), ("name", pa.string()), ("score", pa.float64())])


def scan(magic_1, columns=None, predicate=None):
    """A scan that is never begun, so that it needs neither an engine nor a cluster."""
    path = TablePath("db", "t")
    schema = Schema(COLUMNS)
    table = TableInfo.of(
        TableDescriptor(schema, bucket_count=1), table_path=path, table_id=7, schema_id=3
    )
    connection = SimpleNamespace(
        engine=SimpleNamespace(post_cleanup=lambda _: None),  # called when the scan is dropped
        cluster=None,
        magic_1=magic_1,
        options=SimpleNamespace(scanner_log_check_crc=True),
    )
    handle = TableHandle(connection, table)
    return LogScanCore(handle, columns, predicate)


def test_servers_with_statistics_get_the_filter_with_its_schema():
    target = scan("statistics", predicate=col("id") > 5).decoder.fetch_target
    assert target.pruning.leaf.field_id == 0
    assert target.pruning_schema_id == 3


def test_servers_without_statistics_get_no_filter():
    assert scan("leader_epoch", predicate=col("id") > 5).decoder.fetch_target.pruning is None
    assert scan("statistics").decoder.fetch_target.pruning is None


def test_a_filter_that_prunes_nothing_is_not_sent_at_all():
    assert (
        scan("statistics", predicate=col("name").contains("x")).decoder.fetch_target.pruning is None
    )


@pytest.mark.parametrize(
    ("columns", "predicate", "read"),
    [
        ([0], col("score") > 1, (0, 2)),
        ([2], col("score") > 1, (2,)),
        ([2, 0], None, (0, 2)),
        ([0], (col("name") == "x") | (col("score") > 1), None),
        ([], col("name") == "x", (1,)),
        (None, col("name") == "x", None),
    ],
)
def test_columns_that_a_filter_looks_at_are_fetched_and_not_returned(columns, predicate, read):
    made = scan("leader_epoch", columns, predicate)
    assert made.decoder.fetch_target.positions == read
    expected = COLUMNS.names if columns is None else [COLUMNS.names[each] for each in columns]
    assert made.schema.names == expected
