"""Databases, tables and what is known of them."""

import asyncio
import importlib
import os

import pyarrow as pa

fluss = importlib.import_module(os.environ.get("FLUSS_UNDER_TEST", "fluss"))


async def databases(admin, name):
    descriptor = fluss.DatabaseDescriptor("a comment", {"owner": "tests"})
    print(descriptor.comment, descriptor.get_custom_properties())
    await admin.create_database(name, descriptor)
    await admin.create_database(name, ignore_if_exists=True)
    print(name in await admin.list_databases(), await admin.database_exists(name))
    print(await admin.database_exists(name + "_not"))
    info = await admin.get_database_info(name)
    kept = info.get_database_descriptor()
    print(info.database_name == name, kept.comment, kept.get_custom_properties())
    print(info.created_time > 0, info.modified_time >= info.created_time)


async def tables(conn, admin, database):
    fields = [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("region", pa.string(), nullable=False),
        pa.field("value", pa.int64()),
    ]
    schema = fluss.Schema(pa.schema(fields), primary_keys=["id", "region"])
    descriptor = fluss.TableDescriptor(
        schema,
        partition_keys=["region"],
        bucket_count=4,
        bucket_keys=["id"],
        comment="a table",
        log_format="ARROW",
        kv_format="COMPACTED",
        properties={"table.replication.factor": "1"},
        custom_properties={"mine": "yes"},
    )
    print(descriptor.get_schema().get_column_names())
    path = fluss.TablePath(database, "described")
    print(
        path.table_name,
        path.database_name == database,
        path.table_path_str() == f"{database}.described",
    )
    print(
        path == fluss.TablePath(database, "described"), path == fluss.TablePath(database, "other")
    )
    await admin.create_table(path, descriptor)
    await admin.create_table(path, descriptor, ignore_if_exists=True)
    print(await admin.list_tables(database), await admin.table_exists(path))
    print(await admin.table_exists(fluss.TablePath(database, "other")))
    table = await conn.get_table(path)
    for info in (await admin.get_table_info(path), table.get_table_info()):
        print(info.table_path == path, info.table_id >= 0, info.schema_id, info.num_buckets)
        print(
            info.comment, info.get_primary_keys(), info.get_partition_keys(), info.get_bucket_keys()
        )
        print(info.has_primary_key(), info.is_partitioned(), info.get_column_count())
        print(info.get_column_names(), info.get_custom_properties())
        print(sorted(info.get_properties().items()))
        print(info.created_time > 0, info.modified_time >= info.created_time)
        kept = info.get_schema()
        print(kept.get_columns(), kept.get_column_types(), kept.get_primary_keys())
    print(table.get_table_path() == path, table.has_primary_key())
    await admin.drop_table(path)
    await admin.drop_table(path, ignore_if_not_exists=True)
    print(await admin.list_tables(database))


async def main():
    config = fluss.Config({"bootstrap.servers": os.environ["FLUSS_BOOTSTRAP_SERVERS"]})
    conn = await fluss.FlussConnection.create(config)
    admin = conn.get_admin()
    database = os.environ["FLUSS_DATABASE"]
    await databases(admin, database)
    await tables(conn, admin, database)
    nodes = await admin.get_server_nodes()
    for node in sorted(nodes, key=lambda each: each.uid):
        print(node.server_type, node.uid, node.id, type(node.host).__name__, node.port > 0)
    await admin.drop_database(database, cascade=True)
    await admin.drop_database(database, ignore_if_not_exists=True)
    print(await admin.database_exists(database))
    await conn.close()


asyncio.run(main())
