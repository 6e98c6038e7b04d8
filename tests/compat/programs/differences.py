"""Where the two clients differ on purpose: one line each, `name: what happened`."""

import asyncio
import importlib
import os

import pyarrow as pa

fluss = importlib.import_module(os.environ.get("FLUSS_UNDER_TEST", "fluss"))

CODES = {value: name for name, value in vars(fluss.ErrorCode).items() if name.isupper()}


def outcome(work):
    try:
        return work()
    except (fluss.FlussError, TypeError) as error:
        return type(error).__name__


async def told(work):
    try:
        return await work
    except fluss.FlussError as error:
        java = "with a Java stack trace" if "\tat " in error.message else "in a sentence"
        return f"{CODES.get(error.error_code)}, {java}"


async def rows_of(table, bucket=None):
    scanner = await table.new_scan().create_record_batch_log_scanner()
    if bucket is None:
        scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    else:
        scanner.subscribe_partition(bucket, 0, fluss.EARLIEST_OFFSET)
    return scanner, (await scanner.to_arrow()).num_rows


def values():
    schema = fluss.Schema(pa.schema([pa.field("id", pa.int32())]))
    given = {"comment": None, "partition_keys": None, "bucket_keys": None, "properties": None}
    print(
        "None for what is optional:", outcome(lambda: bool(fluss.TableDescriptor(schema, **given)))
    )
    key = "client.security.protocol"
    print("keys as Java has them:", outcome(lambda: fluss.Config({key: "sasl"}).security_protocol))
    given = {"writer.batch-size": "2mb", "connect-timeout": "10s"}
    print("sizes as Java has them:", outcome(lambda: fluss.Config(given).writer_batch_size))
    unsigned = pa.schema([pa.field("id", pa.uint8())])
    print("unsigned bytes:", outcome(lambda: fluss.Schema(unsigned).get_column_types()))
    print("connect timeout:", fluss.Config().connect_timeout_ms)


async def logs(conn, admin, database):
    path = fluss.TablePath(database, "log")
    fields = pa.schema([pa.field("id", pa.int32()), pa.field("name", pa.string())])
    await admin.create_table(path, fluss.TableDescriptor(fluss.Schema(fields), bucket_count=1))
    print("no such table:", await told(conn.get_table(fluss.TablePath(database, "lag"))))
    table = await conn.get_table(path)
    writer = table.new_append().create_writer()
    wide = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})
    print("a wider type that fits:", outcome(lambda: writer.write_arrow(wide)))
    turned = pa.table({"name": ["c"], "id": pa.array([3], pa.int32())})
    print("columns in another order:", outcome(lambda: writer.write_arrow(turned)))
    handle = writer.append({"id": 4, "name": "d"})
    await handle.wait()
    print("waited for twice:", outcome(handle.wait) == "FlussError")
    scanner, first = await rows_of(table)
    again = await told(scanner.to_pandas())
    print("read twice:", again if isinstance(again, str) else len(again) == first)


async def partitions(conn, admin, database):
    path = fluss.TablePath(database, "partitioned")
    fields = pa.schema([pa.field("id", pa.int32()), pa.field("r", pa.string())])
    descriptor = fluss.TableDescriptor(fluss.Schema(fields), partition_keys=["r"], bucket_count=1)
    await admin.create_table(path, descriptor)
    for name in "AB":
        await admin.create_partition(path, {"r": name})
    table = await conn.get_table(path)
    writer = table.new_append().create_writer()
    writer.write_arrow(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "r": ["A", "B", "A"]}))
    await writer.flush()
    found = {}
    for info in await admin.list_partition_infos(path):
        found[info.partition_name] = (await rows_of(table, info.partition_id))[1]
    print("rows of several partitions:", sorted(found.items()))


async def main():
    values()
    config = fluss.Config({"bootstrap.servers": os.environ["FLUSS_BOOTSTRAP_SERVERS"]})
    conn = await fluss.FlussConnection.create(config)
    admin = conn.get_admin()
    database = os.environ["FLUSS_DATABASE"]
    await admin.create_database(database, ignore_if_exists=True)
    await logs(conn, admin, database)
    await partitions(conn, admin, database)
    await conn.close()


asyncio.run(main())
