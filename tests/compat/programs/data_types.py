"""Every type that PyArrow schemas may name: written as Python values, read as rows and as Arrow."""

import asyncio
import importlib
import os
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa

fluss = importlib.import_module(os.environ.get("FLUSS_UNDER_TEST", "fluss"))

FIELDS = [
    pa.field("id", pa.int32()),
    pa.field("truth", pa.bool_()),
    pa.field("tiny", pa.int8()),
    pa.field("small", pa.int16()),
    pa.field("big", pa.int64()),
    pa.field("single", pa.float32()),
    pa.field("double", pa.float64()),
    pa.field("text", pa.string()),
    pa.field("data", pa.binary()),
    pa.field("fixed", pa.binary(4)),
    pa.field("day", pa.date32()),
    pa.field("clock", pa.time32("ms")),
    pa.field("at", pa.timestamp("us")),
    pa.field("instant", pa.timestamp("us", tz="UTC")),
    pa.field("coarse", pa.timestamp("s")),
    pa.field("price", pa.decimal128(10, 2)),
    pa.field("sum", pa.decimal128(38, 6)),
]
FULL = {
    "id": 1,
    "truth": True,
    "tiny": -128,
    "small": 32767,
    "big": -(2**63),
    "single": 0.5,
    "double": 1e300,
    "text": "grüße, 世界",
    "data": b"\x00\xff bytes",
    "fixed": b"four",
    "day": date(1969, 12, 31),
    "clock": time(23, 59, 59, 999000),
    "at": datetime(2026, 1, 2, 3, 4, 5, 678901),
    "instant": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    "coarse": datetime(2001, 2, 3, 4, 5, 6),
    "price": Decimal("-12345678.90"),
    "sum": Decimal("12345678901234567890123456789012.345678"),
}
EMPTY = {"id": 2} | {field.name: None for field in FIELDS[1:]}


async def main():
    config = fluss.Config({"bootstrap.servers": os.environ["FLUSS_BOOTSTRAP_SERVERS"]})
    conn = await fluss.FlussConnection.create(config)
    admin = conn.get_admin()
    database = os.environ["FLUSS_DATABASE"]
    await admin.create_database(database, ignore_if_exists=True)

    schema = fluss.Schema(pa.schema(FIELDS))
    print(schema.get_columns())
    path = fluss.TablePath(database, "types")
    await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=1))
    table = await conn.get_table(path)
    print(table.arrow_schema.names)
    print([str(kind) for kind in table.arrow_schema.types])
    writer = table.new_append().create_writer()
    writer.append(FULL)
    writer.append(EMPTY)
    await writer.flush()

    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    rows = []
    while len(rows) < 2:
        rows += [record.row for record in await scanner.poll(5000)]
    for row in rows:
        print({name: (type(value).__name__, value) for name, value in row.items()})
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    found = await scanner.to_arrow()
    print([str(kind) for kind in found.schema.types])
    print(found.to_pylist())
    await admin.drop_table(path)

    schema = fluss.Schema(pa.schema(FIELDS), primary_keys=["id"])
    path = fluss.TablePath(database, "types_by_key")
    await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=1))
    table = await conn.get_table(path)
    writer = table.new_upsert().create_writer()
    writer.upsert(FULL)
    writer.upsert(EMPTY)
    await writer.flush()
    lookuper = table.new_lookup().create_lookuper()
    print(await lookuper.lookup({"id": 1}))
    print(await lookuper.lookup({"id": 2}))
    await admin.drop_table(path)
    await conn.close()


asyncio.run(main())
