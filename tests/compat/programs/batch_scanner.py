"""A few rows of one bucket: limit() and create_bucket_batch_scanner()."""

import asyncio
import importlib
import os

import pyarrow as pa

fluss = importlib.import_module(os.environ.get("FLUSS_UNDER_TEST", "fluss"))


async def show(table, title, limit, columns=None):
    info = table.get_table_info()
    bucket = fluss.TableBucket(info.table_id, 0)
    scan = table.new_scan().limit(limit)
    if columns:
        scan = scan.project_by_name(columns)
    scanner = scan.create_bucket_batch_scanner(bucket)
    print(title, scanner.bucket == bucket, type(scanner).__name__)
    found = await scanner.to_arrow()
    print(found.schema.names, sorted(map(str, found.to_pylist())))
    scanner = scan.create_bucket_batch_scanner(bucket)
    count = 0
    while (batch := await scanner.next_batch()) is not None:
        print(type(batch).__name__, batch.bucket.bucket_id)
        count += batch.batch.num_rows
    print("rows:", count)
    scanner = scan.create_bucket_batch_scanner(bucket)
    print("all:", sum(each.batch.num_rows for each in await scanner.collect_all_batches()))
    scanner = scan.create_bucket_batch_scanner(bucket)
    print("frame:", len(await scanner.to_pandas()))


async def main():
    config = fluss.Config({"bootstrap.servers": os.environ["FLUSS_BOOTSTRAP_SERVERS"]})
    conn = await fluss.FlussConnection.create(config)
    admin = conn.get_admin()
    database = os.environ["FLUSS_DATABASE"]
    await admin.create_database(database, ignore_if_exists=True)
    fields = pa.schema([pa.field("id", pa.int32()), pa.field("name", pa.string())])

    path = fluss.TablePath(database, "keyed")
    schema = fluss.Schema(fields, primary_keys=["id"])
    await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=1))
    table = await conn.get_table(path)
    writer = table.new_upsert().create_writer()
    for number in range(10):
        writer.upsert({"id": number, "name": f"name {number}"})
    await writer.flush()
    await show(table, "keyed", 100)
    await show(table, "keyed, a column", 100, ["name"])
    await admin.drop_table(path)

    path = fluss.TablePath(database, "log")
    await admin.create_table(path, fluss.TableDescriptor(fluss.Schema(fields), bucket_count=1))
    table = await conn.get_table(path)
    writer = table.new_append().create_writer()
    for number in range(10):
        writer.append({"id": number, "name": f"name {number}"})
    await writer.flush()
    await show(table, "log", 100)
    await show(table, "log, a few", 4)
    await admin.drop_table(path)
    await conn.close()


asyncio.run(main())
