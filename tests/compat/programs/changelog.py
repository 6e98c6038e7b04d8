"""What happened to a table with a primary key, record by record."""

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
        pa.schema([pa.field("id", pa.int32()), pa.field("name", pa.string())]), primary_keys=["id"]
    )
    path = fluss.TablePath(database, "changes")
    await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=1))
    table = await conn.get_table(path)
    writer = table.new_upsert().create_writer()
    for step in (
        lambda: writer.upsert({"id": 1, "name": "Alice"}),
        lambda: writer.upsert({"id": 2, "name": "Bob"}),
        lambda: writer.upsert({"id": 1, "name": "Alice II"}),
        lambda: writer.delete({"id": 2}),
        lambda: writer.upsert({"id": 2, "name": None}),
    ):
        await step().wait()

    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(bucket_id=0, start_offset=fluss.EARLIEST_OFFSET)
    seen = []
    while len(seen) < 6:
        seen += list(await scanner.poll(timeout_ms=5000))
    for record in seen:
        kind = record.change_type
        print(record.offset, kind.short_string(), int(kind), record.row)
    names = ("Insert", "UpdateBefore", "UpdateAfter", "Delete", "AppendOnly")
    print([(name, int(getattr(fluss.ChangeType, name))) for name in names])
    print(
        seen[0].change_type == fluss.ChangeType.Insert, seen[0].change_type != seen[2].change_type
    )

    scanner = await table.new_scan().project_by_name(["name"]).create_log_scanner()
    scanner.subscribe(bucket_id=0, start_offset=4)
    seen = []
    while len(seen) < 2:
        seen += list(await scanner.poll(timeout_ms=5000))
    print([(record.offset, record.change_type.short_string(), record.row) for record in seen])
    await admin.drop_table(path)
    await conn.close()


asyncio.run(main())
