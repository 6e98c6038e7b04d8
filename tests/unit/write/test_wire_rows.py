"""The partitions that travel with rows."""

import numpy as np
import pyarrow as pa
import pytest

from fluss.errors import InvalidNameError
from fluss.model.paths import PhysicalTablePath, TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.write.placement import Placement
from fluss.write.wire_rows import PartitionPaths, RowPartitions, WireRows

SCHEMA = pa.schema([("day", pa.string()), ("id", pa.int64())])
PATH = TablePath("db", "t")


def table(**facts):
    descriptor = TableDescriptor(Schema(SCHEMA), bucket_count=3, **facts)
    return TableInfo.of(descriptor, table_path=PATH, table_id=1, schema_id=1)


def rows(*days):
    batch = pa.RecordBatch.from_pydict({"day": days, "id": range(len(days))}, schema=SCHEMA)
    info = table(partition_keys=["day"])
    partitions = PartitionPaths(info, BatchLayout.of_schema(info.schema)).of(batch)
    return WireRows(batch=batch, partitions=partitions)


def names(partitions, count):
    codes = np.zeros(count, int) if partitions.codes is None else partitions.codes
    return [partitions.paths[code].partition_name for code in codes]


def test_a_table_without_partitions_is_its_own_only_one():
    info = table()
    found = PartitionPaths(info, BatchLayout.of_schema(info.schema)).of(rows("a", "b").batch)
    assert (found.paths, found.codes) == ((PhysicalTablePath(PATH),), None)


def test_a_slice_keeps_the_partitions_of_its_rows():
    taken = rows("a", "b", "a", "c").slice(1, 3)
    assert taken.batch.column("day").to_pylist() == ["b", "a", "c"]
    assert names(taken.partitions, 3) == ["b", "a", "c"]
    assert names(rows("a", "a").slice(1, 1).partitions, 1) == ["a"]
    assert WireRows(batch=taken.batch).slice(0, 1).partitions is None


@pytest.mark.parametrize(
    "parts",
    [(("a",), ("a", "a")), (("a", "b"), ("b", "a", "c")), (("b",), ("a",)), (("a", "b"), ("a",))],
)
def test_joined_parts_keep_the_partition_of_every_row(parts):
    made = [rows(*days) for days in parts]
    joined = RowPartitions.joined([(each.partitions, each.batch.num_rows) for each in made])
    expected = [day for days in parts for day in days]
    assert names(joined, len(expected)) == expected
    assert (joined.codes is None) == (len(set(expected)) == 1)


def test_rows_are_placed_alike_with_their_partitions_and_without():
    info = table(partition_keys=["day"], bucket_keys=["id"])
    placement = Placement(
        info,
        BatchLayout.of_schema(info.schema),
        has_leader=lambda *_: True,
        is_round_robin=False,
    )
    taken = rows("a", "b", "a", "c", "b", "a").slice(1, 4)
    known = placement.place(taken.batch, partitions=taken.partitions)
    found = placement.place(taken.batch)

    def by_bucket(shares):
        return {
            (share.path, share.bucket_id): shares.order[share.start : share.stop].tolist()
            for share in shares.shares
        }

    assert by_bucket(known) == by_bucket(found)


def test_a_value_that_is_no_partition_name_is_refused():
    with pytest.raises(InvalidNameError):
        rows("a", "b/c")
