"""Changelogs as frames: the change of each row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fluss.errors import InvalidSchemaError, InvalidValueError, UnsupportedTypeError
from fluss.model.change_type import ChangeType
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.write.change_frames import (
    GATHERED_BYTES,
    added_columns,
    change_batch,
    change_types,
    gathered,
)
from fluss.write.table_from_frame import schema_of_frame

KINDS = [
    "insert",
    "+I",
    "+A",
    "update_before",
    "-U",
    "update_after",
    "+U",
    "delete",
    "-D",
    "Delete",
]


def batch_of(kinds, ids=None):
    return pa.RecordBatch.from_pydict(
        {"_change_type": pa.array(kinds), "id": list(range(len(kinds))) if ids is None else ids}
    )


@pytest.mark.parametrize(
    "text_type",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
    ],
    ids=str,
)
def test_every_spelling_is_understood_in_every_layout_of_text(text_type):
    column = pa.array(KINDS).cast(text_type)
    expected = [1, 1, 1, 2, 2, 3, 3, 4, 4, 4]
    assert change_types(column).tolist() == expected
    assert change_types(column.slice(3, 4)).tolist() == expected[3:7]


def test_rows_that_are_replaced_are_left_out_and_counted():
    found = change_batch(batch_of(KINDS))
    assert found.rows.to_pydict() == {"id": [0, 1, 2, 5, 6, 7, 8, 9]}
    assert found.deletes.tolist() == [False] * 5 + [True] * 3
    assert found.counts == {"insert": 3, "update_before": 2, "update_after": 2, "delete": 3}


def test_a_column_of_numbers_is_refused():
    with pytest.raises(InvalidValueError, match="holds int8, not texts"):
        change_types(pa.array([1, 2], pa.int8()))


def test_the_error_names_the_first_wrong_row():
    with pytest.raises(InvalidValueError, match="has 'x', which is no change type") as error:
        change_types(pa.array(["+I", "-D", "x", "x"]))
    assert error.value.facts["row"] == 2
    with pytest.raises(InvalidValueError, match=r"In row 1: .* is NULL"):
        change_types(pa.array(["+I", None]))


def test_small_batches_are_gathered_and_keep_their_order():
    batches = [
        batch_of(["+I"] * 100, list(range(each, each + 100))) for each in range(0, 90_000, 100)
    ]
    found = list(gathered(iter(batches)))
    assert 1 < len(found) < 5
    assert all(each.nbytes >= GATHERED_BYTES for each in found[:-1])
    ids = np.concatenate([each.column("id").to_numpy() for each in found])
    assert ids.tolist() == list(range(90_000))
    other = batch_of(["+I"]).append_column("more", pa.array([1]))
    assert [each.num_columns for each in gathered([batches[0], other])] == [2, 3]
    assert list(gathered([])) == []


def table_of(*names):
    schema = Schema(pa.schema([(each, pa.string()) for each in names]))
    descriptor = TableDescriptor(schema, bucket_count=1)
    return TableInfo.of(descriptor, table_path=TablePath("d", "t"), table_id=1, schema_id=1)


def test_columns_that_scans_add_differ_from_columns_of_the_table():
    names = ["id", "_log_offset", "_change_type", "_other"]
    assert added_columns(table_of("id"), names) == ["_log_offset", "_change_type"]
    assert added_columns(table_of("id", "_change"), ["id", "_change"]) == []


def test_an_appended_row_counts_as_inserted():
    assert change_types(pa.array([str(ChangeType.AppendOnly)])).tolist() == [ChangeType.Insert]


# --- tables made of frames ------------------------------------------------------------------------


def test_a_table_is_made_of_a_scan_without_what_the_scan_added():
    scanned = pa.schema(
        [
            pa.field("_change_type", pa.string()),
            pa.field("_log_offset", pa.int64()),
            pa.field("id", pa.int64(), metadata={"fluss.field-id": "7"}),
            pa.field("kind", pa.dictionary(pa.int8(), pa.string())),
            pa.field("small", pa.uint16()),
        ]
    )
    made = schema_of_frame(
        scanned.empty_table(),
        primary_key="id",
        buckets=4,
        properties={"table.log.ttl": "1 d"},
        comment="people",
    )
    assert [(each.name, str(each.data_type)) for each in made.schema.columns] == [
        ("id", "BIGINT NOT NULL"),
        ("kind", "STRING"),
        ("small", "INT"),
    ]
    assert (made.bucket_count, made.comment) == (4, "people")
    assert made.properties["table.log.ttl"] == "1 d"


def test_a_table_is_made_of_a_schema_or_of_what_is_complete():
    schema = Schema(pa.schema([("id", pa.int32()), ("day", pa.date32())]), ["id", "day"])
    made = schema_of_frame(schema, partition_by="day", buckets=2)
    assert made.schema == schema
    assert made.partition_keys == ("day",)
    assert schema_of_frame(made) is made
    with pytest.raises(InvalidSchemaError, match="complete description"):
        schema_of_frame(made, buckets=3)
    rekeyed = schema_of_frame(schema, primary_key=["day"])
    assert rekeyed.schema.primary_keys == ("day",)


def test_a_reader_is_not_read_for_its_schema():
    rows = pa.table({"id": [1, 2]})
    reader = rows.to_reader()
    assert schema_of_frame(reader).schema.column_names == ("id",)
    assert reader.read_all() == rows


def test_what_no_table_can_be_made_of_is_refused():
    with pytest.raises(InvalidSchemaError, match="without columns"):
        schema_of_frame([])
    with pytest.raises(UnsupportedTypeError, match="'v'"):
        schema_of_frame({"v": [None, None]})
    with pytest.raises(InvalidSchemaError):
        schema_of_frame(pa.table({"id": [1]}), primary_key=["ID"])
