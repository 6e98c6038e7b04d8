"""Value batches, and values of several schemas in one answer."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss.errors import CorruptBatchError, CorruptDataError
from fluss.model.tables.table_options import KvFormat
from fluss.model.types.data_type import BigIntType, IntType, StringType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.kv.row_bytes import rows_from_batch
from fluss.records.kv.value_batch import (
    batch_from_values,
    frames_of_tagged_values,
    frames_of_values,
    read_value_batch,
    schema_ids_of,
    write_value_batch,
    write_values,
)
from tests.support.generators.encoded import row_bytes

OLD = BatchLayout.of(["id"], [IntType()], column_ids=[0])
NEW = BatchLayout.of(["id", "name"], [IntType(), StringType()], column_ids=[0, 1])
LAYOUTS = {1: OLD, 2: NEW}


def value(schema_id, *columns):
    layout = LAYOUTS[schema_id]
    arrays = [
        pa.array([each], field.type)
        for each, field in zip(columns, layout.wire_schema, strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=layout.wire_schema)
    rows = rows_from_batch(batch, layout, KvFormat.COMPACTED)
    return bytes(write_values(rows, schema_id=schema_id)[0])


def batch_of_values(values):
    return b"".join(write_value_batch(row_bytes(values)))


def decoded(values, target=NEW):
    found = read_value_batch(batch_of_values(values))
    return batch_from_values(found, LAYOUTS, target, KvFormat.COMPACTED)


@given(st.lists(st.binary(min_size=2, max_size=30), max_size=20))
def test_values_survive(values):
    found = read_value_batch(batch_of_values(values))
    assert [found[index] for index in range(len(found))] == values


def test_a_batch_is_length_magic_count_and_records():
    values = [value(1, 5), value(2, 6, "ab")]
    assert values == [bytes.fromhex("0100 00 05"), bytes.fromhex("0200 00 06 02 6162")]
    assert batch_of_values(values) == bytes.fromhex(
        "18000000 00 02000000  04000000 0100 00 05  07000000 0200 00 06 02 6162"
    )


def test_rows_of_several_schemas_come_in_the_order_they_were_sent():
    values = [value(2, 1, "a"), value(1, 2), value(2, 3, None), value(1, 4), value(2, 5, "e")]
    assert schema_ids_of(read_value_batch(batch_of_values(values))).tolist() == [2, 1, 2, 1, 2]
    batch = decoded(values)
    assert batch.schema == NEW.user_schema
    assert batch.column(0).to_pylist() == [1, 2, 3, 4, 5]
    assert batch.column(1).to_pylist() == ["a", None, None, None, "e"]


def test_columns_can_be_chosen_in_another_order():
    target = BatchLayout.of(["name", "id"], [StringType(), IntType()], column_ids=[1, 0])
    batch = decoded([value(1, 2), value(2, 1, "a")], target)
    assert batch.to_pylist() == [{"name": None, "id": 2}, {"name": "a", "id": 1}]


def test_no_values_are_an_empty_batch():
    batch = decoded([])
    assert batch.num_rows == 0
    assert batch.schema == NEW.user_schema
    assert schema_ids_of(frames_of_values([])).tolist() == []


def test_values_of_lookups_come_one_by_one():
    found = frames_of_values([value(2, 1, "a"), memoryview(value(1, 2)), bytearray(value(1, 3))])
    batch = batch_from_values(found, LAYOUTS, NEW, KvFormat.COMPACTED)
    assert batch.column(0).to_pylist() == [1, 2, 3]
    with pytest.raises(CorruptBatchError, match="value 1 has only 1 bytes"):
        frames_of_values([value(1, 2), b"\x01"])


def test_an_unknown_schema_id_is_refused():
    values = [value(1, 2), b"\x09\x00" + value(1, 2)[2:]]
    with pytest.raises(CorruptBatchError, match="schema id 9"):
        decoded(values)


def test_a_row_that_is_not_of_its_schema_is_refused():
    with pytest.raises(CorruptDataError):
        decoded([b"\x02\x00" + value(1, 2)[2:]])


def test_every_cut_and_every_addition_is_refused():
    data = batch_of_values([value(1, 5), value(2, 6, "ab")])
    for cut in range(len(data)):
        with pytest.raises(CorruptBatchError):
            read_value_batch(data[:cut])
        shorter = bytearray(data[:cut])
        if cut >= 9:
            struct.pack_into("<i", shorter, 0, cut - 4)
        with pytest.raises(CorruptBatchError):
            read_value_batch(shorter)
    with pytest.raises(CorruptBatchError):
        read_value_batch(data + b"x")


@pytest.mark.parametrize(
    ("at", "layout", "number"),
    [(0, "<i", -1), (4, "<b", 1), (5, "<i", -1), (5, "<i", 1), (5, "<i", 2**31 - 1),
     (9, "<i", 1), (9, "<i", -4), (9, "<i", 2**31 - 1)],
)  # fmt: skip
def test_numbers_that_lie_are_refused(at, layout, number):
    data = bytearray(batch_of_values([value(1, 5), value(1, 6)]))
    struct.pack_into(layout, data, at, number)
    with pytest.raises(CorruptBatchError):
        read_value_batch(data)


def test_one_schema_is_decoded_without_rearranging():
    wide = BatchLayout.of(["id"], [BigIntType()])
    rows = rows_from_batch(
        pa.record_batch([pa.array(range(1000), pa.int64())], schema=wide.wire_schema),
        wide,
        KvFormat.INDEXED,
    )
    found = read_value_batch(b"".join(write_value_batch(write_values(rows, schema_id=1))))
    batch = batch_from_values(found, {1: wide}, wide, KvFormat.INDEXED)
    assert batch.column(0).to_pylist() == list(range(1000))


# --- values with tags, as KV snapshots of tables with a TTL of rows have them ---------------------

# Encoded by the classes of Java's client 1.0.0: schema id 3, row (INT 1, STRING "part", BIGINT
# 1700000000000), tagged with 0, 1, 1700000000123 and -1.
PLAIN = "03000001047061727480d095ffbc31"
TAGS = ["0000000000000000", "0000000000000001", "0000018bcfe5687b", "ffffffffffffffff"]


def test_java_s_tagged_values_are_read_without_their_tags():
    kinds = [IntType(), StringType(), BigIntType()]
    layout = BatchLayout.of(["a", "b", "c"], kinds, column_ids=[0, 1, 2])
    values = frames_of_tagged_values([bytes.fromhex(tag + PLAIN) for tag in TAGS])
    assert schema_ids_of(values).tolist() == [3] * len(TAGS)
    batch = batch_from_values(values, {3: layout}, layout, KvFormat.COMPACTED)
    assert batch.to_pylist() == [{"a": 1, "b": "part", "c": 1_700_000_000_000}] * len(TAGS)


def test_a_tagged_value_without_room_for_tag_and_schema_id_is_refused():
    with pytest.raises(CorruptBatchError, match="9 bytes"):
        frames_of_tagged_values([bytes(10), bytes(9)])
