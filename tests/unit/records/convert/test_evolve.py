"""Batches of one schema in the layout of another."""

from __future__ import annotations

import pyarrow as pa
import pytest

from fluss.errors import SchemaMismatchError
from fluss.model.schema.schema import Schema
from fluss.model.types.data_type import BigIntType, CharType, IntType, StringType
from fluss.model.types.factory import DataTypes
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.evolve import Evolution, read_positions

OLD = BatchLayout.of(["id", "name"], [IntType(), StringType()], column_ids=[0, 1])
NEW = BatchLayout.of(
    ["id", "name", "age"], [IntType(), StringType(), IntType()], column_ids=[0, 1, 2]
)
BATCH = pa.record_batch(
    [pa.array([1, 2], pa.int32()), pa.array(["a", None])], schema=OLD.user_schema
)


def test_the_same_layout_changes_nothing():
    evolution = Evolution.between(OLD, OLD)
    assert evolution.is_identity
    assert evolution.apply(BATCH) is BATCH


def test_columns_that_are_not_there_yet_are_null():
    found = Evolution.between(OLD, NEW).apply(BATCH)
    assert found.schema == NEW.user_schema
    assert found.to_pylist() == [
        {"id": 1, "name": "a", "age": None},
        {"id": 2, "name": None, "age": None},
    ]


def test_columns_are_reordered_and_left_out():
    target = NEW.project([2, 1])
    found = Evolution.between(OLD, target).apply(BATCH)
    assert found.to_pylist() == [{"age": None, "name": "a"}, {"age": None, "name": None}]
    assert found.column(1).buffers()[2].address == BATCH.column(1).buffers()[2].address


def test_a_projected_batch_is_read_with_the_positions_it_was_fetched_with():
    expected = NEW.project([2, 0])
    positions = read_positions(OLD, expected)
    assert positions == (0,), "the age is younger than the batch"
    fetched = BATCH.select(list(positions))
    found = Evolution.between(OLD.project(positions), expected).apply(fetched)
    assert found.to_pylist() == [{"age": None, "id": 1}, {"age": None, "id": 2}]


def test_columns_are_the_same_by_id_whatever_their_names():
    renamed = BatchLayout.of(["key", "name"], [IntType(), StringType()], column_ids=[0, 1])
    assert Evolution.between(OLD, renamed).apply(BATCH).column_names == ["key", "name"]
    replaced = BatchLayout.of(["id", "name"], [IntType(), StringType()], column_ids=[0, 7])
    assert Evolution.between(OLD, replaced).apply(BATCH).column(1).null_count == 2


def test_without_ids_columns_are_the_same_by_name():
    target = BatchLayout.of(["name", "id"], [StringType(), IntType()])
    assert Evolution.between(OLD, target).sources == (1, 0)


def test_another_type_is_refused():
    target = BatchLayout.of(["id"], [BigIntType()], column_ids=[0])
    with pytest.raises(SchemaMismatchError, match="'id' is BIGINT but was written as INT"):
        Evolution.between(OLD, target)


def test_a_missing_column_that_may_not_be_null_is_refused():
    target = BatchLayout.of(["x"], [IntType().not_null()], column_ids=[9])
    with pytest.raises(SchemaMismatchError, match="no such column"):
        Evolution.between(OLD, target)


def test_no_columns_still_count_rows():
    found = Evolution.between(OLD, OLD.project([])).apply(BATCH)
    assert (found.num_rows, found.num_columns) == (2, 0)


def test_a_schema_gives_its_layout_with_ids_and_metadata():
    row = DataTypes.row([DataTypes.field("x", DataTypes.int())])
    schema = (
        Schema.builder()
        .column("id", DataTypes.int())
        .column("r", row)
        .column("code", CharType(3))
        .build()
    )
    layout = BatchLayout.of_schema(schema)
    assert layout.column_ids == tuple(each.column_id for each in schema.columns)
    assert layout.user_schema.equals(schema.to_arrow(), check_metadata=True)
    assert layout.wire_schema.field("code").metadata is None
    assert (layout.node_starts, layout.buffer_starts) == ((0, 1, 3, 4), (0, 2, 5, 8))
    part = layout.project([2])
    assert part.user_schema.field(0).metadata == layout.user_schema.field(2).metadata
    assert (part.node_count, part.buffer_count) == (1, 3)


def test_nested_columns_move_between_schemas_that_say_more_and_less():
    plain = pa.list_(pa.field("item", pa.int32()))
    told = pa.list_(pa.field("element", pa.int32(), metadata={"k": "v"}))
    types = [DataTypes.array(DataTypes.int())]
    source = BatchLayout.of(["a"], types, user_schema=pa.schema([pa.field("a", plain)]))
    target = BatchLayout.of(["a"], types, user_schema=pa.schema([pa.field("a", told)]))
    batch = pa.record_batch([pa.array([[1], None], plain)], ["a"])
    found = Evolution.between(source, target).apply(batch)
    assert found.schema.equals(target.user_schema, check_metadata=True)
    assert found.to_pylist() == [{"a": [1]}, {"a": None}]
