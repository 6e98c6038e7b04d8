"""Reading on and on: poll() and its records, poll_arrow(), poll_record_batch(), `async for`."""

import asyncio
import importlib
import os

import pyarrow as pa

fluss = importlib.import_module(os.environ.get("FLUSS_UNDER_TEST", "fluss"))


async def poll_until(poll, enough):
    found = []
    while len(found) < enough:
        found += list(await poll(5000))
    return found


async def records(table):
    scanner = await table.new_scan().create_log_scanner()
    print("unsubscribed:", (await scanner.poll(100)).is_empty())
    scanner.subscribe_buckets({0: fluss.EARLIEST_OFFSET})
    polled = await scanner.poll(timeout_ms=5000)
    bucket = polled.buckets()[0]
    print(
        "bucket:",
        bucket.bucket_id,
        bucket.partition_id,
        bucket in polled,
        polled.keys() == [bucket],
    )
    print("count:", polled.count(), len(polled), polled.is_empty(), bool(polled))
    print("first, last:", polled[0].row, polled[-1].row, [each.offset for each in polled[1:3]])
    print(
        "by bucket:", len(polled[bucket]), len(polled.records(bucket)), len(list(polled.values()))
    )
    stranger = fluss.TableBucket(bucket.table_id, 99)
    print("stranger:", stranger in polled, polled.records(stranger))
    for each, found in polled.items():
        print(each.bucket_id, [(record.offset, record.row["id"]) for record in found])
    for record in polled:
        kind = record.change_type
        print(record.offset, kind.short_string(), kind == fluss.ChangeType.AppendOnly, record.row)
        print(isinstance(record.timestamp, int), record.timestamp > 1_600_000_000_000)
    scanner.unsubscribe(bucket_id=0)
    print("after unsubscribe:", (await scanner.poll(200)).count())


async def batches(table):
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe(bucket_id=0, start_offset=2)
    rows = await poll_until(lambda wait: rows_of(scanner, wait), 3)
    print("poll_arrow:", rows)
    scanner = await table.new_scan().project_by_name(["name"]).create_record_batch_log_scanner()
    scanner.subscribe(bucket_id=0, start_offset=fluss.EARLIEST_OFFSET)
    found = await poll_until(scanner.poll_record_batch, 1)
    print(found[0].bucket.bucket_id, found[0].base_offset, found[-1].last_offset)
    print(pa.Table.from_batches([each.batch for each in found]).to_pydict())
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe(bucket_id=0, start_offset=1)
    reader = scanner.to_arrow_batch_reader()
    print("reader:", reader.schema.names, reader.read_all().column("id").to_pylist())


async def rows_of(scanner, wait):
    return (await scanner.poll_arrow(timeout_ms=wait)).to_pylist()


async def loops(table):
    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    seen = []
    async for record in scanner:
        seen.append(record.row["id"])
        if len(seen) == 5:
            break
    print("async for:", seen)
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    count = 0
    async for batch in scanner:
        count += batch.batch.num_rows
        if count == 5:
            break
    print("async for, batches:", count)


async def main():
    config = fluss.Config({"bootstrap.servers": os.environ["FLUSS_BOOTSTRAP_SERVERS"]})
    async with await fluss.FlussConnection.create(config) as conn:
        admin = conn.get_admin()
        database = os.environ["FLUSS_DATABASE"]
        await admin.create_database(database, ignore_if_exists=True)
        path = fluss.TablePath(database, "stream")
        schema = fluss.Schema(
            pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])
        )
        await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=1))
        table = await conn.get_table(path)
        async with table.new_append().create_writer() as writer:
            for number in range(5):
                writer.append({"id": number, "name": f"name {number}"})
        await records(table)
        await batches(table)
        await loops(table)
        await admin.drop_table(path)


asyncio.run(main())
