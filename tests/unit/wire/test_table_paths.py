"""The fields that name a table or a partition, from both sides."""

import pytest

from fluss.errors import InvalidNameError
from fluss.model.paths import TablePath
from fluss.model.tables.partitions import PartitionSpec
from fluss.wire import messages
from fluss.wire.messages import read_message, write_message
from fluss.wire.table_paths import read_table_path, write_partition_spec, write_table_path


def test_a_path_comes_back_as_it_was_sent():
    path = TablePath("sales", "orders")
    bytes_sent = write_message(messages.TableExistsRequest(table_path=write_table_path(path)))
    received = read_message(messages.TableExistsRequest, bytes_sent)
    assert read_table_path(received.table_path) == path


def test_a_name_that_no_table_can_have_is_refused():
    with pytest.raises(InvalidNameError):
        read_table_path(messages.PbTablePath(database_name="sales", table_name="../orders"))


def test_a_partition_without_values_is_sent_as_such():
    request = messages.DropPartitionRequest(
        table_path=write_table_path(TablePath("sales", "orders")),
        partition_spec=write_partition_spec(PartitionSpec({})),
        ignore_if_not_exists=False,
    )
    received = read_message(messages.DropPartitionRequest, write_message(request))
    assert received.HasField("partition_spec")


def test_the_values_of_a_partition_keep_their_order():
    sent = write_partition_spec(PartitionSpec({"year": "2026", "month": "11"})).partition_key_values
    assert [(each.key, each.value) for each in sent] == [("year", "2026"), ("month", "11")]
