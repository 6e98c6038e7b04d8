"""Filters on a log with statistics: for each function of the API the rows that come."""

import asyncio
import datetime as dt
import importlib
import os
from decimal import Decimal

import pyarrow as pa

fluss = importlib.import_module(os.environ.get("FLUSS_UNDER_TEST", "fluss"))

FIELDS = [
    pa.field("id", pa.int32()),
    pa.field("name", pa.string()),
    pa.field("score", pa.float64()),
    pa.field("price", pa.decimal128(10, 2)),
    pa.field("day", pa.date32()),
    pa.field("at", pa.timestamp("us")),
    pa.field("flag", pa.bool_()),
]
DAY = dt.date(2026, 1, 1)
NOON = dt.datetime(2026, 1, 1, 12, 0, 0, 123_456)  # noqa: DTZ001 - TIMESTAMP has no zone


def rows(first):
    for number in range(first, first + 5):
        yield {
            "id": number,
            "name": None if number % 5 == 4 else f"name {number:03}",
            "score": number / 2,
            "price": Decimal(number) / 4,
            "day": DAY + dt.timedelta(days=number),
            "at": NOON + dt.timedelta(hours=number),
            "flag": number >= 50,
        }


def filters():
    col = fluss.col
    yield "=", col("id") == 13
    yield "!=", col("id") != 13
    yield "<", col("id") < 7
    yield "<=", col("id") <= 5
    yield ">", col("id") > 57
    yield ">=", col("id") >= 57
    yield "between", (col("id") >= 12) & (col("id") < 21)
    yield "or", (col("id") == 1) | (col("id") == 51)
    yield "equal", col("id").equal(13)
    yield "not_equal", col("id").not_equal(13)
    yield "less", col("id").less_than(7).or_(col("id").less_or_equal(5))
    yield "greater", col("id").greater_than(40).and_(col("id").greater_or_equal(57))
    yield "in", col("id").is_in([2, 33, 1000])
    yield "in nothing", col("id").is_in([])
    yield "not in nothing", col("id").not_in([])
    yield "not in", col("id").not_in([2, 33, 1000])
    yield "null", col("name").is_null()
    yield "not null", col("name").is_not_null()
    yield "starts", col("name").starts_with("name 03")
    yield "ends", col("name").ends_with("7")
    yield "contains", col("name").contains("05")
    yield "text", col("name") > "name 055"
    yield "double", col("score") < 1.5
    yield "decimal", col("price") == Decimal("2.25")
    yield "date", col("day") == DAY + dt.timedelta(days=8)
    yield "timestamp", col("at") == NOON + dt.timedelta(hours=44)
    yield "boolean", col("flag") == True  # noqa: E712 - a condition, not a truth
    yield "nothing", col("id") > 1000


async def rows_of(scanner):
    """What there is; `to_arrow` of pyfluss never ends where the last batches were left out."""
    if fluss.__name__ == "fluss.aio":
        return await scanner.to_arrow()
    tables, empty = [], 0
    while empty < 2:
        tables.append(await scanner.poll_arrow(250))
        empty = 0 if tables[-1].num_rows else empty + 1
    return pa.concat_tables(each for each in tables if each.num_rows or each is tables[-1])


async def main():
    config = fluss.Config({"bootstrap.servers": os.environ["FLUSS_BOOTSTRAP_SERVERS"]})
    conn = await fluss.FlussConnection.create(config)
    admin = conn.get_admin()
    database = os.environ["FLUSS_DATABASE"]
    await admin.create_database(database, ignore_if_exists=True)
    path = fluss.TablePath(database, "known")
    descriptor = fluss.TableDescriptor(
        fluss.Schema(pa.schema(FIELDS)),
        bucket_count=1,
        properties={"table.statistics.columns": "*"},
    )
    await admin.create_table(path, descriptor, ignore_if_exists=False)
    table = await conn.get_table(path)
    writer = table.new_append().create_writer()
    for first in range(0, 60, 5):
        batch = pa.Table.from_pylist(list(rows(first)), pa.schema(FIELDS)).to_batches()[0]
        await writer.write_arrow_batch(batch).wait()
    for number, (name, expected) in enumerate(filters()):
        scan = table.new_scan().with_fixed_schema(True).filter(expected)
        if number % 2:
            scan = scan.project_by_name(["id", "name"])
        scanner = await scan.create_record_batch_log_scanner()
        scanner.subscribe(0, fluss.EARLIEST_OFFSET)
        found = await rows_of(scanner)
        print(f"{name}: {' '.join(map(str, found['id'].to_pylist()))}")  # noqa: T201 - its whole purpose
    await admin.drop_table(path, ignore_if_not_exists=False)
    await conn.close()


asyncio.run(main())
