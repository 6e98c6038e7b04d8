"""Partitioned tables: a log and one with a primary key."""

import asyncio
import importlib
import os

import pyarrow as pa

fluss = importlib.import_module(os.environ.get("FLUSS_UNDER_TEST", "fluss"))


async def log(conn, admin, database):
    schema = fluss.Schema(
        pa.schema(
            [
                pa.field("id", pa.int32()),
                pa.field("region", pa.string()),
                pa.field("value", pa.int64()),
            ]
        )
    )
    path = fluss.TablePath(database, "partitioned_events")
    descriptor = fluss.TableDescriptor(schema, partition_keys=["region"], bucket_count=1)
    await admin.create_table(path, descriptor, ignore_if_exists=True)
    await admin.create_partition(path, {"region": "US"}, ignore_if_exists=True)
    await admin.create_partition(path, {"region": "EU"}, ignore_if_exists=True)
    await admin.create_partition(path, {"region": "EU"}, ignore_if_exists=True)
    infos = await admin.list_partition_infos(path)
    print(sorted(each.partition_name for each in infos))
    only = await admin.list_partition_infos(path, {"region": "US"})
    print([each.partition_name for each in only])

    table = await conn.get_table(path)
    info = table.get_table_info()
    print(info.is_partitioned(), info.get_partition_keys())
    writer = table.new_append().create_writer()
    for number in range(6):
        region = "US" if number % 3 else "EU"
        writer.append({"id": number, "region": region, "value": number * 100})
    await writer.flush()

    for name in ("EU", "US"):
        offsets = await admin.list_partition_offsets(path, name, [0], fluss.OffsetSpec.latest())
        print(name, offsets)
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe_partition_buckets(
        {(each.partition_id, 0): fluss.EARLIEST_OFFSET for each in infos}
    )
    print((await scanner.to_arrow()).sort_by("id").to_pylist())
    scanner = await table.new_scan().create_log_scanner()
    for each in infos:
        scanner.subscribe_partition(
            partition_id=each.partition_id, bucket_id=0, start_offset=fluss.EARLIEST_OFFSET
        )
    rows = []
    while len(rows) < 6:
        polled = await scanner.poll(5000)
        for bucket, records in polled.items():
            assert bucket.partition_id is not None
            rows += [(record.row["id"], record.offset, record.row["region"]) for record in records]
    print(sorted(rows))
    for each in infos:
        scanner.unsubscribe_partition(each.partition_id, 0)

    await admin.drop_partition(path, {"region": "EU"})
    await admin.drop_partition(path, {"region": "EU"}, ignore_if_not_exists=True)
    print([each.partition_name for each in await admin.list_partition_infos(path)])
    await admin.drop_table(path)


async def keyed(conn, admin, database):
    schema = fluss.Schema(
        pa.schema(
            [
                pa.field("user_id", pa.int32()),
                pa.field("region", pa.string()),
                pa.field("score", pa.int64()),
            ]
        ),
        primary_keys=["user_id", "region"],
    )
    path = fluss.TablePath(database, "partitioned_users")
    await admin.create_table(path, fluss.TableDescriptor(schema, partition_keys=["region"]))
    for region in ("US", "EU"):
        await admin.create_partition(path, {"region": region}, ignore_if_exists=True)
    table = await conn.get_table(path)
    print(table.get_table_info().get_bucket_keys())
    writer = table.new_upsert().create_writer()
    writer.upsert({"user_id": 1, "region": "US", "score": 1234})
    writer.upsert({"user_id": 1, "region": "EU", "score": 5678})
    await writer.flush()
    lookuper = table.new_lookup().create_lookuper()
    print(await lookuper.lookup({"user_id": 1, "region": "US"}))
    print(await lookuper.lookup({"user_id": 1, "region": "EU"}))
    print(await lookuper.lookup({"user_id": 2, "region": "EU"}))
    writer.delete({"user_id": 1, "region": "US"})
    await writer.flush()
    print(await lookuper.lookup((1, "US")), await lookuper.lookup((1, "EU")))
    await admin.drop_table(path)


async def main():
    config = fluss.Config({"bootstrap.servers": os.environ["FLUSS_BOOTSTRAP_SERVERS"]})
    conn = await fluss.FlussConnection.create(config)
    admin = conn.get_admin()
    database = os.environ["FLUSS_DATABASE"]
    await admin.create_database(database, ignore_if_exists=True)
    await log(conn, admin, database)
    await keyed(conn, admin, database)
    await conn.close()


asyncio.run(main())
