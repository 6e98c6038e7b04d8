"""Partitions: created before rows are written, read one by one, and part of a primary key.

    python examples/partitions.py [127.0.0.1:9123]

Prints:
    partitions: EU, US
    in both of them: [100, 200]
    in the US alone: [100]
    {'user_id': 1, 'region': 'US', 'score': 1234}
"""

import asyncio
import sys

import pyarrow as pa

import fluss

SERVERS = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9123"
EVENTS = pa.schema([("id", pa.int32()), ("region", pa.string()), ("value", pa.int64())])
USERS = pa.schema([("user_id", pa.int32()), ("region", pa.string()), ("score", pa.int64())])


async def main() -> None:
    config = fluss.Config({"bootstrap.servers": SERVERS})
    with await fluss.FlussConnection.create(config) as conn:
        admin = await conn.get_admin()
        events, users = (fluss.TablePath("fluss", f"example_{each}") for each in ("parts", "keys"))
        for path, schema in (
            (events, fluss.Schema(EVENTS)),
            (users, fluss.Schema(USERS, primary_keys=["user_id", "region"])),
        ):
            await admin.drop_table(path, ignore_if_not_exists=True)
            descriptor = fluss.TableDescriptor(schema, partition_keys=["region"], bucket_count=1)
            await admin.create_table(path, descriptor)
            for region in ("US", "EU"):
                await admin.create_partition(path, {"region": region})

        table = await conn.get_table(events)
        writer = table.new_append().create_writer()
        writer.write_arrow(pa.table({"id": [1, 2], "region": ["US", "EU"], "value": [100, 200]}))
        await writer.flush()

        ids = {p.partition_name: p.partition_id for p in await admin.list_partition_infos(events)}
        print("partitions:", ", ".join(sorted(ids)))
        scanner = await table.new_scan().create_record_batch_log_scanner()
        start = fluss.EARLIEST_OFFSET
        scanner.subscribe_partition_buckets({(each, 0): start for each in ids.values()})
        print("in both of them:", sorted(scanner.to_arrow().column("value").to_pylist()))
        scanner.unsubscribe_partition(ids["EU"], 0)
        print("in the US alone:", scanner.to_arrow().column("value").to_pylist())

        keyed = await conn.get_table(users)
        await keyed.new_upsert().create_writer().upsert([1, "US", 1234]).wait()
        print(await keyed.new_lookup().create_lookuper().lookup({"user_id": 1, "region": "US"}))


asyncio.run(main())
