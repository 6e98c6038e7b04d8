"""Changes as rows: the columns in front, and updates joined from their halves."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from fluss.errors import InvalidSchemaError
from fluss.log.decode import DecodedBatch
from fluss.model.paths import TableBucket
from fluss.state import (
    ChangeColumns,
    binlog_batches,
    binlog_schema,
    changelog_batches,
    changelog_schema,
)

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


def binlog(*batches):
    rows = [row for each in binlog_batches(batches, SCHEMA) for row in each.to_pylist()]
    return [
        (
            row["_change_type"],
            row["_log_offset"],
            row["before"] and row["before"]["name"],
            row["after"] and row["after"]["name"],
        )
        for row in rows
    ]


def test_a_changelog_says_kind_offset_and_time_of_every_change():
    types = [INSERT, BEFORE, AFTER, DELETE]
    (batch,) = changelog_batches([decoded(types, [1, 1, 1, 1], base=5)], SCHEMA)
    assert batch.schema == changelog_schema(SCHEMA)
    assert batch.column("_change_type").to_pylist() == [
        "insert",
        "update_before",
        "update_after",
        "delete",
    ]
    assert batch.column("_log_offset").to_pylist() == [5, 6, 7, 8]
    moment = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert batch.column("_commit_timestamp").to_pylist() == [moment] * 4
    assert batch.schema.names[3:] == SCHEMA.names


def test_appended_rows_are_inserts_and_offsets_may_have_gaps():
    (batch,) = changelog_batches([decoded(None, [1, 2], offsets=[3, 9])], SCHEMA)
    assert batch.column("_change_type").to_pylist() == ["insert", "insert"]
    assert batch.column("_log_offset").to_pylist() == [3, 9]


def test_a_column_with_the_name_of_a_metadata_column_is_refused():
    own = pa.schema([("_log_offset", pa.int64())])
    with pytest.raises(InvalidSchemaError, match="_log_offset") as raised:
        changelog_schema(own)
    assert "metadata_prefix" in raised.value.hint
    renamed = changelog_schema(own, ChangeColumns.prefixed("fluss"))
    assert renamed.names == [
        "fluss_change_type",
        "fluss_log_offset",
        "fluss_commit_timestamp",
        "_log_offset",
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
    rows = [row for each in binlog_batches(batches, SCHEMA) for row in each.to_pylist()]
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
    for each in binlog_batches([decoded([INSERT], [1])], SCHEMA):
        assert each.schema == binlog_schema(SCHEMA)
        each.validate(full=True)
