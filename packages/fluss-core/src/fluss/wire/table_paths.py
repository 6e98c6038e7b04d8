"""Which table, and which partition of it, a message speaks of.

Which names there can be is decided in `model`; which of them exist, by the cluster.
"""

from __future__ import annotations

from fluss.model.paths import TablePath
from fluss.model.tables.partitions import PartitionSpec
from fluss.wire import messages


def write_table_path(path: TablePath) -> messages.PbTablePath:
    """The field that names a table."""
    return messages.PbTablePath(database_name=path.database_name, table_name=path.table_name)


def read_table_path(message: messages.PbTablePath | messages.PbPhysicalTablePath) -> TablePath:
    """The table that a field names.

    Raises:
        InvalidNameError: No table can have this name.
    """
    return TablePath(message.database_name, message.table_name)


def write_partition_spec(spec: PartitionSpec) -> messages.PbPartitionSpec:
    """The field that names a partition, or the values that partitions shall have."""
    return messages.PbPartitionSpec(
        partition_key_values=[
            messages.PbKeyValue(key=key, value=value) for key, value in spec.spec_map.items()
        ]
    )
