from __future__ import annotations

import copy
import json

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

from fluss.errors import (
    CorruptDataError,
    InvalidNameError,
    InvalidSchemaError,
    UnsupportedTypeError,
)
from fluss.model.schema.aggregation import AggFunction
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.schema.schema_rules import COLUMNS_MAX
from fluss.model.types.factory import DataTypes as D
from tests.support.copies import pickled
from tests.support.differential.golden import golden
from tests.support.generators.schema_strategies import schemas

ARROW = pa.schema(
    [pa.field("id", pa.int32()), pa.field("name", pa.string()), pa.field("score", pa.float32())]
)


def test_a_schema_is_made_of_an_arrow_schema_as_documented():
    schema = Schema(ARROW, primary_keys=["id"])
    assert schema.get_column_names() == ["id", "name", "score"]
    assert schema.get_column_types() == ["int NOT NULL", "string", "float"]
    assert schema.get_columns()[0] == ("id", "int NOT NULL")
    assert schema.get_primary_keys() == ["id"]
    assert schema.get_auto_increment_columns() == []
    assert str(schema).startswith("Schema: columns=[('id', 'int NOT NULL')")


def test_a_schema_is_made_by_its_builder_as_documented():
    built = (
        Schema.builder()
        .column("id", D.int())
        .column("name", D.string())
        .column("score", D.float())
        .primary_key(["id"])
        .build()
    )
    assert built == Schema(ARROW, ["id"])
    assert built.column_names == ("id", "name", "score")
    assert built.primary_key == ("id",)
    assert built.primary_key_indexes == (0,)
    assert [each.name for each in built.columns] == ["id", "name", "score"]
    assert repr(built) == ("Schema(id INT NOT NULL, name STRING, score FLOAT, PRIMARY KEY (id))")


def test_a_schema_without_a_primary_key_has_none():
    schema = Schema(ARROW)
    assert schema.primary_key is None
    assert schema.primary_key_indexes == ()
    assert not schema.has_primary_key
    assert schema.get_primary_keys() == []


def test_the_primary_key_keeps_its_own_order():
    schema = Schema(ARROW, ["name", "id"])
    assert schema.primary_key_indexes == (1, 0)


def test_comments_of_arrow_fields_become_comments():
    field = pa.field("a", pa.int32(), metadata={"comment": "größer"})
    assert Schema(pa.schema([field])).columns[0].comment == "größer"


@given(schemas())
def test_a_schema_comes_back_from_its_json(schema):
    assert Schema.from_json(schema.to_json()) == schema
    assert Schema.from_json(schema.to_json().encode()) == schema


@given(schemas())
def test_a_schema_comes_back_from_a_pickle_and_from_arrow(schema):
    assert pickled(schema) == schema
    assert copy.deepcopy(schema) == schema
    assert hash(schema) == hash(copy.deepcopy(schema))
    assert Schema(schema.to_arrow(), schema.primary_keys) == schema


def test_a_schema_cannot_be_changed():
    with pytest.raises(AttributeError):
        Schema(ARROW).columns = ()  # type: ignore[misc]


@pytest.mark.parametrize(
    "name", [name for name, entry in golden("documents").items() if "columns" in entry["given"]]
)
def test_the_json_of_a_schema_is_understood_as_java_does(name):
    entry = golden("documents")[name]
    read = Schema.from_json(json.dumps(entry["given"]))
    assert json.loads(read.to_json()) == entry["java"]
    assert list(json.loads(read.to_json())) == list(entry["java"])


def test_ids_are_given_where_they_are_absent():
    schema = Schema(
        [Column("a", D.row([D.field("x", D.int()), D.field("y", D.int())])), Column("b", D.int())]
    )
    assert [each.column_id for each in schema.columns] == [0, 3]
    assert schema.highest_field_id == 3


def test_the_highest_id_ever_given_is_kept():
    text = json.dumps(
        {
            "version": 1,
            "columns": [{"name": "a", "data_type": {"type": "INTEGER"}, "id": 0}],
            "highest_field_id": 4,
        }
    )
    schema = Schema.from_json(text)
    assert schema.highest_field_id == 4
    grown = schema.with_column(Column("b", D.row([D.field("x", D.int())])))
    assert grown.columns[1].column_id == 5
    assert grown.highest_field_id == 6
    assert grown.columns[0] == schema.columns[0]


def test_a_new_column_may_be_null_and_has_a_new_name():
    schema = Schema(ARROW)
    with pytest.raises(InvalidSchemaError, match="NOT NULL"):
        schema.with_column(Column("b", D.int().not_null()))
    with pytest.raises(InvalidSchemaError, match="more than once"):
        schema.with_column(Column("id", D.int()))
    with pytest.raises(InvalidNameError, match="reserved"):
        schema.with_column(Column("__offset", D.int()))


@pytest.mark.parametrize(
    ("columns", "keys", "increment", "why"),
    [
        ([], None, None, "no columns"),
        ([Column("a", D.int()), Column("a", D.int())], None, None, "'a' more than once"),
        ([Column("a", D.int())], ["b"], None, "'b', which the schema does not have"),
        ([Column("a", D.int())], ["a", "a"], None, "'a' twice"),
        ([Column("a", D.array(D.int()))], ["a"], None, "ARRAY, MAP and ROW cannot be"),
        ([Column("a", D.row([]))], ["a"], None, "ARRAY, MAP and ROW cannot be"),
        ([Column("a", D.int(), aggregation=AggFunction.of("sum"))], ["a"], None, "aggregation"),
        ([Column("a", D.int())], None, "a", "only be counted up in a table with a primary key"),
        ([Column("a", D.int())], ["a"], "a", "in the primary key and cannot be counted up"),
        ([Column("a", D.int()), Column("b", D.string())], ["a"], "b", "only INT and BIGINT"),
        ([Column("a", D.int())], ["a"], "c", "auto-increment column is 'c'"),
        ([Column("a", D.int(), column_id=1), Column("b", D.int())], None, None, "has none"),
        (
            [Column("a", D.int(), column_id=1), Column("b", D.int(), column_id=1)],
            None,
            None,
            "same field id",
        ),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(columns, keys, increment, why):
    with pytest.raises(InvalidSchemaError) as caught:
        Schema(columns, keys, increment)
    assert why in caught.value.message


def test_a_mistyped_key_brings_the_right_one():
    with pytest.raises(InvalidSchemaError) as caught:
        Schema(ARROW, ["nmae"])
    assert caught.value.hint == "did you mean 'name'?"
    with pytest.raises(InvalidSchemaError, match="list of names"):
        Schema(ARROW, "id")


def test_names_that_fluss_keeps_are_refused_in_a_new_schema_and_read_in_an_old_one():
    columns = [{"name": "_log_offset", "data_type": {"type": "INTEGER"}}]
    text = json.dumps({"version": 1, "columns": columns})
    assert Schema.from_json(text).column_names == ("_log_offset",)
    with pytest.raises(InvalidNameError, match="'_log_offset' is reserved"):
        Schema(pa.schema([("_log_offset", pa.int32())]))


def test_an_arrow_type_without_counterpart_is_refused_with_its_column():
    with pytest.raises(UnsupportedTypeError) as caught:
        Schema(pa.schema([("ok", pa.int8()), ("wait", pa.duration("s"))]))
    assert caught.value.column == "wait"


def test_something_else_than_columns_is_refused():
    with pytest.raises(InvalidSchemaError, match=r"pyarrow\.Schema"):
        Schema([("a",)])
    with pytest.raises(InvalidSchemaError):
        Schema(7)  # type: ignore[arg-type]


def test_more_columns_than_can_be_counted_are_refused():
    columns = [Column(f"c{i}", D.int()) for i in range(COLUMNS_MAX + 1)]
    with pytest.raises(InvalidSchemaError, match="columns"):
        Schema(columns)


def test_an_empty_name_deep_inside_is_refused():
    with pytest.raises(InvalidNameError, match="empty"):
        Schema([Column("a", D.array(D.row([D.field("", D.int())])))])


def test_columns_are_found_by_name():
    schema = Schema(ARROW)
    assert schema.column("name").data_type == D.string()
    assert schema.column_indexes(["score", "id"]) == (2, 0)
    with pytest.raises(InvalidSchemaError, match="no column 'nam'") as caught:
        schema.column("nam")
    assert caught.value.hint == "did you mean 'name'?"


def test_a_row_of_the_table_is_one_type():
    row = Schema(ARROW, ["id"]).row_type
    assert row.field_names == ("id", "name", "score")
    assert row.field_types == (D.int().not_null(), D.string(), D.float())


def test_an_auto_increment_column_stands_in_the_json():
    schema = Schema(
        pa.schema([("k", pa.string()), ("n", pa.int64())]), ["k"], auto_increment_column="n"
    )
    assert schema.get_auto_increment_columns() == ["n"]
    assert json.loads(schema.to_json())["auto_increment_column"] == ["n"]
    assert Schema.from_json(schema.to_json()) == schema


def test_the_builder_adds_comments_and_aggregations():
    schema = (
        Schema.builder()
        .column("k", D.string(), "the key")
        .column("n", D.bigint(), "how many", aggregation="sum")
        .column("t", D.string(), aggregation=AggFunction.of("listagg", delimiter=";"))
        .primary_key(["k"])
        .build()
    )
    assert schema.columns[0].comment == "the key"
    assert schema.columns[1].aggregation == AggFunction.of("sum")
    assert Schema.from_json(schema.to_json()) == schema
    assert Schema(schema.to_arrow(), ["k"]) == schema


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"columns": {}},
        {"columns": [7]},
        {"columns": [{"name": "a"}]},
        {"columns": [{"data_type": {"type": "INTEGER"}}]},
        {"columns": [{"name": "a", "data_type": {"type": "INTEGER"}, "id": "0"}]},
        {"columns": [{"name": "a", "data_type": {"type": "INTEGER"}, "id": -2}]},
        {"columns": [{"name": "a", "data_type": {"type": "INTEGER"}, "comment": 7}]},
        {"columns": [{"name": "a", "data_type": {"type": "INTEGER"}, "agg_function": "sum"}]},
        {"columns": [{"name": "a", "data_type": {"type": "INTEGER"}}], "primary_key": "a"},
        {"columns": [{"name": "a", "data_type": {"type": "INTEGER"}}], "primary_key": [7]},
        {"columns": [{"name": "a", "data_type": {"type": "INTEGER"}}], "highest_field_id": None},
    ],
)
def test_json_that_fluss_does_not_write_is_corrupt(value):
    with pytest.raises(CorruptDataError):
        Schema.from_json(json.dumps(value))


def test_a_highest_id_below_one_in_use_is_refused():
    columns = [{"name": "a", "data_type": {"type": "INTEGER"}, "id": 5}]
    with pytest.raises(InvalidSchemaError, match="5 is in use"):
        Schema.from_json(json.dumps({"columns": columns, "highest_field_id": 4}))


def test_an_aggregation_of_a_newer_server_is_left_out_as_java_does():
    columns = [{"name": "a", "data_type": {"type": "INTEGER"}, "agg_function": {"type": "median"}}]
    assert Schema.from_json(json.dumps({"columns": columns})).columns[0].aggregation is None


def test_ids_stay_within_32_bits():
    column = {"name": "a", "data_type": {"type": "INTEGER"}, "id": 2**31 - 1}
    full = Schema.from_json(json.dumps({"columns": [column]}))
    with pytest.raises(InvalidSchemaError, match="have been given"):
        full.with_column(Column("b", D.int()))
    with pytest.raises(InvalidSchemaError, match="32 bits"):
        Schema.from_json(json.dumps({"columns": [column], "highest_field_id": 2**31}))


def test_the_schema_of_another_library_is_taken_if_arrow_can_import_it():
    frame = pl.DataFrame({"a": [1], "b": ["x"]})
    assert Schema(frame.schema).get_columns() == [("a", "bigint"), ("b", "string")]


def test_only_one_column_is_counted_up():
    columns = [{"name": name, "data_type": {"type": "INTEGER"}} for name in "kab"]
    document = {"columns": columns, "primary_key": ["k"], "auto_increment_column": ["a", "b"]}
    with pytest.raises(InvalidSchemaError, match="Only one column"):
        Schema.from_json(json.dumps(document))
