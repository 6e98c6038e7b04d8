"""Classes of every kind describe columns, keys and partitions; contradictions are refused."""

from __future__ import annotations

import enum
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypedDict,
)

import attrs
import numpy as np
import pyarrow as pa
import pydantic
import pytest

import fluss
from fluss import DataTypes, Key
from fluss.errors import InvalidSchemaError
from fluss.typed import descriptor_of, schema_of
from fluss.typed.class_fields import class_fields_of

Price = NewType("Price", float)


class Color(enum.Enum):
    """Texts."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    """Numbers."""

    LOW = 1
    HIGH = 2


@dataclass
class Address:
    """A part of others."""

    street: str
    zip: Annotated[str | None, "CHAR(5)"] = None


def columns(cls):
    return {each.name: str(each.data_type) for each in schema_of(cls).columns}


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (bool, "BOOLEAN NOT NULL"),
        (int, "BIGINT NOT NULL"),
        (float, "DOUBLE NOT NULL"),
        (str, "STRING NOT NULL"),
        (bytes, "BYTES NOT NULL"),
        (date, "DATE NOT NULL"),
        (time, "TIME(6) NOT NULL"),
        (datetime, "TIMESTAMP(6) NOT NULL"),
        (uuid.UUID, "STRING NOT NULL"),
        (Color, "STRING NOT NULL"),
        (Level, "BIGINT NOT NULL"),
        (Literal["a", "b"], "STRING NOT NULL"),
        (Literal[True], "BOOLEAN NOT NULL"),
        (np.float32, "FLOAT NOT NULL"),
        (Price, "DOUBLE NOT NULL"),
        (int | None, "BIGINT"),
        (Optional[str], "STRING"),  # noqa: UP045 - it is another class than `str | None`
        (list[int], "ARRAY<BIGINT> NOT NULL"),
        (Sequence[str], "ARRAY<STRING> NOT NULL"),
        (tuple[int, ...], "ARRAY<BIGINT> NOT NULL"),
        (set[str], "ARRAY<STRING> NOT NULL"),
        (frozenset[int] | None, "ARRAY<BIGINT>"),
        (dict[str, int | None], "MAP<STRING NOT NULL, BIGINT> NOT NULL"),
        (Mapping[int, list[str]], "MAP<BIGINT NOT NULL, ARRAY<STRING>> NOT NULL"),
        (Address, "ROW<street STRING, zip CHAR(5)> NOT NULL"),
        (list[Address] | None, "ARRAY<ROW<street STRING, zip CHAR(5)>>"),
        (Annotated[int, "INT"], "INT NOT NULL"),
        (Annotated[int | None, DataTypes.smallint()], "SMALLINT"),
        (Annotated[int, DataTypes.tinyint], "TINYINT NOT NULL"),
        (Annotated[int, DataTypes.int().not_null()] | None, "INT"),
        (Annotated[Decimal, "DECIMAL(10, 2)"], "DECIMAL(10, 2) NOT NULL"),
        (Annotated[Decimal, pydantic.Field(max_digits=9, decimal_places=3)], None),
        (Annotated[datetime, "TIMESTAMP_LTZ(3)"], "TIMESTAMP_LTZ(3) NOT NULL"),
        (Annotated[int, pa.int32()], "INT NOT NULL"),
        (list[Annotated[int, "INT"]], "ARRAY<INT> NOT NULL"),
        (Annotated[Any, "MAP<STRING, BYTES>"], "MAP<STRING NOT NULL, BYTES> NOT NULL"),
        (Annotated[bytes, "BINARY(4)"], "BINARY(4) NOT NULL"),
    ],
    ids=repr,
)
def test_every_type_has_its_column(annotation, expected):
    cls = dataclass(type("Row", (), {"__annotations__": {"x": annotation}}))
    if expected is None:  # limits of pydantic count in its own classes
        cls = pydantic.create_model("Row", x=(annotation, ...))
        expected = "DECIMAL(9, 3) NOT NULL"
    assert columns(cls) == {"x": expected}


@fluss.table(
    "shop.orders", buckets=3, properties={"table.log.ttl": "7d", "owner": "ann"}, comment="sold"
)
@dataclass
class Order:
    """A row with everything that a field can be."""

    id: Annotated[int, Key]
    day: Annotated[str, Key, fluss.Partition]
    price: Annotated[Decimal, "DECIMAL(10, 2)", fluss.Comment("in euros")]
    kind: Annotated[str, fluss.ColumnName("kind of order")] = "web"
    tags: list[str] = field(default_factory=list, metadata={"comment": "free"})
    note: str | None = None
    seen: Annotated[int, fluss.NotStored] = 0
    limit: ClassVar[int] = 3
    sum: int = field(init=False)
    given: InitVar[int] = 0


def test_a_dataclass_describes_a_table():
    found = descriptor_of(Order)
    assert str(found.schema.columns) == str(
        fluss.Schema(
            [
                fluss.Column("id", "BIGINT NOT NULL"),
                fluss.Column("day", "STRING NOT NULL"),
                fluss.Column("price", "DECIMAL(10, 2) NOT NULL", "in euros"),
                fluss.Column("kind of order", "STRING"),  # a default is the value for NULL
                fluss.Column("tags", "ARRAY<STRING>", "free"),
                fluss.Column("note", "STRING"),
            ],
            ["id", "day"],
        ).columns
    )
    assert found.schema.primary_keys == ("id", "day")
    assert found.partition_keys == ("day",)
    assert (found.bucket_count, found.comment) == (3, "sold")
    assert dict(found.properties) == {"table.log.ttl": "7d"}
    assert dict(found.custom_properties) == {"owner": "ann"}


class Model(pydantic.BaseModel):
    """A class of pydantic."""

    id: Annotated[int, Key]
    price: Decimal = pydantic.Field(max_digits=10, decimal_places=2, description="in euros")
    at: pydantic.AwareDatetime
    plain: pydantic.NaiveDatetime | None = None
    small: Optional[Annotated[int, "INT"]] = None  # noqa: UP045
    count: Annotated[int, pydantic.Field(gt=0, alias="Count")] = 1
    _private: int = 5


@attrs.define
class Attrs:
    """A class of attrs."""

    id: Annotated[int, Key]
    _hidden: str = "a"
    tags: list[str] = attrs.field(factory=list, metadata={"comment": "free"})
    later: int = attrs.field(init=False, default=0)


class Pair(NamedTuple):
    """A tuple."""

    id: Annotated[int, Key]
    name: str | None = None


class Dict(TypedDict, total=False):
    """A dict."""

    id: Required[Annotated[int, Key]]
    name: str
    count: NotRequired[int | None]


@pytest.mark.parametrize(
    ("cls", "expected"),
    [
        (
            Model,
            {
                "id": "BIGINT NOT NULL",
                "price": "DECIMAL(10, 2) NOT NULL",
                "at": "TIMESTAMP_LTZ(6) NOT NULL",
                "plain": "TIMESTAMP(6)",
                "small": "INT",
                "count": "BIGINT",
            },
        ),
        (Attrs, {"id": "BIGINT NOT NULL", "_hidden": "STRING", "tags": "ARRAY<STRING>"}),
        (Pair, {"id": "BIGINT NOT NULL", "name": "STRING"}),
        (Dict, {"id": "BIGINT NOT NULL", "name": "STRING", "count": "BIGINT"}),
    ],
)
def test_every_kind_of_class_describes_columns(cls, expected):
    assert columns(cls) == expected
    assert schema_of(cls).primary_keys == ("id",)


def test_comments_and_arguments_of_each_kind():
    found = {each.name: each for each in class_fields_of(Model)}
    assert (found["price"].comment, found["count"].argument) == ("in euros", "Count")
    found = {each.name: each for each in class_fields_of(Attrs)}
    assert (found["_hidden"].argument, found["_hidden"].default()) == ("hidden", "a")
    assert (found["tags"].comment, found["tags"].default()) == ("free", [])
    found = {each.name: each for each in class_fields_of(Dict)}
    assert [each.may_be_missing for each in found.values()] == [False, True, True]


@dataclass
class Counted:
    """A row with all other markers."""

    name: Annotated[str, Key, fluss.BucketKey]
    part: Annotated[int, Key]
    number: Annotated[int | None, fluss.AutoIncrement] = None
    total: Annotated[int | None, fluss.AggFunction.of("sum")] = None


def test_markers_become_keys_and_functions():
    found = descriptor_of(Counted)
    assert found.bucket_keys == ("name",)
    assert found.schema.auto_increment_columns == ("number",)
    assert str(found.schema.column("total").aggregation) == "sum"


def test_the_decorator_may_order_the_key():
    @fluss.table("d.t", primary_key=["b", "a"])
    @dataclass
    class Ordered:
        a: Annotated[int, Key]
        b: Annotated[int, Key]

    assert schema_of(Ordered).primary_keys == ("b", "a")


def test_a_subclass_has_the_fields_and_not_the_table():
    @dataclass
    class More(Order):
        extra: int = 0

    assert "extra" in columns(More)
    assert descriptor_of(More).bucket_count is None


def row(**annotations):
    return dataclass(type("Row", (), {"__annotations__": annotations}))


@dataclass
class Node:
    """A class that holds itself."""

    children: list[Node]


@pytest.mark.parametrize(
    ("cls", "text", "hint"),
    [
        (int, "int is no class of rows", "dataclass"),
        (row(), "Row has no field that is a column", None),
        (row(x=Decimal), "Row.x is Decimal, which does not say how many digits", "DECIMAL(10, 2)"),
        (row(x=int | str), "Row.x is int | str, and a column has one type", "None"),
        (row(x=object), "Row.x is object, and no column has this type", "Annotated"),
        (row(x=list), "Row.x is list, and no column has this type", "list[str]"),
        (row(x=tuple[int, str]), "Row.x is tuple[int, str]", "tuple[int, ...]"),
        (row(x=list[complex]), "Row.x[] is complex", None),
        (row(x=Annotated[int, "IMT"]), "declared as 'IMT', which names no type", "Comment"),
        (row(x=Literal["a", 1]), "are not texts alone or numbers alone", None),
        (row(x=int, y=Annotated[int, fluss.ColumnName("x")]), "x and y of Row have one", None),
        (row(x=int, y=Annotated[int, fluss.NotStored]), "Row.y is not stored and has no", None),
        (row(x=Annotated[int, fluss.AutoIncrement], y=Annotated[int, fluss.AutoIncrement]),
         "2 fields that are AutoIncrement", None),
        (Node, "nested more than 32 levels deep, or holds itself", None),
    ],
)  # fmt: skip
def test_what_describes_no_table_is_refused_with_class_and_field(cls, text, hint):
    with pytest.raises(InvalidSchemaError) as refused:
        descriptor_of(cls)
    assert text in str(refused.value)
    assert hint is None or hint in refused.value.hint


def test_keys_are_not_named_differently_twice():
    with pytest.raises(InvalidSchemaError, match=r"primary_key is \(price\), and Order has \(id"):
        descriptor_of(Order, primary_key="price")
    assert descriptor_of(Order, buckets=7, primary_key=["day", "id"]).bucket_count == 7


def test_a_name_that_python_cannot_find_is_refused_with_the_remedy():
    class Hidden:
        """A type that only a function knows."""

    @dataclass
    class Local:
        x: Hidden

    with pytest.raises(InvalidSchemaError, match="'Hidden' is not defined") as refused:
        schema_of(Local)
    assert "at the top of a module" in refused.value.hint
