"""What goes wrong, and by which code it is known."""

import asyncio
import importlib
import os

import pyarrow as pa

fluss = importlib.import_module(os.environ.get("FLUSS_UNDER_TEST", "fluss"))

CODES = {value: name for name, value in vars(fluss.ErrorCode).items() if name.isupper()}


async def expect(title, work):
    try:
        await work
    except fluss.FlussError as error:
        name = CODES.get(error.error_code)
        print(f"{title}: {name}, retriable: {error.is_retriable}, {type(error.message).__name__}")
    else:
        print(f"{title}: nothing")


def expect_now(title, work):
    try:
        work()
    except fluss.FlussError as error:
        print(f"{title}: refused, {type(error.message).__name__}")
    else:
        print(f"{title}: nothing")


async def projected(table, project):
    await project(table.new_scan()).create_log_scanner()


async def main():
    config = fluss.Config({"bootstrap.servers": os.environ["FLUSS_BOOTSTRAP_SERVERS"]})
    conn = await fluss.FlussConnection.create(config)
    admin = conn.get_admin()
    database = os.environ["FLUSS_DATABASE"]
    await admin.create_database(database, ignore_if_exists=True)
    fields = pa.schema([pa.field("id", pa.int32()), pa.field("name", pa.string())])
    descriptor = fluss.TableDescriptor(fluss.Schema(fields), bucket_count=1)
    path = fluss.TablePath(database, "log")
    missing = fluss.TablePath(database, "missing")
    await admin.create_table(path, descriptor)

    await expect("database twice", admin.create_database(database))
    await expect("no such database", admin.drop_database(database + "_not"))
    await expect("info of no database", admin.get_database_info(database + "_not"))
    await expect("table twice", admin.create_table(path, descriptor))
    await expect("no such table", admin.drop_table(missing))
    await expect("info of no table", admin.get_table_info(missing))
    await expect("tables of no database", admin.list_tables(database + "_not"))
    await expect("partition of no partitions", admin.create_partition(path, {"id": "1"}))
    await expect("no lake", admin.get_latest_lake_snapshot(path))

    table = await conn.get_table(path)
    scanner = await table.new_scan().create_log_scanner()
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    await expect("batches of records", scanner.poll_arrow(10))
    await expect("table of records", scanner.to_arrow())
    scanner = await table.new_scan().create_record_batch_log_scanner()
    scanner.subscribe(0, fluss.EARLIEST_OFFSET)
    await expect("records of batches", scanner.poll(10))
    await expect("column by name", projected(table, lambda scan: scan.project_by_name(["nope"])))
    await expect("column by index", projected(table, lambda scan: scan.project([7])))
    expect_now("upsert into a log", table.new_upsert)
    expect_now("lookup in a log", table.new_lookup)
    expect_now("unknown option", lambda: fluss.Config({"no.such.option": "1"}))

    writer = table.new_append().create_writer()
    expect_now("too many values", lambda: writer.append([1, "a", 2]))
    handle = writer.append({"id": 1, "name": "one"})
    await handle.wait()
    await writer.flush()

    error = fluss.FlussError("a message", 7)
    print(
        error.message,
        error.error_code,
        isinstance(error, Exception),
        fluss.FlussError("x").error_code,
    )
    print(fluss.ErrorCode.CLIENT_ERROR, fluss.ErrorCode.TABLE_NOT_EXIST, fluss.ErrorCode.NONE)
    await admin.drop_table(path)
    await conn.close()


asyncio.run(main())
