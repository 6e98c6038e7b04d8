"""`./dev demo`: a real Apache Fluss, a small shop in it, and what Python sees of it.

Starts a server that ends with it (or uses FLUSS_BOOTSTRAP_SERVERS), writes a day of orders and
customers who change, and reads them back in every way there is so far, with timings that were taken
and answers that were checked. Without Java it says what to install.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import polars as pl
import pyarrow as pa

import fluss
import fluss_polars  # noqa: F401 - gives Polars scan_fluss
from fluss.errors import FlussError
from fluss_server.java.cluster import JavaCluster

ORDERS = 200_000
CUSTOMERS = 2_000
DATABASE = "demo"
COUNTRIES = ("AT", "BR", "CN", "DE", "FR", "IN", "JP", "US")


def main(_: Sequence[str]) -> int:
    """Run the demo; the exit code says whether every answer was right."""
    try:
        with _server() as bootstrap:
            asyncio.run(_demo(bootstrap))
    except FlussError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def _server() -> Iterator[str]:
    given = os.environ.get("FLUSS_BOOTSTRAP_SERVERS")
    if given:
        yield given
        return
    print("A real Apache Fluss 0.9.1 starts (the first time its jar is fetched) ...", flush=True)
    began = time.perf_counter()
    with JavaCluster() as cluster:
        print(
            f"... ready after {time.perf_counter() - began:.1f} s at {cluster.bootstrap_servers}\n"
        )
        yield cluster.bootstrap_servers


async def _demo(bootstrap: str) -> None:
    connection = await fluss.FlussConnection.create(fluss.Config({"bootstrap.servers": bootstrap}))
    with connection:
        admin = await connection.get_admin()
        await admin.create_database(DATABASE, ignore_if_exists=True)
        try:
            await _orders(connection, admin, bootstrap)
            await _customers(connection, admin)
        finally:
            await admin.drop_database(DATABASE, cascade=True)


async def _orders(
    connection: fluss.FlussConnection, admin: fluss.FlussAdmin, bootstrap: str
) -> None:
    orders = _some_orders()
    path = fluss.TablePath(DATABASE, "orders")
    descriptor = fluss.TableDescriptor(fluss.Schema(orders.schema), bucket_count=4)
    await admin.create_table(path, descriptor)
    table = await connection.get_table(path)
    writer = table.new_append().create_writer()

    began = time.perf_counter()
    writer.write_arrow(orders)
    await writer.flush()
    _line(f"{orders.num_rows:,} orders written to a log table of 4 buckets", began)

    began = time.perf_counter()
    handle = writer.append([ORDERS, 7, "DE", 9.99, datetime.now(UTC)])
    await handle.wait()
    _line("one more order, acknowledged", began)

    began = time.perf_counter()
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe_buckets(dict.fromkeys(range(4), fluss.EARLIEST_OFFSET))
    everything = scanner.to_arrow()
    _line(f"all {everything.num_rows:,} orders read as an Arrow table", began)
    _must(everything.num_rows == ORDERS + 1, "every order is there once")

    began = time.perf_counter()
    lazy = pl.scan_fluss(f"{DATABASE}.orders", config={"bootstrap.servers": bootstrap})
    top = (
        lazy.group_by("country")
        .agg(pl.col("amount").sum().round(2))
        .sort("amount", descending=True)
        .head(3)
        .collect()
    )
    _line("revenue by country in Polars, reading 2 of 5 columns", began)
    print(f"\n  pl.scan_fluss('{DATABASE}.orders').group_by('country')...\n{_indented(str(top))}\n")
    expected = pl.DataFrame(everything).group_by("country").agg(pl.col("amount").sum().round(2))
    expected = expected.sort("amount", descending=True).head(3)
    _must(top.equals(expected), "Polars and the Arrow table agree")


async def _customers(connection: fluss.FlussConnection, admin: fluss.FlussAdmin) -> None:
    path = fluss.TablePath(DATABASE, "customers")
    columns = pa.schema(
        [("id", pa.int64()), ("name", pa.string()), ("level", pa.string()), ("points", pa.int64())]
    )
    schema = fluss.Schema(columns, primary_keys=["id"])
    await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=4))
    table = await connection.get_table(path)
    writer = table.new_upsert().create_writer()

    began = time.perf_counter()
    for number in range(CUSTOMERS):
        writer.upsert([number, f"customer {number}", "silver", number % 100])
    await writer.flush()
    _line(f"{CUSTOMERS:,} customers upserted one by one", began)

    partial = table.new_upsert(columns=["id", "level"])
    for number in range(0, CUSTOMERS, 10):
        partial.upsert({"id": number, "level": "gold"})
    await partial.flush()
    await writer.delete({"id": 13}).wait()

    lookuper = table.new_lookup().create_lookuper()
    began = time.perf_counter()
    found = await lookuper.lookup({"id": 40})
    _line("one customer looked up", began)
    print(f"\n  {found}\n")
    _must(found is not None and found["level"] == "gold", "the partial update is seen")
    _must(await lookuper.lookup({"id": 13}) is None, "the deleted customer is gone")

    began = time.perf_counter()
    rows = await asyncio.gather(*(lookuper.lookup([number]) for number in range(CUSTOMERS)))
    _line(f"{CUSTOMERS:,} customers looked up at once", began)
    _must(sum(row is not None for row in rows) == CUSTOMERS - 1, "all but one are there")

    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe_buckets(dict.fromkeys(range(4), fluss.EARLIEST_OFFSET))
    changes: dict[str, int] = {}
    expected = CUSTOMERS + 2 * (CUSTOMERS // 10) + 1
    while sum(changes.values()) < expected:
        for record in scanner.poll(timeout_ms=1_000):
            kind = record.change_type.short_string()
            changes[kind] = changes.get(kind, 0) + 1
    print(f"  the changelog of the table: {dict(sorted(changes.items()))}\n")


def _some_orders() -> pa.Table:
    dice = random.Random(7)  # noqa: S311 - the same believable orders every time
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "order_id": pa.array(range(ORDERS), pa.int64()),
            "customer_id": pa.array([dice.randrange(CUSTOMERS) for _ in range(ORDERS)], pa.int64()),
            "country": pa.array(dice.choices(COUNTRIES, k=ORDERS), pa.string()),
            "amount": pa.array([round(dice.lognormvariate(3, 1), 2) for _ in range(ORDERS)]),
            "ordered_at": pa.array(
                [start + timedelta(milliseconds=400 * each) for each in range(ORDERS)],
                pa.timestamp("ms", tz="UTC"),
            ),
        }
    )


def _line(what: str, began: float) -> None:
    print(f"{(time.perf_counter() - began) * 1_000:8.1f} ms  {what}", flush=True)


def _must(holds: object, what: str) -> None:
    if not holds:
        raise SystemExit(f"demo: WRONG: {what} does not hold")
    print(f"         ok  {what}", flush=True)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
