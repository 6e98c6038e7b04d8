"""Changes as rows: the columns in front, and updates joined from their halves."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from fluss.log.decode import DecodedBatch
from fluss.model.paths import TableBucket
from fluss.state.changelog import Binlog, binlog_schema

SCHEMA = pa.schema([pa.field("id", pa.int32(), nullable=False), ("name", pa.string())])
INSERT, BEFORE, AFTER, DELETE = 1, 2, 3, 4


def decoded(types, ids, *, base=0, bucket=0, timestamp=1_000, offsets=None):
    names = [f"n{base + place}" for place in range(len(ids))]
    return DecodedBatch(
        batch=pa.RecordBatch.from_arrays([pa.array(ids, pa.int32()), names], schema=SCHEMA),
        bucket=TableBucket(7, bucket),
        base_offset=base,
        timestamp=timestamp,
        change_types=None if types is None else np.array(types, dtype=np.uint8),
        offsets=None if offsets is None else np.array(offsets, dtype=np.int64),
    )


def rows_of(batches):
    made = Binlog(SCHEMA)
    found = [made.batch(each) for each in batches]
    return [row for each in found if each is not None for row in each.to_pylist()]


def binlog(*batches):
    rows = rows_of(batches)
    return [
        (
            row["_change_type"],
            row["_log_offset"],
            row["before"] and row["before"]["name"],
            row["after"] and row["after"]["name"],
        )
        for row in rows
    ]


def test_a_binlog_has_one_row_per_change():
    types = [INSERT, BEFORE, AFTER, DELETE]
    assert binlog(decoded(types, [1, 1, 1, 1])) == [
        ("insert", 0, None, "n0"),
        ("update", 1, "n1", "n2"),
        ("delete", 3, "n3", None),
    ]


def test_halves_of_an_update_find_each_other_across_batches_of_several_buckets():
    batches = [
        decoded([INSERT, BEFORE], [1, 1], base=0, timestamp=1_000),
        decoded([BEFORE], [9], base=40, bucket=1),
        decoded([AFTER, INSERT], [1, 2], base=2, timestamp=2_000),
        decoded([AFTER], [9], base=41, bucket=1),
    ]
    assert binlog(*batches) == [
        ("insert", 0, None, "n0"),
        ("update", 1, "n1", "n2"),
        ("insert", 3, None, "n3"),
        ("update", 40, "n40", "n41"),
    ]
    rows = rows_of(batches)
    assert rows[1]["_commit_timestamp"] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


def test_an_update_whose_first_half_is_not_there_has_no_row_before():
    assert binlog(decoded([AFTER, AFTER], [1, 2], base=7)) == [
        ("update", 7, None, "n7"),
        ("update", 8, None, "n8"),
    ]


def test_an_update_whose_second_half_is_not_there_is_no_change():
    assert binlog(decoded([INSERT, BEFORE], [1, 1])) == [("insert", 0, None, "n0")]
    assert binlog(decoded([BEFORE], [1])) == []


def test_binlog_batches_have_the_schema_they_promise():
    made = Binlog(SCHEMA).batch(decoded([INSERT], [1]))
    assert made.schema == binlog_schema(SCHEMA)
    made.validate(full=True)
