"""What is created and altered for a class, and what Fluss cannot do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

import fluss
from fluss import Key
from fluss.errors import InvalidSchemaError
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.typed.table_changes import class_table_of, diff_table

COLUMNS = {"id": "BIGINT NOT NULL", "name": "STRING", "price": "DOUBLE"}


@fluss.table("shop.items", buckets=2, properties={"table.log.ttl": "7d", "owner": "ann"})
@dataclass
class Item:
    """As the table below."""

    id: Annotated[int, Key]
    name: str | None
    price: float | None = None


def table_of(columns=COLUMNS, key=("id",), **more):
    given = {
        "bucket_count": 2,
        "properties": {"table.log.ttl": "7d", "table.replication.factor": "1"},
        "custom_properties": {"owner": "ann"},
    }
    descriptor = TableDescriptor(Schema(columns, key), **{**given, **more})
    path = TablePath("shop", "items")
    return TableInfo.of(descriptor, table_path=path, table_id=0, schema_id=1)


def diff(cls, table):
    return diff_table(class_table_of(cls, TablePath.parse), table)


def test_a_table_that_is_as_its_class_describes_it_does_not_differ():
    found = diff(Item, table_of())
    assert found.is_empty
    assert str(found) == "shop.items: no difference"


def test_the_order_of_columns_and_of_the_key_is_no_difference():
    in_other_order = {each: COLUMNS[each] for each in ("price", "id", "name")}
    assert diff(Item, table_of(in_other_order)).is_empty


def test_a_bucket_key_that_the_class_does_not_name_is_no_difference():
    @fluss.table("shop.items")
    @dataclass
    class Log:
        id: int
        name: str | None

    columns = {"id": "BIGINT NOT NULL", "name": "STRING"}
    assert diff(Log, table_of(columns, (), bucket_keys=["id"])).is_empty


def test_a_table_that_is_missing_is_created():
    found = diff(Item, None)
    assert found.creates == class_table_of(Item, TablePath.parse).descriptor
    assert str(found) == (
        "shop.items: create table: id BIGINT NOT NULL, name STRING, price DOUBLE, "
        "PRIMARY KEY (id), 2 buckets"
    )


def test_columns_are_added_and_properties_set():
    columns = {"id": "BIGINT NOT NULL"}
    found = diff(Item, table_of(columns, properties={}, custom_properties={}))
    assert [str(each) for each in found.add_columns] == ["name STRING", "price DOUBLE"]
    assert dict(found.set_properties) == {"table.log.ttl": "7d", "owner": "ann"}
    assert not found.impossible


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (table_of({**COLUMNS, "price": "DECIMAL(9, 2)"}),
         "the column price is DECIMAL(9, 2), and the class has DOUBLE"),
        (table_of({**COLUMNS, "old": "STRING"}),
         "neither dropped nor renamed: add a field for it; one of another name has Annotated["),
        (table_of({"name": "STRING", "price": "DOUBLE", "key": "INT NOT NULL"}, ("key",)),
         "the new column id is BIGINT NOT NULL, and the rows that there are have no value"),
        (table_of({**COLUMNS, "name": "STRING NOT NULL"}),
         "the column name is NOT NULL, and the field takes None or has a default"),
        (table_of(key=()), "the primary key is none, and the class has (id)"),
        (table_of({**COLUMNS, "name": "STRING NOT NULL"}, ("id", "name"), partition_keys=["name"]),
         "the partition key is (name), and the class has none"),
        (table_of(bucket_count=5), "the table has 5 buckets, and the class 2"),
    ],
    ids=["type", "dropped", "not null", "nullable", "key", "partitions", "buckets"],
)  # fmt: skip
def test_what_fluss_cannot_change_is_listed_with_what_is_necessary(table, text):
    found = diff(Item, table)
    assert text in str(found)
    assert all(each.remedy for each in found.impossible)


def test_a_field_without_a_value_for_null_needs_a_column_that_is_not_null():
    @fluss.table("shop.items")
    @dataclass
    class Strict:
        id: Annotated[int, Key]
        name: str
        price: float = 0.0

    found = diff(Strict, table_of())
    assert "the column name may be NULL, and the field has no value for NULL" in str(found)
    assert len(found.impossible) == 1


def test_a_property_that_is_fixed_at_creation_is_not_set():
    @fluss.table("shop.items", properties={"table.log.format": "INDEXED", "table.new": "1"})
    @dataclass
    class Other(Item):
        pass

    found = diff(Other, table_of())
    assert "the property table.log.format is not set, and the class has INDEXED" in str(found)
    assert dict(found.set_properties) == {"table.new": "1"}  # the servers may know it


@dataclass
class Part:
    """A part of a row."""

    a: int


def test_null_within_a_type_is_not_compared():
    @fluss.table("shop.items")
    @dataclass
    class Nested:
        x: list[int]
        y: Part | None
        z: dict[str, int] | None

    columns = {"x": "ARRAY<BIGINT NOT NULL> NOT NULL", "y": "ROW<a BIGINT NOT NULL>",
               "z": "MAP<STRING, BIGINT NOT NULL>"}  # fmt: skip
    assert diff(Nested, table_of(columns, ())).is_empty


def test_an_aggregation_is_compared():
    @fluss.table("shop.items")
    @dataclass
    class Sum:
        id: Annotated[int, Key]
        total: Annotated[int | None, fluss.AggFunction.of("sum")] = None

    found = diff(Sum, table_of({"id": "BIGINT NOT NULL", "total": "BIGINT"}))
    assert "the column total has the aggregation none, and the class sum" in str(found)


def test_a_class_without_a_table_is_refused():
    with pytest.raises(InvalidSchemaError, match="Part does not name its table") as refused:
        class_table_of(Part, TablePath.parse)
    assert "@fluss.table" in refused.value.hint
