"""Files by bucket: which are read, and which deletes apply to them."""

import pytest
from pyiceberg.manifest import DataFileContent

from fluss import col
from fluss.errors import CorruptDataError, UnsupportedOperationError
from fluss_lake.file_plan import IcebergContents
from fluss_lake.iceberg_parts import Bounds, Entry
from tests.unit.lake.tables import schema_of, table_of

SCHEMA = schema_of(id="BIGINT", day="STRING")
PLAIN = table_of(SCHEMA)
DAYS = table_of(SCHEMA, ("day",))
EQUALITY, POSITION = DataFileContent.EQUALITY_DELETES, DataFileContent.POSITION_DELETES


def entry(path, first=0, last=9, *, bucket=0, day=None, sequence=1, content=None, **more):
    partition = {"__bucket": bucket} if day is None else {"day": day, "__bucket": bucket}
    bounds = {"__offset": Bounds(lowest=first, highest=last, nulls=0)}
    bounds["id"] = Bounds(lowest=first * 10, highest=last * 10, nulls=0)
    given = {
        "content": content or DataFileContent.DATA,
        "path": path,
        "format": "PARQUET",
        "partition": partition,
        "rows": last - first + 1,
        "size_bytes": 100,
        "sequence": sequence,
        "equality_ids": (),
        "bounds": bounds if content is None else {},
    }
    return Entry(**{**given, **more})


def test_files_come_by_bucket_in_the_order_of_offsets():
    entries = [entry("b", 10, 19), entry("c", 0, 4, bucket=1), entry("a", 0, 9)]
    first, second = IcebergContents(PLAIN, 7, entries).parts(None)
    assert [each.path for each in first.files] == ["a", "b"]
    assert (first.bucket_id, first.first_offset, first.end) == (0, 0, 20)
    assert (first.rows_max, first.is_whole, first.size_bytes) == (20, True, 200)
    assert (second.bucket_id, second.first_offset, second.end, second.snapshot_id) == (1, 0, 5, 7)


def test_a_file_that_is_left_out_still_says_where_the_bucket_begins():
    entries = [entry("a", 0, 9), entry("b", 10, 19)]
    (part,) = IcebergContents(PLAIN, 7, entries).parts(col("id") >= 120)
    assert [each.path for each in part.files] == ["b"]
    assert (part.first_offset, part.end, part.files_left_out, part.is_whole) == (0, 20, 1, False)


def test_partitions_are_named_as_fluss_names_them():
    entries = [entry("a", day="2026-01-01"), entry("b", day="2026-01-02", bucket=1)]
    contents = IcebergContents(DAYS, 7, entries)
    assert contents.partition_names == {"2026-01-01", "2026-01-02"}
    places = [(each.partition_name, each.bucket_id) for each in contents.parts(None)]
    assert places == [("2026-01-01", 0), ("2026-01-02", 1)]


def test_equality_deletes_apply_to_earlier_commits_and_positions_to_the_same():
    entries = [
        entry("old", 0, 4, sequence=1),
        entry("same", 5, 9, sequence=2),
        entry("new", 10, 14, sequence=3),
        entry("equal", sequence=2, content=EQUALITY, equality_ids=(1,)),
        entry("place", sequence=2, content=POSITION),
    ]
    (part,) = IcebergContents(PLAIN, 7, entries).parts(None)
    applied = {each.path: {one.path for one in each.deletes} for each in part.files}
    assert applied == {"old": {"equal", "place"}, "same": {"place"}, "new": set()}
    assert not part.is_whole


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (entry("a", format="AVRO"), UnsupportedOperationError),
        (entry("a", partition={"__bucket": None}), CorruptDataError),
        (entry("a", partition={"x": 1, "__bucket": 0}), CorruptDataError),
        (entry("a", bounds={}), CorruptDataError),
    ],
    ids=["another format", "no bucket", "another partition", "no offsets"],
)
def test_what_is_not_one_of_fluss_s_files_is_refused(broken, error):
    with pytest.raises(error, match=r"db\.t|offsets"):
        IcebergContents(PLAIN, 7, [broken]).parts(None)
