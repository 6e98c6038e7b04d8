"""A table with a primary key: upsert, delete, lookup, partial updates."""

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
                pa.field("id", pa.int32()),
                pa.field("name", pa.string()),
                pa.field("age", pa.int64()),
            ]
        ),
        primary_keys=["id"],
    )
    print(schema.get_primary_keys(), schema.get_columns())
    path = fluss.TablePath(database, "users")
    await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=3))
    table = await conn.get_table(path)
    info = table.get_table_info()
    print(info.num_buckets, info.get_primary_keys(), info.get_bucket_keys(), info.has_primary_key())

    writer = table.new_upsert().create_writer()
    writer.upsert({"id": 1, "name": "Alice", "age": 25})
    writer.upsert([2, "Bob", 30])
    writer.upsert((3, "Charlie", None))
    writer.upsert({"id": -4, "name": "below zero", "age": -1})
    await writer.flush()
    handle = writer.upsert({"id": 200, "name": "Dora", "age": 35})
    print("acknowledged:", await handle.wait())

    lookuper = table.new_lookup().create_lookuper()
    print(await lookuper.lookup({"id": 1}))
    print(await lookuper.lookup([2]))
    print(await lookuper.lookup((3,)))
    print(await lookuper.lookup({"id": -4}), await lookuper.lookup({"id": 200}))
    print("missing:", await lookuper.lookup({"id": 99}))

    handle = writer.delete({"id": 2})
    await handle.wait()
    writer.delete((3,))
    await writer.flush()
    print("deleted:", await lookuper.lookup({"id": 2}), await lookuper.lookup({"id": 3}))
    writer.upsert({"id": 1, "name": "Alice II", "age": 26})
    await writer.flush()
    print("replaced:", await lookuper.lookup({"id": 1}))

    partial = table.new_upsert().partial_update_by_name(["id", "age"]).create_writer()
    partial.upsert({"id": 1, "age": 27})
    await partial.flush()
    print("by name:", await lookuper.lookup({"id": 1}))
    partial = table.new_upsert().partial_update_by_index([0, 1]).create_writer()
    partial.upsert({"id": 1, "name": "Alice III"})
    partial.upsert({"id": 5, "name": "new by part"})
    await partial.flush()
    print("by index:", await lookuper.lookup({"id": 1}), await lookuper.lookup({"id": 5}))

    found = await asyncio.gather(*(lookuper.lookup({"id": each}) for each in (1, 5, -4)))
    print("gathered:", found)
    await admin.drop_table(path)
    await conn.close()


asyncio.run(main())
