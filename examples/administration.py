"""Create and list databases and tables, list offsets and servers, and show an error with its hint.

    python examples/administration.py [127.0.0.1:9123]

Prints:
    database made: True
    tables: ['orders']
    id INT, name STRING in 3 buckets
    latest offsets: {0: 0, 1: 0, 2: 0}
    servers: CoordinatorServer, TabletServer
    refused (7): Table 'example_admin.order' does not exist.
      hint: did you mean 'orders'?
    database gone: True
"""

import asyncio
import sys

import pyarrow as pa

import fluss

SERVERS = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9123"
DATABASE = "example_admin"


async def main() -> None:
    config = fluss.Config({"bootstrap.servers": SERVERS})
    with await fluss.FlussConnection.create(config) as conn:
        admin = await conn.get_admin()
        await admin.drop_database(DATABASE, ignore_if_not_exists=True, cascade=True)
        await admin.create_database(DATABASE, fluss.DatabaseDescriptor(comment="for a moment"))
        print("database made:", await admin.database_exists(DATABASE))

        path = fluss.TablePath(DATABASE, "orders")
        schema = fluss.Schema(pa.schema([("id", pa.int32()), ("name", pa.string())]))
        await admin.create_table(path, fluss.TableDescriptor(schema, bucket_count=3))
        print("tables:", await admin.list_tables(DATABASE))
        info = await admin.get_table_info(path)
        columns = ", ".join(f"{each.name} {each.data_type}" for each in info.schema.columns)
        print(columns, "in", info.num_buckets, "buckets")
        latest = await admin.list_offsets(path, range(3), fluss.OffsetSpec.latest())
        print("latest offsets:", latest)
        nodes = await admin.get_server_nodes()
        print("servers:", ", ".join(sorted({str(each.server_type) for each in nodes})))

        try:
            await conn.get_table(fluss.TablePath(DATABASE, "order"))
        except fluss.FlussError as error:
            print(f"refused ({error.error_code}): {error}")
        await admin.drop_database(DATABASE, cascade=True)
        print("database gone:", not await admin.database_exists(DATABASE))


asyncio.run(main())
