"""`tail`, `filter` and `limit` together have one meaning: they are applied in this order.

What each scan gives is compared with the same done in Python to all rows of the table, which are
read without any of the three. `tests/engines/expectations` asks the same of every engine.
"""

from datetime import timedelta

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import fluss.scan
from fluss import col
from fluss.errors import UnsupportedOperationError
from fluss.model.predicates.predicate import Leaf

ROWS = 12
TAILS = (0, 1, 2, 5, 100)


def log_table(session):
    return session.create_table("tailed", _schema(), buckets=4, bucket_key=["id"])


def partitioned_table(session):
    return session.create_table("tailed", _schema(), buckets=2, partition_by=["day"])


def key_table(session):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), *list(_schema())[1:]])
    return session.create_table("tailed", schema, buckets=3, primary_key=["id"])


def _schema():
    return pa.schema([("id", pa.int64()), ("day", pa.string()), ("name", pa.string())])


@pytest.fixture(params=[log_table, partitioned_table, key_table], ids=lambda make: make.__name__)
def written(request, session):
    """A table, its rows in the order that `tail` counts from, and the options that read them."""
    table = request.param(session)
    write = table.upsert if table.primary_key else table.append
    for number in range(ROWS):
        day = "a" if number < ROWS * 2 // 3 else "b"
        write({"id": [number], "day": [day], "name": [f"n{number % 3}"]})
    options = {"mode": "changelog"} if table.primary_key else {}
    rows = table.scan(**options, with_metadata=True).to_arrow().to_pylist()
    places = {each.partition_name: each.partition_id for each in partitions_of(table)}
    rows.sort(
        key=lambda row: (
            row["_commit_timestamp"],
            places.get(row["_partition"], -1),
            row["_bucket"],
            row["_log_offset"],
        )
    )
    return table, rows, options


def partitions_of(table):
    return table.partitions() if table.partition_by else []


def conditions(rows):
    """For each kind of column one condition that leaves out rows of the tail, or all of them."""
    middle = rows[len(rows) // 2]
    return {
        "ordinary column": (col("name") == "n1", ds.field("name") == "n1"),
        "partition key": (col("day") == "a", ds.field("day") == "a"),
        "key": (col("id") == 1, ds.field("id") == 1),
        "several keys": (col("id").is_in([0, 1, 11]), ds.field("id").isin([0, 1, 11])),
        "bucket": (col("_bucket") == 0, ds.field("_bucket") == 0),
        "offset": (col("_log_offset") < 2, ds.field("_log_offset") < 2),
        "time": (
            col("_commit_timestamp") <= middle["_commit_timestamp"],
            ds.field("_commit_timestamp") <= middle["_commit_timestamp"],
        ),
        "time, from": (
            col("_commit_timestamp") > middle["_commit_timestamp"] - timedelta(milliseconds=1),
            ds.field("_commit_timestamp") >= middle["_commit_timestamp"],
        ),
        "nothing": (col("id") > col_max(), ds.field("id") > col_max()),
        "contradiction": ((col("id") > 5) & (col("id") < 5), ds.scalar(False)),
        "two kinds": (
            (col("day") == "a") & (col("_bucket") == 1) & (col("id") < 9),
            (ds.field("day") == "a") & (ds.field("_bucket") == 1) & (ds.field("id") < 9),
        ),
    }


def col_max():
    return 1_000


def kept(rows, tail, condition, limit=None):
    """What a scan is to give, by the words of the options."""
    last = rows[max(0, len(rows) - tail) :] if tail else []
    table = pa.Table.from_pylist(last, schema=None if last else _with_metadata())
    found = table.filter(condition).to_pylist() if last else []
    return found if limit is None else found[:limit]


def _with_metadata():
    return pa.schema([*_schema(), ("_bucket", pa.int32()), ("_log_offset", pa.int64())])


def places(rows):
    return sorted((row["id"], row["_bucket"], row["_log_offset"]) for row in rows)


def test_a_tail_is_cut_before_the_filter(written):
    table, rows, options = written
    for name, (predicate, expression) in conditions(rows).items():
        for tail in TAILS:
            expected = places(kept(rows, tail, expression))
            scan = table.scan(**options, tail=tail, filter=predicate, with_metadata=True)
            assert places(scan.to_arrow().to_pylist()) == expected, (name, tail)
            assert scan.count() == len(expected), (name, tail)
            assert places(scan.to_reader().read_all().to_pylist()) == expected, (name, tail)


def test_a_dataset_cuts_the_tail_before_its_filters(written):
    table, rows, options = written
    for name, (predicate, expression) in conditions(rows).items():
        for tail in (2, 5):
            whole = kept(rows, tail, ds.scalar(True))
            expected = places(kept(rows, tail, expression))
            dataset = table.scan(**options, tail=tail, with_metadata=True).to_dataset()
            given = dataset.to_table(filter=expression)
            assert places(given.to_pylist()) == expected, (name, tail)
            assert dataset.count_rows(filter=expression) == len(expected), (name, tail)
            assert dataset.head(100, filter=expression).num_rows == len(expected), (name, tail)
            assert dataset.head(1, filter=expression).num_rows == min(1, len(expected)), (
                name,
                tail,
            )
            pieces = [
                each.to_table(filter=expression) for each in dataset.get_fragments(expression)
            ]
            found = [row for each in pieces for row in each.to_pylist()]
            assert places(found) == expected, (name, tail)
            unfiltered = [
                row for each in dataset.get_fragments() for row in each.to_table().to_pylist()
            ]
            assert places(unfiltered) == places(whole)
            filtered = table.scan(**options, tail=tail, filter=predicate, with_metadata=True)
            assert places(filtered.to_dataset().to_table().to_pylist()) == expected, (name, tail)


def test_splits_of_a_tail_with_a_filter_are_read_elsewhere(written):
    table, rows, options = written
    config = table.to_source().config
    for name, (predicate, expression) in conditions(rows).items():
        scan = table.scan(**options, tail=5, filter=predicate, with_metadata=True)
        read = fluss.scan.open_split(scan.splits(), config=config).read_all()
        assert places(read.to_pylist()) == places(kept(rows, 5, expression)), name


def test_a_limit_counts_what_tail_and_filter_leave(written):
    table, rows, options = written
    for name, (predicate, expression) in conditions(rows).items():
        expected = places(kept(rows, 5, expression))
        for limit in (0, 1, 3, 50):
            scan = table.scan(**options, tail=5, filter=predicate, limit=limit, with_metadata=True)
            found = places(scan.to_arrow().to_pylist())
            assert len(found) == min(limit, len(expected)), (name, limit)
            assert set(found) <= set(expected), (name, limit)
            assert scan.count() == len(found)
            # What a dataset is asked comes after the limit of its scan.
            cut = table.scan(**options, tail=5, limit=limit, with_metadata=True)
            whole = cut.to_arrow()
            assert whole.num_rows == min(limit, 5)
            later = cut.to_dataset().to_table(filter=expression)
            assert places(later.to_pylist()) == places(whole.filter(expression).to_pylist())
            assert cut.to_dataset().count_rows(filter=expression) == later.num_rows


def test_partitions_are_chosen_before_the_tail(session):
    table = partitioned_table(session)
    for number, day in enumerate("aabbb"):
        table.append({"id": [number], "day": [day], "name": ["n"]})
    scan = table.scan(tail=2, partitions=["a"])
    assert sorted(scan.to_arrow().column("id").to_pylist()) == [0, 1]
    both = table.scan(tail=1, partitions=["a"], filter=col("id") == 0)
    assert both.count() == 0


def test_a_time_begins_before_the_tail_is_cut(written):
    table, rows, options = written
    middle = rows[len(rows) // 2]["_commit_timestamp"]
    before = [row for row in rows if row["_commit_timestamp"] < middle]
    predicate, expression = conditions(rows)["ordinary column"]
    scan = table.scan(**options, end=middle, tail=2, filter=predicate, with_metadata=True)
    assert places(scan.to_arrow().to_pylist()) == places(kept(before, 2, expression))


def test_the_cursor_of_a_filtered_tail_is_where_its_table_ended(written):
    table, _, options = written
    cursor = table.scan(**options, tail=1, filter=col("id") == 1).cursor()
    assert cursor == table.scan(**options).cursor()
    assert table.scan(**options, start=cursor).count() == 0


def test_what_is_explained_of_a_tail_names_no_pruning(written):
    table, _, options = written
    text = str(
        table.scan(**options, tail=3, filter=(col("id") == 1) & (col("day") == "a")).explain()
    )
    assert "left out by the filter" not in text
    assert "tail: the last 3 rows by time, bucket and offset; the filter comes after it" in text


def test_a_binlog_has_a_tail_and_no_filter(session):
    table = key_table(session)
    table.upsert({"id": [1], "day": ["a"], "name": ["n"]})
    with pytest.raises(UnsupportedOperationError, match="filter"):
        table.scan(
            mode="binlog", tail=1, filter=Leaf(column="id", function=_equal(), literals=(1,))
        )
    assert table.scan(mode="binlog", tail=1).count() == 1


def _equal():
    return (col("id") == 1).function
