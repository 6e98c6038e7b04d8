"""A table with a primary key: upserts, partial updates, deletes, lookups, and its changelog.

    python examples/primary_key_table.py [127.0.0.1:9123]

Prints:
    {'id': 1, 'name': 'Alice', 'age': 27}
    Bob is gone: True
    +I {'id': 1, 'name': 'Alice', 'age': 25}
    +I {'id': 2, 'name': 'Bob', 'age': 30}
    -U {'id': 1, 'name': 'Alice', 'age': 25}
    +U {'id': 1, 'name': 'Alice', 'age': 27}
    -D {'id': 2, 'name': 'Bob', 'age': 30}
"""

import asyncio
import sys

import pyarrow as pa

import fluss

SERVERS = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9123"
COLUMNS = pa.schema([("id", pa.int32()), ("name", pa.string()), ("age", pa.int64())])


async def main() -> None:
    config = fluss.Config({"bootstrap.servers": SERVERS})
    with await fluss.FlussConnection.create(config) as conn:
        admin = await conn.get_admin()
        path = fluss.TablePath("fluss", "example_users")
        await admin.drop_table(path, ignore_if_not_exists=True)
        schema = fluss.Schema(COLUMNS, primary_keys=["id"])
        await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=1))
        table = await conn.get_table(path)

        writer = table.new_upsert().create_writer()
        writer.upsert({"id": 1, "name": "Alice", "age": 25})
        writer.upsert([2, "Bob", 30])
        await writer.flush()

        ages = table.new_upsert().partial_update_by_name(["id", "age"]).create_writer()
        await ages.upsert({"id": 1, "age": 27}).wait()
        await writer.delete({"id": 2}).wait()

        lookuper = table.new_lookup().create_lookuper()
        print(await lookuper.lookup({"id": 1}))
        print("Bob is gone:", await lookuper.lookup({"id": 2}) is None)

        scanner = await table.new_scan().create_log_scanner()
        scanner.subscribe(bucket_id=0, start_offset=fluss.EARLIEST_OFFSET)
        seen = 0
        while seen < 5:
            for record in scanner.poll(timeout_ms=5_000):
                print(record.change_type.short_string(), record.row)
                seen += 1
        await admin.drop_table(path)


asyncio.run(main())
