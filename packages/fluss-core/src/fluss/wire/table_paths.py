"""The fields of messages that name a table, a partition or a bucket.

`model` decides which names are valid.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from fluss.model.paths import TableBucket, TablePath
from fluss.model.tables.partitions import PartitionSpec
from fluss.wire import messages

# One that names a bucket by `partition_id`, where it has one, and `bucket_id`.
BucketMessage: TypeAlias = Any


def write_table_path(path: TablePath) -> messages.PbTablePath:
    """Write the field that names a table."""
    return messages.PbTablePath(database_name=path.database_name, table_name=path.table_name)


def read_table_path(message: messages.PbTablePath | messages.PbPhysicalTablePath) -> TablePath:
    """Read the field that names a table.

    Raises:
        InvalidNameError: The name is not valid.
    """
    return TablePath(message.database_name, message.table_name)


def write_partition_spec(spec: PartitionSpec) -> messages.PbPartitionSpec:
    """Write the field that names a partition, or the values to select partitions by."""
    return messages.PbPartitionSpec(
        partition_key_values=[
            messages.PbKeyValue(key=key, value=value) for key, value in spec.spec_map.items()
        ]
    )


def read_bucket(table_id: int, message: BucketMessage) -> TableBucket:
    """Read the fields that name a bucket, of a table with or without partitions."""
    partition_id = message.partition_id if message.HasField("partition_id") else None
    return TableBucket.with_partition(table_id, partition_id, message.bucket_id)
