from __future__ import annotations

import random

import pytest

from fluss.errors import InvalidNameError
from fluss.model.paths import PhysicalTablePath, TableBucket, TablePath
from tests.support.copies import pickled


def test_a_path_has_its_documented_parts():
    path = TablePath("sales", "orders")
    assert path.database_name == path.database == "sales"
    assert path.table_name == path.table == "orders"
    assert path.table_path_str() == str(path) == "sales.orders"
    assert repr(path) == "TablePath('sales', 'orders')"
    assert TablePath(database_name="sales", table_name="orders") == path


def test_a_path_is_a_key_that_can_be_sorted_and_pickled():
    paths = [TablePath("b", "a"), TablePath("a", "b"), TablePath("a", "a")]
    assert sorted(paths) == [TablePath("a", "a"), TablePath("a", "b"), TablePath("b", "a")]
    assert len({*paths, TablePath("a", "a")}) == 3
    assert pickled(paths[0]) == paths[0]
    with pytest.raises(AttributeError):
        paths[0].table_name = "c"  # type: ignore[misc]


def test_a_path_is_read_from_its_text():
    assert TablePath.parse("sales.orders") == TablePath("sales", "orders")
    for text in ("orders", "a.b.c", "", ".", "a.", ".b", "a b.c"):
        with pytest.raises(InvalidNameError):
            TablePath.parse(text)


def test_names_are_checked_when_the_path_is_made():
    with pytest.raises(InvalidNameError, match="database name"):
        TablePath("a b", "t")
    with pytest.raises(InvalidNameError, match="table name"):
        TablePath("db", "")


def test_a_table_of_fluss_itself_may_be_named_but_not_made():
    path = TablePath("db", "__system")
    with pytest.raises(InvalidNameError, match="reserved"):
        path.check_new()
    TablePath("db", "mine").check_new()


def test_a_physical_path_names_the_partition():
    path = TablePath("db", "t")
    assert str(PhysicalTablePath(path)) == "db.t"
    assert str(PhysicalTablePath(path, "2026$EU")) == "db.t(p=2026$EU)"
    with pytest.raises(InvalidNameError, match="partition value"):
        PhysicalTablePath(path, "2026$")


def test_a_bucket_has_its_documented_parts():
    bucket = TableBucket(1, 2)
    assert (bucket.table_id, bucket.bucket_id, bucket.partition_id) == (1, 2, None)
    assert TableBucket(table_id=1, bucket=2) == bucket
    partitioned = TableBucket.with_partition(1, 9, 2)
    assert partitioned.partition_id == 9
    assert TableBucket.new_with_partition(1, None, 2) == bucket
    assert repr(bucket) == "TableBucket(table_id=1, bucket=2)"
    assert str(partitioned) == "TableBucket(table_id=1, partition_id=9, bucket=2)"


def test_a_bucket_is_a_key_that_can_be_sorted_and_pickled():
    ordered = [
        TableBucket(1, 0),
        TableBucket(1, 5),
        TableBucket.with_partition(1, 0, 0),
        TableBucket.with_partition(1, 1, 0),
        TableBucket(2, 0),
    ]
    shuffled = random.Random(1).sample(ordered, len(ordered))
    assert sorted(shuffled) == ordered
    assert len(set(ordered)) == 5
    assert ordered[0] != ordered[2]
    assert ordered[0] <= ordered[1]
    assert pickled(ordered[2]) == ordered[2]
    with pytest.raises(TypeError):
        _ = ordered[0] < 1
