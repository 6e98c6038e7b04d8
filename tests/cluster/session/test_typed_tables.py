"""Typed rows are written, read, looked up, followed and deleted, and come back as their class."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, NamedTuple, TypedDict

import pydantic
import pytest

import fluss
from fluss import ChangeType, Key, Partition
from fluss.errors import (
    InvalidSchemaError,
    InvalidValueError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from fluss.session import Change


class Kind(enum.Enum):
    """A text in the table."""

    WEB = "web"
    SHOP = "shop"


@dataclass
class Address:
    """A ROW in the table."""

    street: str
    zip: Annotated[str | None, "CHAR(5)"] = None


@fluss.table("orders", buckets=2)
@dataclass
class Order:
    """A row of a partitioned table with a key, all columns of which may be written in part."""

    id: Annotated[int, Key]
    day: Annotated[str, Key, Partition]
    price: Annotated[Decimal | None, "DECIMAL(10, 2)", fluss.Comment("in euros")] = None
    kind: Kind = Kind.WEB
    address: Address | None = None
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Price:
    """Some columns of an order."""

    id: int
    day: str
    price: Annotated[Decimal | None, "DECIMAL(10, 2)"]


class OrderKey(NamedTuple):
    """The key of an order."""

    id: int
    day: str


ORDERS = [
    Order(1, "mon", Decimal("1.50"), Kind.SHOP, Address("Main", "12345"), ["a", "b"]),
    Order(2, "tue", Decimal("2.50"), address=Address("Side")),
    Order(3, "tue"),
]


def by_id(rows):
    return sorted(rows, key=lambda each: each.id)


def test_rows_of_a_keyed_and_partitioned_table(session):
    orders = session.create_table(Order).typed(Order)
    assert orders.table.partition_by == ("day",)
    assert orders.table.info.schema.column("price").comment == "in euros"

    assert orders.upsert(ORDERS).rows == 3
    assert by_id(orders.scan()) == by_id(orders.to_list()) == ORDERS
    assert by_id(orders.scan(filter="id > 1", columns=["id", "day", "kind"])) == [
        Order(2, "tue"), Order(3, "tue"),
    ]  # fmt: skip
    assert orders.scan(filter=fluss.col("id") == 1).to_list() == ORDERS[:1]
    assert (orders.count(), len(orders.head(2))) == (3, 2)

    # --- keys: rows, tuples, and a class of the key alone
    assert orders.get(1, "mon") == ORDERS[0]
    assert orders.lookup([(9, "mon"), (2, "tue")]) == [None, ORDERS[1]]
    assert orders.lookup([OrderKey(3, "tue")]) == [ORDERS[2]]
    assert orders.lookup(ORDERS) == ORDERS
    with pytest.raises(InvalidValueError, match=r"The key of .* is \(id, day\), and 1 values"):
        orders.get(1)

    # --- a class of some columns
    prices = session.typed(Price, "orders")
    assert prices.get(2, "tue") == Price(2, "tue", Decimal("2.50"))
    prices.update(Price(2, "tue", Decimal("9.99")))
    orders.update([Order(3, "tue", Decimal(7), Kind.SHOP)], columns=["kind"])
    with pytest.raises(SchemaMismatchError, match="Price has no field for kind, address, tags"):
        prices.upsert(Price(2, "tue", None))
    assert orders.lookup(ORDERS)[1:] == [
        Order(2, "tue", Decimal("9.99"), address=Address("Side")),
        Order(3, "tue", None, Kind.SHOP),
    ]

    # --- changes, and deletes by row, by key and by condition
    orders.delete(ORDERS[0])
    orders.delete([(2, "tue")])
    orders.delete(where="id = 3")
    assert orders.count() == 0
    changes = [each for each in orders.changes() if each.row.id == 3]
    assert [(each.change_type, each.row.kind) for each in changes] == [
        (ChangeType.Insert, Kind.WEB),
        (ChangeType.UpdateBefore, Kind.WEB),
        (ChangeType.UpdateAfter, Kind.SHOP),
        (ChangeType.Delete, Kind.SHOP),
    ]
    assert isinstance(changes[0], Change)
    assert changes[0].partition == "tue"
    assert changes[0].commit_timestamp.tzinfo is UTC
    assert [changes[0].is_before, changes[1].is_before, changes[3].is_delete] == [False, True, True]
    with orders.follow_changes(start="earliest") as follow:
        found = [next(iter(follow))]
        while len(found) < 6:
            found += follow.poll(10)
    assert {each.row.id for each in found} == {1, 2, 3}

    for refused in (
        orders.follow,
        lambda: orders.scan(mode="changelog"),
        session.table("orders$changelog").typed(Order).scan,
        lambda: orders.scan(with_metadata=True),
        lambda: orders.changes(mode="state"),
        lambda: orders.append(ORDERS),
    ):
        with pytest.raises(UnsupportedOperationError):
            refused()
    with pytest.raises(InvalidValueError, match="Order has no field 'pirce'"):
        orders.update(ORDERS, columns=["pirce"])
    with pytest.raises(InvalidValueError, match=r"Order\.kind does not take 'web'") as wrong:
        orders.upsert([ORDERS[0], Order(2, "x", kind="web")])
    assert (wrong.value.row, wrong.value.field, wrong.value.row_class) == (1, "kind", "Order")
    assert orders.count() == 0


class Click(pydantic.BaseModel):
    """A row of a log."""

    url: str
    at: Annotated[pydantic.AwareDatetime, "TIMESTAMP_LTZ(3)"]
    clicks: Annotated[int, pydantic.Field(gt=0)] = 1


class ClickDict(TypedDict):
    """The same row as a dict."""

    url: str
    clicks: int


def test_rows_of_a_log(session):
    clicks = session.create_table("clicks", Click, buckets=1).typed(Click)
    now = datetime(2026, 1, 2, 3, 4, 5, 6_000, UTC)
    rows = [Click(url=f"/{index}", at=now, clicks=index + 1) for index in range(5)]
    clicks.append(rows[:2])
    assert clicks.append(iter(rows[2:4])).rows == 2
    session.append("clicks", rows[4:])  # a list of objects is a frame
    assert clicks.to_list() == rows
    as_dicts = session.table("clicks").typed(ClickDict)
    assert as_dicts.head(1) == [{"url": "/0", "clicks": 1}]

    scan = clicks.scan()
    assert (scan.to_list(), scan.count(), scan.scan.to_arrow().num_rows) == (rows, 5, 5)
    clicks.append(rows[0])
    assert clicks.scan(start=scan.cursor()).to_list() == rows[:1]
    assert [each.log_offset for each in clicks.changes(limit=2)] == [0, 1]

    with clicks.follow(start="earliest") as follow:
        start = follow.cursor()
        found = [next(iter(follow))]
        assert follow.cursor() == start  # the batch has more rows
        while len(found) < 6:
            found += follow.poll(10)
        end = follow.cursor()
    assert found == [*rows, rows[0]]
    with clicks.follow(start=end) as follow:
        clicks.append(rows[3])
        assert follow.poll(10) == [rows[3]]

    # A row that the class refuses is named, and given again after it was corrected.
    session.append("clicks", [{"url": "x", "at": now, "clicks": 0}])
    with pytest.raises(InvalidValueError, match=r"In row 7: Click refuses what the table has"):
        clicks.to_list()
    with pytest.raises(SchemaMismatchError, match=r"Order\.id has no column in .*clicks"):
        session.table("clicks").typed(Order)
    with pytest.raises(InvalidSchemaError, match="Click does not name its table"):
        session.typed(Click)
