"""A small shop that keeps its books twice: in Fluss tables, and in plain Python to compare with.

Orders are a log partitioned by day, customers a primary-key table that changes and loses rows,
clicks a log. The same seed gives the same shop, round by round.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fluss.errors import DatabaseAlreadyExistsError, DatabaseNotEmptyError, LimitExceededError
from fluss.session import Session

# The shop's database; `fluss_demo_2` and so on if it exists already.
DATABASE: Final = "fluss_demo"
DATABASES_MAX: Final = 1_000
COUNTRIES: Final = np.array(["AT", "BR", "CN", "DE", "FR", "IN", "JP", "US"])
PAGES: Final = np.array(
    ["/", "/basket", "/books", "/checkout", "/games", "/garden", "/kitchen", "/music", "/search",
     "/shoes", "/tools", "/toys"]
)  # fmt: skip
DAYS: Final = np.array(["2026-07-01", "2026-07-02", "2026-07-03"])
NAMES: Final = np.array(["Ada", "Bea", "Chen", "Dana", "Emil", "Fatou", "Goro", "Hana", "Ivo"])

CUSTOMERS_AT_FIRST: Final = 1_000
ORDERS_A_ROUND: Final = 500
CLICKS_A_ROUND: Final = 2_000
CHANGES_A_ROUND: Final = 40
LEAVING_A_ROUND: Final = 3

_MONEY: Final = pa.decimal128(12, 2)
CUSTOMERS: Final = pa.schema([("id", pa.int64()), ("name", pa.string()), ("country", pa.string())])
ORDERS: Final = pa.schema(
    [("id", pa.int64()), ("customer", pa.int64()), ("amount", _MONEY), ("day", pa.string())]
)
CLICKS: Final = pa.schema([("customer", pa.int64()), ("page", pa.string()), ("ms", pa.int32())])


class Shop:
    """Writes the shop's tables, and keeps the expected contents in memory."""

    def __init__(
        self, session: Session, *, seed: int = 7, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a database that does not exist yet, and the tables in it."""
        self._properties = properties
        self._chance = np.random.default_rng(seed)
        self._session = session
        self._country: dict[int, str] = {}
        self._spent_cents: Counter[int] = Counter()
        self.pages: Counter[str] = Counter()
        self.order_count = 0
        self.change_count = 0
        self._next_customer = 1
        self.database = _new_database(session)
        try:
            self._create_tables()
            self._welcome(CUSTOMERS_AT_FIRST)
        except BaseException:
            self.drop()
            raise

    def _create_tables(self) -> None:
        create, database = self._session.create_table, self.database
        given: dict[str, Any] = {"buckets": 2, "properties": self._properties}
        self.orders = create(f"{database}.orders", ORDERS, partition_by=["day"], **given)
        for day in DAYS.tolist():
            self.orders.create_partition({"day": day})
        self.customers = create(f"{database}.customers", CUSTOMERS, primary_key=["id"], **given)
        self.clicks = create(f"{database}.clicks", CLICKS, **given)

    def drop(self) -> None:
        """Drop the tables and the database; a table that another program made in it stays."""
        for name in ("orders", "customers", "clicks"):
            self._session.drop_table(f"{self.database}.{name}", ignore_if_not_exists=True)
        with contextlib.suppress(DatabaseNotEmptyError):
            self._session.drop_database(self.database, ignore_if_not_exists=True)

    @property
    def click_count(self) -> int:
        """How many clicks there were."""
        return sum(self.pages.values())

    @property
    def customer_count(self) -> int:
        """How many customers there are now."""
        return len(self._country)

    @property
    def row_count(self) -> int:
        """How many rows have been written, updates and deletes among them."""
        return self.order_count + self.click_count + self.change_count

    def revenue_by_country(self) -> list[tuple[str, Decimal]]:
        """The sums that present customers have spent, by their present country."""
        cents: Counter[str] = Counter()
        for customer, spent in self._spent_cents.items():
            if customer in self._country:
                cents[self._country[customer]] += spent
        return [(country, Decimal(spent).scaleb(-2)) for country, spent in sorted(cents.items())]

    def write_round(self) -> None:
        """Write one round of orders, clicks and changes of customers."""
        self._order()
        self._click()
        self._change()

    def _order(self) -> None:
        customers = self._some(ORDERS_A_ROUND)
        cents = self._chance.integers(100, 20_000, ORDERS_A_ROUND)
        numbers = np.arange(self.order_count, self.order_count + ORDERS_A_ROUND) + 1
        days = DAYS[self._chance.integers(0, len(DAYS), ORDERS_A_ROUND)]
        self.orders.append(
            pa.table([numbers, customers, _money(cents), pa.array(days)], schema=ORDERS)
        )
        self.order_count += ORDERS_A_ROUND
        for customer, spent in zip(customers.tolist(), cents.tolist(), strict=True):
            self._spent_cents[customer] += spent

    def _click(self) -> None:
        # Pages have different shares of clicks, drawn again for each round.
        liking = self._chance.dirichlet(np.linspace(0.5, 3, len(PAGES)))
        pages = self._chance.choice(PAGES, CLICKS_A_ROUND, p=liking)
        took = self._chance.integers(3, 900, CLICKS_A_ROUND).astype(np.int32)
        self.clicks.append(
            pa.table([self._some(CLICKS_A_ROUND), pa.array(pages), took], schema=CLICKS)
        )
        self.pages.update(pages.tolist())

    def _change(self) -> None:
        movers = np.unique(self._some(CHANGES_A_ROUND))
        self._settle(movers)
        leaving = np.unique(self._some(LEAVING_A_ROUND)).tolist()
        self.customers.delete([(customer,) for customer in leaving])
        for customer in leaving:
            del self._country[customer]
        self.change_count += len(leaving)
        self._welcome(LEAVING_A_ROUND)

    def _welcome(self, count: int) -> None:
        self._settle(np.arange(self._next_customer, self._next_customer + count))
        self._next_customer += count

    def _settle(self, customers: np.ndarray) -> None:
        countries = COUNTRIES[self._chance.integers(0, len(COUNTRIES), len(customers))]
        names = NAMES[self._chance.integers(0, len(NAMES), len(customers))]
        rows = pa.table([customers, pa.array(names), pa.array(countries)], schema=CUSTOMERS)
        self.customers.upsert(rows)
        self._country.update(zip(customers.tolist(), countries.tolist(), strict=True))
        self.change_count += len(customers)

    def _some(self, count: int) -> np.ndarray:
        return self._chance.choice(np.fromiter(self._country, np.int64), count)


def _new_database(session: Session) -> str:
    """Create a database under the first free name."""
    for number in range(1, DATABASES_MAX + 1):
        name = DATABASE if number == 1 else f"{DATABASE}_{number}"
        try:
            session.create_database(name, comment="made by `fluss demo`")
        except DatabaseAlreadyExistsError:
            continue
        return name
    raise LimitExceededError(
        f"There are {DATABASES_MAX:,} databases of the demo already: {DATABASE} and so on.",
        hint="drop those that are not needed; the demo drops only the database it has made",
    )


def _money(cents: np.ndarray) -> pa.Array:
    whole = pa.array(cents, pa.int64()).cast(pa.decimal128(19, 0))
    return pa.Array.from_buffers(_MONEY, len(whole), whole.buffers())
