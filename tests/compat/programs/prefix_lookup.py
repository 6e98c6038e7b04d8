"""All rows whose key begins with the bucket key."""

import asyncio
import importlib
import os

import pyarrow as pa

fluss = importlib.import_module(os.environ.get("FLUSS_UNDER_TEST", "fluss"))


async def main():
    config = fluss.Config({"bootstrap.servers": os.environ["FLUSS_BOOTSTRAP_SERVERS"]})
    conn = await fluss.FlussConnection.create(config)
    admin = conn.get_admin()
    database = os.environ["FLUSS_DATABASE"]
    await admin.create_database(database, ignore_if_exists=True)
    schema = fluss.Schema(
        pa.schema(
            [
                pa.field("customer", pa.int32()),
                pa.field("order", pa.int64()),
                pa.field("item", pa.string()),
            ]
        ),
        primary_keys=["customer", "order"],
    )
    path = fluss.TablePath(database, "orders")
    descriptor = fluss.TableDescriptor(schema, bucket_count=3, bucket_keys=["customer"])
    await admin.create_table(path, descriptor)
    table = await conn.get_table(path)
    writer = table.new_upsert().create_writer()
    for customer in range(3):
        for order in range(customer + 1):
            item = f"item {customer}-{order}"
            writer.upsert({"customer": customer, "order": order, "item": item})
    await writer.flush()

    lookuper = table.new_lookup().lookup_by(["customer"]).create_lookuper()
    for prefix in ({"customer": 2}, [1], (0,), {"customer": 77}):
        rows = await lookuper.lookup(prefix)
        print(prefix, sorted(rows, key=lambda row: row["order"]))
    whole = table.new_lookup().create_lookuper()
    print(await whole.lookup({"customer": 2, "order": 1}))
    await admin.drop_table(path)

    # Partitioned: the prefix holds the partition columns as well.
    schema = fluss.Schema(
        pa.schema(
            [
                pa.field("day", pa.string()),
                pa.field("customer", pa.int32()),
                pa.field("order", pa.int64()),
            ]
        ),
        primary_keys=["day", "customer", "order"],
    )
    path = fluss.TablePath(database, "daily_orders")
    descriptor = fluss.TableDescriptor(
        schema, partition_keys=["day"], bucket_count=2, bucket_keys=["customer"]
    )
    await admin.create_table(path, descriptor)
    for day in ("20260101", "20260102"):
        await admin.create_partition(path, {"day": day}, ignore_if_exists=True)
    table = await conn.get_table(path)
    writer = table.new_upsert().create_writer()
    for order in range(4):
        writer.upsert({"day": f"2026010{1 + order % 2}", "customer": 7, "order": order})
    await writer.flush()
    lookuper = table.new_lookup().lookup_by(["day", "customer"]).create_lookuper()
    rows = await lookuper.lookup({"day": "20260102", "customer": 7})
    print(sorted(rows, key=lambda row: row["order"]))
    await admin.drop_table(path)
    await conn.close()


asyncio.run(main())
